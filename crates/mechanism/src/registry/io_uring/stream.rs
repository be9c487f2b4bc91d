//! Ends that read and write a pipe or a socket through a ring.
//!
//! **Order.** Requests in flight at the same time run in any order the kernel likes, and a short transfer in
//! the middle would let the next one overtake its remainder. So at most one chain is in flight in each
//! direction: writes linked so that a short one cancels those behind it (IOSQE_IO_LINK), which are then made
//! again in their order; reads linked so that a short one does not (IOSQE_IO_HARDLINK): each takes what is
//! there when its turn comes. Meanwhile the other half of the buffers is produced or checked.
//!
//! **Round trips.** The task that sends and receives has one ring for both: the question is queued, and
//! handed to the kernel by the call that waits for the answer.

use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use io_uring::squeue::{self, Flags};

use super::lane::{Lane, Span};
use super::ring::{Ring, RingPlan, RingWait};
use super::slots::{Slots, push};
use crate::prelude::*;

/// What a task's ring is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamPlan {
    pub(super) socket: bool,
    /// Buffers and descriptors are registered.
    pub(super) fixed: bool,
    pub(super) sqpoll: bool,
    pub(super) wait: RingWait,
    /// The only task there is: a read that would wait for its own write fails instead.
    pub(super) alone: bool,
    /// The task asks and is answered: an answer says that the question was written, all of it, so that the
    /// kernel need not say so too (IOSQE_CQE_SKIP_SUCCESS) and we are woken once. A short write it does tell.
    pub(super) answered: bool,
    /// Buffers, and so requests in flight or being prepared, in each direction.
    pub(super) depth: usize,
    pub(super) block_bytes: usize,
}

impl StreamPlan {
    /// Half of the buffers are in flight while the others are worked on.
    fn batch(&self) -> usize {
        (self.depth / 2).max(1)
    }
}

/// Everything one task does through its ring: it sends, receives, or both.
struct Task {
    plan: StreamPlan,
    out: Option<Lane>,
    incoming: Option<Lane>,
    /// A read met the end of the stream.
    ended: bool,
    /// No answer will come any more to what is sent.
    last: bool,
    /// A read found nothing and was not to wait.
    dry: bool,
    working: Option<Working>,
}

/// What is made in the task that uses it.
struct Working {
    // Dropped first, so that no request outlives the memory.
    ring: Ring,
    slots: Slots,
    /// The chain that is being put together.
    chain: Vec<squeue::Entry>,
}

impl Working {
    /// Queues the chain that was put together.
    fn push_chain(&mut self) -> io::Result<()> {
        let pushed = push(&mut self.ring, &self.chain);
        self.chain.clear();
        pushed
    }
}

impl Task {
    /// A task that writes to `out` and reads from `incoming`.
    fn new(plan: StreamPlan, out: Option<OwnedFd>, incoming: Option<OwnedFd>) -> Self {
        let first = if out.is_some() { plan.depth } else { 0 };
        Self {
            plan,
            out: out.map(|fd| Lane::new(fd, 0, plan.depth)),
            incoming: incoming.map(|fd| Lane::new(fd, first, plan.depth)),
            ended: false,
            last: false,
            dry: false,
            working: None,
        }
    }

    fn prepare(&mut self) -> io::Result<()> {
        if self.working.is_some() {
            return Ok(());
        }
        let plan = self.plan;
        let lanes = self.out.iter().count() + self.incoming.iter().count();
        let count = lanes * plan.depth;
        // The kernel's thread (SQPOLL) answers a request before it says that the request's place in the queue is free.
        let places = if plan.sqpoll { 2 * count } else { count };
        let entries = places.next_power_of_two() as u32;
        let ring = Ring::set_up(RingPlan { entries, wait: plan.wait, sqpoll: plan.sqpoll })?;
        let slots = Slots::new(count, plan.block_bytes)?;
        if plan.fixed {
            slots.register_with(&ring)?;
            let lanes = [&mut self.out, &mut self.incoming];
            let mut files = Vec::new();
            for lane in lanes.into_iter().flatten() {
                files.push(lane.target);
                lane.target = files.len() as RawFd - 1;
            }
            ring.register_files(&files)?;
        }
        self.working = Some(Working { ring, slots, chain: Vec::with_capacity(count) });
        Ok(())
    }

    /// Queues at most a block; hands it to the kernel unless a read will soon do that in the same call.
    fn send(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> io::Result<()> {
        self.take_answers()?;
        let slot = loop {
            if let Some(slot) = self.out.as_mut().and_then(|out| out.free.pop()) {
                break slot;
            }
            self.start_writes()?;
            self.turn()?;
        };
        let span = Span { slot, from: 0, to: len };
        let (out, working) = both(&mut self.out, &mut self.working)?;
        fill(working.slots.bytes(span));
        out.ready.push_back(span);
        if self.incoming.is_none() && out.ready.len() >= self.plan.batch() {
            self.start_writes()?;
            both(&mut self.out, &mut self.working)?.1.ring.submit()?;
        }
        Ok(())
    }

    /// Waits until everything queued was written, and closes the way out.
    fn finish(&mut self) -> io::Result<()> {
        self.last = true;
        loop {
            self.take_answers()?;
            if self.out.as_ref().is_none_or(Lane::is_idle) {
                break;
            }
            self.start_writes()?;
            self.turn()?;
        }
        if self.incoming.is_none() {
            let (out, working) = both(&mut self.out, &mut self.working)?;
            out.fd = None;
            if self.plan.fixed {
                working.ring.unregister_files()?;
            }
        }
        Ok(())
    }

    /// Hands what was read to `take`, at most `most` bytes. 0 is the end of the stream.
    fn recv(&mut self, most: usize, take: impl FnOnce(&[u8])) -> io::Result<usize> {
        loop {
            // In this order: the answer cannot come before the question is asked.
            self.start_writes()?;
            self.start_reads()?;
            let (incoming, working) = both(&mut self.incoming, &mut self.working)?;
            if self.plan.sqpoll && incoming.in_flight() {
                // The kernel's thread reads on while we look at what is there.
                working.ring.submit()?;
            }
            if let Some(front) = incoming.ready.front_mut() {
                let len = most.min(front.to - front.from);
                take(working.slots.bytes(Span { to: front.from + len, ..*front }));
                front.from += len;
                if front.from == front.to {
                    incoming.free.push(front.slot);
                    incoming.ready.pop_front();
                }
                return Ok(len);
            }
            if self.ended {
                return Ok(0);
            }
            if self.dry && self.out.as_ref().is_none_or(Lane::is_idle) {
                return Err(would_wait_for_itself());
            }
            self.turn()?;
        }
    }

    /// Makes one chain of every block queued, if none is in flight.
    fn start_writes(&mut self) -> io::Result<()> {
        let quiet = self.plan.answered && !self.last;
        let Ok((out, working)) = both(&mut self.out, &mut self.working) else { return Ok(()) };
        if !out.flight.is_empty() {
            return Ok(());
        }
        while let Some(span) = out.ready.pop_front() {
            let linked = !out.ready.is_empty();
            let flags = if linked { Flags::IO_LINK } else { Flags::empty() };
            let flags = if quiet { flags | Flags::SKIP_SUCCESS } else { flags };
            working.chain.push(working.slots.write(&self.plan, out.target, span, flags));
            out.flight.push_back((span, None));
        }
        working.push_chain()
    }

    /// Makes one chain of reads into the free slots, if none is in flight.
    fn start_reads(&mut self) -> io::Result<()> {
        let (incoming, working) = both(&mut self.incoming, &mut self.working)?;
        if self.ended || !incoming.flight.is_empty() {
            return Ok(());
        }
        let count = incoming.free.len().min(self.plan.batch());
        for index in 0..count {
            let Some(slot) = incoming.free.pop() else { break };
            let span = Span { slot, from: 0, to: self.plan.block_bytes };
            let flags = if index + 1 < count { Flags::IO_HARDLINK } else { Flags::empty() };
            working.chain.push(working.slots.read(&self.plan, incoming.target, span, flags));
            incoming.flight.push_back((span, None));
        }
        working.push_chain()
    }

    /// Waits until something was answered, and takes it in.
    fn turn(&mut self) -> io::Result<()> {
        // Who only writes is woken once for the whole chain.
        let unanswered = |lane: &Lane| lane.flight.len() - lane.answered;
        let want = if self.incoming.is_some() { 1 } else { self.out.as_ref().map_or(1, unanswered) };
        let working = self.working.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        working.ring.wait(want.max(1))?;
        self.take_answers()
    }

    fn take_answers(&mut self) -> io::Result<()> {
        let working = self.working.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        while let Some(answer) = working.ring.next() {
            let slot = answer.user_data() as usize;
            let came = answer.result() > 0;
            let read = came && self.incoming.as_ref().is_some_and(|incoming| incoming.has_asked(slot));
            if let (true, true, Some(out)) = (self.plan.answered, read, &mut self.out) {
                out.take_silence();
            }
            for lane in [&mut self.out, &mut self.incoming].into_iter().flatten() {
                lane.take_answer(slot, answer.result());
            }
        }
        if let Some(out) = &mut self.out
            && out.settle_writes()?
        {
            // What a short write left over goes first, and at once.
            self.start_writes()?;
            if self.incoming.is_none() {
                both(&mut self.out, &mut self.working)?.1.ring.submit()?;
            }
        }
        if let Some(incoming) = &mut self.incoming {
            let reads = incoming.settle_reads()?;
            self.ended |= reads.ended;
            self.dry = self.plan.alone && reads.dry;
        }
        Ok(())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let in_flight = [&self.out, &self.incoming].into_iter().flatten().any(Lane::in_flight);
        if let Some(working) = &mut self.working
            && in_flight
            && let Err(error) = working.ring.cancel_all()
            && error.raw_os_error() != Some(libc::ENOENT)
        {
            // The kernel may still write there: better never unmapped.
            working.slots.leak();
        }
        if let (Some(working), true) = (&self.working, self.plan.fixed) {
            // Or the next trial would find it still counted against RLIMIT_MEMLOCK.
            let _ = working.ring.unregister_buffers();
        }
    }
}

fn both<'a>(
    lane: &'a mut Option<Lane>,
    working: &'a mut Option<Working>,
) -> io::Result<(&'a mut Lane, &'a mut Working)> {
    lane.as_mut().zip(working.as_mut()).ok_or_else(|| io::ErrorKind::NotConnected.into())
}

fn would_wait_for_itself() -> io::Error {
    io::Error::new(
        io::ErrorKind::WouldBlock,
        "one task that sends and then receives would wait for itself: nothing is on its way",
    )
}

/// The sending or the receiving end of a task: both share its ring. The lock is never waited for.
pub(super) struct TaskEnd {
    task: Arc<Mutex<Task>>,
    /// Whether this end counts the ring's system calls: where there are two, the receiving one does.
    counts: bool,
}

impl TaskEnd {
    /// The sending and the receiving end of a task that writes to `out` and reads from `incoming`.
    pub(super) fn pair(plan: StreamPlan, out: Option<OwnedFd>, incoming: Option<OwnedFd>) -> (Self, Self) {
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
        let enters = self.lock().working.as_ref().map_or(0, |working| working.ring.enters());
        Some(if self.counts { enters } else { 0 })
    }
}

impl SendInPlace for TaskEnd {
    fn put(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> io::Result<()> {
        self.lock().send(len, fill)
    }

    fn end_stream(&mut self) -> io::Result<()> {
        self.lock().finish()
    }
}

impl ReceiveInPlace for TaskEnd {
    fn take(&mut self, most: usize, show: impl FnOnce(&[u8])) -> io::Result<usize> {
        self.lock().recv(most, show)
    }
}
