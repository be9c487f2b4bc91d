//! A pipe's reading end, opened for some microseconds through /proc/PID/fd: the only way to read how much another process's pipe holds, and to
//! change its size. While it is open this process counts as a reader: a writer whose last other reader ends meanwhile gets SIGPIPE only when it
//! is closed. (With a writing end, readers would not see the end of file; a copy of the descriptor, pidfd_getfd(2), has the same effect and
//! needs more rights; with a descriptor of O_PATH the calls for pipes fail.)

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use process::ready_within;
use process::signals::NoSignals;
use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, stat};
use rustix::io::Errno;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

use crate::fullness::borrow;
use crate::open_file::{Identity, identity};

/// A reading end, to be dropped soon. Signals are blocked until then, so that none delays that; only SIGSTOP can.
pub struct BriefPipe {
    // Closed first: fields are dropped in their order.
    pipe: OwnedFd,
    _signals: NoSignals,
}

impl BriefPipe {
    /// Opens the pipe of which this descriptor of a process is an end, the reading or the writing one.
    ///
    /// # Errors
    /// ENOENT if the process has ended or the descriptor is closed, ENXIO if it is no pipe or not the expected one; EACCES if it is
    /// another user's.
    pub fn open(pid: i32, fd: i32, expected: Option<Identity>) -> Result<Self, Errno> {
        let path = format!("/proc/{pid}/fd/{fd}");
        let is_it = |found: rustix::fs::Stat| {
            let is_pipe = FileType::from_raw_mode(found.st_mode) == FileType::Fifo;
            is_pipe && expected.is_none_or(|expected| expected == identity(&found))
        };
        // Other files are not opened: opening a device may have an effect.
        if !is_it(stat(&path)?) {
            return Err(Errno::NXIO);
        }
        let signals = NoSignals::block();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let brief = Self { pipe: open(&path, flags, Mode::empty())?, _signals: signals };
        // Meanwhile another file may have got this descriptor.
        if is_it(fstat(&brief.pipe)?) { Ok(brief) } else { Err(Errno::NXIO) }
    }

    /// Its size in bytes (fcntl(2), F_GETPIPE_SZ).
    pub fn size(&self) -> Result<u64, Errno> {
        fcntl_getpipe_size(&self.pipe).map(|bytes| bytes as u64)
    }

    /// Changes its size (F_SETPIPE_SZ), the only change that this crate makes to what it observes. Returns the size that it has then.
    ///
    /// # Errors
    /// EPERM above fs.pipe-max-size or the quota of the pipe's user, EBUSY if it holds more.
    pub fn resize(&self, bytes: u64) -> Result<u64, Errno> {
        // A size above usize::MAX is refused by the kernel like any other that is too large.
        fcntl_setpipe_size(&self.pipe, usize::try_from(bytes).unwrap_or(usize::MAX)).map(|bytes| bytes as u64)
    }
}

/// Whether a descriptor of a process is the writing end of a pipe or a socket that no process reads any more. For a pipe another writing end is opened
/// briefly, on which poll(2) answers POLLERR then (pipe(7)).
pub fn is_unread(pid: i32, fd: i32) -> bool {
    let path = format!("/proc/{pid}/fd/{fd}");
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let _signals = NoSignals::block();
    let end = match stat(&path).map(|found| FileType::from_raw_mode(found.st_mode)) {
        Ok(FileType::Fifo) => open(&path, flags, Mode::empty()).ok(),
        Ok(FileType::Socket) => borrow(pid, fd),
        _ => None,
    };
    // Without a flag poll(2) answers POLLERR and POLLHUP only.
    end.is_some_and(|end| ready_within(&end, PollFlags::empty(), Some(Duration::ZERO)).unwrap_or(false))
}

impl AsFd for BriefPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::endpoint::{IpcFile, endpoint};
    use crate::waits::{self, Blocked, WatchedFd};

    fn pipe_of(pid: i32, fd: i32) -> Identity {
        match endpoint(pid, fd).expect("an end").ipc_file {
            IpcFile::Pipe(pipe) => pipe,
            IpcFile::Socket(_) | IpcFile::Terminal { .. } => panic!("no pipe"),
        }
    }

    /// A writer that is asleep before a full pipe, and its pipe.
    fn blocked_writer() -> (Child, Identity) {
        let writer = Command::new("yes").stdout(Stdio::piped()).spawn().expect("yes");
        let pid = writer.id() as i32;
        let deadline = Instant::now() + Duration::from_secs(20);
        let asleep = Some(Blocked::On(vec![WatchedFd { fd: 1, reads: false, writes: true }]));
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
        let open = || BriefPipe::open(own, writer.as_raw_fd(), Some(pipe)).expect("its pipe");
        let before = open().size().expect("its size");
        assert_eq!((open().resize(4 * before), open().size()), (Ok(4 * before), Ok(4 * before)));
        assert_eq!(fcntl_getpipe_size(&reader), Ok(4 * before as usize));
        let block = vec![7; before as usize + 1];
        std::io::Write::write_all(&mut &writer, &block).expect("room");
        assert_eq!(open().resize(before), Err(Errno::BUSY));
        let refused = |pid, fd, pipe| BriefPipe::open(pid, fd, Some(pipe)).err();
        assert_eq!(refused(own, reader.as_raw_fd(), (0, 0)), Some(Errno::NXIO));
        assert_eq!(refused(i32::MAX, 1, pipe), Some(Errno::NOENT));
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
