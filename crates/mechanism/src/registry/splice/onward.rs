//! Moving pages from one descriptor to another, splice(2).

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use super::super::pipe::splice_flags;
use crate::fd::FdWait;

/// What a call may have to wait for: it says that it would block, not why.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaits {
    /// There is something to move, and it waits for room.
    Room,
    /// Something to move, and then room for it.
    Both,
}

/// Moves pages from one descriptor to another.
pub(super) struct Onward {
    from: OwnedFd,
    /// `None` once no more comes.
    pub(super) to: Option<OwnedFd>,
    wait: FdWait,
    flags: SpliceFlags,
    pub(super) syscalls: u64,
}

impl Onward {
    pub(super) fn new(from: OwnedFd, to: OwnedFd, wait: FdWait) -> Self {
        Self { from, to: Some(to), wait, flags: splice_flags(wait), syscalls: 0 }
    }

    /// Moves at most `most` bytes. 0 is the end of the stream.
    #[inline]
    pub(super) fn some(&mut self, most: usize, awaits: Awaits) -> io::Result<usize> {
        let to = self.to.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        loop {
            self.syscalls += 1;
            match splice(&self.from, None, to, None, most, self.flags) {
                Ok(moved) => return Ok(moved),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if awaits == Awaits::Both {
                        self.syscalls += self.wait.after_would_block(&self.from, PollFlags::IN)?;
                    }
                    self.syscalls += self.wait.after_would_block(to, PollFlags::OUT)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Moves all of `len` bytes that lie in `from`.
    #[inline]
    pub(super) fn all(&mut self, len: usize) -> io::Result<()> {
        let mut left = len;
        while left > 0 {
            match self.some(left, Awaits::Room)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                moved => left -= moved,
            }
        }
        Ok(())
    }
}
