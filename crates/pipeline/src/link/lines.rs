//! Lines that pass a link, counted in the bytes that a relay sees, where that is asked for.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Shared by a link and its relay.
#[derive(Debug, Default)]
pub(super) struct Lines {
    wanted: AtomicBool,
    seen: AtomicU64,
}

impl Lines {
    /// From now on they are counted: to be asked for before the first byte.
    pub(super) fn want(&self) {
        self.wanted.store(true, Relaxed);
    }

    /// Whether they are counted.
    pub(super) fn are_wanted(&self) -> bool {
        self.wanted.load(Relaxed)
    }

    /// Ends of lines that passed so far.
    pub(super) fn seen(&self) -> Option<u64> {
        self.are_wanted().then(|| self.seen.load(Relaxed))
    }

    /// Counts those of a piece.
    pub(super) fn count(&self, piece: &[u8]) {
        self.seen.fetch_add(memchr::memchr_iter(b'\n', piece).count() as u64, Relaxed);
    }
}

impl Write for &Lines {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.count(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
