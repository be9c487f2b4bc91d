//! A pipe kept full of a payload, out of which tee(2) hands the same pages over again and again.
//!
//! The pages are the kernel's own (they were filled through a socket), so nothing in user space can ever change them:
//! by reference without the danger of vmsplice(2). And a socket keeps up to 32 KiB of adjacent pages in one piece,
//! while vmsplice takes one slot of the pipe for each page: a pipe of 256 slots then holds 8 MiB, and its reader pays
//! for a slot once in 32 KiB instead of once in 4.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice, tee};

/// A pipe holding the same bytes over and over, never drained.
pub struct Reservoir {
    read_end: OwnedFd,
    /// Kept, or tee(2) would find the end of a stream.
    _write_end: OwnedFd,
    whole: bool,
}

impl Reservoir {
    /// What a Unix socket keeps in one piece, in bytes (UNIX_SKB_FRAGS_SZ in net/unix/af_unix.c).
    pub const SLOT_BYTES: usize = 32 << 10;
    /// Slots of a pipe of the default size.
    pub const SLOTS: usize = 16;

    /// Fills a pipe of `slots` slots (fewer where the system refuses) with `period`, over and over: cut at the end of
    /// each slot, and begun again.
    ///
    /// # Errors
    /// Where the system refuses a pipe, a socket or splice(2), or the pipe takes nothing.
    pub fn fill(period: &[u8], slots: usize) -> Result<Self> {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        // More slots than a pipe has by itself may be refused to an ordinary user: more calls, then.
        let _ = fcntl_setpipe_size(&write_end, slots * rustix::param::page_size());
        let mut whole = put_slot(period, &write_end)? == Self::SLOT_BYTES;
        // The rest are the same pages once more, so that they stay in the reader's cache.
        let (copies, copy_to) = pipe_with(PipeFlags::CLOEXEC)?;
        // Less than a slot: the first one is in pieces (no contiguous memory was free), and is enough.
        while given(tee(&read_end, &copy_to, Self::SLOT_BYTES, SpliceFlags::NONBLOCK))? == Self::SLOT_BYTES {
            match given(splice(&copies, None, &write_end, None, Self::SLOT_BYTES, SpliceFlags::NONBLOCK))? {
                Self::SLOT_BYTES => {}
                0 => break,
                _ => {
                    whole = false;
                    break;
                }
            }
        }
        Ok(Self { read_end, _write_end: write_end, whole })
    }

    /// Whether every slot begins with the payload's first byte and holds [`Self::SLOT_BYTES`]. Where memory or pipe
    /// pages were short it may not: such a reservoir is used only where the bytes are not checked.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Hands up to `len` bytes over, from the payload's first byte on; returns how many the pipe took.
    ///
    /// # Errors
    /// Those of tee(2); EAGAIN with [`SpliceFlags::NONBLOCK`] or where `out` is non-blocking.
    #[inline]
    pub fn tee(&self, out: impl AsFd, len: usize, flags: SpliceFlags) -> Result<usize> {
        tee(&self.read_end, out, len, flags)
    }
}

/// 0 where a pipe was full or empty.
fn given(moved: Result<usize>) -> Result<usize> {
    match moved {
        Err(Errno::AGAIN) => Ok(0),
        other => other,
    }
}

/// Fills one slot of a pipe through a socket; returns how many bytes it took.
fn put_slot(period: &[u8], pipe: &OwnedFd) -> Result<usize> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (drain, fill) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let slot: Vec<u8> = period.iter().copied().cycle().take(Reservoir::SLOT_BYTES).collect();
    let sent = rustix::io::write(&fill, &slot)?;
    let mut moved = 0;
    while moved < sent {
        match splice(&drain, None, pipe, None, sent - moved, SpliceFlags::NONBLOCK) {
            Ok(len) => moved += len,
            // In more pieces than the pipe has slots (one, once fs.pipe-user-pages-soft is spent).
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
}
