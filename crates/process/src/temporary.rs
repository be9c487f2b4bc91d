//! Temporary names. Each is owned by a value, and announced to the cleaner while it may exist.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::announce::{Announcement, Announcer};

/// A file, FIFO, socket or folder under a temporary name. It is announced before it is made, and removed when this value is dropped by
/// the process that made it: forked children have copies of the value, and must not remove what other processes still use. If it
/// cannot be removed then, the cleaner tries to remove it at its end.
#[derive(Debug)]
pub struct TemporaryPath {
    path: PathBuf,
    maker: u32,
    announcer: Announcer,
    remove: fn(&Path) -> io::Result<()>,
}

impl TemporaryPath {
    /// Makes a file, FIFO or socket. `make` must fail if the name exists (O_EXCL, mkfifo, bind), so that an existing file is not changed.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn make<T, E>(
        announcer: &Announcer,
        path: PathBuf,
        make: impl FnOnce(&Path) -> Result<T, E>,
    ) -> Result<(Self, T), E> {
        announcer.announce(Announcement::File, &path);
        let made = make(&path).inspect_err(|_| announcer.announce(Announcement::Withdrawn, &path))?;
        let (maker, announcer) = (std::process::id(), announcer.clone());
        Ok((Self { path, maker, announcer, remove: |path| fs::remove_file(path) }, made))
    }

    /// Makes a folder with a random name in `parent`; only this user may enter it. It is removed with its contents.
    /// (The crate `tempfile` is not used because its errors do not give the errno.)
    ///
    /// # Errors
    /// An error of mkdir(2) or chmod(2).
    pub fn folder_in(announcer: &Announcer, parent: &Path) -> io::Result<Self> {
        Self::folder(announcer, parent.join(format!("hosepipe-{:016x}", fastrand::u64(..))))
    }

    /// As [`Self::folder_in`], with a given path.
    ///
    /// # Errors
    /// As [`Self::folder_in`].
    pub fn folder(announcer: &Announcer, path: PathBuf) -> io::Result<Self> {
        announcer.announce(Announcement::Folder, &path);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.inspect_err(|_| announcer.announce(Announcement::Withdrawn, &path))?;
        let (maker, announcer) = (std::process::id(), announcer.clone());
        let made = Self { path, maker, announcer, remove: |path| fs::remove_dir_all(path) };
        // The umask may have removed the user's own permissions.
        fs::set_permissions(&made.path, Permissions::from_mode(0o700))?;
        Ok(made)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives up the file, which is no longer removed.
    pub fn keep(mut self) -> PathBuf {
        self.announcer.announce(Announcement::Withdrawn, &self.path);
        self.remove = |_| Ok(());
        self.path.clone()
    }
}

impl Drop for TemporaryPath {
    fn drop(&mut self) {
        if self.maker != std::process::id() {
            return;
        }
        let removed = (self.remove)(&self.path);
        if removed.is_ok() || removed.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            self.announcer.announce(Announcement::Withdrawn, &self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_with_its_value() {
        let parent = tempfile::tempdir().expect("temp dir");
        let path = parent.path().join("x");
        let (name, ()) =
            TemporaryPath::make(&Announcer::default(), path.clone(), |path| fs::write(path, b"x"))
                .expect("written");
        assert!(path.exists());
        drop(name);
        assert!(!path.exists());
        let folder = TemporaryPath::folder_in(&Announcer::default(), parent.path()).expect("made");
        let kept = folder.keep();
        assert!(kept.is_dir());
    }

    #[test]
    fn what_was_there_before_stays() {
        let parent = tempfile::tempdir().expect("temp dir");
        let path = parent.path().join("x");
        fs::write(&path, b"another's").expect("written");
        let announcer = Announcer::default();
        let taken = TemporaryPath::make(&announcer, path.clone(), |path| fs::File::create_new(path));
        assert!(taken.is_err());
        assert!(TemporaryPath::folder(&announcer, path.clone()).is_err());
        assert!(path.is_file());
    }
}
