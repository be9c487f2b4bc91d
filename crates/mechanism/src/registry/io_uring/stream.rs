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
use super::plan::Plan;
use super::ring::Ring;
use super::slots::{Slots, push};
use crate::prelude::*;

/// Everything one task does through its ring: it sends, receives, or both.
struct Task {
    plan: Plan,
    out: Lane,
    incoming: Lane,
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

/// What [`Task::prepare`] has made.
fn prepared(working: &mut Option<Working>) -> io::Result<&mut Working> {
    working.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
}

impl Task {
    /// A task that writes to `out` and reads from `incoming`.
    fn new(plan: Plan, out: Option<OwnedFd>, incoming: Option<OwnedFd>) -> Self {
        let first = if out.is_some() { plan.depth } else { 0 };
        let (out, incoming) = (Lane::new(out, 0, plan.depth), Lane::new(incoming, first, plan.depth));
        Self { plan, out, incoming, ended: false, last: false, dry: false, working: None }
    }

    /// Whether nothing is read: what is written has to be handed to the kernel by a call of its own.
    fn only_writes(&self) -> bool {
        self.incoming.fd.is_none()
    }

    fn prepare(&mut self) -> io::Result<()> {
        if self.working.is_some() {
            return Ok(());
        }
        let plan = self.plan;
        let count = self.out.free.len() + self.incoming.free.len();
        // The kernel's thread (SQPOLL) answers a request before it says that the request's place in the queue is free.
        let places = if plan.sqpoll { 2 * count } else { count };
        let ring = Ring::set_up(places.next_power_of_two() as u32, plan.spins, plan.sqpoll)?;
        let slots = Slots::new(count, plan.block_bytes)?;
        if plan.fixed {
            slots.register_with(&ring)?;
            let mut files = Vec::new();
            for lane in [&mut self.out, &mut self.incoming].into_iter().filter(|lane| lane.fd.is_some()) {
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
            if let Some(slot) = self.out.free.pop() {
                break slot;
            }
            self.start_writes()?;
            self.turn()?;
        };
        let span = Span { slot, from: 0, to: len };
        fill(prepared(&mut self.working)?.slots.bytes(span));
        self.out.ready.push_back(span);
        if self.only_writes() && self.out.ready.len() >= self.plan.batch() {
            self.start_writes()?;
            prepared(&mut self.working)?.ring.submit()?;
        }
        Ok(())
    }

    /// Waits until everything queued was written, and closes the way out.
    fn finish(&mut self) -> io::Result<()> {
        self.last = true;
        loop {
            self.take_answers()?;
            if self.out.is_idle() {
                break;
            }
            self.start_writes()?;
            self.turn()?;
        }
        if self.only_writes() {
            self.out.fd = None;
            if self.plan.fixed {
                prepared(&mut self.working)?.ring.unregister_files()?;
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
            let (incoming, working) = (&mut self.incoming, prepared(&mut self.working)?);
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
            if self.dry && self.out.is_idle() {
                return Err(would_wait_for_itself());
            }
            self.turn()?;
        }
    }

    /// Makes one chain of every block queued, if none is in flight.
    fn start_writes(&mut self) -> io::Result<()> {
        let (out, quiet) = (&mut self.out, self.plan.answered && !self.last);
        if !out.flight.is_empty() || out.ready.is_empty() {
            return Ok(());
        }
        let working = prepared(&mut self.working)?;
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
        let (incoming, working) = (&mut self.incoming, prepared(&mut self.working)?);
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
        let want = if self.only_writes() { self.out.flight.len() - self.out.answered } else { 1 };
        prepared(&mut self.working)?.ring.wait(want.max(1))?;
        self.take_answers()
    }

    fn take_answers(&mut self) -> io::Result<()> {
        let working = prepared(&mut self.working)?;
        while let Some(answer) = working.ring.next() {
            let slot = answer.user_data() as usize;
            if self.plan.answered && answer.result() > 0 && self.incoming.has_asked(slot) {
                self.out.take_silence();
            }
            self.out.take_answer(slot, answer.result());
            self.incoming.take_answer(slot, answer.result());
        }
        if self.out.settle_writes()? {
            // What a short write left over goes first, and at once.
            self.start_writes()?;
            if self.only_writes() {
                prepared(&mut self.working)?.ring.submit()?;
            }
        }
        let reads = self.incoming.settle_reads()?;
        self.ended |= reads.ended;
        self.dry = self.plan.alone && reads.dry;
        Ok(())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let Some(working) = &mut self.working else { return };
        if (self.out.in_flight() || self.incoming.in_flight())
            && let Err(error) = working.ring.cancel_all()
            && error.raw_os_error() != Some(libc::ENOENT)
        {
            // The kernel may still write there: better never unmapped.
            working.slots.leak();
        }
        if self.plan.fixed {
            // Or the next trial would find it still counted against RLIMIT_MEMLOCK.
            let _ = working.ring.unregister_buffers();
        }
    }
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
        let enters = self.lock().working.as_ref().map_or(0, |working| working.ring.enters());
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
