//! `futex`: a word in shared memory for each direction. The task that waits sleeps in futex(2) until the word changes.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

use rustix::thread::futex;

use super::notify::Notification;
use crate::prelude::*;

pub(super) static FUTEX: Mechanism = Mechanism {
    name: "futex",
    summary: "two words of shared memory; a task sleeps in the kernel until one changes",
    tasks: &[Tasks::Processes, Tasks::Threads],
    man_pages: &["futex(2)", "futex(7)"],
    more_specs: &["futex"],
    ..Mechanism::notification(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    one_way(request, || {
        let memory = SharedMemory::new(size_of::<AtomicU32>());
        let notified = Arc::new(memory.in_call("mmap(MAP_SHARED)")?);
        let waited = notified.clone();
        let (mut given, mut seen) = (0u32, 0u32);
        let notify = move || {
            given = given.wrapping_add(1);
            word(&notified).store(given, Release);
            // Always wakes: a second word that tells whether the other task sleeps would save nothing, since it always sleeps here.
            futex::wake(word(&notified), futex::Flags::empty(), 1)?;
            Ok(Some(1))
        };
        let wait = move || {
            let mut syscalls = 0;
            while word(&waited).load(Acquire) == seen {
                syscalls += 1;
                match futex::wait(word(&waited), futex::Flags::empty(), seen, None) {
                    // AGAIN: the word changed before we slept.
                    Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            seen = seen.wrapping_add(1);
            Ok(Some(syscalls))
        };
        Ok(Direction::new(Notification::new(notify), Notification::new(wait)))
    })
}

/// The word that counts notifications.
#[inline]
fn word(memory: &SharedMemory) -> &AtomicU32 {
    // SAFETY: the mapping is page-aligned, at least a page, zeroed (a valid AtomicU32), and only ever reached through
    // this atomic; it lives as long as `memory`.
    unsafe { &*memory.as_ptr().cast::<AtomicU32>() }
}
