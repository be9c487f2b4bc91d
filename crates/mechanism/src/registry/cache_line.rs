//! `cache-line`: two tasks send one counter back and forth on one cache line. Its time is the floor: the shortest round trip between two
//! cores that are near each other. Between cores that are far apart, a line for each direction that is asked for in advance can be faster
//! (`docs/BOUNDS.md`).
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::notify::Notification;
use crate::prelude::*;

pub(super) static CACHE_LINE: Mechanism = Mechanism {
    name: "cache-line",
    summary: "two tasks bounce one counter on one cache line, spinning: a cache line there and back",
    role: Role::Floor,
    tasks: &[Tasks::Processes, Tasks::Threads],
    waits: &[Wait::Spin],
    man_pages: &["mmap(2) MAP_SHARED"],
    ..Mechanism::notification(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let memory = SharedMemory::new(size_of::<AtomicU64>());
    let memory = Arc::new(memory.in_call("mmap(MAP_SHARED)")?);
    // The task that asks writes odd numbers and waits for even ones, the task that answers the other way round.
    let direction = |first: u64| {
        let (notified, waited) = (memory.clone(), memory.clone());
        let (mut next, mut awaited) = (first, first);
        let notify = move || {
            counter(&notified).store(next, Release);
            next += 2;
            Ok(Some(0))
        };
        let wait = move || {
            while counter(&waited).load(Acquire) != awaited {
                std::hint::spin_loop();
            }
            awaited += 2;
            Ok(Some(0))
        };
        Direction::new(Notification::new(notify), Notification::new(wait))
    };
    Ok(assemble(request, direction(1), Some(direction(2))))
}

/// A number in shared memory, alone on its cache line and page.
#[inline]
fn counter(memory: &SharedMemory) -> &AtomicU64 {
    // SAFETY: the mapping is page-aligned, at least a page, zeroed (a valid AtomicU64), and only ever reached through
    // this atomic; it lives as long as `memory`.
    unsafe { &*memory.as_ptr().cast::<AtomicU64>() }
}
