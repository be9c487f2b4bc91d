//! Memory that two tasks share, whether they are threads or processes.
#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

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

impl SharedMemory {
    /// Maps `len` bytes of zeros.
    ///
    /// # Errors
    /// ENOMEM, or what else mmap(2) answers.
    pub fn new(len: usize) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
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
