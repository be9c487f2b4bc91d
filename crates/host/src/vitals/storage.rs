//! The file systems that files-as-links and shared memory land on.

use std::path::{Path, PathBuf};

use rustix::fs::statfs;

/// Names of file systems by their magic number (statfs(2), linux/magic.h).
const KINDS: [(u64, &str); 15] = [
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x794c_7630, "overlayfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x9fa0, "proc"),
];

/// Where files and shared memory go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storage {
    /// /dev/shm, where shm_open(3) makes its files; `None` where it is missing.
    pub shm: Option<FileSystem>,
    /// $TMPDIR, or /tmp.
    pub temporary: Option<FileSystem>,
}

/// A folder's file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// The folder.
    pub folder: PathBuf,
    /// Its kind by name, or its magic number in hexadecimal.
    pub kind: String,
    /// What an ordinary user may still fill, in bytes; `None` where it has no limit of its own, as a tmpfs that was mounted
    /// with `size=0`: it says that it has no blocks at all.
    pub available_bytes: Option<u64>,
    /// What the system answered to making a file there; `None` where that works.
    pub refusal: Option<String>,
}

impl Storage {
    /// Looks at both.
    pub fn read() -> Self {
        Self {
            shm: FileSystem::of(Path::new("/dev/shm")),
            temporary: FileSystem::of(&model::temporary_folder()),
        }
    }
}

impl FileSystem {
    /// The file system a folder is on; `None` where there is no such folder. Makes a file there that has no name, or has
    /// lost it before this returns.
    pub fn of(folder: &Path) -> Option<Self> {
        let stat = statfs(folder).ok()?;
        // The widths and signs of these fields differ between architectures.
        #[allow(clippy::unnecessary_cast)]
        let (magic, block_bytes) = (stat.f_type as u64 & 0xffff_ffff, stat.f_bsize as u64);
        let known = KINDS.iter().find(|(number, _)| *number == magic);
        Some(Self {
            folder: folder.to_owned(),
            kind: known.map_or_else(|| format!("{magic:#x}"), |(_, name)| (*name).to_owned()),
            available_bytes: (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(block_bytes)),
            // A mount that is read-only, modes, quotas and security modules all have their say: only trying tells.
            refusal: tempfile::tempfile_in(folder).err().map(|error| model::describe_errno(&error)),
        })
    }

    /// True where files live in memory.
    pub fn is_memory(&self) -> bool {
        matches!(self.kind.as_str(), "tmpfs" | "ramfs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_proc() {
        let read = FileSystem::of(Path::new("/proc")).expect("every Linux has it");
        assert_eq!(read.kind, "proc");
        assert!(!read.is_memory());
        assert_eq!(read.available_bytes, None);
        assert!(read.refusal.is_some(), "no file can be made in /proc");
        let folder = tempfile::tempdir().expect("a folder");
        let usable = FileSystem::of(folder.path()).expect("there");
        assert_eq!(usable.refusal, None);
        assert!(folder.path().read_dir().expect("there").next().is_none(), "nothing is left");
        assert_eq!(FileSystem::of(Path::new("/proc/no such folder")), None);
        assert!(Storage::read().temporary.is_some());
    }
}
