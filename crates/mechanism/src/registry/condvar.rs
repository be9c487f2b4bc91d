//! `condvar`: a mutex and a condition variable between two threads, as the standard library has them.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use model::Tasks;

use super::knock::{Hear, Hearer, Knock, Knocker};
use crate::descriptor::Descriptor;
use crate::loops::{Direction, one_way};
use crate::{Channel, Mechanism, OpenError, Request};

pub(crate) struct CondvarPair;

impl Mechanism for CondvarPair {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "condvar",
            summary: "a mutex and a condition variable between two threads",
            tasks: &[Tasks::Threads],
            man_pages: &["pthread_cond_wait(3)", "futex(2)"],
            more_specs: &["condvar"],
            ..Descriptor::NOTIFICATION
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        one_way(request, || {
            let door = Arc::new(Door::default());
            Ok(Direction {
                sender: Knocker(door.clone()),
                receiver: Hearer(door),
                granted: Default::default(),
            })
        })
    }
}

/// Whether somebody has knocked, and where to wait for it.
#[derive(Default)]
struct Door {
    knocked: Mutex<bool>,
    changed: Condvar,
}

impl Knock for Arc<Door> {
    #[inline]
    fn knock(&mut self) -> io::Result<()> {
        // The guard is dropped before the notification: the woken thread finds the mutex free.
        *self.knocked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
        Ok(())
    }

    /// The standard library makes them, and does not say how many.
    fn syscalls(&self) -> Option<u64> {
        None
    }
}

impl Hear for Arc<Door> {
    #[inline]
    fn hear(&mut self) -> io::Result<()> {
        let knocked = self.knocked.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_while(knocked, |knocked| !*knocked);
        *waited.unwrap_or_else(PoisonError::into_inner) = false;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        None
    }
}
