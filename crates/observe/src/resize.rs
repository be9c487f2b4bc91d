//! Changes the size of another program's pipe while it is in use (fcntl(2), F_SETPIPE_SZ): the only change that this crate makes
//! to what it observes.

use rustix::io::Errno;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

use crate::brief_pipe::BriefPipe;
use crate::open_file::Identity;

/// Resizes a pipe that process `pid` has as descriptor `fd`. `wanted` gets its size and returns the new size
/// in bytes, or `None` to leave it. Returns the sizes before and after.
///
/// # Errors
/// As [`BriefPipe::open`]; EPERM above fs.pipe-max-size or the quota of the pipe's user, EBUSY if it holds more than the new size.
pub fn resize(
    pid: i32,
    fd: i32,
    pipe: Identity,
    wanted: impl FnOnce(u64) -> Option<u64>,
) -> Result<(u64, u64), Errno> {
    let open = BriefPipe::open(pid, fd, Some(pipe))?;
    let before = fcntl_getpipe_size(&open)? as u64;
    let after = match wanted(before) {
        // A size above usize::MAX is refused by the kernel like any other that is too large.
        Some(bytes) => fcntl_setpipe_size(&open, usize::try_from(bytes).unwrap_or(usize::MAX))? as u64,
        None => before,
    };
    Ok((before, after))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::end::{IpcFile, end};
    use crate::waits::{self, Awaited, Waits};

    fn pipe_of(pid: i32, fd: i32) -> Identity {
        match end(pid, fd).expect("an end").ipc_file {
            IpcFile::Pipe(pipe) => pipe,
            IpcFile::Socket(_) | IpcFile::Terminal { .. } => panic!("no pipe"),
        }
    }

    /// A writer that is asleep before a full pipe, and its pipe.
    fn blocked_writer() -> (Child, Identity) {
        let writer = Command::new("yes").stdout(Stdio::piped()).spawn().expect("yes");
        let pid = writer.id() as i32;
        let deadline = Instant::now() + Duration::from_secs(20);
        let asleep = Some(Waits::For(vec![Awaited { fd: 1, reads: false, writes: true }]));
        while waits::at(pid, &format!("/proc/{pid}")) != asleep {
            assert!(Instant::now() < deadline, "it fills its pipe");
            std::thread::sleep(Duration::from_millis(1));
        }
        (writer, pipe_of(pid, 1))
    }

    #[test]
    fn a_pipe_grows_and_shrinks_from_outside_and_never_below_what_it_holds() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let own = std::process::id() as i32;
        let pipe = pipe_of(own, writer.as_raw_fd());
        let set = |bytes| resize(own, writer.as_raw_fd(), pipe, |_| Some(bytes));
        let before = fcntl_getpipe_size(&reader).expect("its size") as u64;
        assert_eq!(set(4 * before), Ok((before, 4 * before)));
        assert_eq!(fcntl_getpipe_size(&reader), Ok(4 * before as usize));
        let block = vec![7; before as usize + 1];
        std::io::Write::write_all(&mut &writer, &block).expect("room");
        assert_eq!(set(before), Err(Errno::BUSY));
        let seen = resize(own, reader.as_raw_fd(), pipe, |size| {
            assert_eq!(size, 4 * before);
            None
        });
        assert_eq!(seen, Ok((4 * before, 4 * before)));
        assert_eq!(resize(own, reader.as_raw_fd(), (0, 0), |_| Some(4096)), Err(Errno::NXIO));
        assert_eq!(resize(i32::MAX, 1, pipe, |_| Some(4096)), Err(Errno::NOENT));
    }

    /// The last other reader ends while we have the pipe open and its writer sleeps: the writer does not notice, continues if there is room,
    /// and ends by SIGPIPE as soon as we have closed the pipe.
    #[test]
    fn a_writer_whose_reader_leaves_within_the_open_has_its_sigpipe_behind_it() {
        for grows in [false, true] {
            let (mut writer, pipe) = blocked_writer();
            let open = BriefPipe::open(writer.id() as i32, 1, Some(pipe)).expect("its pipe");
            drop(writer.stdout.take());
            if grows {
                let size = fcntl_getpipe_size(&open).expect("its size");
                fcntl_setpipe_size(&open, 4 * size).expect("it grows");
            }
            std::thread::sleep(Duration::from_millis(20));
            assert!(writer.try_wait().expect("asked").is_none(), "it has a reader, as far as it knows");
            drop(open);
            assert_eq!(writer.wait().expect("ended").signal(), Some(libc::SIGPIPE), "grows: {grows}");
        }
    }

    /// Our open end is no writer, so it does not delay the end of file for a reader.
    #[test]
    fn the_end_of_file_comes_within_the_open() {
        let mut reader =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
        let pid = reader.id() as i32;
        let open = BriefPipe::open(pid, 0, Some(pipe_of(pid, 0))).expect("its pipe");
        drop(reader.stdin.take());
        assert!(reader.wait().expect("ended").success());
        drop(open);
    }
}
