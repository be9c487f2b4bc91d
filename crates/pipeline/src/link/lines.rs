//! Lines that pass a link, counted in the bytes that a relay sees, where that is asked for; and when they passed.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::latency::Stamps;

/// Shared by a link, its relay and its record.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    wanted: AtomicBool,
    seen: AtomicU64,
    stamps: OnceLock<Mutex<Stamps>>,
}

impl Lines {
    /// From now on they are counted: to be asked for before the first byte.
    pub(super) fn want(&self) {
        self.wanted.store(true, Relaxed);
    }

    /// From now on they are counted, and it is noted when each came: to be asked for before the first byte.
    pub(super) fn want_stamps(&self) {
        self.want();
        let _ = self.stamps.set(Mutex::default());
    }

    /// When they came; `None` where that is not noted.
    pub(crate) fn stamps(&self) -> Option<MutexGuard<'_, Stamps>> {
        Some(self.stamps.get()?.lock().unwrap_or_else(PoisonError::into_inner))
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
        if let Some(mut stamps) = self.stamps() {
            stamps.note(piece, model::monotonic_ns());
        }
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
