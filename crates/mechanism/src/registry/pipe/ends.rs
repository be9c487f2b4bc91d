//! `send=writev`: the block in pieces, gathered by the kernel, as a program sends a header and a body that lie in
//! different places. `recv=splice`: what comes is moved to /dev/null by reference; nothing looks at it, and nothing could,
//! since the bytes never come near the receiver's memory. `send=tee`: a pipe kept full of one block, out of which tee(2)
//! hands the same pages over ([`payload::Reservoir`]); it cannot send anything new, and is for `--data none`.

use std::io::IoSlice;

use payload::Reservoir;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::writev;
use rustix::pipe::{SpliceFlags, splice};

use crate::prelude::*;

/// Bytes in a piece: a page, so that a block of one page is one piece and costs what write(2) costs.
const PIECE_BYTES: usize = 4096;

/// Pieces in a call: a quarter of a megabyte, far below what writev(2) takes (IOV_MAX, 1024).
const PIECES_MAX: usize = 64;

/// The writing end of a pipe, gathering.
pub(super) struct WritevSender(pub(super) FdEnd);

counted_by!(WritevSender, 0);

impl Sender for WritevSender {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.0.write_all(block.len(), |fd, left| {
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let count = cut(&block[block.len() - left..], &mut pieces);
            writev(fd, &pieces[..count])
        })
    }

    fn another(&self) -> Option<io::Result<Self>> {
        Some(self.0.share().map(Self))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish()
    }
}

/// The first bytes of `rest`, in pieces; returns how many there are.
#[inline]
fn cut<'a>(rest: &'a [u8], pieces: &mut [IoSlice<'a>; PIECES_MAX]) -> usize {
    let mut count = 0;
    for (piece, bytes) in pieces.iter_mut().zip(rest.chunks(PIECE_BYTES)) {
        *piece = IoSlice::new(bytes);
        count += 1;
    }
    count
}

/// The reading end of a pipe, emptied into nothing.
pub(super) struct Drain {
    end: FdEnd,
    nowhere: OwnedFd,
    flags: SpliceFlags,
}

impl Drain {
    pub(super) fn new(end: FdEnd) -> Result<Self, OpenError> {
        let nowhere = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(OpenError::system("open(/dev/null)"))?;
        Ok(Self { flags: end.wait.splice_flags(), end, nowhere })
    }
}

counted_by!(Drain, end);

impl Receiver for Drain {
    /// What went to /dev/null cannot be passed on.
    fn recv(&mut self, _room: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[inline]
    fn recv_next(&mut self, _consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        self.end.retry(PollFlags::IN, |fd| splice(fd, None, &self.nowhere, None, most, self.flags))
    }
}

/// The most slots of a reservoir that are worth filling.
const SLOTS_MAX: usize = 64;

/// The writing end of a pipe, fed by reference.
pub(super) struct TeeSender {
    end: FdEnd,
    reservoir: Option<Reservoir>,
    flags: SpliceFlags,
}

impl TeeSender {
    pub(super) fn new(end: FdEnd) -> Self {
        Self { flags: end.wait.splice_flags(), end, reservoir: None }
    }
}

counted_by!(TeeSender, end);

impl Sender for TeeSender {
    /// Only the block that the reservoir was filled with can be sent.
    fn send(&mut self, _block: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// After a short count the rest is again the block's beginning: nothing looks at it.
    #[inline]
    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        let reservoir = match &mut self.reservoir {
            Some(reservoir) => reservoir,
            none => {
                let block = producer.next_block();
                let slots = block.len().div_ceil(Reservoir::SLOT_BYTES).clamp(Reservoir::SLOTS, SLOTS_MAX);
                none.insert(Reservoir::fill(block, slots)?)
            }
        };
        let flags = self.flags;
        self.end.write_all(producer.block_bytes(), |fd, left| reservoir.tee(fd, left, flags))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.end.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_cut_into_pages_in_order() {
        let block: Vec<u8> = (0..PIECE_BYTES * 2 + 5).map(|i| i as u8).collect();
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let count = cut(&block, &mut pieces);
        assert_eq!(pieces[..count].iter().map(|piece| piece.len()).collect::<Vec<_>>(), [4096, 4096, 5]);
        assert_eq!(pieces[..count].iter().flat_map(|piece| piece.iter().copied()).collect::<Vec<_>>(), block);
        assert_eq!(cut(&vec![0; PIECE_BYTES * 100], &mut pieces), PIECES_MAX);
    }
}
