//! Whether other users can change what a folder contains: programs built in it are run, also by root, and files in it are trusted. And files
//! in folders to which other users may write: they are newly created, never through a symbolic link, and read only if their owner is trusted.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use model::describe_errno;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, open, openat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;
use rustix::process::geteuid;

use crate::regular::open_regular_with;

/// Write permission of the group and of all other users.
const OTHERS_WRITE: u32 = 0o022;
/// Write permission of all other users.
const EVERYBODY_WRITES: u32 = 0o002;
/// In such a folder users remove and rename only their own files (inode(7)).
const STICKY: u32 = 0o1000;

/// Makes a folder and those above it. If it exists and belongs to this user, permissions beyond `mode` are removed from it.
///
/// # Errors
/// What the system answered.
pub fn make_private_folder(folder: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(folder)?;
    let found = fs::metadata(folder)?;
    if found.uid() == geteuid().as_raw() && found.mode() & 0o777 & !mode != 0 {
        fs::set_permissions(folder, Permissions::from_mode(found.mode() & mode))?;
    }
    Ok(())
}

/// Why other users can change what a folder contains, or will contain when it is made; `None` if they cannot. A user who may write to a
/// folder above it may put another one in its place.
pub fn why_open_to_others(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|part| fs::symlink_metadata(part).is_ok()).unwrap_or(Path::new("/"));
    let found = fs::canonicalize(there);
    let real = match found {
        Ok(real) => real,
        Err(error) => return Some(format!("{}: {}", there.display(), describe_errno(&error))),
    };
    real.ancestors().find_map(|part| {
        let found = fs::metadata(part).ok()?;
        if !is_trusted(found.uid()) && !is_unmapped(found.uid()) {
            return Some(format!("{} belongs to user {}", part.display(), found.uid()));
        }
        // Above the folder, write permission of the group is allowed: many systems give each user a group of their own.
        let forbidden = if part == folder { OTHERS_WRITE } else { EVERYBODY_WRITES };
        let open = found.mode() & forbidden != 0 && found.mode() & STICKY == 0;
        open.then(|| format!("others may write to {}", part.display()))
    })
}

/// Whether other users can change anything in a tree of files, or have made it.
///
/// # Errors
/// What the system answered.
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
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

/// Removes the write permission of all other users in a tree of files.
///
/// # Errors
/// What the system answered.
pub fn close_to_others(path: &Path) -> io::Result<()> {
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

/// Whether files of this user are run: they are if it is the current user, root, or the owner of this program's file.
fn is_trusted(owner: u32) -> bool {
    let own_program = || std::env::current_exe().and_then(fs::metadata).map(|program| program.uid());
    owner == geteuid().as_raw() || owner == 0 || own_program().is_ok_and(|uid| uid == owner)
}

/// Whether a folder's owner is unknown in this user namespace: all unknown users have the same number there. In a sandbox the owner of `/`
/// may be one of them (user_namespaces(7)).
fn is_unmapped(owner: u32) -> bool {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let all_are_mapped = read("/proc/self/uid_map").split_whitespace().eq(["0", "0", "4294967295"]);
    !all_are_mapped && read("/proc/sys/kernel/overflowuid").trim().parse() == Ok(owner)
}

/// Makes a folder that nodes or partitions share, and those above it, or checks an existing one: it must belong to this user, and must not be
/// writable by all users. Its group is trusted, and so are the folders above it.
///
/// # Errors
/// What the system answered, or a sentence about the folder.
pub fn make_own_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    let opened = open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let found = fstat(&opened)?;
    // A file server may give the files of this user to another one (root_squash of exports(5)).
    if found.st_uid != geteuid().as_raw() && found.st_uid != owner_of_new_files(&opened)? {
        let what = format!("it belongs to another user ({}): name a new folder", found.st_uid);
        return Err(io::Error::other(what));
    }
    if found.st_mode & EVERYBODY_WRITES != 0 {
        return Err(io::Error::other("all users may write to it: chmod o-w it, or name a new folder"));
    }
    Ok(())
}

fn owner_of_new_files(folder: impl AsFd) -> io::Result<u32> {
    let name = format!(".hosepipe-{:016x}", fastrand::u64(..));
    let file = create_at(&folder, name.as_str(), 0o600, false)?;
    unlinkat(&folder, name, AtFlags::empty())?;
    Ok(fstat(file)?.st_uid)
}

/// Makes a new file in an open folder, for writing, with these permissions less the umask. An existing file of that name is never written
/// to, and a symbolic link is never followed: with `replace` they are removed first.
///
/// # Errors
/// EEXIST without `replace`, if the name exists.
pub fn create_at(folder: impl AsFd, name: impl Arg + Copy, mode: u32, replace: bool) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let make = || openat(&folder, name, flags, Mode::from_raw_mode(mode));
    match make() {
        Err(Errno::EXIST) if replace => {
            unlinkat(&folder, name, AtFlags::empty())?;
            Ok(make()?.into())
        }
        made => Ok(made?.into()),
    }
}

/// Writes a new file. An existing file of that name, or a symbolic link, is replaced.
///
/// # Errors
/// What the system answered.
pub fn write_anew(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    create_at(CWD, path, mode, true)?.write_all(bytes)
}

/// Opens a regular file for reading that belongs to this user, or to the owner of its folder; a symbolic link is not followed.
///
/// # Errors
/// ELOOP for a symbolic link; a sentence for another user's file.
pub fn open_own(path: &Path) -> io::Result<File> {
    let file = open_regular_with(path, OFlags::NOFOLLOW)?;
    let found = file.metadata()?;
    let folder_owner = || path.parent().and_then(|folder| folder.metadata().ok()).map(|folder| folder.uid());
    if found.uid() != geteuid().as_raw() && Some(found.uid()) != folder_owner() {
        return Err(io::Error::other(format!("belongs to another user ({})", found.uid())));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{FileType, mknodat};
    use tempfile::TempDir;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
    }

    #[test]
    fn a_folder_below_one_that_all_users_may_write_to_is_open() {
        let lab = TempDir::new().expect("a folder");
        let (above, folder) = (lab.path().join("above"), lab.path().join("above/below/folder"));
        fs::create_dir(&above).expect("made");
        assert_eq!(why_open_to_others(&folder), None, "it is not there yet");
        for (mode, is_open) in [(0o777, true), (0o1777, false), (0o775, false)] {
            set_mode(&above, mode);
            assert_eq!(why_open_to_others(&folder).is_some(), is_open, "{mode:o}");
        }
        make_private_folder(&folder, 0o755).expect("made");
        set_mode(&folder, 0o775);
        assert_eq!(why_open_to_others(&folder), Some(format!("others may write to {}", folder.display())));
        make_private_folder(&folder, 0o755).expect("made private");
        assert_eq!(why_open_to_others(&folder), None);
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
                why_open_to_others(&inner),
                Some(format!("{} belongs to user 65534", lab.path().display()))
            );
        }
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let lab = tempfile::tempdir().expect("a folder");
        let folder = lab.path().join("made/here");
        make_own_folder(&folder).expect("made");
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("chmod");
        let refused = make_own_folder(&folder).expect_err("open to all users");
        assert!(refused.to_string().contains("chmod o-w"), "{refused}");
        if geteuid().is_root() {
            fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("chmod");
            std::os::unix::fs::chown(&folder, Some(65534), None).expect("chown");
            let refused = make_own_folder(&folder).expect_err("another user's");
            assert!(refused.to_string().contains("another user (65534)"), "{refused}");
        }
    }

    #[test]
    fn what_others_have_put_there_is_neither_written_nor_read() {
        let lab = tempfile::tempdir().expect("a folder");
        let (precious, link) = (lab.path().join("precious"), lab.path().join("link"));
        fs::write(&precious, "precious").expect("written");
        symlink(&precious, &link).expect("linked");
        assert_eq!(open_own(&link).expect_err("a link").raw_os_error(), Some(libc::ELOOP));
        let refused = create_at(CWD, &link, 0o600, false).expect_err("something is there");
        assert_eq!(refused.raw_os_error(), Some(libc::EEXIST));
        write_anew(&link, 0o600, b"new").expect("written");
        assert_eq!(fs::read(&precious).expect("still there"), b"precious");
        assert_eq!(fs::read(&link).expect("a file now"), b"new");
        open_own(&link).expect("our own");
        let fifo = lab.path().join("fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).expect("a FIFO");
        assert!(open_own(&fifo).is_err_and(|error| error.to_string().contains("not a regular file")));
    }

    #[test]
    fn another_users_file_is_refused() {
        if geteuid().is_root() {
            let lab = tempfile::tempdir().expect("a folder");
            std::os::unix::fs::chown(lab.path(), Some(65533), None).expect("chown");
            let file = lab.path().join("file");
            fs::write(&file, "").expect("written");
            std::os::unix::fs::chown(&file, Some(65534), None).expect("chown");
            assert!(open_own(&file).is_err_and(|error| error.to_string().contains("another user")));
        }
    }
}
