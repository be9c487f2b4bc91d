//! A submission and a completion queue, set up for one way of waiting, with its system calls counted.
#![allow(unsafe_code)]

use std::io;

use io_uring::{IoUring, Submitter, cqueue, squeue};

/// How long the kernel's thread polls an idle queue before it sleeps (IORING_SETUP_SQPOLL).
const SQ_THREAD_IDLE_MS: u32 = 20;

/// A ring with its settings and the count of its system calls.
pub(super) struct Ring {
    ring: IoUring,
    /// A task that waits for a completion polls the queue; else it sleeps in io_uring_enter(2).
    spins: bool,
    /// A thread of the kernel takes requests from the queue (IORING_SETUP_SQPOLL).
    sqpoll: bool,
    /// Calls of io_uring_enter(2) so far.
    pub(super) enters: u64,
}

impl Ring {
    /// io_uring_setup(2). Older kernels refuse the flags that make waiting cheaper; then the ring is made without them.
    pub(super) fn set_up(entries: u32, spins: bool, sqpoll: bool) -> io::Result<Self> {
        let plain = || {
            let mut builder = IoUring::builder();
            builder.setup_cqsize(entries * 2);
            if sqpoll {
                builder.setup_sqpoll(SQ_THREAD_IDLE_MS);
            }
            builder
        };
        let mut tuned = plain();
        tuned.setup_single_issuer();
        if !spins && !sqpoll {
            // The kernel processes completions when the task waits for them, and does not interrupt it before.
            tuned.setup_defer_taskrun();
        }
        let ring = match tuned.build(entries) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => plain().build(entries),
            built => built,
        }?;
        Ok(Self { ring, spins, sqpoll, enters: 0 })
    }

    /// What registers memory and descriptors, and cancels requests.
    pub(super) fn submitter(&self) -> Submitter<'_> {
        self.ring.submitter()
    }

    /// Queues all requests in one step. The kernel gets them at the next [`Ring::submit`] or [`Ring::wait`], but its thread
    /// (SQPOLL) immediately: if a linked chain were queued one by one, the thread could see only its first part, and run the
    /// two parts as two chains at the same time.
    ///
    /// # Safety
    /// The memory of the requests must stay valid and unchanged until their completions were taken.
    pub(super) unsafe fn push(&mut self, requests: &[squeue::Entry]) -> io::Result<()> {
        // SAFETY: the caller's promise.
        let pushed = unsafe { self.ring.submission().push_multiple(requests) };
        pushed.map_err(|_| io::Error::other("the submission queue is full (a bug in hosepipe)"))
    }

    /// Hands the queued requests to the kernel.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        while !self.ring.submission().is_empty() {
            if self.enter(0)? {
                break;
            }
        }
        Ok(())
    }

    /// Hands the queued requests to the kernel and waits until there is a completion. A task that sleeps is woken when there are
    /// `want` completions.
    pub(super) fn wait(&mut self, want: usize) -> io::Result<()> {
        if self.spins {
            self.submit()?;
        }
        while self.ring.completion().is_empty() {
            if self.spins {
                std::hint::spin_loop();
            } else {
                self.enter(want)?;
            }
        }
        Ok(())
    }

    /// One io_uring_enter(2), unless the kernel's thread makes it unnecessary. Returns false if it must be repeated.
    fn enter(&mut self, want: usize) -> io::Result<bool> {
        if !self.sqpoll || want > 0 || self.ring.submission().need_wakeup() {
            self.enters += 1;
        }
        match self.ring.submit_and_wait(want) {
            Ok(_) => Ok(true),
            Err(error) => match error.raw_os_error() {
                // EBUSY: completions must be taken first; the caller does that next.
                Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// The next completion, if there is one.
    #[inline]
    pub(super) fn next(&mut self) -> Option<cqueue::Entry> {
        self.ring.completion().next()
    }
}
