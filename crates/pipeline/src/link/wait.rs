//! Sleeping until one of several descriptors is ready, with a time limit.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use process::{ready_within, sleep_on};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

/// Sleeps until one of these can be read.
pub(super) fn sleep_on_reads(fds: [BorrowedFd<'_>; 2], at_most: Option<Duration>) -> io::Result<()> {
    sleep_on(&mut fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)), at_most)
}

/// Whether a descriptor is ready now, or has an error.
pub(super) fn is_ready(fd: &OwnedFd, what: PollFlags) -> io::Result<bool> {
    ready_within(fd, what, Some(Duration::ZERO))
}

/// A request to end, which wakes a sleep.
pub(super) struct Stop {
    event: OwnedFd,
    raised: AtomicBool,
}

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, raised: AtomicBool::new(false) })
    }

    /// From now on the descriptor is readable.
    pub(super) fn raise(&self) {
        self.raised.store(true, SeqCst);
        // The counter is not full after one write; EAGAIN would mean that the descriptor is readable.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Whether the end was requested.
    pub(super) fn raised(&self) -> bool {
        self.raised.load(SeqCst)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
