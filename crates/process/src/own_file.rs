//! Files in folders that other users may write to: made anew and never through a link that is there; and the check of folders and files
//! whose content is trusted.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, open, openat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;
use rustix::process::geteuid;

/// Makes a file in an open folder, for writing, with these permissions less the umask. Neither a file that is there nor what a symbolic
/// link points to is written: what bears the name is refused, or removed first to `replace` it.
///
/// # Errors
/// EEXIST where something bears the name and is not to be replaced.
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

/// Writes a file anew: what bears its name is replaced, and a symbolic link is not followed.
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
    // The other end of a FIFO may never be opened.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    let folders = || path.parent().and_then(|folder| folder.metadata().ok()).map(|folder| folder.uid());
    if !found.is_file() {
        return Err(io::Error::other("is no regular file"));
    }
    if found.uid() != geteuid().as_raw() && Some(found.uid()) != folders() {
        return Err(io::Error::other(format!("belongs to another user ({})", found.uid())));
    }
    Ok(file)
}

/// Makes a folder, with those above it, that only this user may write to; or checks one that is there: it must belong to this user, and
/// not be open to everybody for writing. Its group is trusted.
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
    if found.st_mode & 0o002 != 0 {
        return Err(io::Error::other("everybody may write to it: chmod o-w it, or name a new folder"));
    }
    Ok(())
}

fn owner_of_new_files(folder: impl AsFd) -> io::Result<u32> {
    let name = format!(".hosepipe-{:016x}", fastrand::u64(..));
    let file = create_at(&folder, name.as_str(), 0o600, false)?;
    unlinkat(&folder, name, AtFlags::empty())?;
    Ok(fstat(file)?.st_uid)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{FileType, mknodat};

    use super::*;

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
        assert!(open_own(&fifo).is_err_and(|error| error.to_string().contains("no regular file")));
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let lab = tempfile::tempdir().expect("a folder");
        let folder = lab.path().join("made/here");
        make_own_folder(&folder).expect("made");
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("chmod");
        let refused = make_own_folder(&folder).expect_err("open to everybody");
        assert!(refused.to_string().contains("chmod o-w"), "{refused}");
        if geteuid().is_root() {
            fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("chmod");
            std::os::unix::fs::chown(&folder, Some(65534), None).expect("chown");
            let refused = make_own_folder(&folder).expect_err("another user's");
            assert!(refused.to_string().contains("another user (65534)"), "{refused}");
            let file = lab.path().join("file");
            fs::write(&file, "").expect("written");
            std::os::unix::fs::chown(&file, Some(65534), None).expect("chown");
            assert!(open_own(&file).is_err_and(|error| error.to_string().contains("another user")));
        }
    }
}
