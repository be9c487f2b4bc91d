//! The library's state in a process: the configuration, the address of the shell's code, and the links whose ends this process or
//! a parent has received. Signal handlers and forked children use it at any time, so everything in it that changes is an atomic integer.

use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use crate::protocol::{Config, asks, mode};
use crate::sys;

/// Ends of links that are remembered, the latest ones. A shell forks the programs of a pipeline right after it makes their pipes.
const ENDS: usize = 64;
const ENTRY_WORDS: usize = sys::IDENTITY_WORDS + 2;

/// The state; one for each process, copied by fork(2).
pub(crate) struct Session {
    given: UnsafeCell<Given>,
    /// For each end of a link its [`sys::Identity`], the link's number, and whether its reader has to wait.
    ends: [[AtomicU64; ENTRY_WORDS]; ENDS],
    /// Number of ends that were remembered in total.
    seen: AtomicUsize,
    burst: AtomicUsize,
}

/// The constant part of the state.
struct Given {
    config: Config,
    /// The address at which the shell's file is mapped, and the addresses of its code.
    base: usize,
    code: Range<usize>,
}

// SAFETY: only `begin` writes what is not atomic, before the shell's main, when there is no other thread and no handler.
unsafe impl Sync for Session {}

pub(crate) static SESSION: Session = Session {
    given: UnsafeCell::new(Given { config: Config::OFF, base: 0, code: 0..0 }),
    ends: [const { [const { AtomicU64::new(0) }; ENTRY_WORDS] }; ENDS],
    seen: AtomicUsize::new(0),
    burst: AtomicUsize::new(0),
};

/// A link that was recognised by one of its ends.
pub(crate) struct KnownLink {
    pub(crate) id: u64,
    pub(crate) waits: bool,
}

impl Session {
    /// Sets the configuration.
    ///
    /// # Safety
    /// Called once, before the shell's main.
    pub(crate) unsafe fn begin(&self, config: Config, base: usize, code: Range<usize>) {
        // SAFETY: there is no other thread yet.
        unsafe { *self.given.get() = Given { config, base, code } };
    }

    fn given(&self) -> &Given {
        // SAFETY: nothing is written after `begin`.
        unsafe { &*self.given.get() }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.given().config
    }

    /// Whether there is a server to which events are reported.
    pub(crate) fn has_server(&self) -> bool {
        self.config().path[0] != 0
    }

    /// Whether messages contain resource usage.
    pub(crate) fn reports_usage(&self) -> bool {
        self.asks(asks::USAGE)
    }

    /// Whether the server asked for this: one of [`asks`].
    pub(crate) fn asks(&self, what: u64) -> bool {
        self.config().mode == mode::ASK && self.config().argument & what != 0
    }

    /// The offset of an address in the shell's file; `None` if it is not code.
    pub(crate) fn offset(&self, address: usize) -> Option<usize> {
        let Given { base, code, .. } = self.given();
        code.contains(&address).then(|| address - base)
    }

    /// Where the shell's code begins.
    pub(crate) fn code_begins(&self) -> usize {
        self.given().code.start
    }

    /// Whether a call with this stack makes a pipeline's pipe.
    pub(crate) fn is_pipeline_call(&self, stack: *const usize) -> bool {
        let sites = &self.config().sites;
        // SAFETY: `slot` is one of the words that were read while learning, on a stack of the same calls.
        let address = unsafe { *stack.add(sites.slot) };
        self.offset(address).is_some_and(|offset| offset != 0 && sites.offsets.contains(&offset))
    }

    /// Remembers one end of a link.
    pub(crate) fn remember(&self, fd: i32, id: u64, waits: bool) {
        let Some(identity) = sys::identity(fd) else { return };
        let entry = &self.ends[self.seen.fetch_add(1, Relaxed) % ENDS];
        for (word, value) in entry.iter().zip(identity.into_iter().chain([id, u64::from(waits)])) {
            word.store(value, Relaxed);
        }
    }

    /// The link of which a descriptor is an end, if this process knows it.
    pub(crate) fn link_of(&self, fd: i32) -> Option<KnownLink> {
        let seen = self.seen.load(Relaxed);
        if seen == 0 {
            return None;
        }
        let identity = sys::identity(fd)?;
        // The latest first: a new file may have the identity of a removed one.
        let mut entries = (1..=ENDS.min(seen)).map(|back| &self.ends[(seen - back) % ENDS]);
        entries.find_map(|entry| {
            let entry = entry.each_ref().map(|word| word.load(Relaxed));
            let (remembered, known) = entry.split_at(sys::IDENTITY_WORDS);
            (remembered == identity).then(|| KnownLink { id: known[0], waits: known[1] != 0 })
        })
    }

    /// Counts a pipe of the burst: the pipes that were made since a process was reaped. Returns the number before it.
    pub(crate) fn count_in_burst(&self) -> usize {
        self.burst.fetch_add(1, Relaxed)
    }

    /// Begins a new burst.
    pub(crate) fn end_burst(&self) {
        self.burst.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    /// Expected: a file with the inode of a removed link's file is not an end of that link.
    /// Happened: `seq 5 | wc -l; seq 9 > out` was recorded as a pipeline into `out`, to which ext4 gave the inode of the link's file.
    #[test]
    fn a_file_with_the_inode_of_a_link_is_not_the_link() {
        let folder = std::env::temp_dir().join(std::format!("session-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let path = folder.join("file");
        for id in 0..50 {
            let link = File::options().read(true).append(true).create_new(true).open(&path).expect("a file");
            SESSION.remember(link.as_raw_fd(), id, false);
            let again = link.try_clone().expect("a copy");
            assert_eq!(SESSION.link_of(again.as_raw_fd()).map(|known| known.id), Some(id));
            drop((link, again));
            std::fs::remove_file(&path).expect("removed");
            let other = File::create_new(&path).expect("a file");
            assert!(SESSION.link_of(other.as_raw_fd()).is_none(), "{id}");
            std::fs::remove_file(&path).expect("removed");
        }
        std::fs::remove_dir(&folder).expect("empty");
    }
}
