//! Sleeping until one of several descriptors has something, for at most some time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use process::{ready_within, sleep_on};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

/// Sleeps until there is something to read at one of these.
pub(super) fn sleep_on_reads<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    at_most: Option<Duration>,
) -> io::Result<()> {
    sleep_on(&mut fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)), at_most)
}

/// Whether a descriptor has what is asked for, or an error, at this moment.
pub(super) fn has_now(fd: &OwnedFd, what: PollFlags) -> io::Result<bool> {
    ready_within(fd, what, Some(Duration::ZERO))
}

/// A request to come to an end, which can be slept on.
pub(super) struct Stop {
    event: OwnedFd,
    raised: AtomicBool,
}

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, raised: AtomicBool::new(false) })
    }

    /// Asks for the end. From now on the descriptor is readable.
    pub(super) fn raise(&self) {
        self.raised.store(true, SeqCst);
        // The counter cannot be full after one write, and EAGAIN would mean that it is readable all the same.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Whether the end was asked for.
    pub(super) fn raised(&self) -> bool {
        self.raised.load(SeqCst)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
