//! The file of a link: its size, its name, and whether there was no more room for it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use mechanism::{Stored, free_bytes};
use model::ByteSize;
use process::TemporaryPath;
use rustix::fs::{FallocateFlags, fallocate, fstat, fstatvfs, tell};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Smallest free space that counts as room where the file system cannot be asked for a block: some reserve a few.
const NO_ROOM_BYTES: u64 = 64 << 10;
const BLOCK_BYTES: u64 = 4096;

/// The files of all links, which may be on one disk: space that one of them frees hides that the disk was full for another.
static FILES: Mutex<Vec<Weak<LinkFile>>> = Mutex::new(Vec::new());

/// A file between two programs. Dropping it removes its name. In sequential order its writers write to it themselves, and whether a write of theirs
/// was refused must be found out afterwards; in parallel order a relay writes to it, and knows.
pub(super) struct LinkFile {
    /// The reader's open file description (open(2)), which is for reading only.
    pub(super) reader: OwnedFd,
    stored: Stored,
    bytes_max: AtomicU64,
    /// The error of the first write, or request for another block, that was refused (errno(3)); 0 if none was.
    refused: AtomicI32,
    /// Its last write was cut off.
    cut: AtomicBool,
}

impl LinkFile {
    pub(super) fn new(reader: OwnedFd, stored: Stored) -> Arc<Self> {
        let (bytes_max, refused, cut) = Default::default();
        let file = Arc::new(Self { reader, stored, bytes_max, refused, cut });
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&file));
        file
    }

    /// The file's size now, in bytes. Also updates its largest size.
    pub(super) fn size(&self) -> io::Result<u64> {
        let held_bytes = u64::try_from(fstat(&self.reader)?.st_size).unwrap_or(0);
        self.bytes_max.fetch_max(held_bytes, Relaxed);
        Ok(held_bytes)
    }

    /// Notes that a write was refused, with this error.
    pub(super) fn refuse(&self, error: Errno) {
        self.refused.store(error.raw_os_error(), Relaxed);
        self.cut.store(true, Relaxed);
    }

    /// Finds out whether there is room for more. To be called when its writers have closed it, before space is freed.
    pub(super) fn check_room(&self) -> io::Result<()> {
        let held_bytes = self.size()?;
        if !self.is_refused() {
            return Ok(());
        }
        // A write that is refused fills the last block first, so a file that ends within a block is whole. A file that ends exactly where
        // the disk does is taken for one that was cut off.
        let block_bytes = fstatvfs(&self.reader)?.f_frsize.max(1);
        self.cut.fetch_or(held_bytes > 0 && held_bytes.is_multiple_of(block_bytes), Relaxed);
        check_files();
        Ok(())
    }

    fn is_refused(&self) -> bool {
        let refused = refused_block(&self.stored.folder, &self.reader);
        if let Some(refused) = refused {
            let _ = self.refused.compare_exchange(0, refused.raw_os_error(), Relaxed, Relaxed);
        }
        refused.is_some()
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
    pub(super) fn unread(&self) -> io::Result<Unread> {
        let folder = self.stored.folder.clone();
        Ok(Unread { file: self.reader.try_clone()?, folder, held_bytes: self.size()? })
    }

    /// Copies its bytes; into another file by reference if the file system supports that.
    pub(super) fn copy_to(&self, mut copy: impl Write) -> io::Result<()> {
        let path = format!("/proc/self/fd/{}", self.reader.as_raw_fd());
        io::copy(&mut File::open(path)?, &mut copy).map(|_| ())
    }

    /// Its largest size so far, in bytes.
    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Relaxed)
    }

    /// Its name, if it has one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.stored.name.as_ref().map(TemporaryPath::path)
    }

    /// The message where it has not all that its writers wrote.
    pub(super) fn trouble(&self, spec: &str) -> String {
        let refused = nix::errno::Errno::from_raw(self.refused.load(Relaxed));
        if refused == nix::errno::Errno::EFBIG {
            return limit_trouble(spec, self.bytes_max());
        }
        format!(
            "link {spec}: no room left in {} after {} ({refused:?}): dir= on a larger file system, or a link that stores nothing",
            self.stored.folder.display(),
            ByteSize(self.bytes_max()),
        )
    }
}

/// The message where a limit for the size of files has cut off what was written. A pipe has no such limit.
pub(crate) fn limit_trouble(spec: &str, stored_bytes: u64) -> String {
    format!(
        "link {spec}: the limit for the size of files was reached, and the output of its writer was cut short after {}: a higher limit \
         (ulimit -f), or a link that stores nothing",
        ByteSize(stored_bytes)
    )
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
