//! What a process has open, by /proc.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Whether a process has descriptors of both ends of one pipe.
pub(crate) fn holds_both_ends(pid: u32) -> bool {
    let open = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.ok()?.path();
        // proc(5): the permissions of the link are those of the descriptor.
        Some((fs::read_link(&path).ok()?, fs::symlink_metadata(&path).ok()?.mode() & 0o600))
    };
    let open: Vec<(PathBuf, u32)> =
        fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().filter_map(open).collect();
    open.iter().any(|(pipe, mode)| {
        pipe.to_string_lossy().starts_with("pipe:") && *mode == 0o400 && open.contains(&(pipe.clone(), 0o200))
    })
}
