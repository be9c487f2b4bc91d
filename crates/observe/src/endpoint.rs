//! Ends of pipes, FIFOs, sockets and pseudoterminals that a process has open, by its descriptors (proc_pid_fd(5)).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use process::proc::{Stat, is_listed, other_processes};
use rustix::fs::{FileType, fstat, lstat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::open_file::{Identity, found_at};

/// A file that connects processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpcFile {
    /// A pipe or a FIFO, by its device and inode.
    Pipe(Identity),
    /// A socket, by its inode; its other end is another socket.
    Socket(u64),
    /// A pseudoterminal, by its number and the mount namespace in which it has this number.
    Terminal { number: u32, namespace: u64, is_master: bool },
}

impl IpcFile {
    /// The identity, if it is a pipe or a FIFO.
    pub fn pipe(self) -> Option<Identity> {
        match self {
            Self::Pipe(pipe) => Some(pipe),
            Self::Socket(_) | Self::Terminal { .. } => None,
        }
    }
}

/// A descriptor that is one end of an [`IpcFile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// The descriptor's number.
    pub fd: i32,
    /// The file of which it is an end.
    pub ipc_file: IpcFile,
    /// Whether it was opened for reading.
    pub reads: bool,
    /// Whether it was opened for writing.
    pub writes: bool,
}

impl Endpoint {
    /// Whether it was opened for writing, or for reading.
    pub(crate) fn is_for(&self, writes: bool) -> bool {
        if writes { self.writes } else { self.reads }
    }
}

/// The open files of a process.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ProcessFiles {
    /// The ends of pipes, FIFOs and sockets.
    pub endpoints: Vec<Endpoint>,
    /// Ends of pseudoterminals. The fields below treat them as other files.
    pub terminals: Vec<Endpoint>,
    /// Whether it can also read from another file, so that the bytes that it has read may come from there.
    pub reads_elsewhere: bool,
    /// Whether it can also write to another file; standard error on a terminal does not count.
    pub writes_elsewhere: bool,
}

/// Largest number of descriptors of one process that are read: a process may have a million, and a sample must be short.
const DESCRIPTORS_MAX: usize = 4096;

/// The open files of a process, at most [`DESCRIPTORS_MAX`].
///
/// # Errors
/// As [`endpoints`].
pub fn process_files(pid: i32) -> io::Result<ProcessFiles> {
    first_files(pid, DESCRIPTORS_MAX)
}

/// Those with the smallest descriptors, `most` in total, by their numbers.
///
/// # Errors
/// As [`endpoints`].
pub(crate) fn first_files(pid: i32, most: usize) -> io::Result<ProcessFiles> {
    let mut process_files = ProcessFiles::default();
    for fd in numbers(pid)?.take(most) {
        let path = format!("/proc/{pid}/fd/{fd}");
        let Some(shown_as) = fs::read_link(&path).ok() else { continue };
        if let Some(end) = endpoint_shown(fd, &path, &shown_as) {
            process_files.endpoints.push(end);
            continue;
        }
        let shown_as = shown_as.as_os_str().as_encoded_bytes();
        process_files.terminals.extend(terminal(pid, fd, shown_as));
        // Events and similar files (anon_inode:[eventfd]) have no data. Bytes of io_uring are not counted by the kernel.
        let is_counter = shown_as.starts_with(b"anon_inode:") && !shown_as.ends_with(b"[io_uring]");
        let is_terminal = shown_as.starts_with(b"/dev/pts/") || shown_as == b"/dev/tty";
        let mode = lstat(&path).map_or(0o600, |stat| stat.st_mode);
        let holds_nothing = shown_as == b"/dev/null";
        let may_read = mode & 0o400 != 0 && !holds_nothing && !matches!(fd, 1 | 2);
        process_files.reads_elsewhere |= !is_counter && may_read;
        process_files.writes_elsewhere |=
            !is_counter && mode & 0o200 != 0 && fd != 0 && !(is_terminal && fd >= 2);
    }
    Ok(process_files)
}

/// The end of a pseudoterminal to which a descriptor refers (pty(7)). The number of a master is in /proc/PID/fdinfo.
fn terminal(pid: i32, fd: i32, shown_as: &[u8]) -> Option<Endpoint> {
    let shown_as = str::from_utf8(shown_as).ok()?;
    let is_master = matches!(shown_as, "/dev/ptmx" | "/dev/pts/ptmx");
    let number = if is_master {
        let about = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
        about.lines().find_map(|line| line.strip_prefix("tty-index:"))?.trim().parse().ok()?
    } else {
        shown_as.strip_prefix("/dev/pts/")?.parse().ok()?
    };
    let namespace = fs::metadata(format!("/proc/{pid}/ns/mnt")).ok()?.ino();
    Some(Endpoint {
        fd,
        ipc_file: IpcFile::Terminal { number, namespace, is_master },
        reads: true,
        writes: true,
    })
}

fn numbers(pid: i32) -> io::Result<impl Iterator<Item = i32>> {
    let is_denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    // Root in a container may list descriptors without the right to see their files. This link needs the same right.
    let refused = fs::read_link(format!("/proc/{pid}/cwd")).err().filter(is_denied);
    let entries = refused
        .map_or_else(|| fs::read_dir(format!("/proc/{pid}/fd")), Err)
        .map_err(|error| if is_denied(&error) && is_exiting(pid) { Errno::NOENT.into() } else { error })?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

/// Whether the first thread of a process has ended or begins to: its files in /proc are root's then.
fn is_exiting(pid: i32) -> bool {
    Stat::of(pid).map_or_else(|| !is_listed(pid), |stat| stat.is_exiting)
}

/// Whether this user may not see what a process has open.
pub fn are_hidden(pid: i32) -> bool {
    numbers(pid).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// The ends that a process has open, read one by one.
///
/// # Errors
/// ENOENT if its first thread has ended, EACCES if this user may not see them (ptrace(2), "Ptrace access mode checking").
pub fn endpoints(pid: i32) -> io::Result<impl Iterator<Item = Endpoint>> {
    Ok(numbers(pid)?.filter_map(move |fd| endpoint(pid, fd)))
}

/// Whether several processes have one pipe open, and `is_meant` is true for one of them.
pub fn has_pipe_in_common(is_meant: impl Fn(i32) -> bool) -> bool {
    let mut holders: HashMap<Identity, HashSet<i32>> = HashMap::new();
    for pid in other_processes() {
        let pipes = endpoints(pid).into_iter().flatten().filter_map(|end| end.ipc_file.pipe());
        pipes.for_each(|pipe| holders.entry(pipe).or_default().extend([pid]));
    }
    holders.values().any(|pids| pids.len() > 1 && pids.iter().any(|pid| is_meant(*pid)))
}

/// The end to which a descriptor refers; `None` if it refers to another file, or is closed.
pub fn endpoint(pid: i32, fd: i32) -> Option<Endpoint> {
    let path = format!("/proc/{pid}/fd/{fd}");
    endpoint_shown(fd, &path, &fs::read_link(&path).ok()?)
}

/// The path that a descriptor shows, as that of a FIFO.
pub(crate) fn path_of(pid: i32, fd: i32) -> Option<String> {
    Some(fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?.to_string_lossy().into_owned())
}

fn endpoint_shown(fd: i32, path: &str, shown_as: &Path) -> Option<Endpoint> {
    // A FIFO's name need not be text.
    let shown_as = shown_as.to_string_lossy();
    let number = |kind: &str| shown_as.strip_prefix(kind)?.strip_suffix(']')?.parse::<u64>().ok();
    let ipc_file = match number("socket:[") {
        Some(inode) => {
            return Some(Endpoint { fd, ipc_file: IpcFile::Socket(inode), reads: true, writes: true });
        }
        // A file with a path may be a FIFO. Without a path only `pipe:[INODE]` is a pipe.
        None if shown_as.starts_with('/') => IpcFile::Pipe(pipe(path)?),
        None => IpcFile::Pipe((nameless()?, number("pipe:[")?)),
    };
    // The mode of the symbolic link shows how it was opened (proc_pid_fd(5)).
    let mode = lstat(path).ok()?.st_mode;
    Some(Endpoint { fd, ipc_file, reads: mode & 0o400 != 0, writes: mode & 0o200 != 0 })
}

/// The identity of a pipe or a FIFO; `None` if it is another file.
fn pipe(path: &str) -> Option<Identity> {
    found_at(Path::new(path)).filter(|(kind, ..)| *kind == FileType::Fifo).map(|(_, identity, _)| identity)
}

/// The device number of pipes without a name (pipefs). FIFOs have another one.
pub fn nameless() -> Option<u64> {
    static DEVICE: OnceLock<Option<u64>> = OnceLock::new();
    let made = || pipe_with(PipeFlags::CLOEXEC).and_then(|(reader, _)| fstat(reader)).ok();
    *DEVICE.get_or_init(|| made().map(|stat| stat.st_dev))
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
            [reader.as_raw_fd(), writer.as_raw_fd()].map(|fd| endpoint(own, fd).expect("an endpoint"));
        assert_eq!(reads.ipc_file, writes.ipc_file);
        assert_eq!([reads.reads, reads.writes, writes.reads, writes.writes], [true, false, false, true]);
        let all: Vec<Endpoint> = endpoints(own).expect("ours").collect();
        assert!(all.contains(&reads) && all.contains(&writes));
    }

    #[test]
    fn a_socket_is_one_and_a_file_is_none() {
        let own = std::process::id() as i32;
        let (one, other) = UnixStream::pair().expect("a pair");
        let [one, other] =
            [one.as_raw_fd(), other.as_raw_fd()].map(|fd| endpoint(own, fd).expect("an endpoint"));
        assert!(matches!((one.ipc_file, other.ipc_file), (IpcFile::Socket(a), IpcFile::Socket(b)) if a != b));
        assert!(one.reads && one.writes);
        let file = fs::File::open("/proc/self/stat").expect("opened");
        assert_eq!(endpoint(own, file.as_raw_fd()), None);
        assert!(endpoints(i32::MAX).is_err());
    }
}
