//! How an end of a ring waits for the other end: it spins, or it spins for some microseconds and then sleeps until it is woken.
//!
//! An end must not miss that the other one is about to sleep. A full memory fence after each store that announces bytes or returns
//! room would take longer than the store. So the end that stores has only a compiler fence, and an end that is about to sleep makes the
//! CPU of the other end execute a fence: membarrier(2). If the kernel does not have that call, both ends execute their own fence.

use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, compiler_fence, fence};

use rustix::io::retry_on_intr;
use rustix::thread::{MembarrierCommand, futex, membarrier};

use super::layout::{Ring, RingWait, register_for_barriers};
use super::protocol::{self, Kernel};
use crate::fd::would_wait_for_itself;
use crate::prelude::*;

/// Most checks before a sleep: a few microseconds, many times the time of a message from one CPU to another.
const CHECKS_MAX: u32 = 200;
/// Fewest checks before a sleep: about the time of a message.
const CHECKS_MIN: u32 = 10;

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

/// How one end waits and wakes the other.
pub(super) struct Waiter {
    ring: Arc<Ring>,
    wait: RingWait,
    side: Side,
    /// Moving average of the checks in recent waits.
    usual_checks: u32,
    syscalls: Cell<u64>,
}

impl Waiter {
    pub(super) fn new(ring: Arc<Ring>, wait: RingWait, side: Side) -> Self {
        Self { ring, wait, side, usual_checks: CHECKS_MAX / 2, syscalls: Cell::new(0) }
    }

    /// Waits until `ready`. Before a sleep it makes more checks than recent waits needed, and fewer after each wait that ended in a sleep: if
    /// both ends share one CPU, the other end does not run while this one checks.
    pub(super) fn wait_until(&mut self, ready: impl FnMut() -> bool) -> io::Result<()> {
        let checks = match self.wait {
            RingWait::Spin => u32::MAX,
            RingWait::Never => 1,
            RingWait::Futex | RingWait::Eventfd => (2 * self.usual_checks + CHECKS_MIN).min(CHECKS_MAX),
        };
        let (flag, _) = self.sleeper(self.side);
        let (made, slept) = protocol::wait_until(self, flag, checks, ready)?;
        self.usual_checks = if slept { self.usual_checks / 2 } else { (7 * self.usual_checks + made) / 8 };
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
        let (sleepers, wake_fds) = (&self.ring.control().sleepers, self.ring.wake_fds.as_ref());
        match side {
            Side::Sender => (&sleepers.sender, wake_fds.map(|wake_fds| &wake_fds.sender)),
            Side::Receiver => (&sleepers.receiver, wake_fds.map(|wake_fds| &wake_fds.receiver)),
        }
    }

    fn count_syscall(&self) {
        self.syscalls.set(self.syscalls.get() + 1);
    }
}

impl End for Waiter {
    /// Faults in the ring's pages, and registers this process for barriers. It is an error if membarrier(2) worked when the ring was made,
    /// and fails in this task.
    fn prepare(&mut self) -> io::Result<()> {
        self.ring.populate();
        if self.ring.barriers { register_for_barriers() } else { Ok(()) }
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls.get())
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
            (RingWait::Never, _) => {
                let why = "the block does not fit in the ring (smaller --block, larger size=, or --tasks processes)";
                return Err(would_wait_for_itself(why));
            }
            (RingWait::Spin, _) => return Ok(()),
            (_, None) => futex::wait(flag, futex::Flags::empty(), 1, None),
            // A wake-up that came while this end did not sleep leaves a count: then read(2) returns at once, and the caller
            // checks again.
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
