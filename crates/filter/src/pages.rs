//! The payload in read-only pages: vmsplice(2) passes pages by reference, so they must not change until the reader has read
//! them, and no call reports when that is.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};

use payload::Tile;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};
use rustix::pipe::{IoSliceRaw, SpliceFlags, vmsplice};

/// A huge page of x86-64 and of arm64 with 4 KiB pages; elsewhere madvise(2) has no effect.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// One period of a payload and `lap_bytes` of the next, in read-only memory. A drop removes the mapping; pages that a pipe
/// refers to stay unchanged until they are read.
pub(crate) struct PayloadPages {
    mapping: NonNull<c_void>,
    mapped_bytes: usize,
    start: usize,
    len: usize,
}

impl PayloadPages {
    /// Repeats `tile` so that `lap_bytes` from any phase are contiguous, faults every page in, and makes the memory read-only.
    ///
    /// # Errors
    /// ENOMEM.
    pub(crate) fn lay_out(tile: &Tile, lap_bytes: usize) -> io::Result<Self> {
        let len = tile.period() + lap_bytes;
        let huge = len >= HUGE_PAGE_BYTES;
        let mapped_bytes = if huge { len.next_multiple_of(HUGE_PAGE_BYTES) + HUGE_PAGE_BYTES } else { len };
        // SAFETY: a fresh private mapping at an address of the kernel's choice aliases nothing.
        let mapping = unsafe {
            mmap_anonymous(null_mut(), mapped_bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        let mapping = NonNull::new(mapping).ok_or(io::ErrorKind::OutOfMemory)?;
        let start = if huge { mapping.as_ptr().align_offset(HUGE_PAGE_BYTES) } else { 0 };
        let pages = Self { mapping, mapped_bytes, start, len };
        if huge {
            // SAFETY: the range is ours; the advice changes no contents. If it is refused, the pages are small.
            let _ = unsafe { madvise(mapping.as_ptr(), mapped_bytes, Advice::LinuxHugepage) };
        }
        // SAFETY: start + len lies in the mapping (which is one huge page longer for the alignment),
        // is initialised (anonymous memory is zero), and no other reference to it exists yet.
        tile.copy_from(0, unsafe { std::slice::from_raw_parts_mut(pages.first_byte(), len) });
        // SAFETY: the mapping is ours, and the only mutable reference into it ended above.
        unsafe { mprotect(mapping.as_ptr(), mapped_bytes, MprotectFlags::READ) }?;
        Ok(pages)
    }

    fn first_byte(&self) -> *mut u8 {
        // SAFETY: `start` is below `mapped_bytes`.
        unsafe { self.mapping.as_ptr().cast::<u8>().add(self.start) }
    }

    /// The payload from `phase` on.
    pub(crate) fn at_phase(&self, phase: usize) -> &[u8] {
        // SAFETY: the range is initialised, lives as long as `self`, and is never written again: it is read-only.
        let bytes = unsafe { std::slice::from_raw_parts(self.first_byte(), self.len) };
        &bytes[phase..]
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

impl Drop for PayloadPages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and every reference into it borrowed `self`.
        let _ = unsafe { munmap(self.mapping.as_ptr(), self.mapped_bytes) };
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
