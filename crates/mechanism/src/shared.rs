//! Memory that two tasks share, whether they are threads or processes.
#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
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

impl SharedMemory {
    /// Maps `len` bytes of zeros.
    ///
    /// # Errors
    /// ENOMEM, or what else mmap(2) answers.
    pub fn new(len: usize) -> io::Result<Self> {
        if len >= HUGE_FROM_BYTES {
            return Self::on_huge_pages(len);
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, READ_WRITE, POPULATED) }?;
        Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }

    /// Whole huge pages, on their boundary; they are ordinary pages where the kernel has no huge ones to give.
    fn on_huge_pages(len: usize) -> io::Result<Self> {
        let len = len.next_multiple_of(HUGE_PAGE_BYTES);
        let none = ProtFlags::empty();
        let room = len + HUGE_PAGE_BYTES;
        // SAFETY: a fresh reservation at an address of the kernel's choice overlaps nothing.
        let reserved = unsafe { mmap_anonymous(std::ptr::null_mut(), room, none, MapFlags::PRIVATE) }?;
        let before = reserved.align_offset(HUGE_PAGE_BYTES);
        // SAFETY: `start..start + len` lies in the reservation, which nobody else knows of; what is left of it
        // before and after is given back.
        unsafe {
            let start = reserved.byte_add(before);
            mmap_anonymous(start, len, READ_WRITE, POPULATED | MapFlags::FIXED)?;
            if before > 0 {
                munmap(reserved, before)?;
            }
            munmap(start.byte_add(len), room - before - len)?;
            // MADV_COLLAPSE (Linux 6.1) works whatever shmem_enabled says; a refusal costs speed only.
            libc::madvise(start, len, libc::MADV_COLLAPSE);
            Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
        }
    }

    /// The first byte, page-aligned.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes mapped.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is mapped (never, in practice: mmap(2) refuses a length of 0).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and whoever got the pointer holds the value too.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}
