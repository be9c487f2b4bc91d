//! The file of a link: how much it held, whether its disk was full, and a name that goes with it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use mechanism::{Stored, StoredName};
use model::ByteSize;
use rustix::fs::{fstat, fstatvfs};
use rustix::process::geteuid;

use super::kernel;

/// Less than this is no room: writers are refused in pieces, and some file systems keep a few blocks for
/// themselves.
const NO_ROOM_BYTES: u64 = 64 << 10;

/// A file that stands between two programs. Dropping it removes its name.
pub(super) struct LinkFile {
    /// A description for reading only, of the reader's.
    pub(super) reader: OwnedFd,
    folder: PathBuf,
    name: Option<StoredName>,
    bytes_max: AtomicU64,
    was_full: AtomicBool,
    /// What it holds is to be kept: it is not thrown away when the reader leaves.
    kept: AtomicBool,
}

impl LinkFile {
    pub(super) fn new(reader: OwnedFd, stored: Stored) -> Self {
        let Stored { folder, name, .. } = stored;
        Self {
            reader,
            folder,
            name,
            bytes_max: AtomicU64::new(0),
            was_full: AtomicBool::new(false),
            kept: AtomicBool::new(false),
        }
    }

    /// What the file holds now, in bytes. The largest answer is remembered, and whether there was room for more.
    pub(super) fn look(&self) -> io::Result<u64> {
        let held_bytes = u64::try_from(fstat(&self.reader)?.st_size).unwrap_or(0);
        self.bytes_max.fetch_max(held_bytes, Relaxed);
        let space = fstatvfs(&self.reader)?;
        // What is reserved for the superuser is room for the superuser.
        let free_blocks = if geteuid().is_root() { space.f_bfree } else { space.f_bavail };
        if held_bytes > 0 && free_blocks.saturating_mul(space.f_frsize) < NO_ROOM_BYTES {
            self.was_full.store(true, Relaxed);
        }
        Ok(held_bytes)
    }

    /// Throws away what it holds.
    pub(super) fn empty(&self) -> io::Result<()> {
        if self.kept.load(Relaxed) {
            return Ok(());
        }
        kernel::empty(&self.reader)
    }

    /// From now on nothing of it is thrown away.
    pub(super) fn keep(&self) {
        self.kept.store(true, Relaxed);
    }

    /// Puts what it holds into another file: by reference where the file system can, else by a copy.
    ///
    /// # Errors
    /// A full disk.
    pub(super) fn copy_to(&self, mut copy: File) -> io::Result<()> {
        let path = format!("/proc/self/fd/{}", self.reader.as_raw_fd());
        io::copy(&mut File::open(path)?, &mut copy).map(|_| ())
    }

    /// The most it was seen to hold, in bytes.
    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Relaxed)
    }

    /// Its name, if it has one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.name.as_ref().map(StoredName::path)
    }

    /// What to say if its disk was full.
    pub(super) fn trouble(&self, spec: &str) -> Option<String> {
        self.was_full.load(Relaxed).then(|| {
            format!(
                "link {spec}: no room left in {} after {} (ENOSPC): dir= on a larger file system, or a link that \
                 stores nothing",
                self.folder.display(),
                ByteSize(self.bytes_max())
            )
        })
    }
}
