//! Where temporary files go.

use std::ffi::OsString;
use std::path::PathBuf;

/// The folder for temporary files: TMPDIR, or /tmp. A TMPDIR that is empty is none, as mktemp(1) has it.
pub fn temporary_folder() -> PathBuf {
    let set: Option<OsString> = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty());
    set.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}
