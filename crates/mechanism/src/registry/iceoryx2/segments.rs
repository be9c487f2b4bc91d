//! What iceoryx2 keeps in file systems: a folder of descriptions, and segments in /dev/shm whose names nobody
//! can announce, since it makes them up. They bear a prefix that says whose they are.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use iceoryx2::prelude::{Config, FileName, SemanticString, SemanticStringError};
use rustix::process::geteuid;

use crate::OpenError;

/// Where iceoryx2 keeps its shared memory on Linux (iceoryx2-pal-configuration).
pub(super) const SHARED_MEMORY_FOLDER: &str = "/dev/shm";

/// Channels of one process differ by this number.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Where one channel's files are; dropping it removes what its tasks could not, having been killed.
pub(super) struct Site {
    pub(super) config: Config,
    prefix: String,
    root: PathBuf,
    owner: u32,
}

/// The prefix of every name that process `owner` makes.
fn prefix_of(owner: u32) -> String {
    format!("hosepipe-{owner}-")
}

impl Site {
    pub(super) fn new(folder: &Path) -> Result<Self, OpenError> {
        let owner = std::process::id();
        let prefix = format!("{}{}_", prefix_of(owner), NEXT.fetch_add(1, Relaxed));
        let root = folder.join(format!("iceoryx2-{}", NEXT.fetch_add(1, Relaxed)));
        let wrong = |error: SemanticStringError| OpenError::Unsupported {
            message: format!("iceoryx2 cannot have its files in {}: {error:?}", root.display()),
            remedy: "a shorter TMPDIR".to_owned(),
        };
        let mut config = Config::default();
        config.global.prefix = FileName::new(prefix.as_bytes()).map_err(wrong)?;
        let path = iceoryx2::prelude::Path::new(root.as_os_str().as_encoded_bytes()).map_err(wrong)?;
        config.global.set_root_path(&path);
        Ok(Self { config, prefix, root, owner })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            let _ = fs::remove_dir_all(&self.root);
            remove_segments(|name| name.starts_with(&self.prefix));
        }
    }
}

fn remove_segments(ours: impl Fn(&str) -> bool) {
    let Ok(entries) = fs::read_dir(SHARED_MEMORY_FOLDER) else { return };
    let user = geteuid().as_raw();
    // Anybody may make a file of such a name: another user's is left alone.
    let own = |entry: &fs::DirEntry| entry.metadata().is_ok_and(|file| file.uid() == user);
    let ours = |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(&ours) && own(entry);
    for entry in entries.flatten().filter(ours) {
        let _ = fs::remove_file(entry.path());
    }
}

/// Removes what a process made and can no longer remove, having died.
pub(crate) fn remove_segments_of(process: u32) {
    let prefix = prefix_of(process);
    remove_segments(|name| name.starts_with(&prefix));
}

/// A run that was killed and had no janitor left its segments: the next one removes them.
pub(super) fn remove_what_the_dead_left() {
    remove_segments(|name| {
        let owner = name.strip_prefix("hosepipe-").and_then(|rest| rest.split_once('-'));
        let owner = owner.and_then(|(owner, _)| owner.parse::<u32>().ok());
        owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists())
    });
}
