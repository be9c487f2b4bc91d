//! `cache-line`: two tasks bounce one counter on one cache line. What two cores cost each other at the least:
//! no round trip between them can be shorter.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use model::{Role, Tasks, Wait};

use super::knock::{Hear, Hearer, Knock, Knocker};
use crate::SharedMemory;
use crate::descriptor::Descriptor;
use crate::loops::{Direction, assemble};
use crate::{Channel, Mechanism, OpenError, Request};

pub(crate) struct CacheLine;

impl Mechanism for CacheLine {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "cache-line",
            summary: "two tasks bounce one counter on one cache line, spinning: the shortest round trip there is",
            role: Role::Floor,
            tasks: &[Tasks::Processes, Tasks::Threads],
            waits: &[Wait::Spin],
            man_pages: &["mmap(2) MAP_SHARED"],
            ..Descriptor::NOTIFICATION
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let counter = Counter::new().map_err(OpenError::system("mmap(MAP_SHARED)"))?;
        // The asker writes odd numbers and waits for even ones, the answerer the other way round.
        let direction = |first: u64| Direction {
            sender: Knocker(Bounce { counter: counter.clone(), next: first }),
            receiver: Hearer(Bounce { counter: counter.clone(), next: first }),
            granted: Default::default(),
        };
        Ok(assemble(request, direction(1), Some(direction(2))))
    }
}

/// A number in shared memory, alone on its cache line and page.
#[derive(Clone)]
struct Counter(Arc<SharedMemory>);

impl Counter {
    fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(SharedMemory::new(size_of::<AtomicU64>())?)))
    }

    #[inline]
    fn value(&self) -> &AtomicU64 {
        // SAFETY: the mapping is page-aligned, at least a page, zeroed (a valid AtomicU64), and only ever
        // reached through this atomic; it lives as long as `self`.
        unsafe { &*self.0.as_ptr().cast::<AtomicU64>() }
    }
}

/// Either side of one direction: every second number is its own.
struct Bounce {
    counter: Counter,
    next: u64,
}

impl Knock for Bounce {
    #[inline]
    fn knock(&mut self) -> io::Result<()> {
        self.counter.value().store(self.next, Release);
        self.next += 2;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(0)
    }
}

impl Hear for Bounce {
    #[inline]
    fn hear(&mut self) -> io::Result<()> {
        while self.counter.value().load(Acquire) != self.next {
            std::hint::spin_loop();
        }
        self.next += 2;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(0)
    }
}
