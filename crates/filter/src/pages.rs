//! The payload in read-only pages: vmsplice(2) passes pages by reference, so they must not change until the reader has read
//! them, and no call reports when that is.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;

use mechanism::FixedMemory;
use payload::Tile;
use rustix::pipe::{IoSliceRaw, SpliceFlags, vmsplice};

/// One period of a payload and `lap_bytes` of the next. Pages that a pipe refers to stay unchanged until they are read.
pub(crate) struct PayloadPages(FixedMemory);

impl PayloadPages {
    /// Repeats `tile` so that `lap_bytes` from any phase are contiguous.
    ///
    /// # Errors
    /// ENOMEM.
    pub(crate) fn lay_out(tile: &Tile, lap_bytes: usize) -> io::Result<Self> {
        FixedMemory::filled(tile.period() + lap_bytes, |bytes| _ = tile.copy_from(0, bytes)).map(Self)
    }

    /// The payload from `phase` on.
    pub(crate) fn at_phase(&self, phase: usize) -> &[u8] {
        &self.0.bytes()[phase..]
    }

    /// Passes `len` bytes from `phase` on to a pipe by reference; returns how many it took.
    ///
    /// # Errors
    /// Those of vmsplice(2).
    pub(crate) fn vmsplice(
        &self,
        out: BorrowedFd<'_>,
        phase: usize,
        len: usize,
    ) -> rustix::io::Result<usize> {
        let span = IoSliceRaw::from_slice(&self.at_phase(phase)[..len]);
        // SAFETY: the pages never change again, so they may be read at any time. If `out` is a read end, the kernel cannot
        // write to read-only pages and returns EFAULT.
        unsafe { vmsplice(out, &[span], SpliceFlags::empty()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PayloadKind;
    use payload::Period;
    use std::os::fd::AsFd;

    #[test]
    fn the_layout_is_the_payload_and_survives_its_mapping_in_a_pipe() {
        // A test of `model` says so.
        if model::vmsplice_refusal().is_some() {
            return;
        }
        let tile = Tile::make(&PayloadKind::Random, 5, Period::Filter).expect("no file involved");
        let pages = PayloadPages::lay_out(&tile, 65536).expect("memory");
        let mut expected = vec![0; 8192];
        let phase = tile.period() - 100;
        tile.copy_from(phase, &mut expected);
        assert_eq!(pages.at_phase(phase)[..8192], expected);
        let (reader, writer) = rustix::pipe::pipe().expect("pipe");
        assert_eq!(pages.vmsplice(writer.as_fd(), phase, 8192), Ok(8192));
        drop(pages);
        let mut read = vec![0; 8192];
        assert_eq!(rustix::io::read(&reader, &mut read[..]), Ok(8192));
        assert!(read == expected);
    }
}
