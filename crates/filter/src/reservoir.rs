//! A pipe kept full of the payload, out of which tee(2) hands the same pages over again and again.
//!
//! The pages are the kernel's own (they were filled through a socket), so nothing in user space can ever
//! change them: the zero-copy road without the danger of vmsplice(2). And a socket keeps up to 32 KiB of
//! adjacent pages in one piece, while vmsplice takes one slot of the pipe per page: a pipe of 256 slots then
//! holds 8 MiB, and its reader pays for a slot once in 32 KiB instead of once in 4.

use std::os::fd::{BorrowedFd, OwnedFd};

use payload::Tile;
use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice, tee};

/// What a Unix socket keeps in one piece (UNIX_SKB_FRAGS_SZ in net/unix/af_unix.c).
pub(crate) const SLOT_BYTES: usize = 32 << 10;

/// Slots kept: the default size of a pipe, which every system grants.
const SLOTS: usize = 16;

/// A pipe holding a whole number of periods, never drained.
pub(crate) struct Reservoir {
    read_end: OwnedFd,
    write_end: OwnedFd,
}

impl Reservoir {
    /// Whether a payload of this period can be handed over slot by slot without losing the phase.
    pub(crate) fn suits(period: usize) -> bool {
        SLOT_BYTES.is_multiple_of(period)
    }

    /// Fills a reservoir with a payload that [suits](Self::suits).
    ///
    /// # Errors
    /// Where sockets or splice are not to be had: take another road.
    pub(crate) fn fill(tile: &Tile) -> Result<Self> {
        let (drain, fill) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        let reservoir = Self::empty()?;
        let mut done = 0;
        while done < SLOT_BYTES {
            let sent = rustix::io::write(&fill, &tile.piece(tile.phase(done as u64))[..SLOT_BYTES - done])?;
            let mut moved = 0;
            while moved < sent {
                moved +=
                    splice(&drain, None, &reservoir.write_end, None, sent - moved, SpliceFlags::NONBLOCK)?;
            }
            done += sent;
        }
        reservoir.repeat_first()?;
        Ok(reservoir)
    }

    fn empty() -> Result<Self> {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { read_end, write_end })
    }

    /// Repeats what is there to the last slot: the same pages, so that they stay in the reader's cache.
    fn repeat_first(&self) -> Result<()> {
        let copies = Self::empty()?;
        for _ in 1..SLOTS {
            match tee(&self.read_end, &copies.write_end, SLOT_BYTES, SpliceFlags::NONBLOCK) {
                Ok(SLOT_BYTES) => {}
                Ok(_) | Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
            let moved =
                splice(&copies.read_end, None, &self.write_end, None, SLOT_BYTES, SpliceFlags::NONBLOCK);
            match moved {
                Ok(SLOT_BYTES) => {}
                // Less than a slot in the wrong place: the reservoir is spoilt.
                Ok(_) => return Err(Errno::NOBUFS),
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Hands up to `len` bytes over, from the payload's first byte on; returns how many the pipe took.
    ///
    /// # Errors
    /// Those of tee(2); EAGAIN with [`SpliceFlags::NONBLOCK`] or where `out` is non-blocking.
    pub(crate) fn tee(&self, out: BorrowedFd<'_>, len: usize, flags: SpliceFlags) -> Result<usize> {
        tee(&self.read_end, out, len, flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PayloadKind;
    use payload::Period;
    use std::os::fd::AsFd;

    #[test]
    fn a_reservoir_gives_the_same_bytes_for_ever() {
        let tile = Tile::make(&PayloadKind::Sequence, 0, Period::Filter).expect("no file involved");
        let reservoir = Reservoir::fill(&tile).expect("sockets and pipes");
        let (reader, writer) = rustix::pipe::pipe().expect("pipe");
        for len in [SLOT_BYTES, 1000, 2 * SLOT_BYTES, SLOTS * SLOT_BYTES] {
            let given = reservoir.tee(writer.as_fd(), len, SpliceFlags::empty()).expect("tee");
            assert_eq!(given, len);
            let mut read = vec![0; given];
            let mut done = 0;
            while done < given {
                done += rustix::io::read(&reader, &mut read[done..]).expect("read");
            }
            assert!(read.iter().enumerate().all(|(i, byte)| *byte == (i % 256) as u8));
        }
    }
}
