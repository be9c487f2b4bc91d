//! `send=writev`: the block in pieces, gathered by the kernel, as a program sends a header and a body that lie
//! in different places.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use rustix::event::PollFlags;
use rustix::io::{Errno, writev};

use crate::fd::FdWait;
use crate::{OpenError, Sender};

/// Bytes in a piece: a page, so that a block of one page is one piece and costs what write(2) costs.
const PIECE_BYTES: usize = 4096;

/// Pieces in a call: a quarter of a megabyte, far below what writev(2) takes (IOV_MAX, 1024).
const PIECES_MAX: usize = 64;

/// The writing end of a pipe, gathering.
pub(super) struct WritevSender {
    fd: Option<OwnedFd>,
    wait: FdWait,
    syscalls: u64,
}

impl WritevSender {
    /// Takes a descriptor and puts it in the mode its waiting needs.
    pub(super) fn new(fd: OwnedFd, wait: FdWait) -> Result<Self, OpenError> {
        wait.apply(&fd)?;
        Ok(Self { fd: Some(fd), wait, syscalls: 0 })
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

impl Sender for WritevSender {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let fd = self.fd.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let mut rest = block;
        while !rest.is_empty() {
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let count = cut(rest, &mut pieces);
            self.syscalls += 1;
            match writev(fd, &pieces[..count]) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.syscalls += self.wait.after_would_block(fd, PollFlags::OUT)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.fd = None;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
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
