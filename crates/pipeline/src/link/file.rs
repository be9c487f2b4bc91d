//! The file of a link: its size, its name, and whether its disk was full.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use mechanism::{Stored, free_bytes};
use model::ByteSize;
use process::TemporaryPath;
use rustix::fs::{fstat, fstatvfs};
use rustix::process::geteuid;

use super::kernel;

/// Smallest free space that counts as room: the last write before ENOSPC may be partial, and some file systems reserve a few blocks.
const NO_ROOM_BYTES: u64 = 64 << 10;

/// A file between two programs. Dropping it removes its name.
pub(super) struct LinkFile {
    /// The reader's open file description (open(2)), which is for reading only.
    pub(super) reader: OwnedFd,
    stored: Stored,
    bytes_max: AtomicU64,
    was_full: AtomicBool,
    /// Whether its bytes are kept when the reader has ended.
    kept: AtomicBool,
    /// Its size in bytes at the call of [`Self::close_to_writers`].
    closed_at: OnceLock<u64>,
}

impl LinkFile {
    pub(super) fn new(reader: OwnedFd, stored: Stored) -> Self {
        let (bytes_max, was_full, kept, closed_at) = Default::default();
        Self { reader, stored, bytes_max, was_full, kept, closed_at }
    }

    /// The file's size now, in bytes. Also updates its largest size, and whether its disk was full.
    pub(super) fn size(&self) -> io::Result<u64> {
        if let Some(held_bytes) = self.closed_at.get() {
            return Ok(*held_bytes);
        }
        let held_bytes = u64::try_from(fstat(&self.reader)?.st_size).unwrap_or(0);
        self.bytes_max.fetch_max(held_bytes, Relaxed);
        let mut space = fstatvfs(&self.reader)?;
        if geteuid().is_root() {
            // The superuser may use the blocks that are reserved for the superuser.
            space.f_bavail = space.f_bfree;
        }
        if held_bytes > 0 && free_bytes(&space).is_some_and(|free| free < NO_ROOM_BYTES) {
            self.was_full.store(true, Relaxed);
        }
        Ok(held_bytes)
    }

    /// Discards its bytes, unless they are kept. Returns its new size.
    pub(super) fn discard(&self) -> io::Result<u64> {
        if self.kept.load(Relaxed) || self.closed_at.get().is_some() {
            return self.size();
        }
        kernel::set_length(&self.reader, 0)?;
        Ok(0)
    }

    /// Makes every further write to it fail with EFBIG (write(2)): the writers append, and the file gets the largest size that its file system
    /// allows.
    ///
    /// # Errors
    /// The file system has no sparse files.
    pub(super) fn close_to_writers(&self) -> io::Result<()> {
        let held_bytes = self.size()?;
        kernel::set_maximum_size(&self.reader, held_bytes)?;
        self.closed_at.get_or_init(|| held_bytes);
        Ok(())
    }

    /// Sets its final size, after its reader and its writers have ended.
    pub(super) fn set_final_size(&self) -> io::Result<()> {
        let length = if self.kept.load(Relaxed) { self.closed_at.get().copied() } else { Some(0) };
        length.map_or(Ok(()), |bytes| kernel::set_length(&self.reader, bytes))
    }

    /// Keeps its bytes: from now on none are discarded.
    pub(super) fn keep(&self) {
        self.kept.store(true, Relaxed);
    }

    /// Copies its bytes; into another file by reference if the file system supports that.
    pub(super) fn copy_to(&self, mut copy: impl Write) -> io::Result<()> {
        let path = format!("/proc/self/fd/{}", self.reader.as_raw_fd());
        let held_bytes = self.closed_at.get().copied().unwrap_or(u64::MAX);
        io::copy(&mut File::open(path)?.take(held_bytes), &mut copy).map(|_| ())
    }

    /// Its largest size so far, in bytes.
    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Relaxed)
    }

    /// Its name, if it has one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.stored.name.as_ref().map(TemporaryPath::path)
    }

    /// The message if its disk was full at some time.
    pub(super) fn trouble(&self, spec: &str) -> Option<String> {
        self.was_full.load(Relaxed).then(|| {
            format!(
                "link {spec}: no room left in {} after {} (ENOSPC): dir= on a larger file system, or a link that \
                 stores nothing",
                self.stored.folder.display(),
                ByteSize(self.bytes_max())
            )
        })
    }
}
