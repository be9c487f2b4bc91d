//! Message queues that outlive their users unless they are removed, and System V semaphores, which are only read. Each queue is owned by a value, and announced to
//! the cleaner while it may exist.
//!
//! Their names are random: two runs in containers that share the IPC namespace may have the same PID, and a run removes only what it made.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

use rustix::process::geteuid;

use crate::announce::{Announcement, Announcer};
use crate::retry::{Retries, retry_rare};

/// For a name that another process has: the next one is tried.
const OTHER_NAMES: Retries = Retries { calls_max: 64, pause: Duration::ZERO };

/// The name of a message queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueName {
    /// A key for msgget(2).
    SystemV(i32),
    /// A name for mq_open(3).
    Posix(CString),
}

impl QueueName {
    /// A key: the hexadecimal digit 6; 12 bits of the PID, which show a reader of ipcs(1) whose it is; and 16 random bits.
    pub fn random_key() -> Self {
        let process = (std::process::id() & 0xfff) << 16;
        Self::SystemV((0x6000_0000 | process | u32::from(fastrand::u16(..))).cast_signed())
    }

    /// A name with the PID and a random number.
    pub fn random_name() -> Self {
        Self::posix(format!("/hosepipe-{}-{:016x}", std::process::id(), fastrand::u64(..)))
    }

    /// The name of a POSIX queue, which is text without a NUL.
    pub fn posix(name: String) -> Self {
        Self::Posix(CString::new(name).unwrap_or_default())
    }

    fn announcement(&self) -> (Announcement, String) {
        match self {
            Self::SystemV(_) => (Announcement::SystemV, self.to_string()),
            Self::Posix(_) => (Announcement::Posix, self.to_string()),
        }
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SystemV(key) => write!(to, "{key}"),
            Self::Posix(name) => to.write_str(&name.to_string_lossy()),
        }
    }
}

/// A message queue under a name of its own. As [`crate::TemporaryPath`], it is announced before it is made, and removed when this value is
/// dropped by the process that made it.
#[derive(Debug)]
pub struct TemporaryQueue {
    name: QueueName,
    maker: u32,
    announcer: Announcer,
}

impl TemporaryQueue {
    /// Makes a queue. `make` must fail with EEXIST if the name exists: then the queue is another process's, and the next name is tried.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn make<T>(
        announcer: &Announcer,
        random: fn() -> QueueName,
        mut make: impl FnMut(&QueueName) -> io::Result<T>,
    ) -> io::Result<(Self, T)> {
        let is_taken = |error: &io::Error| error.kind() == ErrorKind::AlreadyExists;
        retry_rare(OTHER_NAMES, is_taken, || {
            let queue = Self::announced(announcer, random());
            match make(&queue.name) {
                Ok(made) => Ok((queue, made)),
                Err(error) => {
                    queue.give_up();
                    Err(error)
                }
            }
        })
    }

    /// A queue that a program started by this process will make. The name must be random: nothing shows that the queue is not another's.
    pub fn announced(announcer: &Announcer, name: QueueName) -> Self {
        let (what, text) = name.announcement();
        announcer.write(what, text.as_bytes());
        Self { name, maker: std::process::id(), announcer: announcer.clone() }
    }

    /// Removes the queue now, if there is one; this value may be used again. Returns whether it no longer exists.
    pub fn remove(&self) -> bool {
        match &self.name {
            QueueName::SystemV(key) => is_removed(|| remove_by_key(*key)),
            QueueName::Posix(name) => unlink(name),
        }
    }

    /// The queue was not made.
    fn give_up(mut self) {
        self.withdraw();
        self.maker = 0;
    }

    fn withdraw(&self) {
        self.announcer.write(Announcement::Withdrawn, self.name.to_string().as_bytes());
    }
}

impl Drop for TemporaryQueue {
    fn drop(&mut self) {
        // If it cannot be removed now, the cleaner tries to remove it at its end.
        if self.maker == std::process::id() && self.remove() {
            self.withdraw();
        }
    }
}

/// Removes the System V queue with an announced key. Returns whether it no longer exists.
pub(crate) fn remove_announced_key(key: &CStr) -> bool {
    key.to_str().ok().and_then(|key| key.parse().ok()).is_none_or(|key| is_removed(|| remove_by_key(key)))
}

/// Removes a POSIX queue's name. Returns whether it no longer exists.
pub(crate) fn unlink(name: &CStr) -> bool {
    // SAFETY: a C string.
    is_removed(|| answer(unsafe { libc::mq_unlink(name.as_ptr()) }).map(drop))
}

/// Whether a call has removed a queue, or answers that there is none of this user.
fn is_removed(remove: impl FnMut() -> io::Result<()>) -> bool {
    let is_gone = |error: &io::Error| {
        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::Unsupported)
    };
    match retry_rare(Retries::UNREPORTED, |error| !is_gone(error), remove) {
        Ok(()) => true,
        Err(error) => is_gone(&error),
    }
}

/// Removes the System V queue with a key, if this user made it: root may remove those of all users.
fn remove_by_key(key: i32) -> io::Result<()> {
    // SAFETY: plain integers in and out; without IPC_CREAT no queue is made.
    let id = answer(unsafe { libc::msgget(key, 0) })?;
    // SAFETY: all zeros are a valid value.
    let mut status: libc::msqid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: IPC_STAT fills the buffer, which is of the type it expects.
    answer(unsafe { libc::msgctl(id, libc::IPC_STAT, &mut status) })?;
    if status.msg_perm.cuid == geteuid().as_raw() {
        // SAFETY: IPC_RMID ignores the buffer.
        answer(unsafe { libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()) })?;
    }
    Ok(())
}

/// The value of a System V semaphore (semctl(2), GETVAL); `None` if there is none, or this user may not read it.
pub fn semaphore_value(set: i32, number: u16) -> Option<i32> {
    // SAFETY: plain integers in and out.
    answer(unsafe { libc::semctl(set, number.into(), libc::GETVAL) }).ok()
}

/// The process that changed a System V semaphore last (semctl(2), GETPID).
pub fn semaphore_changed_by(set: i32, number: u16) -> Option<i32> {
    // SAFETY: plain integers in and out.
    answer(unsafe { libc::semctl(set, number.into(), libc::GETPID) }).ok().filter(|pid| *pid > 0)
}

/// What a call of the C library answered.
fn answer(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_system_v(name: &QueueName) -> io::Result<i32> {
        let QueueName::SystemV(key) = name else { unreachable!("a key") };
        // SAFETY: plain integers in and out.
        match unsafe { libc::msgget(*key, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) } {
            -1 => Err(io::Error::last_os_error()),
            id => Ok(id),
        }
    }

    fn exists(name: &QueueName) -> bool {
        let QueueName::SystemV(key) = name else { unreachable!("a key") };
        // SAFETY: plain integers in and out.
        unsafe { libc::msgget(*key, 0) >= 0 }
    }

    /// Expected: a queue of another run stays. Happened: keys were made of the PID, which is 1 in each container, and the run that ended first
    /// removed all queues with its keys.
    #[test]
    fn only_the_queue_that_a_value_has_made_goes_with_it() {
        let announcer = Announcer::default();
        let (first, _) =
            TemporaryQueue::make(&announcer, QueueName::random_key, make_system_v).expect("made");
        let (second, _) =
            TemporaryQueue::make(&announcer, QueueName::random_key, make_system_v).expect("made");
        let (one, other) = (first.name.clone(), second.name.clone());
        // A name that is taken is left alone.
        let mut tried = vec![one.clone()];
        let third = TemporaryQueue::make(&announcer, QueueName::random_key, |name| {
            tried.pop().map_or_else(|| make_system_v(name), |taken| make_system_v(&taken))
        });
        assert!(third.is_ok() && exists(&one));
        drop((first, third));
        assert!(!exists(&one) && exists(&other));
    }

    /// Expected: a queue whose removal fails once is removed, and one that stays is known to stay. Happened: after one failed call it stayed.
    #[test]
    fn a_queue_is_gone_only_if_the_system_says_so() {
        let removed = |answers: &[Option<i32>]| {
            let mut answers = answers.iter();
            is_removed(|| {
                let errno = answers.next().expect("another call");
                errno.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
            })
        };
        assert!(removed(&[Some(libc::ENOMEM), None]) && removed(&[Some(libc::EINVAL), Some(libc::ENOENT)]));
        assert!(removed(&[Some(libc::EACCES)]), "another user's");
        assert!(!removed(&[Some(libc::ENOMEM); 3]));
    }
}
