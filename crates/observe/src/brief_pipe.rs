//! A pipe's reading end, opened for some microseconds through /proc/PID/fd: the only way to read how much another process's pipe holds, and to
//! change its size. While it is open this process counts as a reader: a writer whose last other reader ends meanwhile gets SIGPIPE only when it
//! is closed. (With a writing end, readers would not see the end of file; a copy of the descriptor, pidfd_getfd(2), has the same effect and
//! needs more rights; with a descriptor of O_PATH the calls for pipes fail.)

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use process::signals::NoSignals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open, stat};
use rustix::io::Errno;

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
    let Some(end) = end else { return false };
    let mut state = [PollFd::new(&end, PollFlags::empty())];
    let is_known = poll(&mut state, Some(&Timespec::default())).is_ok();
    is_known && state[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

impl AsFd for BriefPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
