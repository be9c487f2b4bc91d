//! A pipe that stays full of a payload: tee(2) passes the same pages from it to other pipes, again and again.
//!
//! The pages belong to the kernel (they were filled through a socket), so user space cannot change them: bytes pass by reference
//! without the danger of vmsplice(2). A socket keeps up to 32 KiB of adjacent pages together, and they take one slot of a pipe;
//! vmsplice takes one slot for each page. So a pipe of 256 slots holds 8 MiB instead of 1 MiB, and its reader has the cost of a
//! slot once for 32 KiB instead of once for 4 KiB.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice, tee};

/// A pipe that contains the same bytes repeatedly and is never read.
pub struct Reservoir {
    read_end: OwnedFd,
    /// Kept open: otherwise tee(2) would report the end of the stream.
    _write_end: OwnedFd,
    whole: bool,
}

impl Reservoir {
    /// Most bytes that a Unix socket keeps together (UNIX_SKB_FRAGS_SZ in net/unix/af_unix.c).
    pub const SLOT_BYTES: usize = 32 << 10;
    /// Slots of a pipe of the default size.
    pub const SLOTS: usize = 16;

    /// Fills a pipe of `slots` slots, or fewer if the system refuses that many. Each slot begins with the first byte of `period` and
    /// repeats it up to the end of the slot.
    ///
    /// # Errors
    /// The system refuses a pipe, a socket or splice(2), or the pipe accepts no bytes.
    pub fn fill(period: &[u8], slots: usize) -> Result<Self> {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        // An unprivileged user may be refused a larger pipe: then more calls of tee(2) are made.
        let _ = fcntl_setpipe_size(&write_end, slots * rustix::param::page_size());
        let mut whole = put_slot(period, &write_end)? == Self::SLOT_BYTES;
        // The other slots refer to the pages of the first one, so that these stay in the reader's cache.
        let (copies, copy_to) = pipe_with(PipeFlags::CLOEXEC)?;
        // If tee(2) gives less, the first 32 KiB lie in several slots (no contiguous memory was free), and no more are added.
        while zero_if_blocked(tee(&read_end, &copy_to, Self::SLOT_BYTES, SpliceFlags::NONBLOCK))?
            == Self::SLOT_BYTES
        {
            let moved = splice(&copies, None, &write_end, None, Self::SLOT_BYTES, SpliceFlags::NONBLOCK);
            let moved = zero_if_blocked(moved)?;
            whole &= [0, Self::SLOT_BYTES].contains(&moved);
            if moved < Self::SLOT_BYTES {
                break;
            }
        }
        Ok(Self { read_end, _write_end: write_end, whole })
    }

    /// Whether every slot begins with the payload's first byte and has [`Self::SLOT_BYTES`]; false if the system had too little memory
    /// or too few pipe pages. Such a reservoir is used only if the bytes are not checked.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Passes at most `len` bytes, from the payload's first byte on, to the pipe `out`; returns their number.
    ///
    /// # Errors
    /// Those of tee(2); EAGAIN with [`SpliceFlags::NONBLOCK`] or if `out` is non-blocking.
    #[inline]
    pub fn tee(&self, out: impl AsFd, len: usize, flags: SpliceFlags) -> Result<usize> {
        tee(&self.read_end, out, len, flags)
    }
}

/// The number of bytes, 0 if a pipe was full or empty.
fn zero_if_blocked(moved: Result<usize>) -> Result<usize> {
    match moved {
        Err(Errno::AGAIN) => Ok(0),
        other => other,
    }
}

/// Fills one slot of a pipe through a socket; returns the number of bytes.
fn put_slot(period: &[u8], pipe: &OwnedFd) -> Result<usize> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (drain, fill) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let slot: Vec<u8> = period.iter().copied().cycle().take(Reservoir::SLOT_BYTES).collect();
    let sent = rustix::io::write(&fill, &slot)?;
    let mut moved = 0;
    while moved < sent {
        match splice(&drain, None, pipe, None, sent - moved, SpliceFlags::NONBLOCK) {
            Ok(len) => moved += len,
            // The bytes need more slots than the pipe has (one, if the user has reached fs.pipe-user-pages-soft).
            Err(Errno::AGAIN) if moved > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_for_ever_in_slots_of_32_kib() {
        const SLOT_BYTES: usize = Reservoir::SLOT_BYTES;
        let period: Vec<u8> = (0..=255).collect();
        let reservoir = Reservoir::fill(&period, Reservoir::SLOTS).expect("sockets and pipes");
        assert!(reservoir.is_whole());
        let (reader, writer) = rustix::pipe::pipe().expect("pipe");
        for len in [SLOT_BYTES, 1000, 2 * SLOT_BYTES, Reservoir::SLOTS * SLOT_BYTES] {
            let given = reservoir.tee(&writer, len, SpliceFlags::NONBLOCK).expect("tee");
            assert_eq!(given, len, "a pipe of 64 KiB holds half a megabyte");
            let mut read = vec![0; given];
            let mut done = 0;
            while done < given {
                done += rustix::io::read(&reader, &mut read[done..]).expect("read");
            }
            assert!(read.iter().enumerate().all(|(i, byte)| *byte == (i % 256) as u8));
        }
    }

    #[test]
    fn without_bytes_no_slot_is_whole() {
        assert!(!Reservoir::fill(&[], 2).expect("sockets and pipes").is_whole());
    }

    #[test]
    fn a_full_pipe_takes_no_slot() {
        let (_reader, writer) = rustix::pipe::pipe_with(PipeFlags::NONBLOCK).expect("pipe");
        while rustix::io::write(&writer, &[0; 4096]).is_ok() {}
        assert_eq!(put_slot(b"abc", &writer), Err(Errno::AGAIN));
    }
}
