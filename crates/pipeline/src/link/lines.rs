//! Counts the lines that a relay moves, and notes their times, if that is wanted.

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
    /// From now on they are counted. To be called before the first byte, and before [`super::Link::meter`] or [`super::Link::keep`].
    pub(crate) fn want(&self) {
        self.wanted.store(true, Relaxed);
    }

    /// From now on they are counted and their times noted. To be called before the first byte.
    pub(super) fn want_stamps(&self) {
        self.want();
        let _ = self.stamps.set(Mutex::default());
    }

    /// Their times; `None` if these are not noted.
    pub(crate) fn stamps(&self) -> Option<MutexGuard<'_, Stamps>> {
        Some(self.stamps.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether they are counted.
    pub(super) fn are_wanted(&self) -> bool {
        self.wanted.load(Relaxed)
    }

    /// Ends of lines so far; `None` if they are not counted.
    pub(super) fn seen(&self) -> Option<u64> {
        self.are_wanted().then(|| self.seen.load(Relaxed))
    }

    /// Counts the lines of these bytes, if that is wanted.
    pub(super) fn count(&self, piece: &[u8]) {
        if !self.are_wanted() {
            return;
        }
        self.seen.fetch_add(memchr::memchr_iter(b'\n', piece).count() as u64, Relaxed);
        if let Some(mut stamps) = self.stamps() {
            stamps.add(piece, model::monotonic_ns());
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
