//! Threads that take no signals: those to this process are for the thread that waits for them.

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::signals::NoSignals;

/// Starts a thread that holds every signal back.
///
/// # Errors
/// What clone(2) answered: EAGAIN where the user has as many tasks as allowed, or memory is short.
pub fn spawn_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let _held = NoSignals::hold();
    Builder::new().name(name.to_owned()).spawn(work)
}
