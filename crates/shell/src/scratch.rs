//! A folder for what links and presets store: made when first needed, and gone with the shell, however it goes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use tempfile::TempDir;

/// The folder, shared with who removes it when a signal ends the shell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scratch(Arc<Mutex<Option<TempDir>>>);

impl Scratch {
    /// The folder's path.
    ///
    /// # Errors
    /// It cannot be made (TMPDIR names the place).
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        let mut folder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &*folder {
            return Ok(folder.path().to_owned());
        }
        let place = model::temporary_folder();
        let mut private = tempfile::Builder::new();
        let private = private.prefix("hosepipe-").permissions(Permissions::from_mode(0o700));
        let made = private.tempdir_in(&place).with_context(|| {
            format!("cannot make a folder in {} (TMPDIR names another place)", place.display())
        })?;
        Ok(folder.insert(made).path().to_owned())
    }

    /// Removes it.
    pub(crate) fn remove(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
