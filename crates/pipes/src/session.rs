//! What the library knows for as long as its process lives: the configuration, where the shell's code lies, and the links of which
//! this process, or one it was forked from, has seen both ends. Signal handlers and forked children come by here at any moment:
//! what changes is plain numbers behind atomics.

use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use crate::protocol::Config;
use crate::sys;

/// Links that are remembered; a shell forks the programs of a pipeline right after it made their pipes.
const LINKS: usize = 64;

/// The state; one for each process, copied by fork(2).
pub(crate) struct Session {
    given: UnsafeCell<Given>,
    /// Of each end of a link its device, its inode, the link's name, and whether its reader is to wait.
    links: [[AtomicU64; 4]; LINKS],
    /// How many links were ever remembered.
    seen: AtomicUsize,
    burst: AtomicUsize,
}

/// What does not change.
struct Given {
    config: Config,
    /// Where the shell's file is mapped, and where its code is.
    base: usize,
    code: Range<usize>,
}

// SAFETY: what is no atomic is written by `begin` alone, before the shell's main, when there is no other thread and no handler.
unsafe impl Sync for Session {}

/// The one there is.
pub(crate) static SESSION: Session = Session {
    given: UnsafeCell::new(Given { config: Config::OFF, base: 0, code: 0..0 }),
    links: [const { [const { AtomicU64::new(0) }; 4] }; LINKS],
    seen: AtomicUsize::new(0),
    burst: AtomicUsize::new(0),
};

/// A link that was recognised by one of its ends.
pub(crate) struct Known {
    pub(crate) id: u64,
    pub(crate) hold_reader: bool,
}

impl Session {
    /// Takes the configuration over.
    ///
    /// # Safety
    /// Called once, before the shell's main.
    pub(crate) unsafe fn begin(&self, config: Config, base: usize, code: Range<usize>) {
        // SAFETY: nobody else is there yet.
        unsafe { *self.given.get() = Given { config, base, code } };
    }

    fn given(&self) -> &Given {
        // SAFETY: not written to any more.
        unsafe { &*self.given.get() }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.given().config
    }

    /// Whether somebody wants to know what happens.
    pub(crate) fn is_heard(&self) -> bool {
        self.config().name[0] != 0
    }

    /// The offset in the shell's file of an address, where that is code.
    pub(crate) fn offset(&self, address: usize) -> Option<usize> {
        let Given { base, code, .. } = self.given();
        code.contains(&address).then(|| address - base)
    }

    /// Where the shell's code begins.
    pub(crate) fn code_begins(&self) -> usize {
        self.given().code.start
    }

    /// Whether a call with this stack makes a pipeline's pipe.
    pub(crate) fn is_pipelines(&self, stack: *const usize) -> bool {
        let sites = &self.config().sites;
        // SAFETY: `slot` is one of the words that were looked at while learning, on a stack of the same calls.
        let address = unsafe { *stack.add(sites.slot) };
        self.offset(address).is_some_and(|offset| offset != 0 && sites.offsets.contains(&offset))
    }

    /// Remembers one end of a link.
    pub(crate) fn remember(&self, fd: i32, id: u64, hold_reader: bool) {
        let Some((device, inode)) = sys::identity(fd) else { return };
        let entry = &self.links[self.seen.fetch_add(1, Relaxed) % LINKS];
        for (word, value) in entry.iter().zip([device, inode, id, u64::from(hold_reader)]) {
            word.store(value, Relaxed);
        }
    }

    /// The link that a descriptor is an end of, where this process knows of it.
    pub(crate) fn link_of(&self, fd: i32) -> Option<Known> {
        let seen = self.seen.load(Relaxed);
        if seen == 0 {
            return None;
        }
        let (device, inode) = sys::identity(fd)?;
        // The latest first: a file's number may have been another file's before.
        let mut entries = (1..=LINKS.min(seen)).map(|back| &self.links[(seen - back) % LINKS]);
        entries.find_map(|entry| {
            let [of_device, of_inode, id, hold] = entry.each_ref().map(|word| word.load(Relaxed));
            (of_device == device && of_inode == inode).then_some(Known { id, hold_reader: hold != 0 })
        })
    }

    /// Counts a pipe of a burst: of those that were made since a process was last reaped.
    pub(crate) fn count_in_burst(&self) -> usize {
        self.burst.fetch_add(1, Relaxed)
    }

    /// A process was reaped: what follows is another burst.
    pub(crate) fn end_burst(&self) {
        self.burst.store(0, Relaxed);
    }
}
