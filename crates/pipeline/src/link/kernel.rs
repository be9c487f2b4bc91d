//! Calls that have no safe wrapper: whether a file has writers, and changing its length by its path.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::fstat;

use super::holders;

/// Linux's number (asm-generic/fcntl.h), which the libc crate lacks.
const F_SETSIG: libc::c_int = 10;

/// A file is made longer by this to find out whether its file system stores the bytes between.
const HOLE_BYTES: u64 = 1 << 20;

/// How long a lease may be refused for a file without a writer: a forked process has a copy of every descriptor until it executes its
/// program.
const LEASE_REFUSED_MAX: Duration = Duration::from_millis(100);

/// Finds out whether a file is open for writing anywhere.
pub(super) struct WriterCheck {
    /// A description for reading only.
    file: OwnedFd,
    /// Whether the file system grants leases; `None` before the first refusal.
    leases: Option<bool>,
}

impl WriterCheck {
    /// Of a description for reading only.
    pub(super) fn new(file: OwnedFd) -> io::Result<Self> {
        prepare(&file)?;
        Ok(Self { file, leases: None })
    }

    /// Whether a process has the file open for writing. If the file system has no leases, only processes of this user are found.
    pub(super) fn is_written(&mut self) -> bool {
        match lease(&self.file) {
            Ok(()) => false,
            // NFS without delegations refuses every lease as if there were a writer.
            Err(libc::EAGAIN)
                if *self.leases.get_or_insert_with(|| grants_leases(&self.file).unwrap_or(true)) =>
            {
                true
            }
            Err(_) => holders::is_written(&self.file),
        }
    }
}

/// Sets the signal that the kernel sends if a process opens the file for writing while [`lease`] holds its lease: SIGURG, which is ignored,
/// instead of SIGIO, which kills (fcntl(2), F_SETSIG).
fn prepare(file: &OwnedFd) -> io::Result<()> {
    // SAFETY: changes which signal the kernel sends for this description; no memory is involved.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes a lease for reading and gives it back at once: EAGAIN for as long as the file is open for writing anywhere (fcntl(2), F_SETLEASE).
///
/// # Errors
/// A number of errno(3).
fn lease(file: &OwnedFd) -> Result<(), i32> {
    let lease = |kind: libc::c_int| {
        // SAFETY: takes or gives back a lease on this description; no memory is involved.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) }
    };
    if lease(libc::F_RDLCK) != 0 {
        return Err(io::Error::last_os_error().raw_os_error().unwrap_or(0));
    }
    // A lease that stays would delay our own truncate(2) for 45 s (fcntl(2), lease-break-time).
    let _given_back = (0..3).any(|_| lease(libc::F_UNLCK) == 0);
    Ok(())
}

/// Whether the file system of a file grants leases: tried with a new file beside it, which was opened for reading while it was open for
/// writing, like the other one, and then has no writer.
fn grants_leases(file: &OwnedFd) -> io::Result<bool> {
    let path = |fd: RawFd| format!("/proc/self/fd/{fd}");
    let place = std::fs::read_link(path(file.as_raw_fd()))?;
    let writer = tempfile::tempfile_in(place.parent().ok_or(io::ErrorKind::NotFound)?)?;
    let reader = OwnedFd::from(File::open(path(writer.as_raw_fd()))?);
    prepare(&reader)?;
    drop(writer);
    let began = Instant::now();
    while lease(&reader).is_err() {
        if began.elapsed() > LEASE_REFUSED_MAX {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

/// Cuts a file, or makes it longer, without opening it: a description for writing would count as a writer.
pub(super) fn set_length(file: &OwnedFd, bytes: u64) -> io::Result<()> {
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let bytes = libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX);
    // SAFETY: a path that ends in NUL and lives until the call returns.
    let answer = unsafe { libc::truncate(path.as_ptr(), bytes) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits until no process has the file open for writing: a program in the background may still write to it.
///
/// # Errors
/// It cannot be opened.
pub fn wait_for_writers(path: &Path) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(5);
    let mut writers = WriterCheck::new(File::open(path)?.into())?;
    while writers.is_written() {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Makes a file with this many bytes as long as its file system allows, without storing anything.
///
/// # Errors
/// EOPNOTSUPP: this file system stores the bytes between.
pub(super) fn set_maximum_size(file: &OwnedFd, held_bytes: u64) -> io::Result<()> {
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
        let mut writers = WriterCheck::new(reader.try_clone().expect("a copy")).expect("a signal");
        assert!(writers.is_written());
        assert_eq!(writers.leases, Some(true));
        writer.write_all(b"abc").expect("written");
        set_length(&reader, 0).expect("cut");
        assert_eq!(std::fs::metadata(&path).expect("there").len(), 0);
        drop(writer);
        // A child that another test just forked has a copy of every descriptor, until it becomes its program.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while writers.is_written() {
            assert!(std::time::Instant::now() < deadline, "no process writes any more");
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
        set_maximum_size(&reader, 3).expect("holes");
        let refused = writer.write_all(b"d").expect_err("no room behind the end");
        assert_eq!(refused.raw_os_error(), Some(libc::EFBIG));
        assert!(fstat(&reader).expect("its size").st_blocks < 2048, "nothing is stored");
    }
}
