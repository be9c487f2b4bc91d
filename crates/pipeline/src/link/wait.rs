//! Sleeping until one of several descriptors has something, for at most some time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// Sleeps until a descriptor has what it is watched for, or an error, or the time is over. Coming back early is
/// no harm: callers look for themselves.
pub(super) fn sleep_on(fds: &mut [PollFd<'_>], at_most: Option<Duration>) -> io::Result<()> {
    // A time too long for the kernel is for ever.
    let timeout = at_most.and_then(|time| Timespec::try_from(time).ok());
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sleeps until there is something to read at one of these.
pub(super) fn sleep_on_reads<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    at_most: Option<Duration>,
) -> io::Result<()> {
    sleep_on(&mut fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)), at_most)
}

/// Whether a descriptor has what is asked for, or an error, at this moment.
pub(super) fn has_now(fd: &OwnedFd, what: PollFlags) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd, what)];
    sleep_on(&mut fds, Some(Duration::ZERO))?;
    Ok(!fds[0].revents().is_empty())
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
