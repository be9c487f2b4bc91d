//! Three other ends of a pipe. `send=writev`: the kernel gathers the block from pieces, as when a program sends a header and a
//! body from different buffers. `recv=splice`: the bytes are moved to /dev/null by reference; they cannot be checked, since
//! they are never copied to the receiver's memory. `send=tee`: tee(2) passes the pages of a pipe that stays full
//! ([`payload::Reservoir`]); every block is the same, so it requires `--data none`.

use std::io::IoSlice;

use payload::Reservoir;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::writev;
use rustix::pipe::{SpliceFlags, splice};

use crate::prelude::*;

/// Bytes in a piece: a page, so that a block of one page is one piece and takes as long as write(2).
const PIECE_BYTES: usize = 4096;

/// Most pieces in a call: 256 KiB, far fewer pieces than writev(2) accepts (IOV_MAX, 1024).
const PIECES_MAX: usize = 64;

/// The writing end of a pipe with `send=writev`.
pub(super) struct WritevSender(pub(super) FdEnd);

delegate_end!(WritevSender, 0);

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

/// Splits the first bytes of `rest` into pieces; returns the number of pieces.
#[inline]
fn cut<'a>(rest: &'a [u8], pieces: &mut [IoSlice<'a>; PIECES_MAX]) -> usize {
    let mut count = 0;
    for (piece, bytes) in pieces.iter_mut().zip(rest.chunks(PIECE_BYTES)) {
        *piece = IoSlice::new(bytes);
        count += 1;
    }
    count
}

/// The reading end of a pipe with `recv=splice`: moves the bytes to /dev/null.
pub(super) struct Drain {
    end: FdEnd,
    dev_null: OwnedFd,
    flags: SpliceFlags,
}

impl Drain {
    pub(super) fn new(end: FdEnd) -> Result<Self, OpenError> {
        let dev_null =
            open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).in_call("open(/dev/null)")?;
        Ok(Self { flags: end.wait.splice_flags(), end, dev_null })
    }
}

delegate_end!(Drain, end);

impl Receiver for Drain {
    /// Not supported: the bytes go to /dev/null and cannot be copied to a buffer.
    fn recv(&mut self, _room: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[inline]
    fn recv_next(&mut self, _consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        self.end.retry(PollFlags::IN, |fd| splice(fd, None, &self.dev_null, None, most, self.flags))
    }
}

/// Most slots of a reservoir: more would not be faster.
const SLOTS_MAX: usize = 64;

/// The writing end of a pipe with `send=tee`.
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

delegate_end!(TeeSender, end);

impl Sender for TeeSender {
    /// Not supported: only the block in the reservoir can be sent.
    fn send(&mut self, _block: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// After a short tee(2) the rest is again the beginning of the block; that is allowed, as no byte is checked.
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
