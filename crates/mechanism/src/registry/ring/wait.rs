//! How an end of a ring waits for the other end: it spins, or it looks for a moment and then sleeps until it is woken.
//!
//! A full fence after each publication would cost more than the publication. So the end that publishes has none, only an order that the
//! compiler keeps, and the end that is about to sleep makes all CPUs that run the other one pass a fence: membarrier(2). Where the
//! kernel has no such call both ends have their own fence.

use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, compiler_fence, fence};

use rustix::io::retry_on_intr;
use rustix::thread::{MembarrierCommand, futex, membarrier};

use super::layout::{Ring, RingWait};
use super::protocol::{self, Kernel};
use crate::prelude::*;

/// Looks before the first sleep: a few microseconds, many times what a message takes from one CPU to another.
const LOOKS_MAX: u32 = 200;
/// Looks that are always made: about as long as a message takes.
const LOOKS_MIN: u32 = 10;

/// An end of the ring, which may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Sender,
    Receiver,
}

impl Side {
    fn other(self) -> Self {
        if self == Self::Sender { Self::Receiver } else { Self::Sender }
    }
}

/// Allows the other end to put a fence into this process, also after fork(2).
pub(super) fn register_for_barriers() -> io::Result<()> {
    Ok(membarrier(MembarrierCommand::RegisterGlobalExpedited)?)
}

/// One end's way to wait and to wake.
pub(super) struct Waiter {
    ring: Arc<Ring>,
    wait: RingWait,
    side: Side,
    /// Looks that a wait has taken lately.
    usual_looks: u32,
    syscalls: Cell<u64>,
}

impl Waiter {
    pub(super) fn new(ring: Arc<Ring>, wait: RingWait, side: Side) -> Self {
        Self { ring, wait, side, usual_looks: LOOKS_MAX / 2, syscalls: Cell::new(0) }
    }

    /// What must be done in the task that uses the end.
    ///
    /// # Errors
    /// membarrier(2) worked when the ring was made, and does not here.
    pub(super) fn prepare(&self) -> io::Result<()> {
        self.ring.populate();
        if self.ring.barriers { register_for_barriers() } else { Ok(()) }
    }

    /// System calls made so far.
    pub(super) fn syscalls(&self) -> u64 {
        self.syscalls.get()
    }

    /// Waits until `ready`. Looks somewhat longer than it took lately, and no longer where a sleep came of it: on one CPU the other end
    /// does nothing while this one looks.
    pub(super) fn wait_until(&mut self, ready: impl FnMut() -> bool) -> io::Result<()> {
        let looks = match self.wait {
            RingWait::Spin => u32::MAX,
            RingWait::Never => 1,
            RingWait::Futex | RingWait::Eventfd => (2 * self.usual_looks + LOOKS_MIN).min(LOOKS_MAX),
        };
        let (flag, _) = self.sleeper(self.side);
        let (looked, slept) = protocol::wait_until(self, flag, looks, ready)?;
        self.usual_looks = if slept { self.usual_looks / 2 } else { (7 * self.usual_looks + looked) / 8 };
        Ok(())
    }

    /// Wakes the other end if it sleeps.
    #[inline]
    pub(super) fn wake_other(&self) -> io::Result<()> {
        if !self.wait.sleeps() {
            return Ok(());
        }
        protocol::wake(self, self.sleeper(self.side.other()).0)
    }

    #[inline]
    fn sleeper(&self, side: Side) -> (&AtomicU32, Option<&OwnedFd>) {
        let (sleepers, wake_fds) = (&self.ring.control().sleepers, self.ring.wake_fds());
        match side {
            Side::Sender => (&sleepers.sender, wake_fds.map(|wake_fds| &wake_fds.sender)),
            Side::Receiver => (&sleepers.receiver, wake_fds.map(|wake_fds| &wake_fds.receiver)),
        }
    }

    fn count_syscall(&self) {
        self.syscalls.set(self.syscalls.get() + 1);
    }
}

impl Kernel for Waiter {
    type Error = io::Error;

    #[inline]
    fn light_fence(&self) {
        if self.ring.barriers { compiler_fence(SeqCst) } else { fence(SeqCst) }
    }

    fn heavy_fence(&self) -> io::Result<()> {
        fence(SeqCst);
        if self.ring.barriers {
            self.count_syscall();
            membarrier(MembarrierCommand::GlobalExpedited)?;
        }
        Ok(())
    }

    fn sleep(&self, flag: &AtomicU32) -> io::Result<()> {
        let slept = match (self.wait, self.sleeper(self.side).1) {
            (RingWait::Never, _) => return Err(would_wait_for_itself()),
            (RingWait::Spin, _) => return Ok(()),
            (_, None) => futex::wait(flag, futex::Flags::empty(), 1, None),
            // The count may be left from a wake-up that came when we did not sleep: then read(2) returns at once and
            // the caller checks once more.
            (_, Some(wake_fd)) => rustix::io::read(wake_fd, &mut [0; size_of::<u64>()]).map(|_| ()),
        };
        self.count_syscall();
        match slept {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[cold]
    fn wake(&self, flag: &AtomicU32) -> io::Result<()> {
        self.count_syscall();
        match self.sleeper(self.side.other()).1 {
            None => futex::wake(flag, futex::Flags::empty(), 1).map(|_| ())?,
            Some(wake_fd) => retry_on_intr(|| rustix::io::write(wake_fd, &1u64.to_ne_bytes())).map(|_| ())?,
        }
        Ok(())
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
