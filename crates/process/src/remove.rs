//! Removes a folder with its contents, as far as possible: what cannot be removed does not keep the rest.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, RawDir, access, openat, unlinkat};
use rustix::io::Errno;

use crate::retry::{Retries, retry_rare};

/// Largest depth of nested folders that are removed: the recursion must fit on the stack.
const DEPTH_MAX: u32 = 32;

/// Removes a file if it exists. Returns whether it no longer exists.
pub(crate) fn remove_file(path: &CStr) -> bool {
    let unlink = || unlinkat(CWD, path, AtFlags::empty());
    matches!(
        retry_rare(Retries::UNREPORTED, |error| *error != Errno::NOENT, unlink),
        Ok(()) | Err(Errno::NOENT)
    )
}

/// Removes a file or a folder with its contents, as far as possible. Returns whether it no longer exists.
pub(crate) fn remove(path: &CStr) -> bool {
    let try_to_remove = || {
        remove_below(CWD, path, DEPTH_MAX);
        let is_gone = access(path, Access::EXISTS) == Err(Errno::NOENT);
        is_gone.then_some(()).ok_or(())
    };
    retry_rare(Retries::UNREPORTED, |()| true, try_to_remove).is_ok()
}

fn remove_below(parent: BorrowedFd<'_>, name: &CStr, depth: u32) {
    if unlinkat(parent, name, AtFlags::empty()).is_ok() || depth == 0 {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(folder) = openat(parent, name, flags, Mode::empty()) else { return };
    let mut room = [MaybeUninit::uninit(); 1024];
    let mut entries = RawDir::new(&folder, &mut room);
    while let Some(Ok(entry)) = entries.next() {
        if ![c".", c".."].contains(&entry.file_name()) {
            remove_below(folder.as_fd(), entry.file_name(), depth - 1);
        }
    }
    let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_tree_is_removed_and_what_it_points_at_is_not() {
        let lab = tempfile::tempdir().expect("a folder");
        let (tree, other) = (lab.path().join("tree"), lab.path().join("other"));
        fs::create_dir_all(tree.join("a/b")).expect("made");
        fs::create_dir(&other).expect("made");
        for number in 0..100 {
            fs::write(tree.join(format!("a/b/{number}-{}", "x".repeat(100))), "").expect("written");
        }
        fs::write(other.join("kept"), "").expect("written");
        std::os::unix::fs::symlink(&other, tree.join("link")).expect("linked");
        assert!(remove(&CString::new(tree.as_os_str().as_bytes()).expect("no NUL")));
        assert!(!tree.exists() && other.join("kept").exists());
    }
}
