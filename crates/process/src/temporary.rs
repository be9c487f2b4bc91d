//! Temporary folders. A folder of the crate `tempfile` gives errors whose errno is hidden within a text.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A folder that only this user may enter; removed with this value, with all it holds.
#[derive(Debug)]
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Makes a folder of this path.
    ///
    /// # Errors
    /// What mkdir(2) or chmod(2) answered.
    pub fn make(path: PathBuf) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(&path)?;
        let made = Self(path);
        // The umask may have taken the user's own permissions away.
        fs::set_permissions(&made.0, Permissions::from_mode(0o700))?;
        Ok(made)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves it where it is.
    pub fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.0)
    }

    /// Removes it.
    ///
    /// # Errors
    /// What the system answered; ENOENT where it has been removed.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(self.keep())
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
