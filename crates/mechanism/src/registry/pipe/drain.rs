//! `recv=splice`: what comes is moved to /dev/null by reference. Nobody looks at it, and nobody could: the bytes
//! never come near the receiver's memory.

use std::io;
use std::os::fd::OwnedFd;

use payload::Consumer;
use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use super::splice_flags;
use crate::fd::FdWait;
use crate::{OpenError, Receiver};

/// The reading end of a pipe, emptied into nothing.
pub(super) struct Drain {
    fd: OwnedFd,
    nowhere: OwnedFd,
    wait: FdWait,
    flags: SpliceFlags,
    syscalls: u64,
}

impl Drain {
    /// Takes a descriptor and puts it in the mode its waiting needs.
    pub(super) fn new(fd: OwnedFd, wait: FdWait) -> Result<Self, OpenError> {
        wait.apply(&fd)?;
        let nowhere = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(OpenError::system("open(/dev/null)"))?;
        Ok(Self { fd, nowhere, wait, flags: splice_flags(wait), syscalls: 0 })
    }
}

impl Receiver for Drain {
    /// What went to /dev/null cannot be passed on.
    fn recv(&mut self, _room: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[inline]
    fn recv_next(&mut self, _consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        loop {
            self.syscalls += 1;
            match splice(&self.fd, None, &self.nowhere, None, most, self.flags) {
                Ok(moved) => return Ok(moved),
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
