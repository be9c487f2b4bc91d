//! Memory that two tasks share, whether they are threads or processes.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::param::page_size;

pub(crate) const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
const POPULATED: MapFlags = MapFlags::SHARED.union(MapFlags::POPULATE);

/// Anonymous memory, inherited by forked children and written by all (mmap(2), MAP_SHARED).
/// Every page was written once, so that no page fault waits in it.
pub struct SharedMemory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory that stays where it is until the drop; what is written to it from
// several tasks is the business of those who hold the pointer.
unsafe impl Send for SharedMemory {}
// SAFETY: as above; a shared reference gives out nothing but the pointer and the length.
unsafe impl Sync for SharedMemory {}

/// From this size on, memory is laid out on huge pages where the kernel gives them: in pages of 4 KiB from all
/// over the machine, a ring as large as a core's cache does not fit in that cache, by more or less from trial
/// to trial.
const HUGE_FROM_BYTES: usize = 512 << 10;

/// A huge page of the machines this runs on (2 MiB on x86-64 and, with 4 KiB pages, on aarch64).
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// "Make huge pages of these now" (madvise(2), Linux 6.1); the crate libc has it for glibc only.
const MADV_COLLAPSE: libc::c_int = 25;

impl SharedMemory {
    /// Maps `len` bytes of zeros.
    pub fn new(len: usize) -> io::Result<Self> {
        if len >= HUGE_FROM_BYTES {
            return Self::on_huge_pages(len);
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, READ_WRITE, POPULATED) }?;
        Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }

    /// Maps `len` bytes of zeros twice, one copy after the other, and then `more` bytes: what runs over the end
    /// of the first copy goes on at its beginning, and lies in one piece. Both are whole pages.
    pub(crate) fn twice(len: usize, more: usize) -> io::Result<Self> {
        let file = memfd_create("hosepipe-ring", MemfdFlags::CLOEXEC)?;
        let huge = if len >= HUGE_FROM_BYTES { len.next_multiple_of(HUGE_PAGE_BYTES) } else { 0 };
        ftruncate(&file, huge.max(len + more) as u64)?;
        if huge > 0 {
            collapse(&file, huge)?;
        }
        Self::file_twice(&file, len, more)
    }

    /// The same with the first bytes of a file, which must be as long as `len` and `more` together.
    pub(crate) fn file_twice(file: &impl AsFd, len: usize, more: usize) -> io::Result<Self> {
        let memory = Self::reserve(2 * len + more)?;
        let first = memory.start.as_ptr().cast::<c_void>();
        // SAFETY: both mappings lie within the reservation, which nothing else knows of.
        unsafe {
            mmap(first, len, READ_WRITE, POPULATED | MapFlags::FIXED, file, 0)?;
            mmap(first.byte_add(len), len + more, READ_WRITE, POPULATED | MapFlags::FIXED, file, 0)?;
        }
        Ok(memory)
    }

    /// Maps the first `len` bytes of a file, all of them now: rather that than a fault for each page.
    pub(crate) fn of_file(file: &impl AsFd, len: usize, access: ProtFlags) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(std::ptr::null_mut(), len, access, POPULATED, file, 0) }?;
        Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }

    /// Whole huge pages, on their boundary; they are ordinary pages where the kernel has no huge ones to give.
    fn on_huge_pages(len: usize) -> io::Result<Self> {
        let memory = Self::reserve(len.next_multiple_of(HUGE_PAGE_BYTES))?;
        let (start, len) = (memory.start.as_ptr().cast(), memory.len);
        // SAFETY: the mapping takes the place of the reservation, which nothing else knows of.
        unsafe {
            mmap_anonymous(start, len, READ_WRITE, POPULATED | MapFlags::FIXED)?;
            // MADV_COLLAPSE (Linux 6.1) works whatever shmem_enabled says; a refusal costs speed only.
            libc::madvise(start, len, MADV_COLLAPSE);
        }
        Ok(memory)
    }

    /// Addresses with nothing behind them yet, on the boundary of a huge page.
    fn reserve(len: usize) -> io::Result<Self> {
        let (none, room) = (ProtFlags::empty(), len + HUGE_PAGE_BYTES);
        // SAFETY: a fresh reservation at an address of the kernel's choice overlaps nothing; what is left of it
        // before and after the aligned part is given back.
        unsafe {
            let reserved = mmap_anonymous(std::ptr::null_mut(), room, none, MapFlags::PRIVATE)?;
            let before = reserved.align_offset(HUGE_PAGE_BYTES);
            let start = reserved.byte_add(before);
            if before > 0 {
                munmap(reserved, before)?;
            }
            // The kernel gives back whole pages.
            let end = len.next_multiple_of(page_size());
            if room - before > end {
                munmap(start.byte_add(end), room - before - end)?;
            }
            Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
        }
    }

    /// Takes the page faults of this process now: a forked child begins without the pages of shared mappings.
    pub(crate) fn populate(&self) {
        // SAFETY: faults pages in for writing and changes none. MADV_POPULATE_WRITE (Linux 5.14); a refusal costs
        // nothing but the faults later.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_POPULATE_WRITE) };
    }

    /// The first byte, page-aligned.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes mapped.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and every holder of the pointer holds the value too.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Lays the first `len` bytes of a file in memory on huge pages, where the kernel has some: they stay so when they
/// are mapped otherwise later.
fn collapse(file: &impl AsFd, len: usize) -> io::Result<()> {
    let memory = SharedMemory::reserve(len)?;
    let start = memory.start.as_ptr().cast();
    // SAFETY: the mapping takes the place of the reservation; it goes when `memory` is dropped.
    unsafe {
        mmap(start, len, READ_WRITE, POPULATED | MapFlags::FIXED, file, 0)?;
        // As above: a refusal costs speed only.
        libc::madvise(start, len, MADV_COLLAPSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_over_the_end_goes_on_at_the_beginning() {
        for len in [page_size(), HUGE_FROM_BYTES, HUGE_PAGE_BYTES] {
            let memory = SharedMemory::twice(len, page_size()).expect("memory");
            let byte = |at: usize| {
                assert!(at < memory.len());
                // SAFETY: within the mapping, and nothing else uses it.
                unsafe { &mut *memory.as_ptr().add(at) }
            };
            *byte(len + 3) = 7;
            *byte(2 * len) = 9;
            assert_eq!((*byte(3), *byte(2 * len - 1), *byte(2 * len)), (7, 0, 9), "{len}");
        }
    }
}
