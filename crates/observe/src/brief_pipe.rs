//! A pipe's reading end, opened for some microseconds through /proc/PID/fd: the only way to ask another process's pipe how much it
//! holds, and the only one to change its size. While it is open this process counts as a reader: a writer whose last true reader
//! leaves meanwhile gets its SIGPIPE when it is closed, and not before. (A writing end would keep the end of file from readers; a copy
//! of the descriptor, pidfd_getfd(2), would be the same and needs more rights; O_PATH has no pipe's calls.)

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use process::signals::NoSignals;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, stat};
use rustix::io::Errno;

use crate::open_file::{Identity, identity};

/// A reading end, to be dropped at once. Meanwhile no signal stops or ends this thread; only SIGSTOP can keep it open, and SIGKILL
/// closes it.
pub struct BriefPipe {
    // Closed first: fields are dropped in their order.
    pipe: OwnedFd,
    _held: NoSignals,
}

impl BriefPipe {
    /// Opens the pipe that a process has as this descriptor, at whichever end.
    ///
    /// # Errors
    /// ENOENT where the process or the descriptor has gone, ENXIO where it is no pipe or not the expected one; EACCES where it is
    /// another user's.
    pub fn open(pid: i32, fd: i32, expected: Option<Identity>) -> Result<Self, Errno> {
        let path = format!("/proc/{pid}/fd/{fd}");
        let is_it = |found: rustix::fs::Stat| {
            let is_pipe = FileType::from_raw_mode(found.st_mode) == FileType::Fifo;
            is_pipe && expected.is_none_or(|expected| expected == identity(&found))
        };
        // What is no pipe is not opened: to open a device may do something.
        if !is_it(stat(&path)?) {
            return Err(Errno::NXIO);
        }
        let held = NoSignals::hold();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let brief = Self { pipe: open(&path, flags, Mode::empty())?, _held: held };
        // Another file may have got the number in between.
        if is_it(fstat(&brief.pipe)?) { Ok(brief) } else { Err(Errno::NXIO) }
    }
}

impl AsFd for BriefPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
