//! Where files are: temporary ones, and programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder for temporary files: TMPDIR, or /tmp. A TMPDIR that is empty is none, as mktemp(1) has it.
pub fn temporary_folder() -> PathBuf {
    let set: Option<OsString> = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty());
    set.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// The first file of this name along PATH, whether it may be executed or not.
pub fn file_on_path(name: impl AsRef<Path>) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(&name)).find(|path| path.is_file())
}
