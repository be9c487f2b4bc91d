//! Where names and files are made, and what room there is.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use model::temporary_folder;
use rustix::fs::StatVfs;
use tempfile::TempDir;

use crate::OpenError;
use crate::leftover::announce;
use process::Announcement;

/// A folder for names: one of our own, made when the first name is, or one that is there.
#[derive(Debug)]
pub struct Folder {
    place: PathBuf,
    /// `None` where names are made in the place itself.
    private: Option<OnceLock<TempDir>>,
}

impl Folder {
    /// A folder that nobody else may enter, in the folder for temporary files. It is made when it is needed, announced,
    /// and removed with this value.
    pub fn private() -> Self {
        let place = temporary_folder();
        // A relative TMPDIR leads elsewhere once the directory has changed.
        let place = std::path::absolute(&place).unwrap_or(place);
        Self { place, private: Some(OnceLock::new()) }
    }

    /// A folder that is there, and nobody else's meanwhile.
    pub fn at(place: &Path) -> Self {
        Self { place: place.to_owned(), private: None }
    }

    /// Where a name goes.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn path(&self) -> Result<&Path, OpenError> {
        let Some(private) = &self.private else { return Ok(&self.place) };
        if let Some(made) = private.get() {
            return Ok(made.path());
        }
        let name = format!("hosepipe-{:016x}", fastrand::u64(..));
        let path = self.place.join(&name);
        // Announced first: who is killed as soon as the folder is there must not leave it.
        announce(Announcement::Folder, &path);
        let mut folder = tempfile::Builder::new();
        // The umask is the user's affair, and may leave the folder open to all.
        let folder = folder.prefix(&name).rand_bytes(0).permissions(Permissions::from_mode(0o700));
        let made = folder.tempdir_in(&self.place).map_err(|source| {
            announce(Announcement::Withdrawn, &path);
            OpenError::System {
                call: format!("making a folder in {}", self.place.display()),
                source,
                remedy: Some("set TMPDIR to a folder you can write to".to_owned()),
            }
        })?;
        Ok(private.get_or_init(|| made).path())
    }

    /// Where a file goes that has no name.
    pub fn place(&self) -> &Path {
        &self.place
    }
}

/// What an ordinary user may still put into a file system, in bytes; `None` where it has no limit of its own, as a
/// tmpfs that was mounted with `size=0`: it says that it has no blocks at all.
pub fn free_bytes(space: &StatVfs) -> Option<u64> {
    (space.f_blocks > 0).then(|| space.f_bavail.saturating_mul(space.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_folder_is_made_when_it_is_needed_and_is_ours_alone() {
        let outside = tempfile::tempdir().expect("temp dir");
        let entries = || std::fs::read_dir(outside.path()).expect("there").count();
        let folder = Folder { place: outside.path().to_owned(), private: Some(OnceLock::new()) };
        assert_eq!(entries(), 0);
        let path = folder.path().expect("a folder").to_owned();
        assert_eq!(folder.path().expect("the same"), path);
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o7777, 0o700);
        drop(folder);
        assert_eq!(entries(), 0);
    }

    /// Expected: whoever is killed as soon as the folder is there leaves nothing.
    /// Happened: the folder was announced after it had been made, and stayed behind.
    #[test]
    fn a_folder_is_announced_before_it_is_made() {
        let (hears, tells) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
        crate::leftover::announce_to(Some(process::Announcer::over(tells)));
        let place = PathBuf::from("/nonexistent/announced");
        let folder = Folder { place, private: Some(OnceLock::new()) };
        assert!(folder.path().is_err());
        crate::leftover::announce_to(None);
        let mut told = Vec::new();
        std::io::Read::read_to_end(&mut std::fs::File::from(hears), &mut told).expect("told");
        let told = String::from_utf8_lossy(&told).into_owned();
        // Other tests may announce theirs meanwhile.
        let ours = told.split('\0').filter(|message| message.contains("/nonexistent/announced/hosepipe-"));
        let letters: String = ours.filter_map(|message| message.chars().next()).collect();
        assert_eq!(letters, "d-", "{told}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_a_sentence_with_a_remedy() {
        let folder = Folder { place: PathBuf::from("/nonexistent"), private: Some(OnceLock::new()) };
        let error = folder.path().expect_err("nowhere");
        assert!(error.to_string().contains("/nonexistent: ENOENT"), "{error}");
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("TMPDIR")));
    }
}
