//! The folders in which names and files are made, and the free space of their file systems.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use model::temporary_folder;
use rustix::fs::{Access, StatVfs, access};
use rustix::process::geteuid;

use crate::OpenError;
use crate::leftover::announcer;
use process::TemporaryPath;

/// The usual folder for temporary files.
const USUAL: &str = "/tmp";

/// A folder for names: a private one, which is made before the first name, or an existing one.
#[derive(Debug)]
pub struct Folder {
    /// The parent of the private folder, or the folder itself.
    base: PathBuf,
    /// Whether `base` existed when this value was made: if it is removed later, files are made in [`USUAL`].
    was_there: bool,
    /// The private folder in `base`, which is made when it is needed; `None`: names are made in `base` itself.
    private: Option<Mutex<Option<TemporaryPath>>>,
}

impl Folder {
    /// A folder that only this user may enter, in the folder for temporary files. It is made when it is needed, announced to
    /// the cleaner, and removed when this value is dropped. If another program removes it, a new one is made.
    pub fn private() -> Self {
        Self::private_in(temporary_folder())
    }

    /// The same for names that are removed at once and store no data. It is in $XDG_RUNTIME_DIR or /tmp, not in $TMPDIR: a script may
    /// list its own temporary files there.
    pub fn for_brief_names() -> Self {
        let own = |folder: &PathBuf| {
            let is_own = fs::metadata(folder).is_ok_and(|found| found.uid() == geteuid().as_raw());
            is_own && access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
        };
        let usual = || Some(PathBuf::from(USUAL)).filter(|usual| access(usual, Access::WRITE_OK).is_ok());
        let runtime = model::runtime_folder().filter(own);
        Self::private_in(runtime.or_else(usual).unwrap_or_else(temporary_folder))
    }

    fn private_in(base: PathBuf) -> Self {
        // A relative TMPDIR would name another folder after a change of directory.
        let base = std::path::absolute(&base).unwrap_or(base);
        Self { was_there: base.is_dir(), base, private: Some(Mutex::default()) }
    }

    /// A folder that exists, and that only this run uses.
    pub fn at(base: &Path) -> Self {
        Self { base: base.to_owned(), was_there: false, private: None }
    }

    /// The folder for a name; makes the private folder if there is none.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn path(&self) -> Result<PathBuf, OpenError> {
        let Some(private) = &self.private else { return Ok(self.base.clone()) };
        let mut private = private.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = private.as_ref().map(TemporaryPath::path).filter(|path| is_own_folder(path)) {
            return Ok(path.to_owned());
        }
        let made = TemporaryPath::folder_in(&announcer(), self.base()).map_err(|error| {
            let remedy = "set TMPDIR to a folder you can write to".to_owned();
            OpenError::system(format!("making a folder in {}", self.base().display()), error, Some(remedy))
        })?;
        Ok(private.insert(made).path().to_owned())
    }

    /// The folder for a file without a name.
    pub fn base(&self) -> &Path {
        if self.was_there && !self.base.is_dir() { Path::new(USUAL) } else { &self.base }
    }
}

/// Whether a path is a folder of this user, not a symbolic link to one.
fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw())
}

/// Free bytes of a file system for an ordinary user; `None` if it has no limit: a tmpfs mounted with `size=0` reports a total
/// of 0 blocks.
pub fn free_bytes(space: &StatVfs) -> Option<u64> {
    (space.f_blocks > 0).then(|| space.f_bavail.saturating_mul(space.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_private_folder_is_made_when_it_is_needed_and_is_ours_alone() {
        let outside = tempfile::tempdir().expect("temp dir");
        let entries = || std::fs::read_dir(outside.path()).expect("there").count();
        let folder = Folder::private_in(outside.path().to_owned());
        assert_eq!(entries(), 0);
        let path = folder.path().expect("a folder").to_owned();
        assert_eq!(folder.path().expect("the same"), path);
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o7777, 0o700);
        drop(folder);
        assert_eq!(entries(), 0);
    }

    /// Expected: a script that cleans the folder for temporary files, or removes it, goes on.
    /// Happened: its next pipeline over a link that has a name could not be made.
    #[test]
    fn a_folder_that_was_removed_is_made_anew() {
        let outside = tempfile::tempdir().expect("temp dir");
        let place = outside.path().join("tmp");
        std::fs::create_dir(&place).expect("a folder");
        let folder = Folder::private_in(place.clone());
        let first = folder.path().expect("a folder");
        std::fs::remove_dir(&first).expect("empty");
        let second = folder.path().expect("another");
        assert!(second != first && second.starts_with(&place) && second.is_dir());
        std::fs::remove_dir_all(&place).expect("ours");
        let third = folder.path().expect("elsewhere");
        assert!(third.starts_with(USUAL) && third.is_dir() && folder.base() == Path::new(USUAL));
        drop(folder);
        assert!(!third.exists() && !place.exists());
    }

    /// Expected: a process that is killed as soon as the folder is there leaves nothing.
    /// Happened: the folder was announced after it had been made, and stayed behind.
    #[test]
    fn a_folder_is_announced_before_it_is_made() {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
        crate::leftover::announce_to(Some(process::Announcer::over(writer)));
        let place = PathBuf::from("/nonexistent/announced");
        let folder = Folder::private_in(place);
        assert!(folder.path().is_err());
        crate::leftover::announce_to(None);
        let mut announced = Vec::new();
        std::io::Read::read_to_end(&mut std::fs::File::from(reader), &mut announced).expect("announced");
        let announced = String::from_utf8_lossy(&announced).into_owned();
        // Other tests may announce theirs meanwhile.
        let ours =
            announced.split('\0').filter(|message| message.contains("/nonexistent/announced/hosepipe-"));
        let letters: String = ours.filter_map(|message| message.chars().next()).collect();
        assert_eq!(letters, "d-", "{announced}");
    }

    #[test]
    fn the_error_of_a_folder_that_cannot_be_made_has_a_remedy() {
        let folder = Folder::private_in(PathBuf::from("/nonexistent"));
        let error = folder.path().expect_err("nowhere");
        assert!(error.to_string().contains("/nonexistent: ENOENT"), "{error}");
        assert!(error.remedy.is_some_and(|remedy| remedy.contains("TMPDIR")));
    }
}
