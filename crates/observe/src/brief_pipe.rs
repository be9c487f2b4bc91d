//! A pipe's reading end, opened for some microseconds through /proc/PID/fd: the only way to read how much another process's pipe holds, and to
//! change its size. While it is open this process counts as a reader: a writer whose last other reader ends meanwhile gets SIGPIPE only when it
//! is closed. (With a writing end, readers would not see the end of file; a copy of the descriptor, pidfd_getfd(2), has the same effect and
//! needs more rights; a descriptor of O_PATH has no calls for pipes.)

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use process::signals::NoSignals;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, stat};
use rustix::io::Errno;

use crate::open_file::{Identity, identity};

/// A reading end, to be dropped at once. Signals are blocked meanwhile, so that none delays that; only SIGSTOP can.
pub struct BriefPipe {
    // Closed first: fields are dropped in their order.
    pipe: OwnedFd,
    _held: NoSignals,
}

impl BriefPipe {
    /// Opens the pipe that a process has as this descriptor, at whichever end.
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
