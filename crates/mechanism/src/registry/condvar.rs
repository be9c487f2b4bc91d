//! `condvar`: a mutex and a condition variable between two threads, as the standard library has them.

use std::sync::{Condvar, Mutex, PoisonError};

use super::notify::Notification;
use crate::prelude::*;

pub(super) static CONDVAR: Mechanism = Mechanism {
    name: "condvar",
    summary: "a mutex and a condition variable between two threads",
    tasks: &[Tasks::Threads],
    man_pages: &["pthread_cond_wait(3)", "futex(2)"],
    more_specs: &["condvar"],
    ..Mechanism::notification(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    one_way(request, || {
        let notifier = Arc::new((Mutex::new(false), Condvar::new()));
        let waited = notifier.clone();
        // The standard library makes the system calls, and does not say how many.
        let notify = move || {
            // The guard is dropped before the notification: the woken thread finds the mutex free.
            *notifier.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
            notifier.1.notify_one();
            Ok(None)
        };
        let wait = move || {
            let notified = waited.0.lock().unwrap_or_else(PoisonError::into_inner);
            let notified = waited.1.wait_while(notified, |notified| !*notified);
            *notified.unwrap_or_else(PoisonError::into_inner) = false;
            Ok(None)
        };
        Ok(Direction::new(Notification::new(notify), Notification::new(wait)))
    })
}
