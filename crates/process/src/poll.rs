//! Waiting for descriptors.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;

/// Sleeps until a descriptor is ready or has an error, a signal has arrived, or the time limit is reached. Does not tell which of these it was.
///
/// # Errors
/// An error of poll(2).
pub fn sleep_on(fds: &mut [PollFd<'_>], at_most: Option<Duration>) -> io::Result<()> {
    // A time that is too long for the kernel means no limit.
    let timeout = at_most.and_then(|time| Timespec::try_from(time).ok());
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits, for at most `most`, until a descriptor is ready for `what` or has an error; returns whether it is. A pidfd is readable when its process
/// has ended; this does not reap a child.
///
/// # Errors
/// An error of poll(2).
pub fn ready_within(fd: &impl AsFd, what: PollFlags, most: Option<Duration>) -> io::Result<bool> {
    let began = Instant::now();
    loop {
        let mut fds = [PollFd::new(fd, what)];
        let left = most.map(|most| most.saturating_sub(began.elapsed()));
        sleep_on(&mut fds, left)?;
        let is_ready = !fds[0].revents().is_empty();
        if is_ready || left.is_some_and(|left| left.is_zero()) {
            return Ok(is_ready);
        }
    }
}
