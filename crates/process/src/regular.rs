//! Opens files whose names other users choose: a library that a process has mapped, the program of a stage.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fcntl_setfl, fstat, open};
use rustix::io::Errno;

/// Opens a regular file for reading. Another user may put any other file in its place, also with a mount: opening a FIFO would wait for its other
/// end, and opening a device may have an effect. So the file is looked at before it is opened, and the file that was looked at is opened, even if
/// another one has its name by then.
///
/// # Errors
/// What open(2) answered, EWOULDBLOCK for a file with a lease (fcntl(2)); a sentence for a file that is not regular.
pub fn open_regular(path: impl AsRef<Path>) -> io::Result<File> {
    open_regular_with(path.as_ref(), OFlags::empty())
}

/// The same with further flags, such as `NOFOLLOW`.
pub(crate) fn open_regular_with(path: &Path, more: OFlags) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // O_PATH opens nothing.
    let found = open(path, OFlags::PATH | OFlags::CLOEXEC | more, Mode::empty())?;
    check(&found)?;
    let file = match open(format!("/proc/self/fd/{}", found.as_raw_fd()), flags, Mode::empty()) {
        // No /proc is mounted here.
        Err(Errno::NOENT) => open(path, flags | more, Mode::empty())?,
        opened => opened?,
    };
    check(&file)?;
    // The program that gets it as an input finds it as any other file.
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(file.into())
}

fn check(file: &OwnedFd) -> io::Result<()> {
    match FileType::from_raw_mode(fstat(file)?.st_mode) {
        FileType::RegularFile => Ok(()),
        // As with open(2) and O_NOFOLLOW.
        FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Err(io::Error::other("this is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, mknodat};

    use super::*;

    /// Expected: an error at once. Happened: the call waited for the other end of the FIFO.
    #[test]
    fn what_is_not_regular_is_not_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let (fifo, file, link) =
            (folder.path().join("fifo"), folder.path().join("file"), folder.path().join("link"));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o644), 0).expect("a FIFO");
        std::fs::write(&file, "text").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        for other in [fifo.as_path(), folder.path(), Path::new("/dev/null")] {
            let refused = open_regular(other).expect_err("not regular").to_string();
            assert_eq!(refused, "this is not a regular file", "{}", other.display());
        }
        for path in [&file, &link] {
            assert_eq!(io::read_to_string(open_regular(path).expect("regular")).expect("read"), "text");
        }
        let refused = open_regular_with(&link, OFlags::NOFOLLOW).expect_err("a link");
        assert_eq!(refused.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        let missing = open_regular(folder.path().join("none")).expect_err("none");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
