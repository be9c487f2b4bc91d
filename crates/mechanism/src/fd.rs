//! Ends that are file descriptors: read(2) and write(2) until all is done, waiting as told.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use model::{Tasks, Wait};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

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
    /// How the ends of this request wait.
    pub(crate) fn of(request: &Request<'_>) -> Self {
        match (request.tasks, request.wait) {
            (Tasks::Single, _) => Self::Never,
            (_, Wait::Block) => Self::InCall,
            (_, Wait::Poll) => Self::InPoll,
            (_, Wait::Spin) => Self::Spin,
        }
    }

    /// Puts the descriptor in the mode this way of waiting needs.
    pub(crate) fn apply(self, fd: &impl AsFd) -> Result<(), OpenError> {
        let flags = fcntl_getfl(fd).map_err(OpenError::system("fcntl(F_GETFL)"))?;
        let wanted = if self == Self::InCall { flags - OFlags::NONBLOCK } else { flags | OFlags::NONBLOCK };
        fcntl_setfl(fd, wanted).map_err(OpenError::system("fcntl(F_SETFL)"))
    }

    /// Waits after EAGAIN. Returns how many system calls that took.
    #[cold]
    pub(crate) fn after_would_block(self, fd: &impl AsFd, interest: PollFlags) -> io::Result<u64> {
        match self {
            Self::InCall | Self::Never => Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                "one task that sends and then receives would wait for itself: the block does not fit in the \
                 channel (smaller --block, larger buffer option, or --tasks processes)",
            )),
            Self::Spin => {
                std::hint::spin_loop();
                Ok(0)
            }
            Self::InPoll => match poll(&mut [PollFd::new(fd, interest)], None) {
                Ok(_) | Err(Errno::INTR) => Ok(1),
                Err(error) => Err(error.into()),
            },
        }
    }
}

/// The writing end of a byte stream.
pub(crate) struct FdSender {
    fd: Option<OwnedFd>,
    wait: FdWait,
    syscalls: u64,
}

impl FdSender {
    /// Takes a descriptor and puts it in the mode its waiting needs.
    pub(crate) fn new(fd: OwnedFd, wait: FdWait) -> Result<Self, OpenError> {
        wait.apply(&fd)?;
        Ok(Self { fd: Some(fd), wait, syscalls: 0 })
    }
}

impl Sender for FdSender {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let fd = self.fd.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let mut rest = block;
        loop {
            self.syscalls += 1;
            match rustix::io::write(fd, rest) {
                Ok(written) if written == rest.len() => return Ok(()),
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.syscalls += self.wait.after_would_block(fd, PollFlags::OUT)?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.fd = None;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

/// The reading end of a byte stream.
pub(crate) struct FdReceiver {
    fd: OwnedFd,
    wait: FdWait,
    syscalls: u64,
}

impl FdReceiver {
    /// Takes a descriptor and puts it in the mode its waiting needs.
    pub(crate) fn new(fd: OwnedFd, wait: FdWait) -> Result<Self, OpenError> {
        wait.apply(&fd)?;
        Ok(Self { fd, wait, syscalls: 0 })
    }
}

impl Receiver for FdReceiver {
    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            self.syscalls += 1;
            match rustix::io::read(&self.fd, &mut *room) {
                Ok(received) => return Ok(received),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.syscalls += self.wait.after_would_block(&self.fd, PollFlags::IN)?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}
