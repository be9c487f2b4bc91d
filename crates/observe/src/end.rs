//! Ends of pipes, FIFOs and sockets that a process holds, by its descriptors (proc_pid_fd(5)).

use std::fs;
use std::io;

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, lstat, statx};

use crate::open_file::Identity;

/// What kind of file joins processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Joint {
    /// A pipe or a FIFO, by its device and inode.
    Pipe(Identity),
    /// A socket, by its inode: its other end is another socket.
    Socket(u64),
}

/// A descriptor that is one end of a joint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The descriptor's number.
    pub fd: i32,
    /// What it is an end of.
    pub joint: Joint,
    /// Whether it was opened for reading.
    pub reads: bool,
    /// Whether it was opened for writing.
    pub writes: bool,
}

/// The ends that a process holds, looked at one by one.
///
/// # Errors
/// ENOENT where it has gone, EACCES where it is somebody else's (ptrace(2), "ptrace access mode checking").
pub fn ends(pid: i32) -> io::Result<impl Iterator<Item = End>> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.filter_map(move |fd| end(pid, fd)))
}

/// The end that a descriptor is; `None` where it is none, or has gone.
pub fn end(pid: i32, fd: i32) -> Option<End> {
    let path = format!("/proc/{pid}/fd/{fd}");
    let shown_as = fs::read_link(&path).ok()?;
    let shown_as = shown_as.to_str()?;
    let number = |kind: &str| shown_as.strip_prefix(kind)?.strip_suffix(']')?.parse::<u64>().ok();
    let joint = match number("socket:[") {
        Some(inode) => Joint::Socket(inode),
        // Anything else with a name may be a FIFO; what is shown in brackets is none, pipes excepted.
        None if shown_as.starts_with('/') || shown_as.starts_with("pipe:[") => Joint::Pipe(pipe(&path)?),
        None => return None,
    };
    // The rights of the link itself say how it was opened (proc_pid_fd(5)).
    let mode = lstat(&path).ok()?.st_mode;
    Some(End { fd, joint, reads: mode & 0o400 != 0, writes: mode & 0o200 != 0 })
}

/// The identity of a pipe or a FIFO; `None` of another file. A dead network disk is not asked (statx(2), `AT_STATX_DONT_SYNC`).
fn pipe(path: &str) -> Option<Identity> {
    let asked = StatxFlags::TYPE | StatxFlags::INO;
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, asked).ok()?;
    let is_pipe = FileType::from_raw_mode(found.stx_mode.into()) == FileType::Fifo;
    is_pipe.then(|| (rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn both_ends_of_a_pipe_and_of_a_fifo_are_known_again() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let own = std::process::id() as i32;
        let [reads, writes] =
            [reader.as_raw_fd(), writer.as_raw_fd()].map(|fd| end(own, fd).expect("an end"));
        assert_eq!(reads.joint, writes.joint);
        assert_eq!([reads.reads, reads.writes, writes.reads, writes.writes], [true, false, false, true]);
        let all: Vec<End> = ends(own).expect("ours").collect();
        assert!(all.contains(&reads) && all.contains(&writes));
    }

    #[test]
    fn a_socket_is_one_and_a_file_is_none() {
        let own = std::process::id() as i32;
        let (one, other) = UnixStream::pair().expect("a pair");
        let [one, other] = [one.as_raw_fd(), other.as_raw_fd()].map(|fd| end(own, fd).expect("an end"));
        assert!(matches!((one.joint, other.joint), (Joint::Socket(a), Joint::Socket(b)) if a != b));
        assert!(one.reads && one.writes);
        let file = fs::File::open("/proc/self/stat").expect("opened");
        assert_eq!(end(own, file.as_raw_fd()), None);
        assert!(ends(i32::MAX).is_err());
    }
}
