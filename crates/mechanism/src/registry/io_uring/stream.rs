//! Ends that read and write a pipe or a socket through a ring.
//!
//! ```text
//!  each direction of a task is a lane; its slots (buffers) go round:
//!
//!        free ──────▶ ready ──────────────▶ flight ──────────▶ free
//!  write      fill,         one chain of           completions:
//!             `send`        requests, linked       a short write goes back to the front of `ready`
//!
//!        free ──────▶ flight ─────────────▶ ready ───────────▶ free
//!  read       one chain     completions, in        taken by
//!             of requests   the chain's order      `recv`
//! ```
//! `lane.rs` says in which state each slot is, `slots.rs` has the memory and makes the requests, `ring.rs` has the queues of the kernel.
//!
//! **Order.** The kernel may run requests that are in flight at the same time in any order, and after a short transfer
//! the next request would overtake the remainder. So at most one chain is in flight in each direction. Writes are linked
//! so that a short write cancels those behind it (IOSQE_IO_LINK); these are then requested again in their order. Reads
//! are linked so that a short read does not cancel the others (IOSQE_IO_HARDLINK): each reads the bytes that are there
//! when it runs. Meanwhile the task fills or checks the other half of the buffers.
//!
//! **Round trips.** A task that sends and receives has one ring for both: its message is queued, and the call that waits
//! for the answer hands it to the kernel.
#![allow(unsafe_code)]

use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use io_uring::squeue::{self, Flags};
use io_uring::types::CancelBuilder;

use super::lane::{Lane, Span};
use super::plan::Plan;
use super::ring::Ring;
use super::slots::Slots;
use crate::fd::would_wait_for_itself;
use crate::prelude::*;

/// Everything one task does through its ring: it sends, receives, or both.
struct Task {
    plan: Plan,
    out: Lane,
    incoming: Lane,
    /// The messages that are still to be sent get no answer.
    last: bool,
    resources: Option<Resources>,
}

/// The ring and its memory, made in the task that uses them.
struct Resources {
    // Dropped first, so that no request outlives the memory.
    ring: Ring,
    slots: Slots,
    /// The requests of the next chain.
    chain: Vec<squeue::Entry>,
}

impl Resources {
    /// Queues the requests in `chain`, as one chain where they are linked.
    fn push_chain(&mut self) -> io::Result<()> {
        // SAFETY: a slot in a request is neither free nor given to the task until its lane has the completion, and the memory
        // stays mapped until no request is in flight (the drop of `Task`).
        let pushed = unsafe { self.ring.push(&self.chain) };
        self.chain.clear();
        pushed
    }
}

/// The ring and its memory; an error before [`Task::prepare`].
fn prepared(resources: &mut Option<Resources>) -> io::Result<&mut Resources> {
    resources.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
}

impl Task {
    /// A task that writes to `out` and reads from `incoming`.
    fn new(plan: Plan, out: Option<OwnedFd>, incoming: Option<OwnedFd>) -> Self {
        let first = if out.is_some() { plan.depth } else { 0 };
        let (out, incoming) = (Lane::new(out, 0, plan.depth), Lane::new(incoming, first, plan.depth));
        Self { plan, out, incoming, last: false, resources: None }
    }

    /// Whether the task reads nothing. Then it must submit its writes itself: there is no call that waits for an answer and submits them.
    fn only_writes(&self) -> bool {
        self.incoming.fd.is_none()
    }

    fn prepare(&mut self) -> io::Result<()> {
        if self.resources.is_some() {
            return Ok(());
        }
        let plan = self.plan;
        let count = self.out.free.len() + self.incoming.free.len();
        // The kernel's thread (SQPOLL) completes a request before it reports that the request's place in the queue is free.
        let places = if plan.sqpoll { 2 * count } else { count };
        let ring = Ring::set_up(places.next_power_of_two() as u32, plan.spins, plan.sqpoll)?;
        let slots = Slots::new(count, plan.block_bytes)?;
        if plan.fixed {
            slots.register_with(&ring.submitter())?;
            let mut files = Vec::new();
            for lane in [&mut self.out, &mut self.incoming].into_iter().filter(|lane| lane.fd.is_some()) {
                files.push(lane.target);
                lane.target = files.len() as RawFd - 1;
            }
            ring.submitter().register_files(&files)?;
        }
        self.resources = Some(Resources { ring, slots, chain: Vec::with_capacity(count) });
        Ok(())
    }

    /// Queues `len` bytes, at most a block, that `fill` writes. If the task only writes, hands a full batch to the kernel.
    fn send(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> io::Result<()> {
        self.take_completions()?;
        let slot = loop {
            if let Some(slot) = self.out.free.pop() {
                break slot;
            }
            self.start_writes()?;
            self.wait_for_completions()?;
        };
        let span = Span { slot, from: 0, to: len };
        fill(prepared(&mut self.resources)?.slots.bytes(span));
        self.out.ready.push_back(span);
        if self.only_writes() && self.out.ready.len() >= self.plan.batch() {
            self.start_writes()?;
            prepared(&mut self.resources)?.ring.submit()?;
        }
        Ok(())
    }

    /// Waits until all queued bytes are written; closes the descriptor if the task only writes.
    fn finish(&mut self) -> io::Result<()> {
        self.last = true;
        loop {
            self.take_completions()?;
            if self.out.is_idle() {
                break;
            }
            self.start_writes()?;
            self.wait_for_completions()?;
        }
        if self.only_writes() {
            self.out.fd = None;
            if self.plan.fixed {
                prepared(&mut self.resources)?.ring.submitter().unregister_files()?;
            }
        }
        Ok(())
    }

    /// Waits for bytes and gives at most `most` of them to `take`. Returns their number; 0 is the end of the stream.
    fn recv(&mut self, most: usize, take: impl FnOnce(&[u8])) -> io::Result<usize> {
        loop {
            // Writes first: the other task answers only after it has the message.
            self.start_writes()?;
            self.start_reads()?;
            let (incoming, resources) = (&mut self.incoming, prepared(&mut self.resources)?);
            if self.plan.sqpoll && incoming.in_flight() {
                // Wakes the kernel's thread if it sleeps, so that it reads on while this task uses the bytes.
                resources.ring.submit()?;
            }
            if let Some(front) = incoming.ready.front_mut() {
                let len = most.min(front.to - front.from);
                take(resources.slots.bytes(Span { to: front.from + len, ..*front }));
                front.from += len;
                if front.from == front.to {
                    incoming.free.push(front.slot);
                    incoming.ready.pop_front();
                }
                return Ok(len);
            }
            if incoming.ended {
                return Ok(0);
            }
            if self.plan.alone && incoming.would_block && self.out.is_idle() {
                return Err(would_wait_for_itself("no bytes are in the channel"));
            }
            self.wait_for_completions()?;
        }
    }

    /// Makes one chain of all queued blocks, unless one is in flight.
    fn start_writes(&mut self) -> io::Result<()> {
        let (out, unreported) = (&mut self.out, self.plan.answered && !self.last);
        if !out.flight.is_empty() || out.ready.is_empty() {
            return Ok(());
        }
        let resources = prepared(&mut self.resources)?;
        while let Some(span) = out.ready.pop_front() {
            let linked = !out.ready.is_empty();
            let flags = if linked { Flags::IO_LINK } else { Flags::empty() };
            let flags = if unreported { flags | Flags::SKIP_SUCCESS } else { flags };
            resources.chain.push(resources.slots.write(&self.plan, out.target, span, flags));
            out.flight.push_back((span, None));
        }
        resources.push_chain()
    }

    /// Makes one chain of reads into free slots, unless one is in flight.
    fn start_reads(&mut self) -> io::Result<()> {
        let (incoming, resources) = (&mut self.incoming, prepared(&mut self.resources)?);
        if incoming.ended || !incoming.flight.is_empty() {
            return Ok(());
        }
        let count = incoming.free.len().min(self.plan.batch());
        for index in 0..count {
            let Some(slot) = incoming.free.pop() else { break };
            let span = Span { slot, from: 0, to: self.plan.block_bytes };
            let flags = if index + 1 < count { Flags::IO_HARDLINK } else { Flags::empty() };
            resources.chain.push(resources.slots.read(&self.plan, incoming.target, span, flags));
            incoming.flight.push_back((span, None));
        }
        resources.push_chain()
    }

    /// Waits for completions and processes them.
    fn wait_for_completions(&mut self) -> io::Result<()> {
        // A task that only writes is woken once for the whole chain.
        let want = if self.only_writes() { self.out.flight.len() - self.out.completed } else { 1 };
        prepared(&mut self.resources)?.ring.wait(want.max(1))?;
        self.take_completions()
    }

    /// Processes the completions that are there.
    fn take_completions(&mut self) -> io::Result<()> {
        let resources = prepared(&mut self.resources)?;
        while let Some(completion) = resources.ring.next() {
            let slot = completion.user_data() as usize;
            // Bytes have arrived, so the message that they answer was written (`Plan::answered`).
            if self.plan.answered && completion.result() > 0 && self.incoming.is_reading(slot) {
                self.out.complete_unreported_writes();
            }
            self.out.complete(slot, completion.result());
            self.incoming.complete(slot, completion.result());
        }
        if self.out.reap_writes()? {
            // The remainder of a short write is sent before other blocks, and at once.
            self.start_writes()?;
            if self.only_writes() {
                prepared(&mut self.resources)?.ring.submit()?;
            }
        }
        self.incoming.reap_reads()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let Some(resources) = self.resources.take() else { return };
        let submitter = resources.ring.submitter();
        // IORING_REGISTER_SYNC_CANCEL (Linux 6.0) waits until no request is in flight.
        if (self.out.in_flight() || self.incoming.in_flight())
            && let Err(error) = submitter.register_sync_cancel(None, CancelBuilder::any())
            && error.raw_os_error() != Some(libc::ENOENT)
        {
            // The kernel may still write to the memory, so it is never unmapped.
            std::mem::forget(resources.slots);
        }
        if self.plan.fixed {
            // Otherwise the memory would still count against RLIMIT_MEMLOCK when the next trial starts: after a drop of the ring the
            // kernel unregisters it later, in a work queue.
            let _ = submitter.unregister_buffers();
        }
    }
}

/// The sending or the receiving end of a task: both share its ring. Only this task takes the lock, so it is always free.
pub(super) struct TaskEnd {
    task: Arc<Mutex<Task>>,
    /// Whether this end counts the ring's system calls: if a task has two ends, the receiving one does.
    counts: bool,
}

impl TaskEnd {
    /// The sending and the receiving end of a task that writes to `out` and reads from `incoming`.
    pub(super) fn pair(plan: Plan, out: Option<OwnedFd>, incoming: Option<OwnedFd>) -> (Self, Self) {
        let counts = incoming.is_none();
        let task = Arc::new(Mutex::new(Task::new(plan, out, incoming)));
        (Self { task: task.clone(), counts }, Self { task, counts: true })
    }

    fn lock(&self) -> MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl End for TaskEnd {
    fn prepare(&mut self) -> io::Result<()> {
        self.lock().prepare()
    }

    fn syscalls(&self) -> Option<u64> {
        let enters = self.lock().resources.as_ref().map_or(0, |resources| resources.ring.enters);
        Some(if self.counts { enters } else { 0 })
    }
}

impl Sender for TaskEnd {
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.lock().send(block.len(), |room| room.copy_from_slice(block))
    }

    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        self.lock().send(producer.block_bytes(), |room| producer.fill(room))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.lock().finish()
    }
}

impl Receiver for TaskEnd {
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.lock().recv(room.len(), |bytes| room[..bytes.len()].copy_from_slice(bytes))
    }

    fn recv_next(&mut self, consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        self.lock().recv(most, |bytes| consumer.inspect(bytes))
    }
}
