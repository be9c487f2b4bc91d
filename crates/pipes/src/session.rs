//! What the library knows for as long as its process lives: the configuration, where the shell's code lies, and the links of which
//! this process, or one it was forked from, has seen both ends. Plain numbers behind atomics: signal handlers and forked
//! children come by here at any moment.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize};

use crate::protocol::{Mode, NAME_BYTES_MAX, SITES_MAX};

/// Links that are remembered; a shell forks the programs of a pipeline right after it made their pipes.
const LINKS: usize = 64;

const fn words<const N: usize>() -> [AtomicU64; N] {
    [const { AtomicU64::new(0) }; N]
}

/// The state; one for each process, copied by fork(2).
pub(crate) struct Session {
    active: AtomicBool,
    mode: AtomicI64,
    argument: AtomicUsize,
    slot: AtomicUsize,
    sites: [AtomicUsize; SITES_MAX],
    name: [AtomicU64; NAME_BYTES_MAX.div_ceil(8)],
    name_len: AtomicUsize,
    code: [AtomicUsize; 3],
    devices: [AtomicU64; LINKS],
    inodes: [AtomicU64; LINKS],
    ids: [AtomicU64; LINKS],
    holds: [AtomicU64; LINKS],
    next: AtomicUsize,
    burst: AtomicUsize,
}

/// The one there is.
pub(crate) static SESSION: Session = Session {
    active: AtomicBool::new(false),
    mode: AtomicI64::new(0),
    argument: AtomicUsize::new(0),
    slot: AtomicUsize::new(0),
    sites: [const { AtomicUsize::new(0) }; SITES_MAX],
    name: words(),
    name_len: AtomicUsize::new(0),
    code: [const { AtomicUsize::new(0) }; 3],
    devices: words(),
    inodes: words(),
    ids: words(),
    holds: words(),
    next: AtomicUsize::new(0),
    burst: AtomicUsize::new(0),
};

/// A link that was recognised by one of its ends.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    pub(crate) id: u64,
    pub(crate) hold_reader: bool,
}

impl Session {
    /// Takes the configuration over. `code` is where the shell's file is mapped, and where its code begins and ends.
    pub(crate) fn begin(&self, config: &crate::protocol::Config<'_>, code: (usize, usize, usize)) {
        let (mode, argument) = match config.mode {
            Mode::Learn(fd) => (1, fd as usize),
            Mode::Own(bytes) => (2, bytes),
            Mode::Ask => (3, 0),
            Mode::Exactly(bytes) => (4, bytes),
        };
        self.mode.store(mode, Relaxed);
        self.argument.store(argument, Relaxed);
        self.slot.store(config.slot, Relaxed);
        for (known, site) in self.sites.iter().zip(config.sites) {
            known.store(site, Relaxed);
        }
        let name = config.name.unwrap_or_default();
        for (word, bytes) in self.name.iter().zip(name.chunks(8)) {
            let mut own = [0; 8];
            own[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(own), Relaxed);
        }
        self.name_len.store(name.len(), Relaxed);
        for (known, address) in self.code.iter().zip([code.0, code.1, code.2]) {
            known.store(address, Relaxed);
        }
        self.active.store(true, Relaxed);
    }

    pub(crate) fn mode(&self) -> Option<Mode> {
        let argument = self.argument.load(Relaxed);
        match (self.active.load(Relaxed), self.mode.load(Relaxed)) {
            (true, 1) => Some(Mode::Learn(argument as i32)),
            (true, 2) => Some(Mode::Own(argument)),
            (true, 3) => Some(Mode::Ask),
            (true, 4) => Some(Mode::Exactly(argument)),
            _ => None,
        }
    }

    /// Whether somebody wants to know what happens.
    pub(crate) fn is_heard(&self) -> bool {
        self.name_len.load(Relaxed) > 0
    }

    /// Calls `with` with the name of hosepipe's socket.
    pub(crate) fn with_name<T>(&self, with: impl FnOnce(&[u8]) -> T) -> T {
        let mut name = [0; NAME_BYTES_MAX.div_ceil(8) * 8];
        for (bytes, word) in name.chunks_exact_mut(8).zip(&self.name) {
            bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        with(&name[..self.name_len.load(Relaxed).min(name.len())])
    }

    /// The offset in the shell's file of an address, where that is code.
    pub(crate) fn offset(&self, address: usize) -> Option<usize> {
        let [base, from, to] = [0, 1, 2].map(|at| self.code[at].load(Relaxed));
        (from..to).contains(&address).then(|| address - base)
    }

    /// Where the shell's code begins.
    pub(crate) fn code_begins(&self) -> usize {
        self.code[1].load(Relaxed)
    }

    /// Whether a call with this stack makes a pipeline's pipe.
    pub(crate) fn is_pipelines(&self, stack: *const usize) -> bool {
        // SAFETY: `slot` is one of the words that were looked at while learning, on a stack of the same calls.
        let address = unsafe { *stack.add(self.slot.load(Relaxed)) };
        let offset = self.offset(address);
        offset.is_some_and(|offset| self.sites.iter().any(|site| site.load(Relaxed) == offset && offset != 0))
    }

    /// Remembers one end of a link.
    pub(crate) fn remember(&self, fd: i32, id: u64, hold_reader: bool) {
        let Some((device, inode)) = crate::sys::identity(fd) else { return };
        let at = self.next.fetch_add(1, Relaxed) % LINKS;
        self.devices[at].store(device, Relaxed);
        self.inodes[at].store(inode, Relaxed);
        self.ids[at].store(id, Relaxed);
        self.holds[at].store(u64::from(hold_reader), Relaxed);
    }

    /// The link that a descriptor is an end of, where this process knows of it.
    pub(crate) fn link_of(&self, fd: i32) -> Option<Known> {
        if self.next.load(Relaxed) == 0 {
            return None;
        }
        let (device, inode) = crate::sys::identity(fd)?;
        // The latest first: a file's number may have been another file's before.
        let last = self.next.load(Relaxed);
        (1..=LINKS.min(last)).map(|back| (last - back) % LINKS).find_map(|at| {
            let same = self.devices[at].load(Relaxed) == device && self.inodes[at].load(Relaxed) == inode;
            same.then(|| Known {
                id: self.ids[at].load(Relaxed),
                hold_reader: self.holds[at].load(Relaxed) != 0,
            })
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
