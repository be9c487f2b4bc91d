//! `send=tee`: a pipe kept full of one block, out of which tee(2) hands the same pages over again and again.
//!
//! The pages are the kernel's own (they were filled through a socket), so nothing in user space can change them:
//! by reference without the danger of vmsplice(2). And a socket keeps up to 32 KiB of adjacent pages in one piece,
//! where vmsplice(2) takes a slot of the pipe for each page: an eighth of the slots to be filled and freed, and a
//! pipe that holds eight times its nominal size. What it cannot do is send anything new: it is for `--data none`.

use std::io;
use std::os::fd::OwnedFd;

use payload::Producer;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice, tee};

use super::splice_flags;
use crate::fd::FdWait;
use crate::{OpenError, Sender};

/// What a Unix socket keeps in one piece (UNIX_SKB_FRAGS_SZ in net/unix/af_unix.c).
const SLOT_BYTES: usize = 32 << 10;

/// Slots a pipe has by itself, and the most that are worth filling.
const SLOTS_MIN: usize = 16;
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
            match tee(&reservoir.read_end, fd, left, self.flags) {
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
            self.reservoir = Some(Reservoir::fill(producer.next_block())?);
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

/// A pipe full of the block's first 32 KiB, over and over, that nobody reads from.
struct Reservoir {
    read_end: OwnedFd,
    /// Kept, or tee(2) would find the end of a stream.
    _write_end: OwnedFd,
}

impl Reservoir {
    fn fill(block: &[u8]) -> io::Result<Self> {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        // More slots than a pipe has by itself may be refused to an ordinary user: more calls, then.
        let slots = block.len().div_ceil(SLOT_BYTES).clamp(SLOTS_MIN, SLOTS_MAX);
        let _ = fcntl_setpipe_size(&write_end, slots * rustix::param::page_size());
        put_slot(block, &write_end)?;
        // The rest are the same pages once more, so that they stay in the reader's cache.
        let (copies, copy_to) = pipe_with(PipeFlags::CLOEXEC)?;
        loop {
            match tee(&read_end, &copy_to, SLOT_BYTES, SpliceFlags::NONBLOCK) {
                Ok(SLOT_BYTES) => {}
                // The first slot is in pieces (no memory in one piece was to be had): what there is will do.
                Ok(_) => break,
                Err(error) => return Err(error.into()),
            }
            match splice(&copies, None, &write_end, None, SLOT_BYTES, SpliceFlags::NONBLOCK) {
                Ok(_) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { read_end, _write_end: write_end })
    }
}

/// Fills one slot of a pipe, through a socket, with as many of the block as go into 32 KiB.
fn put_slot(block: &[u8], pipe: &OwnedFd) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (drain, fill) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let slot: Vec<u8> = block.iter().copied().cycle().take(SLOT_BYTES).collect();
    let sent = rustix::io::write(&fill, &slot)?;
    let mut moved = 0;
    while moved < sent {
        match splice(&drain, None, pipe, None, sent - moved, SpliceFlags::NONBLOCK) {
            Ok(len) => moved += len,
            // In more pieces than the pipe has slots (one, once fs.pipe-user-pages-soft is spent).
            Err(Errno::AGAIN) if moved > 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_comes_out_in_slots_of_32_kib() {
        let block: Vec<u8> = (0..256u16).map(|i| i as u8).collect();
        let reservoir = Reservoir::fill(&block).expect("sockets and pipes");
        let (reader, writer) = rustix::pipe::pipe().expect("pipe");
        let len = SLOTS_MIN * SLOT_BYTES;
        let given = tee(&reservoir.read_end, &writer, len, SpliceFlags::NONBLOCK).expect("tee");
        assert_eq!(given, len, "a pipe of 64 KiB holds half a megabyte");
        let mut read = vec![0; given];
        let mut done = 0;
        while done < given {
            done += rustix::io::read(&reader, &mut read[done..]).expect("read");
        }
        assert!(read.iter().enumerate().all(|(i, byte)| *byte == (i % 256) as u8));
    }
}
