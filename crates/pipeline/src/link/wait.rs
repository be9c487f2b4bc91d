//! Sleeping until one of several descriptors has something, for at most some time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, Timespec, eventfd, poll};
use rustix::io::Errno;

/// Sleeps until a descriptor has what it is watched for, or an error, or the time is over. Coming back early is
/// no harm: callers look for themselves.
pub(super) fn sleep_on(fds: &mut [PollFd<'_>], at_most: Option<Duration>) -> io::Result<()> {
    let timeout = at_most.map(|time| Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    });
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
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
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.event.as_fd()
    }
}
