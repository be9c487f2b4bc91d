//! `io-uring:on=msg-ring`: blocks lie in shared memory, copied in and out; a message from ring to ring
//! (IORING_OP_MSG_RING) says that one is there. A round trip is one system call on each side: the call that
//! sends the question waits for the answer.
//!
//! The rings are set up before fork(2) and inherited, since each end must hold the other's: a ring works for
//! whoever has its descriptor and its mappings, as long as one task at a time uses it and the kernel need not
//! know which (no SINGLE_ISSUER, no DEFER_TASKRUN, no SQPOLL).
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use io_uring::squeue::Flags;
use io_uring::{opcode, types};

use super::ring::{Ring, RingPlan};
use super::ring_wait;
use crate::prelude::*;

/// Blocks under way at most.
const WINDOW: usize = 16;

/// A message's number: a block of so many bytes lies in the next slot.
const BLOCK: u64 = 1;
/// So many slots are free again.
const CREDIT: u64 = 2;
/// Not a message: one of ours was refused.
const REFUSED: u64 = 3;

pub(super) fn open(request: &Request<'_>) -> Result<Channel, OpenError> {
    if ["fixed", "sqpoll", "size"].iter().any(|option| request.options.has(option)) {
        return Err(OpenError::unsupported(
            "size, fixed and sqpoll are for a pipe or a socket beneath",
            "on=msg-ring alone, or without on=msg-ring",
        ));
    }
    let direction = |from: &RingTask, to: &RingTask| {
        let window = Window::new(request)?;
        let bytes = (WINDOW * window.stride) as u64;
        let (sender, receiver) = (from.end(&window, from.at_once), to.end(&window, true));
        Ok(Direction::new(sender, receiver).granted([("window_bytes", bytes)]))
    };
    if request.workload == Workload::PingPong && request.tasks != Tasks::Single {
        let (near, far) = connect_pair(request)?;
        return Ok(assemble(request, direction(&near, &far)?, Some(direction(&far, &near)?)));
    }
    one_way(request, || {
        let (near, far) = connect_pair(request)?;
        direction(&near, &far)
    })
}

/// Two tasks that hold each other's ring.
fn connect_pair(request: &Request<'_>) -> Result<(RingTask, RingTask), OpenError> {
    let plan =
        RingPlan { entries: 2 * WINDOW as u32, wait: ring_wait(request), sqpoll: false, inherited: true };
    let ring = || Ring::set_up(plan).map_err(OpenError::system("io_uring_setup"));
    let (near, far) = (ring()?, ring()?);
    if !near.knows(opcode::MsgRingData::CODE).map_err(OpenError::system("io_uring_register(PROBE)"))? {
        return Err(OpenError::unsupported("this kernel has no IORING_OP_MSG_RING", "Linux 5.18 or later"));
    }
    let held = |ring: &Ring| hold(ring).map_err(OpenError::system("dup of a ring"));
    let (near_fd, far_fd) = (held(&near)?, held(&far)?);
    let credits = request.workload == Workload::Stream;
    // A task that asks is told to wait for the answer next: both in one call.
    let at_once = credits || request.tasks == Tasks::Single;
    let task = |ring, peer| {
        let shared = TaskRing { ring, peer, announced: VecDeque::with_capacity(WINDOW), credits: WINDOW };
        RingTask { shared: Arc::new(Mutex::new(shared)), credits, at_once }
    };
    Ok((task(near, far_fd), task(far, near_fd)))
}

/// The peer's ring, for as long as this task needs it: the peer's own handle is dropped after fork(2).
fn hold(ring: &Ring) -> io::Result<OwnedFd> {
    // SAFETY: the ring is alive and so is its descriptor.
    unsafe { BorrowedFd::borrow_raw(ring.fd()) }.try_clone_to_owned()
}

/// The slots of one direction.
#[derive(Clone)]
struct Window {
    memory: Arc<SharedMemory>,
    stride: usize,
    block_bytes: usize,
}

impl Window {
    fn new(request: &Request<'_>) -> Result<Self, OpenError> {
        let stride = request.block_bytes.checked_next_multiple_of(128);
        let bytes = stride.and_then(|stride| stride.checked_mul(WINDOW)).unwrap_or(usize::MAX);
        let memory = SharedMemory::new(bytes).map_err(OpenError::system("mmap(MAP_SHARED)"))?;
        Ok(Self { memory: Arc::new(memory), stride: bytes / WINDOW, block_bytes: request.block_bytes })
    }

    /// Where the slot of a stream's `number`th block begins.
    fn slot(&self, number: u64) -> *mut u8 {
        self.memory.as_ptr().wrapping_add((number % WINDOW as u64) as usize * self.stride)
    }
}

/// What a task holds: its own ring, and the other's as an address.
struct TaskRing {
    ring: Ring,
    peer: OwnedFd,
    /// Lengths of the blocks announced and not yet taken.
    announced: VecDeque<usize>,
    /// Slots the peer is known to have emptied.
    credits: usize,
}

impl TaskRing {
    fn send_message(&mut self, what: u64, number: usize) -> io::Result<()> {
        let to = types::Fd(self.peer.as_raw_fd());
        let message = opcode::MsgRingData::new(to, number as i32, what, None).build();
        let message = message.flags(Flags::SKIP_SUCCESS).user_data(REFUSED);
        // SAFETY: the request points at no memory.
        match unsafe { self.ring.push(std::slice::from_ref(&message)) } {
            Ok(()) => Ok(()),
            Err(_) => {
                self.ring.submit()?;
                // SAFETY: as above.
                unsafe { self.ring.push(std::slice::from_ref(&message)) }
            }
        }
    }

    /// Hands over what is queued, and waits for a message.
    fn wait_for_message(&mut self) -> io::Result<()> {
        self.ring.wait(1)?;
        while let Some(message) = self.ring.next() {
            let number = message.result();
            match message.user_data() {
                BLOCK => self.announced.push_back(number as usize),
                CREDIT => self.credits += number as usize,
                _ => return Err(io::Error::from_raw_os_error(-number)),
            }
        }
        Ok(())
    }
}

/// One task of the two.
struct RingTask {
    shared: Arc<Mutex<TaskRing>>,
    /// The sender may not send more than there are free slots; in a round trip the answer says so.
    credits: bool,
    /// What is sent is handed to the kernel at once, and not by the call that waits for the answer.
    at_once: bool,
}

impl RingTask {
    /// One of its ends. Where it sends and receives through its ring, only one of them counts the system calls.
    fn end(&self, window: &Window, counts: bool) -> MessageEnd {
        MessageEnd {
            shared: self.shared.clone(),
            window: window.clone(),
            credits: self.credits,
            at_once: self.at_once,
            counts,
            blocks: 0,
            taken: 0,
            owed: 0,
        }
    }
}

/// The sending or the receiving end of a task.
struct MessageEnd {
    shared: Arc<Mutex<TaskRing>>,
    window: Window,
    credits: bool,
    at_once: bool,
    counts: bool,
    /// Blocks sent or taken so far.
    blocks: u64,
    /// Bytes taken of the block at the front.
    taken: usize,
    /// Slots emptied and not yet given back.
    owed: usize,
}

/// Both ends of a task share its ring; the lock is never waited for.
fn lock(shared: &Mutex<TaskRing>) -> MutexGuard<'_, TaskRing> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MessageEnd {
    fn send_block(&mut self, block: &[u8]) -> io::Result<()> {
        let mut shared = lock(&self.shared);
        while self.credits && shared.credits == 0 {
            shared.wait_for_message()?;
        }
        shared.credits = shared.credits.saturating_sub(1);
        // SAFETY: a block is no longer than a slot, and this one is free: the receiver gave it back (or has
        // answered since), and looks at it only after the message below, which the kernel hands on.
        unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), self.window.slot(self.blocks), block.len()) };
        self.blocks += 1;
        shared.send_message(BLOCK, block.len())?;
        if self.at_once { shared.ring.submit() } else { Ok(()) }
    }
}

impl End for MessageEnd {
    fn syscalls(&self) -> Option<u64> {
        Some(if self.counts { lock(&self.shared).ring.enters() } else { 0 })
    }
}

impl Sender for MessageEnd {
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let most = self.window.block_bytes;
        block.chunks(most).try_for_each(|piece| self.send_block(piece))
    }

    fn finish(&mut self) -> io::Result<()> {
        lock(&self.shared).ring.submit()
    }
}

impl Receiver for MessageEnd {
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut shared = lock(&self.shared);
        let block_bytes = loop {
            if let Some(len) = shared.announced.front() {
                break (*len).min(self.window.block_bytes);
            }
            shared.wait_for_message()?;
        };
        let len = room.len().min(block_bytes - self.taken);
        let start = self.window.slot(self.blocks).wrapping_add(self.taken).cast_const();
        // SAFETY: a sender announced the block, all of it written, and leaves it alone until it is given back.
        room[..len].copy_from_slice(unsafe { std::slice::from_raw_parts(start, len) });
        self.taken += len;
        if self.taken == block_bytes {
            (self.taken, self.blocks) = (0, self.blocks + 1);
            shared.announced.pop_front();
            self.owed += 1;
            if self.credits && self.owed >= WINDOW / 2 {
                shared.send_message(CREDIT, self.owed)?;
                self.owed = 0;
                shared.ring.submit()?;
            }
        }
        Ok(len)
    }
}
