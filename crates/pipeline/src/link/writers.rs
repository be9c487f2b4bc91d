//! When the last program that has a file open for writing has closed it: the end of a link whose reader waits for its writers.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use observe::open_file::OpenFile;
use process::{proc, ready_within};
use rustix::event::PollFlags;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::retry_on_intr;

use super::wait::{Bell, RingingThread};

/// Pause between two searches for writers that have opened the file anew.
const PAUSE: Duration = Duration::from_millis(5);

/// Linux's number (asm-generic/fcntl.h), which the libc crate lacks.
const F_SETSIG: libc::c_int = 10;

/// Marks the description (open(2)) that all writers will share with a lock, which is released with its last copy.
pub(super) fn mark(write: &OwnedFd) {
    // On a file system without such locks (flock(2)), processes are searched for from the beginning.
    let _ = flock(write, FlockOperation::NonBlockingLockShared);
}

/// Waits in a thread of its own until the last writer of a file has closed it. Begins when the other end of `given` is closed: until then the
/// description may be on its way to the first writer. The thread ends with the last writer, and need not be waited for.
pub(super) fn await_writers(
    reader: &OwnedFd,
    given: Option<OwnedFd>,
    bell: Bell,
) -> io::Result<RingingThread<()>> {
    let reader = reader.try_clone()?;
    RingingThread::start("hosepipe-wait", bell, move || {
        if let Some(given) = given {
            let _ = ready_within(&given, PollFlags::IN, None);
        }
        wait_for_no_writer(&reader);
    })
}

/// Waits until no process has the file open for writing: a program in the background may still write to it.
///
/// # Errors
/// It cannot be opened.
pub fn wait_for_writers(path: &Path) -> io::Result<()> {
    wait_for_no_writer(&File::open(path)?.into());
    Ok(())
}

/// The lock of [`mark`] is released with the last copy of the writers' description. A program may also have opened the file
/// anew (`exec 3>> /dev/stdout`), or released the lock (flock(1)), so after that there must be no writer.
fn wait_for_no_writer(reader: &OwnedFd) {
    let _ = retry_on_intr(|| flock(reader, FlockOperation::LockExclusive));
    let _ = flock(reader, FlockOperation::Unlock);
    // One search may miss a writer: a shell gives its copy to a child whose number was passed already. So two must find none.
    let mut searches_without = 0;
    while !has_no_writer(reader) && searches_without < 2 {
        searches_without = if has_visible_writer(reader) { 0 } else { searches_without + 1 };
        std::thread::sleep(PAUSE);
    }
}

/// Whether the kernel grants a lease for reading, which it does if the file is not open for writing anywhere (fcntl(2), F_SETLEASE). Some file
/// systems grant none.
fn has_no_writer(file: &OwnedFd) -> bool {
    let set = |command: libc::c_int, value: libc::c_int| {
        // SAFETY: takes or gives back a lease on this description, or chooses its signal; no memory is involved.
        unsafe { libc::fcntl(file.as_raw_fd(), command, value) == 0 }
    };
    // A process that opens the file meanwhile makes the kernel send a signal: SIGURG, which is ignored, instead of SIGIO, which kills.
    set(F_SETSIG, libc::SIGURG) && set(libc::F_SETLEASE, libc::F_RDLCK) && {
        // It is this description's own: giving it back does not fail.
        set(libc::F_SETLEASE, libc::F_UNLCK);
        true
    }
}

/// Whether a process whose descriptors this user may read has the file open for writing.
fn has_visible_writer(file: &OwnedFd) -> bool {
    let own = std::process::id().cast_signed();
    let is_for_writing = |pid: i32, fd: i32| {
        let flags = proc::field_value(&format!("/proc/{pid}/fdinfo/{fd}"), "flags");
        let flags = flags.and_then(|flags| u32::from_str_radix(&flags, 8).ok());
        flags.is_some_and(|flags| OFlags::from_bits_retain(flags).intersects(OFlags::WRONLY | OFlags::RDWR))
    };
    let writes =
        |file: &OpenFile, pid| proc::descriptors(pid).any(|fd| file.is(pid, fd) && is_for_writing(pid, fd));
    OpenFile::of(own, file.as_raw_fd())
        .is_some_and(|file| proc::other_processes().chain([own]).any(|pid| writes(&file, pid)))
}
