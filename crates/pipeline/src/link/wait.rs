//! Waking a thread that sleeps until one of several descriptors is ready, and threads that wake another at their end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use process::{Retries, ready_within, retry_rare, spawn_thread};
use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::io::{Errno, retry_on_intr};

/// Whether a descriptor is ready now, or has an error.
pub(super) fn is_ready(fd: &OwnedFd, what: PollFlags) -> io::Result<bool> {
    ready_within(fd, what, Some(Duration::ZERO))
}

/// A descriptor that becomes readable when it is rung, and stays so until it is silenced. Without one, as by default, ringing does nothing.
#[derive(Debug, Clone, Default)]
pub struct Bell(Option<Arc<OwnedFd>>);

impl Bell {
    /// A bell that nothing has rung yet.
    ///
    /// # Errors
    /// An error of eventfd(2).
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Some(Arc::new(event))))
    }

    /// The descriptor to be polled.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn ring(&self) {
        let Some(event) = &self.0 else { return };
        let ring = || retry_on_intr(|| rustix::io::write(event, &1u64.to_ne_bytes()));
        // The counter is not full after one write; EAGAIN would mean that the descriptor is readable.
        let _ = retry_rare(Retries::UNREPORTED, |error| *error != Errno::AGAIN, ring);
    }

    /// To be called before what it rang for is looked at.
    pub(crate) fn silence(&self) {
        let _ = self.0.as_ref().map(|event| rustix::io::read(event, &mut [0; 8]));
    }
}

/// A thread that rings at its end. Dropping this leaves it alone.
pub(crate) struct RingingThread<T> {
    over: Arc<AtomicBool>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> RingingThread<T> {
    pub(crate) fn start(
        name: &str,
        bell: Bell,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let over = Arc::<AtomicBool>::default();
        let ending = Ending { over: Arc::clone(&over), bell };
        let thread = spawn_thread(name, move || {
            // Dropped last, also after a panic.
            let _ending = ending;
            run()
        })?;
        Ok(Self { over, thread })
    }

    /// Whether it has ended: true before it rings.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }

    /// Waits for its end. The error is its panic.
    pub(crate) fn join(self) -> std::thread::Result<T> {
        self.thread.join()
    }
}

struct Ending {
    over: Arc<AtomicBool>,
    bell: Bell,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        self.bell.ring();
    }
}

/// A request to end, which wakes a sleep.
pub(super) struct Stop {
    bell: Bell,
    raised: AtomicBool,
}

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { bell: Bell::new()?, raised: AtomicBool::new(false) })
    }

    /// From now on the descriptor is readable.
    pub(super) fn raise(&self) {
        self.raised.store(true, SeqCst);
        self.bell.ring();
    }

    /// Whether the end was requested.
    pub(super) fn raised(&self) -> bool {
        self.raised.load(SeqCst)
    }

    /// The descriptor, until the end is requested: from then on it would end every sleep at once.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.bell.fd().filter(|_| !self.raised())
    }
}
