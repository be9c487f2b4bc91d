//! Calls that have no safe wrapper: asking who writes to a file, changing its length by its path.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::fstat;

/// Linux's number (asm-generic/fcntl.h), which the libc crate lacks.
const F_SETSIG: libc::c_int = 10;

/// A file is made longer by so much to see whether its file system stores what lies between.
const HOLE_BYTES: u64 = 1 << 20;

/// Whether a file is open for writing anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writers {
    /// By nobody.
    Gone,
    /// By somebody.
    There,
    /// This file system, or a right this user lacks, does not let us ask.
    Unknown,
}

/// Makes it harmless that somebody opens the file for writing while [`writers`] holds its lease: the signal that
/// would tell us is one that is ignored, not SIGIO, which kills (fcntl(2), F_SETSIG).
pub(super) fn prepare(file: &OwnedFd) -> io::Result<()> {
    // SAFETY: changes which signal the kernel sends for this description; no memory is involved.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Asks whether anybody has the file open for writing, of which `file` is a description for reading only: a lease
/// for reading is refused with EAGAIN as long as somebody does (fcntl(2), F_SETLEASE). It is given back at once.
pub(super) fn writers(file: &OwnedFd) -> Writers {
    let lease = |kind: libc::c_int| {
        // SAFETY: takes or gives back a lease on this description; no memory is involved.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) }
    };
    if lease(libc::F_RDLCK) == 0 {
        lease(libc::F_UNLCK);
        return Writers::Gone;
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => Writers::There,
        _ => Writers::Unknown,
    }
}

/// Cuts a file, or makes it longer, without opening it: a description of ours for writing would look like a writer, and
/// its closing like the writer's end.
pub(super) fn set_length(file: &OwnedFd, bytes: u64) -> io::Result<()> {
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let bytes = libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX);
    // SAFETY: a path that ends in NUL and lives until the call returns.
    let answer = unsafe { libc::truncate(path.as_ptr(), bytes) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits until nobody has the file open for writing: a program in the background may still write what a pipeline's reader would wait
/// for. Where that cannot be asked, nobody is waited for.
///
/// # Errors
/// It cannot be opened.
pub fn wait_for_writers(path: &Path) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(5);
    let file = OwnedFd::from(File::open(path)?);
    prepare(&file)?;
    while writers(&file) == Writers::There {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Makes a file that holds so many bytes as long as its file system lets it be, without storing anything.
///
/// # Errors
/// EOPNOTSUPP: this file system stores what lies between.
pub(super) fn make_as_long_as_can_be(file: &OwnedFd, held_bytes: u64) -> io::Result<()> {
    let stored = || fstat(file).map(|stat| stat.st_blocks);
    let before = stored()?;
    set_length(file, held_bytes + HOLE_BYTES)?;
    if stored()? - before > (HOLE_BYTES / 2 / 512) as i64 {
        set_length(file, held_bytes)?;
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let mut length = 0;
    for bit in (0..63).rev() {
        let longer = length | 1 << bit;
        if longer <= held_bytes || set_length(file, longer).is_ok() {
            length = longer;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn writers_are_seen_as_long_as_they_are_there() {
        let folder = tempfile::tempdir().expect("temp dir");
        let path = folder.path().join("file");
        let mut writer = File::create_new(&path).expect("a file");
        let reader = OwnedFd::from(File::open(&path).expect("the file"));
        prepare(&reader).expect("a signal");
        assert_eq!(writers(&reader), Writers::There);
        writer.write_all(b"abc").expect("written");
        set_length(&reader, 0).expect("cut");
        assert_eq!(std::fs::metadata(&path).expect("there").len(), 0);
        drop(writer);
        // A child that another test just forked has a copy of every descriptor, until it becomes its program.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while writers(&reader) != Writers::Gone {
            assert!(std::time::Instant::now() < deadline, "nobody writes any more");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[test]
    fn a_file_that_is_as_long_as_can_be_takes_no_more_and_stores_nothing() {
        let folder = tempfile::tempdir().expect("temp dir");
        let path = folder.path().join("file");
        let mut writer = File::options().create_new(true).append(true).open(&path).expect("a file");
        writer.write_all(b"abc").expect("written");
        let reader = OwnedFd::from(File::open(&path).expect("the file"));
        make_as_long_as_can_be(&reader, 3).expect("holes");
        let refused = writer.write_all(b"d").expect_err("no room behind the end");
        assert_eq!(refused.raw_os_error(), Some(libc::EFBIG));
        assert!(fstat(&reader).expect("its size").st_blocks < 2048, "nothing is stored");
    }
}
