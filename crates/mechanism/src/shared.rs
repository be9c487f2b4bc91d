//! Memory that two tasks share, whether they are threads or processes.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use rustix::param::page_size;

pub(crate) const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
const POPULATED: MapFlags = MapFlags::SHARED.union(MapFlags::POPULATE);

/// Anonymous memory that forked children inherit and all can write (mmap(2), MAP_SHARED).
/// All pages are faulted in (MAP_POPULATE), so that a trial has no page faults in it.
pub struct SharedMemory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory that stays at its address until the drop; the users of the pointer must prevent data
// races.
unsafe impl Send for SharedMemory {}
// SAFETY: as above; a shared reference gives out nothing but the pointer and the length.
unsafe impl Sync for SharedMemory {}

/// From this size on, memory is on huge pages, if the kernel has them. With 4 KiB pages at random physical addresses a ring as
/// large as a core's cache does not fit into that cache, and the part that fits differs from trial to trial.
const HUGE_FROM_BYTES: usize = 512 << 10;

/// A huge page of the machines this runs on (2 MiB on x86-64 and, with 4 KiB pages, on aarch64).
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Replaces pages by huge pages at once (madvise(2), Linux 6.1); the crate libc has it for glibc only.
const MADV_COLLAPSE: libc::c_int = 25;

impl SharedMemory {
    /// Maps `len` bytes of zeros.
    pub fn new(len: usize) -> io::Result<Self> {
        if len >= HUGE_FROM_BYTES {
            let len = len.next_multiple_of(HUGE_PAGE_BYTES);
            // SAFETY: the mapping takes the place of a reservation, which nothing else uses.
            return Self::on_huge_pages(len, |at, flags| unsafe {
                mmap_anonymous(at, len, READ_WRITE, flags)
            });
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, READ_WRITE, POPULATED) }?;
        Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }

    /// Maps `len` bytes of zeros twice, one mapping after the other, and then `more` bytes. Bytes that cross the end of the
    /// first mapping continue at its beginning, but have contiguous addresses. Both sizes are whole pages.
    pub(crate) fn twice(len: usize, more: usize) -> io::Result<Self> {
        let file = memfd_create("hosepipe-ring", MemfdFlags::CLOEXEC)?;
        let huge = if len >= HUGE_FROM_BYTES { len.next_multiple_of(HUGE_PAGE_BYTES) } else { 0 };
        ftruncate(&file, huge.max(len + more) as u64)?;
        if huge > 0 {
            // The file's pages stay on huge pages in later mappings.
            // SAFETY: the mapping takes the place of a reservation; it goes at once.
            Self::on_huge_pages(huge, |at, flags| unsafe { mmap(at, huge, READ_WRITE, flags, &file, 0) })?;
        }
        Self::file_twice(&file, len, more)
    }

    /// The same with the first bytes of a file, which must have at least `len + more` bytes.
    pub(crate) fn file_twice(file: &impl AsFd, len: usize, more: usize) -> io::Result<Self> {
        let memory = Self::reserve(2 * len + more)?;
        let first = memory.start.as_ptr().cast::<c_void>();
        // SAFETY: both mappings lie within the reservation, which nothing else uses.
        unsafe {
            mmap(first, len, READ_WRITE, POPULATED | MapFlags::FIXED, file, 0)?;
            mmap(first.byte_add(len), len + more, READ_WRITE, POPULATED | MapFlags::FIXED, file, 0)?;
        }
        Ok(memory)
    }

    /// Maps the first `len` bytes of a file and faults in all pages at once, which is faster than a fault for each page.
    pub(crate) fn of_file(file: &impl AsFd, len: usize, access: ProtFlags) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(std::ptr::null_mut(), len, access, POPULATED, file, 0) }?;
        Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }

    /// Lets `map` map `len` bytes, whole huge pages, at an address and with flags that it gets, and replaces the pages by huge ones, if
    /// the kernel has some.
    fn on_huge_pages(
        len: usize,
        map: impl FnOnce(*mut c_void, MapFlags) -> rustix::io::Result<*mut c_void>,
    ) -> io::Result<Self> {
        let memory = Self::reserve(len)?;
        let start = memory.start.as_ptr().cast();
        map(start, POPULATED | MapFlags::FIXED)?;
        // SAFETY: ours alone. MADV_COLLAPSE (Linux 6.1) ignores shmem_enabled. If it is refused, the memory is only slower.
        unsafe { libc::madvise(start, len, MADV_COLLAPSE) };
        Ok(memory)
    }

    /// Reserves addresses without memory, from the boundary of a huge page on.
    fn reserve(len: usize) -> io::Result<Self> {
        let (none, room) = (ProtFlags::empty(), len + HUGE_PAGE_BYTES);
        // SAFETY: a fresh reservation at an address of the kernel's choice overlaps nothing; the parts before and after the
        // aligned part are unmapped.
        unsafe {
            let reserved = mmap_anonymous(std::ptr::null_mut(), room, none, MapFlags::PRIVATE)?;
            let before = reserved.align_offset(HUGE_PAGE_BYTES);
            let start = reserved.byte_add(before);
            if before > 0 {
                munmap(reserved, before)?;
            }
            // The kernel unmaps whole pages.
            let end = len.next_multiple_of(page_size());
            if room - before > end {
                munmap(start.byte_add(end), room - before - end)?;
            }
            Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
        }
    }

    /// Faults in all pages in this process now: a forked child begins without the page table entries of shared mappings.
    pub(crate) fn populate(&self) {
        // SAFETY: faults pages in for writing and changes none. MADV_POPULATE_WRITE (Linux 5.14); if it is refused, the
        // faults happen later.
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
        // SAFETY: this value owns the mapping, and every user of the pointer also has the value.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Memory that was filled once and cannot change any more. What a pipe got of it by reference stays also after its drop.
pub struct FixedMemory {
    memory: SharedMemory,
    /// Bytes that were filled: the mapping may be larger.
    len: usize,
}

impl FixedMemory {
    /// Maps `len` bytes of zeros, lets `fill` change them, and makes the memory read-only.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn filled(len: usize, fill: impl FnOnce(&mut [u8])) -> io::Result<Self> {
        let memory = SharedMemory::new(len)?;
        let start = memory.as_ptr();
        // SAFETY: the bytes are mapped and zero, and there is no other reference to them.
        fill(unsafe { std::slice::from_raw_parts_mut(start, len) });
        // SAFETY: the mapping is ours, and the only mutable reference into it ended above.
        unsafe { mprotect(start.cast(), memory.len(), MprotectFlags::READ) }?;
        Ok(Self { memory, len })
    }

    /// The bytes that were filled.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped as long as `self`, initialised, and never written again.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_after_the_end_are_those_at_the_beginning() {
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
