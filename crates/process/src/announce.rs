//! Announcements to the cleaner: files and queues that are about to be made, process groups that were started, and what has ended or is removed.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::retry_on_intr;

use crate::retry::{Retries, retry_rare};

/// An announcement is this letter, a path, the name of a queue or the number of a process group, and a NUL, which no path holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Announcement {
    /// A file is about to be made.
    File = b'f',
    /// A folder is about to be made, to be removed with all that is in it.
    Folder = b'd',
    /// A System V message queue is about to be made, with this key.
    SystemV = b'k',
    /// A POSIX message queue is about to be made, with this name.
    Posix = b'm',
    /// It is removed, or was not made: a file of this name belongs to another process.
    Withdrawn = b'-',
    /// A process group was started; behind its number, when its leader was started (proc_pid_stat(5), in clock ticks).
    Group = b'g',
    /// The maker ends in good order.
    Over = b'q',
}

/// Sends announcements to a cleaner until that is dropped or left; without a cleaner it does nothing.
#[derive(Debug, Clone, Default)]
pub struct Announcer(Arc<Mutex<Option<OwnedFd>>>);

impl Announcer {
    /// Announces over a pipe.
    pub fn over(pipe: OwnedFd) -> Self {
        Self(Arc::new(Mutex::new(Some(pipe))))
    }

    pub(crate) fn announce(&self, what: Announcement, path: &Path) {
        self.write(what, path.as_os_str().as_encoded_bytes());
    }

    pub(crate) fn write(&self, what: Announcement, name: &[u8]) {
        if let Some(pipe) = &*self.pipe() {
            // If the cleaner was killed, files are still removed as long as this process ends normally.
            let _ = write_whole(pipe, &[&[what as u8], name, &[0]].concat());
        }
    }

    pub(crate) fn close(&self) {
        drop(self.pipe().take());
    }

    fn pipe(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        // A panic elsewhere does not make the descriptor wrong.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a message that a pipe takes whole.
pub(crate) fn write_whole(pipe: impl AsFd, message: &[u8]) -> rustix::io::Result<usize> {
    let write = || retry_on_intr(|| rustix::io::write(&pipe, message));
    // A lost message could leave a file, or remove one that is kept.
    retry_rare(Retries::UNREPORTED, |_| true, write)
}
