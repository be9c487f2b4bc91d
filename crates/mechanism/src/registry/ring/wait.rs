//! How an end of a ring waits for the other end: it spins, or it sleeps until it is woken.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, fence};

use rustix::io::retry_on_intr;
use rustix::thread::futex;

use super::layout::{Ring, RingWait};
use crate::prelude::*;

/// An end of the ring, which may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Sender,
    Receiver,
}

impl Ring {
    fn sleeper(&self, side: Side) -> (&AtomicU32, Option<&OwnedFd>) {
        let (sleepers, wake_fds) = (&self.control().sleepers, self.wake_fds());
        match side {
            Side::Sender => (&sleepers.sender, wake_fds.map(|wake_fds| &wake_fds.sender)),
            Side::Receiver => (&sleepers.receiver, wake_fds.map(|wake_fds| &wake_fds.receiver)),
        }
    }

    /// Waits once; it may return early, so the caller checks again. Does not sleep if `ready()`. Returns the number
    /// of system calls made.
    #[inline]
    pub(super) fn wait(&self, wait: RingWait, side: Side, ready: impl Fn() -> bool) -> io::Result<u64> {
        match wait {
            RingWait::Spin => {
                std::hint::spin_loop();
                Ok(0)
            }
            RingWait::Never => Err(would_wait_for_itself()),
            RingWait::Futex | RingWait::Eventfd => self.sleep(side, ready),
        }
    }

    /// The fences pair with [`Ring::wake_sleeper`]: either the other end sees our flag, or we see its publication.
    #[cold]
    fn sleep(&self, side: Side, ready: impl Fn() -> bool) -> io::Result<u64> {
        let (flag, wake_fd) = self.sleeper(side);
        flag.store(1, Relaxed);
        fence(SeqCst);
        if ready() {
            flag.store(0, Relaxed);
            return Ok(0);
        }
        let slept = match wake_fd {
            None => futex::wait(flag, futex::Flags::empty(), 1, None),
            // The count may be left from a wake-up that came when we did not sleep: then read(2) returns at once and
            // the caller checks once more.
            Some(wake_fd) => rustix::io::read(wake_fd, &mut [0; size_of::<u64>()]).map(|_| ()),
        };
        match slept {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(1),
            Err(error) => Err(error.into()),
        }
    }

    /// Wakes the other end if it sleeps. Returns the system calls made.
    #[inline]
    pub(super) fn wake(&self, wait: RingWait, side: Side) -> io::Result<u64> {
        if wait.sleeps() { self.wake_sleeper(side) } else { Ok(0) }
    }

    fn wake_sleeper(&self, side: Side) -> io::Result<u64> {
        let (flag, wake_fd) = self.sleeper(side);
        fence(SeqCst);
        if flag.load(Relaxed) == 0 {
            return Ok(0);
        }
        flag.store(0, Relaxed);
        match wake_fd {
            None => futex::wake(flag, futex::Flags::empty(), 1).map(|_| ())?,
            Some(wake_fd) => retry_on_intr(|| rustix::io::write(wake_fd, &1u64.to_ne_bytes())).map(|_| ())?,
        }
        Ok(1)
    }
}

/// The error of a task that would have to wait for itself.
#[cold]
fn would_wait_for_itself() -> io::Error {
    io::Error::new(
        io::ErrorKind::WouldBlock,
        "one task that sends and then receives would wait for itself: the block does not fit in the ring \
         (smaller --block, larger size=, or --tasks processes)",
    )
}
