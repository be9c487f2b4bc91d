//! `send=tee`: a pipe kept full of one block, out of which tee(2) hands the same pages over ([`payload::Reservoir`]).
//! It cannot send anything new: it is for `--data none`.

use std::io;
use std::os::fd::OwnedFd;

use payload::{Producer, Reservoir};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::pipe::SpliceFlags;

use super::splice_flags;
use crate::fd::FdWait;
use crate::{OpenError, Sender};

/// The most slots that are worth filling.
const SLOTS_MAX: usize = 64;

/// The writing end of a pipe, fed by reference.
pub(super) struct TeeSender {
    fd: Option<OwnedFd>,
    reservoir: Option<Reservoir>,
    wait: FdWait,
    flags: SpliceFlags,
    syscalls: u64,
}

impl TeeSender {
    /// Takes a descriptor and puts it in the mode its waiting needs.
    pub(super) fn new(fd: OwnedFd, wait: FdWait) -> Result<Self, OpenError> {
        wait.apply(&fd)?;
        Ok(Self { fd: Some(fd), reservoir: None, wait, flags: splice_flags(wait), syscalls: 0 })
    }

    /// Hands `len` bytes over. After a short count the rest is again the block's beginning: nobody looks.
    #[inline]
    fn hand_over(&mut self, len: usize) -> io::Result<()> {
        let fd = self.fd.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let reservoir = self.reservoir.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let mut left = len;
        while left > 0 {
            self.syscalls += 1;
            match reservoir.tee(fd, left, self.flags) {
                // The reservoir is never empty, so 0 would be the kernel's change of mind: not to loop on.
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => left -= taken,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.syscalls += self.wait.after_would_block(fd, PollFlags::OUT)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Sender for TeeSender {
    /// Only the block that the reservoir was filled with can be sent.
    fn send(&mut self, _block: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[inline]
    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        if self.reservoir.is_none() {
            let block = producer.next_block();
            let slots = block.len().div_ceil(Reservoir::SLOT_BYTES).clamp(Reservoir::SLOTS, SLOTS_MAX);
            self.reservoir = Some(Reservoir::fill(block, slots)?);
        }
        self.hand_over(producer.block_bytes())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.fd = None;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}
