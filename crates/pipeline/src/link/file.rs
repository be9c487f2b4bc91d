//! The file of a link: its size, its name, and whether there was no more room for it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use mechanism::{Stored, free_bytes};
use model::ByteSize;
use process::TemporaryPath;
use rustix::fs::{FallocateFlags, fallocate, fstat, fstatvfs, tell};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::kernel;

/// Smallest free space that counts as room where the file system cannot be asked for a block: some reserve a few.
const NO_ROOM_BYTES: u64 = 64 << 10;
const BLOCK_BYTES: u64 = 4096;
/// Free space with which a disk is surely not full.
const MUCH_ROOM_BYTES: u64 = 16 << 20;

/// The files of all links, which may be on one disk: space that one of them frees hides that the disk was full for another.
static FILES: Mutex<Vec<Weak<LinkFile>>> = Mutex::new(Vec::new());

/// A file between two programs. Dropping it removes its name.
pub(super) struct LinkFile {
    /// The reader's open file description (open(2)), which is for reading only.
    pub(super) reader: OwnedFd,
    stored: Stored,
    bytes_max: AtomicU64,
    /// The error of the first request for another block that was refused (errno(3)); 0 if none was.
    refused: AtomicI32,
    /// Its last write was cut off for want of room.
    cut: AtomicBool,
    /// Whether its bytes are kept when the reader has ended.
    kept: AtomicBool,
    /// Its size in bytes at the call of [`Self::close_to_writers`].
    closed_at: OnceLock<u64>,
}

impl LinkFile {
    pub(super) fn new(reader: OwnedFd, stored: Stored) -> Arc<Self> {
        let (bytes_max, refused, cut, kept, closed_at) = Default::default();
        let file = Arc::new(Self { reader, stored, bytes_max, refused, cut, kept, closed_at });
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&file));
        file
    }

    /// The file's size now, in bytes. Also updates its largest size.
    pub(super) fn size(&self) -> io::Result<u64> {
        if let Some(held_bytes) = self.closed_at.get() {
            return Ok(*held_bytes);
        }
        let held_bytes = u64::try_from(fstat(&self.reader)?.st_size).unwrap_or(0);
        self.bytes_max.fetch_max(held_bytes, Relaxed);
        Ok(held_bytes)
    }

    /// Finds out whether there is room for more. To be called when its writers have closed it, before space is freed.
    pub(super) fn check_room(&self) -> io::Result<()> {
        let held_bytes = self.size()?;
        if self.closed_at.get().is_some() || !self.is_refused() {
            return Ok(());
        }
        // A write that is refused fills the last block first, so a file that ends within a block is whole. A file that ends exactly where
        // the disk does is taken for one that was cut off.
        let block_bytes = fstatvfs(&self.reader)?.f_frsize.max(1);
        self.cut.fetch_or(held_bytes > 0 && held_bytes.is_multiple_of(block_bytes), Relaxed);
        check_files();
        Ok(())
    }

    /// The same if its disk is nearly full: to ask for a block takes longer than a writer may need to reach its limit for the size of files.
    pub(super) fn check_room_if_little(&self) -> io::Result<()> {
        let space = fstatvfs(&self.reader)?;
        match free_bytes(&space).is_some_and(|free| free >= MUCH_ROOM_BYTES) {
            true => self.size().map(|_| ()),
            false => self.check_room(),
        }
    }

    fn is_refused(&self) -> bool {
        let refused = refused_block(&self.stored.folder, &self.reader);
        if let Some(refused) = refused {
            let _ = self.refused.compare_exchange(0, refused.raw_os_error(), Relaxed, Relaxed);
        }
        refused.is_some()
    }

    /// Whether it may not have all that its writers wrote. (Shells set the limit for the size of files in units of 512 bytes or more.)
    pub(super) fn may_be_cut(&self) -> bool {
        self.was_refused() || self.bytes_max().is_multiple_of(512)
    }

    /// Whether its last write was cut off.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }

    /// Whether there was no more room at some time: a write may have failed.
    pub(super) fn was_refused(&self) -> bool {
        self.refused.load(Relaxed) != 0
    }

    /// What is needed after the link has ended while its reader reads the file by itself.
    pub(super) fn unread(&self, cut: Option<Cut>) -> io::Result<Unread> {
        let folder = self.stored.folder.clone();
        Ok(Unread { file: self.reader.try_clone()?, folder, held_bytes: self.size()?, cut })
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

    /// The message if there was no more room for it.
    pub(super) fn trouble(&self, spec: &str) -> String {
        format!(
            "link {spec}: no room left in {} after {} ({:?}): dir= on a larger file system, or a link that stores nothing",
            self.stored.folder.display(),
            ByteSize(self.bytes_max()),
            nix::errno::Errno::from_raw(self.refused.load(Relaxed))
        )
    }
}

/// What cut off a writer's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    NoRoom,
    /// The writer's limit for the size of files.
    Limit,
}

/// How far a reader has moved its position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    NotAtAll,
    Within,
    ToTheEnd,
}

/// A file whose link has ended, and which its reader reads by itself.
pub(crate) struct Unread {
    /// The reader's description.
    file: OwnedFd,
    folder: PathBuf,
    held_bytes: u64,
    pub(crate) cut: Option<Cut>,
}

impl Unread {
    /// To be called when the reader has ended. A position that cannot be read is taken for one within the file.
    pub(crate) fn moved(&self) -> Moved {
        if refused_block(&self.folder, &self.file).is_some() {
            check_files();
        }
        match tell(&self.file) {
            Ok(0) => Moved::NotAtAll,
            Ok(position) if position >= self.held_bytes => Moved::ToTheEnd,
            _ => Moved::Within,
        }
    }
}

/// Notes which files have no more room.
fn check_files() {
    let files = FILES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for file in files.iter().filter_map(Weak::upgrade) {
        file.is_refused();
    }
}

/// The error of a request for one more block in a folder; `None` if there is room. The block is another file's: a link's own file may be
/// written at any time.
fn refused_block(folder: &Path, file: &OwnedFd) -> Option<Errno> {
    let another = tempfile::tempfile_in(folder);
    match another.map(|another| fallocate(another, FallocateFlags::empty(), 0, BLOCK_BYTES)) {
        Ok(Ok(())) => None,
        Ok(Err(refused @ (Errno::NOSPC | Errno::DQUOT))) => Some(refused),
        _ => {
            let mut space = fstatvfs(file).ok()?;
            if geteuid().is_root() {
                // The superuser may use the blocks that are reserved for the superuser.
                space.f_bavail = space.f_bfree;
            }
            free_bytes(&space).is_some_and(|free| free < NO_ROOM_BYTES).then_some(Errno::NOSPC)
        }
    }
}
