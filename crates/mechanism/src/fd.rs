//! Ends that are file descriptors: read(2) and write(2), repeated until all bytes are moved.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use model::{Tasks, Wait};
use process::sleep_on;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::SpliceFlags;

use crate::ends::End;
use crate::system::InCall;
use crate::{OpenError, Receiver, Request, Sender};

/// What an end does when a call would block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FdWait {
    /// Sleeps in the call itself.
    InCall,
    /// Non-blocking, sleeps in poll(2).
    InPoll,
    /// Non-blocking, tries again at once.
    Spin,
    /// Non-blocking, gives up: a single task that waited for itself would wait for ever.
    Never,
}

impl FdWait {
    /// How the ends of this request wait: as the spec's option `wait` says, or else as the case says.
    pub(crate) fn for_request(request: &Request<'_>) -> Self {
        match (request.tasks, request.options.parsed("wait").unwrap_or(request.wait)) {
            (Tasks::Single, _) => Self::Never,
            (_, Wait::Block) => Self::InCall,
            (_, Wait::Poll) => Self::InPoll,
            (_, Wait::Spin) => Self::Spin,
        }
    }

    /// Flags for splice(2), vmsplice(2) and tee(2), since not all of them respect O_NONBLOCK.
    pub(crate) fn splice_flags(self) -> SpliceFlags {
        if self == Self::InCall { SpliceFlags::empty() } else { SpliceFlags::NONBLOCK }
    }

    /// Sets or clears O_NONBLOCK, as this way of waiting needs it.
    pub(crate) fn apply(self, fd: &impl AsFd) -> Result<(), OpenError> {
        let flags = fcntl_getfl(fd).in_call("fcntl(F_GETFL)")?;
        let wanted = if self == Self::InCall { flags - OFlags::NONBLOCK } else { flags | OFlags::NONBLOCK };
        fcntl_setfl(fd, wanted).in_call("fcntl(F_SETFL)")
    }

    /// Waits after EAGAIN. Returns the number of system calls that it made.
    #[cold]
    pub(crate) fn after_would_block(self, fd: &impl AsFd, interest: PollFlags) -> io::Result<u64> {
        match self {
            Self::InCall | Self::Never => Err(would_wait_for_itself(
                "the block does not fit in the channel (smaller --block, larger buffer option, or --tasks processes)",
            )),
            Self::Spin => {
                std::hint::spin_loop();
                Ok(0)
            }
            Self::InPoll => sleep_on(&mut [PollFd::new(fd, interest)], None).map(|()| 1),
        }
    }
}

/// The error of a single task that would wait for itself, with the reason.
#[cold]
pub(crate) fn would_wait_for_itself(why: &str) -> io::Error {
    let text = format!("one task that sends and then receives would wait for itself: {why}");
    io::Error::new(io::ErrorKind::WouldBlock, text)
}

/// An end that is a descriptor.
pub(crate) struct FdEnd {
    /// `None` once it was closed.
    fd: Option<OwnedFd>,
    pub(crate) wait: FdWait,
    pub(crate) syscalls: u64,
}

impl FdEnd {
    /// Takes a descriptor and puts it in the mode that `wait` needs.
    pub(crate) fn new(fd: OwnedFd, wait: FdWait) -> Result<Self, OpenError> {
        wait.apply(&fd)?;
        Ok(Self { fd: Some(fd), wait, syscalls: 0 })
    }

    /// An end that has no descriptor yet.
    pub(crate) fn none(wait: FdWait) -> Self {
        Self { fd: None, wait, syscalls: 0 }
    }

    /// A duplicate of this end for another task (dup(2)).
    pub(crate) fn share(&self) -> io::Result<Self> {
        Ok(Self { fd: Some(self.fd()?.try_clone()?), wait: self.wait, syscalls: 0 })
    }

    /// The descriptor, unless it was closed.
    #[inline]
    pub(crate) fn fd(&self) -> io::Result<&OwnedFd> {
        self.fd.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Makes a call until it is neither interrupted nor would have to wait; each try counts as a system call.
    #[inline(always)]
    pub(crate) fn retry<T>(
        &mut self,
        interest: PollFlags,
        call: impl FnMut(&OwnedFd) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        self.retry_with(call, |fd, wait| wait.after_would_block(fd, interest))
    }

    /// The same with another way to wait after EAGAIN, which returns the number of its system calls.
    #[inline(always)]
    pub(crate) fn retry_with<T>(
        &mut self,
        mut call: impl FnMut(&OwnedFd) -> rustix::io::Result<T>,
        mut wait: impl FnMut(&OwnedFd, FdWait) -> io::Result<u64>,
    ) -> io::Result<T> {
        let fd = self.fd.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        loop {
            self.syscalls += 1;
            match call(fd) {
                Ok(done) => return Ok(done),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.syscalls += wait(fd, self.wait)?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes `len` bytes. `write` gets the descriptor and the number of bytes that are left, and returns how many it wrote.
    #[inline(always)]
    pub(crate) fn write_all(
        &mut self,
        len: usize,
        mut write: impl FnMut(&OwnedFd, usize) -> rustix::io::Result<usize>,
    ) -> io::Result<()> {
        let mut left = len;
        while left > 0 {
            match self.retry(PollFlags::OUT, |fd| write(fd, left))? {
                // Without this the loop would never end.
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => left -= written,
            }
        }
        Ok(())
    }
}

impl End for FdEnd {
    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

impl Sender for FdEnd {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.write_all(block.len(), |fd, left| rustix::io::write(fd, &block[block.len() - left..]))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.fd = None;
        Ok(())
    }

    fn another(&self) -> Option<io::Result<Self>> {
        Some(self.share())
    }
}

impl Receiver for FdEnd {
    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.retry(PollFlags::IN, |fd| rustix::io::read(fd, &mut *room))
    }

    fn another_receiver(&self) -> Option<io::Result<Self>> {
        Some(self.share())
    }
}
