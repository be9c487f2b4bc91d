//! Names that outlive their users unless they are removed.
//!
//! Every name is owned by a value whose drop removes it. If this process is killed before that, the cleaner removes the
//! name: each name is announced to it.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use process::{Announcer, Cleaner, DetachedCleaner};

/// Where names are announced.
static ANNOUNCER: Mutex<Option<Announcer>> = Mutex::new(None);
/// The cleaner that [`ensure_cleaner`] has started.
static ENSURED: Mutex<Option<Cleaner>> = Mutex::new(None);

/// Starts the cleaner of all names that mechanisms make from now on. Call it while this process has one thread.
///
/// # Errors
/// As [`Cleaner::start`].
pub fn start_cleaner() -> io::Result<Cleaner> {
    let cleaner = Cleaner::start()?;
    announce_to(Some(cleaner.announcer().clone()));
    Ok(cleaner)
}

/// Starts a cleaner of all names that this process and the processes that it forks make from now on, unless one was started. It ends
/// when the last of these processes has ended.
///
/// # Errors
/// As [`Cleaner::start`].
pub fn ensure_cleaner() -> io::Result<()> {
    if lock(&ANNOUNCER).is_none() {
        let cleaner = Cleaner::start()?;
        announce_to(Some(cleaner.announcer().clone()));
        *lock(&ENSURED) = Some(cleaner);
    }
    Ok(())
}

/// Lets the cleaner that [`ensure_cleaner`] has started, if any, remove the names that are left, and end. Call it in the last process
/// that announces names to it.
pub fn end_cleaner() {
    announce_to(None);
    drop(lock(&ENSURED).take());
}

/// Gives up the cleaner, if there is one; it goes on for the other processes that announce names to it.
pub fn leave_cleaner() -> Option<DetachedCleaner> {
    announce_to(None);
    lock(&ENSURED).take().and_then(Cleaner::detach)
}

/// Makes a queue for a moment. If this process is killed meanwhile, a cleaner removes it: one for this call where none was started.
pub(crate) fn with_cleaner<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let is_started = lock(&ANNOUNCER).is_some();
    let cleaner = (!is_started).then(start_cleaner).transpose()?;
    let made = make();
    if cleaner.is_some() {
        announce_to(None);
    }
    made
}

/// Where names that are made now are announced.
pub(crate) fn announcer() -> Announcer {
    lock(&ANNOUNCER).clone().unwrap_or_default()
}

pub(crate) fn announce_to(announcer: Option<Announcer>) {
    *lock(&ANNOUNCER) = announcer;
}

/// Ignores a poisoned lock: a panic elsewhere does not make the values wrong.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
