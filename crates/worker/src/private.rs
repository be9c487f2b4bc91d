//! Folders in which nobody else can change anything: what is built in them is run, by root too.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use model::describe_errno;
use rustix::process::geteuid;

/// Write permission of the group and of everybody.
const OTHERS_WRITE: u32 = 0o022;
/// Where everybody may write, but remove and rename only what is their own (the sticky bit).
const EVERYBODY_WRITES: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Makes a folder and those above it, and takes from it, where it is ours, what permissions go beyond these.
pub(crate) fn make(folder: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(folder)?;
    let found = fs::metadata(folder)?;
    if found.uid() == geteuid().as_raw() && found.mode() & 0o777 & !mode != 0 {
        fs::set_permissions(folder, Permissions::from_mode(found.mode() & mode))?;
    }
    Ok(())
}

/// Why others can change what a folder holds, or will hold once it is made; `None` where they cannot. Whoever may write to a
/// folder above it may put another in its place.
pub(crate) fn open_to_others(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|part| fs::symlink_metadata(part).is_ok()).unwrap_or(Path::new("/"));
    let found = fs::canonicalize(there);
    let real = match found {
        Ok(real) => real,
        Err(error) => return Some(format!("{}: {}", there.display(), describe_errno(&error))),
    };
    real.ancestors().find_map(|part| {
        let found = fs::metadata(part).ok()?;
        if !is_trusted(found.uid()) && !is_of_nobody_here(found.uid()) {
            return Some(format!("{} belongs to user {}", part.display(), found.uid()));
        }
        // Groups above the folder are its owner's affair: many give each user a group of their own.
        let forbidden = if part == folder { OTHERS_WRITE } else { EVERYBODY_WRITES };
        let open = found.mode() & forbidden != 0 && found.mode() & STICKY == 0;
        open.then(|| format!("others may write to {}", part.display()))
    })
}

/// Whether others can change, or have made, anything of what lies there.
pub(crate) fn is_open_to_others(path: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(path)?;
    if !is_trusted(found.uid()) || (!found.is_symlink() && found.mode() & OTHERS_WRITE != 0) {
        return Ok(true);
    }
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            if is_open_to_others(&entry?.path())? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Takes the permission to write from all others, whatever the umask was.
pub(crate) fn close_to_others(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Ok(());
    }
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            close_to_others(&entry?.path())?;
        }
    }
    fs::set_permissions(path, Permissions::from_mode(found.mode() & 0o7777 & !OTHERS_WRITE))
}

/// Whose files are run without a question: our own, root's, and those of whoever owns this very program.
fn is_trusted(owner: u32) -> bool {
    let own_program = || std::env::current_exe().and_then(fs::metadata).map(|program| program.uid());
    owner == geteuid().as_raw() || owner == 0 || own_program().is_ok_and(|uid| uid == owner)
}

/// Whether a folder belongs to a user whom this user namespace does not know: all of them seem to be one then, in sandboxes
/// even the owner of `/` (user_namespaces(7)).
fn is_of_nobody_here(owner: u32) -> bool {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let everybody_is_known = read("/proc/self/uid_map").split_whitespace().eq(["0", "0", "4294967295"]);
    !everybody_is_known && read("/proc/sys/kernel/overflowuid").trim().parse() == Ok(owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
    }

    #[test]
    fn a_folder_below_one_that_everybody_may_write_to_is_open() {
        let lab = TempDir::new().expect("a folder");
        let (above, folder) = (lab.path().join("above"), lab.path().join("above/below/folder"));
        fs::create_dir(&above).expect("made");
        assert_eq!(open_to_others(&folder), None, "it is not there yet");
        for (mode, is_open) in [(0o777, true), (0o1777, false), (0o775, false)] {
            set_mode(&above, mode);
            assert_eq!(open_to_others(&folder).is_some(), is_open, "{mode:o}");
        }
        make(&folder, 0o755).expect("made");
        set_mode(&folder, 0o775);
        assert_eq!(open_to_others(&folder), Some(format!("others may write to {}", folder.display())));
        make(&folder, 0o755).expect("made private");
        assert_eq!(open_to_others(&folder), None);
    }

    #[test]
    fn what_others_own_or_may_write_to_is_open_until_it_is_closed() {
        let lab = TempDir::new().expect("a folder");
        let (inner, file) = (lab.path().join("inner"), lab.path().join("inner/file"));
        fs::create_dir(&inner).expect("made");
        fs::write(&file, "text").expect("written");
        set_mode(lab.path(), 0o755);
        for (path, mode) in [(&inner, 0o777), (&file, 0o666), (&file, 0o620)] {
            let before = fs::metadata(path).expect("there").mode();
            set_mode(path, mode);
            assert!(is_open_to_others(lab.path()).expect("readable"), "{} {mode:o}", path.display());
            close_to_others(lab.path()).expect("ours");
            assert!(!is_open_to_others(lab.path()).expect("readable"));
            set_mode(path, before & !OTHERS_WRITE);
        }
        // Another user's, which only root can make.
        if geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65534), None).expect("chown");
            assert!(is_open_to_others(lab.path()).expect("readable"));
            std::os::unix::fs::chown(lab.path(), Some(65534), None).expect("chown");
            assert_eq!(
                open_to_others(&inner),
                Some(format!("{} belongs to user 65534", lab.path().display()))
            );
        }
    }
}
