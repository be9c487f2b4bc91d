//! `futex`: two words in shared memory, one for each direction: asleep in futex(2) until the word changes.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

use model::Tasks;
use rustix::io::Errno;
use rustix::thread::futex;

use super::knock::{Hear, Hearer, Knock, Knocker};
use crate::SharedMemory;
use crate::descriptor::Descriptor;
use crate::loops::{Direction, one_way};
use crate::{Channel, Mechanism, OpenError, Request};

pub(crate) struct Futex;

impl Mechanism for Futex {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "futex",
            summary: "two words of shared memory, and the kernel to sleep on them",
            tasks: &[Tasks::Processes, Tasks::Threads],
            man_pages: &["futex(2)", "futex(7)"],
            more_specs: &["futex"],
            ..Descriptor::NOTIFICATION
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        one_way(request, || {
            let memory = SharedMemory::new(size_of::<AtomicU32>());
            let memory = Arc::new(memory.map_err(OpenError::system("mmap(MAP_SHARED)"))?);
            let side = || Word { memory: memory.clone(), count: 0, syscalls: 0 };
            Ok(Direction { sender: Knocker(side()), receiver: Hearer(side()), granted: Default::default() })
        })
    }
}

/// Either side of a word that counts knocks.
struct Word {
    memory: Arc<SharedMemory>,
    /// Knocks given, or knocks heard.
    count: u32,
    syscalls: u64,
}

impl Word {
    #[inline]
    fn value(&self) -> &AtomicU32 {
        // SAFETY: the mapping is page-aligned, at least a page, zeroed (a valid AtomicU32), and only ever
        // reached through this atomic; it lives as long as `self`.
        unsafe { &*self.memory.as_ptr().cast::<AtomicU32>() }
    }
}

impl Knock for Word {
    #[inline]
    fn knock(&mut self) -> io::Result<()> {
        self.count = self.count.wrapping_add(1);
        self.value().store(self.count, Release);
        // Always: asking first whether anybody sleeps would be a second word, and here somebody does.
        self.syscalls += 1;
        futex::wake(self.value(), futex::Flags::empty(), 1)?;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

impl Hear for Word {
    #[inline]
    fn hear(&mut self) -> io::Result<()> {
        while self.value().load(Acquire) == self.count {
            self.syscalls += 1;
            match futex::wait(self.value(), futex::Flags::empty(), self.count, None) {
                // AGAIN: the word changed before we slept.
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.count = self.count.wrapping_add(1);
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}
