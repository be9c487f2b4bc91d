//! Files in folders that other users may write to: made anew, never through a symbolic link, and read only where their owner is trusted.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, open, openat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;
use rustix::process::geteuid;

/// Makes a new file in an open folder, for writing, with these permissions less the umask. What has the name already is never written
/// to, nor followed where it is a symbolic link: `replace` removes it first.
///
/// # Errors
/// EEXIST without `replace`, where something has the name.
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

/// Writes a new file: what has its name is replaced, and a symbolic link is not followed.
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

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
