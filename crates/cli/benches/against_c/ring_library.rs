//! The ring library of `ring/` beside public rings of its kind, between two threads: the crate rtrb, and a queue as in rigtorp's
//! SPSCQueue (positions in cache lines of their own, each end keeps a copy of the other's). Those two have no lengths, no waiting, no
//! locks and no recovery; the library has all of them on: its ring is in a file, and its ends would sleep in futex(2).

// The queue that it is compared with.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicUsize, compiler_fence};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use model::Placement;
use ring::linux::{self, Link, Wait};
use ring::{Receiver, Sender};

use crate::rings::{CAPACITIES, LOOPS, Loop, rtrb_ns};
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target, skip};

pub(crate) const TARGETS: &[Target] = &[Target::quick(
    "ring-library",
    "ring/ with all of it on, 4, 64 and 1024 B between threads, ns per message: at most 1.0 of rigtorp's kind and of the crate rtrb \
     (each the fastest of its capacities and loops); a round trip of spinning ends: at most 200 ns",
    against_others,
)];

const ROUNDS: usize = 11;
/// Bytes of the library's ring, as many as the others have. Beyond a core's L2 cache a sender finds its lines in the L3 cache, not at
/// the other core.
const RING_BYTES: [u32; 4] = [64 << 10, 512 << 10, 4 << 20, 64 << 20];
const BATCH: usize = 64;

fn against_others(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let Ok(cpus) = host::resolve(Placement::Cross, &host::cpus()) else {
        return skip("it takes two CPUs");
    };
    let cpus = [cpus[0], cpus[1]];
    Ok([
        of_size::<4>(name, lab, cpus, 4_000_000)?,
        of_size::<64>(name, lab, cpus, 2_000_000)?,
        of_size::<1024>(name, lab, cpus, 300_000)?,
        vec![trips(name, lab, cpus)?],
    ]
    .concat())
}

fn fastest(runs: impl Iterator<Item = Result<f64>>) -> Result<f64> {
    let found: Vec<f64> = runs.collect::<Result<_>>()?;
    Ok(found.into_iter().fold(f64::INFINITY, f64::min))
}

fn of_size<const BYTES: usize>(
    name: &str,
    lab: &Laboratory,
    cpus: [u32; 2],
    messages: u64,
) -> Result<Vec<BenchRow>> {
    let single = || fastest(RING_BYTES.iter().map(|bytes| single_ns::<BYTES>(*bytes, cpus, messages)));
    let runs = || fastest(RING_BYTES.iter().map(|bytes| runs_ns::<BYTES>(*bytes, cpus, messages)));
    let queue = || fastest(CAPACITIES.iter().map(|slots| queue_ns::<BYTES>(*slots, cpus, messages)));
    let rtrb = |loops: &[Loop]| {
        let runs = CAPACITIES.iter().flat_map(|slots| loops.iter().map(|of_loop| (*slots, *of_loop)));
        fastest(runs.map(|(slots, of_loop)| rtrb_ns::<BYTES>(slots, of_loop, cpus, messages)))
    };
    let (one_by_one, chunks) = LOOPS.split_at(2);
    let [single, runs, queue, rtrb_single, rtrb_chunks] =
        lab.interleave(ROUNDS, [&single, &runs, &queue, &|| rtrb(one_by_one), &|| rtrb(chunks)])?;
    let row = |beside: &str, pair| {
        BenchRow::beside(format!("{name} {BYTES} B, {beside}"), Unit::Nanoseconds, pair, Wanted::AtMost(1.0))
    };
    Ok(vec![
        row("rigtorp's kind", [single.clone(), queue]),
        row("rtrb", [single, rtrb_single]),
        row("runs of 64, rtrb's chunks", [runs, rtrb_chunks]),
    ])
}

/// Runs both ends on these CPUs; nanoseconds per message until the second one is done.
fn clock(
    cpus: [u32; 2],
    messages: u64,
    first: impl FnOnce() -> Result<()> + Send,
    second: impl FnOnce() -> Result<()> + Send,
) -> Result<f64> {
    let start = Barrier::new(2);
    let elapsed = thread::scope(|scope| {
        let first = scope.spawn(|| {
            process::pin(cpus[0])?;
            start.wait();
            first()
        });
        let second = scope.spawn(|| {
            process::pin(cpus[1])?;
            start.wait();
            let started = Instant::now();
            second().map(|()| started.elapsed())
        });
        let (first, second) = (first.join().ok()?, second.join().ok()?);
        Some(first.and(second))
    });
    Ok(elapsed.context("a thread panicked")??.as_nanos() as f64 / messages as f64)
}

fn single_ns<const BYTES: usize>(capacity: u32, cpus: [u32; 2], messages: u64) -> Result<f64> {
    let (_file, mut sender, mut receiver) = open(capacity, Wait::Futex)?;
    let send = || {
        // A length that the compiler knows, as of the slots of the other queues.
        let message: &[u8; BYTES] = black_box(&[7; BYTES]);
        (0..messages).try_for_each(|_| sender.send(black_box::<&[u8; BYTES]>(message)))?;
        Ok(())
    };
    let receive = || {
        let mut message = [0; BYTES];
        for _ in 0..messages {
            receiver.receive(&mut message)?;
            black_box(&mut message);
        }
        Ok(())
    };
    clock(cpus, messages, send, receive)
}

fn runs_ns<const BYTES: usize>(capacity: u32, cpus: [u32; 2], messages: u64) -> Result<f64> {
    let (_file, mut sender, mut receiver) = open(capacity, Wait::Futex)?;
    // The fences are those of rtrb's loops.
    let send = || {
        let batch = [[7; BYTES]; BATCH];
        let mut left = messages as usize;
        while left > 0 {
            let mut run = sender.reserve_run(BYTES, left.min(BATCH))?;
            let count = run.count;
            for (room, message) in run.rooms().zip(&batch) {
                room.copy_from_slice(message);
                compiler_fence(SeqCst);
            }
            sender.commit_run(count);
            left -= count;
        }
        Ok(())
    };
    let receive = || {
        let mut room = [[0; BYTES]; BATCH];
        let mut left = messages as usize;
        while left > 0 {
            let run = receiver.peek_run()?;
            for (place, message) in room.iter_mut().zip(run.messages()) {
                place.copy_from_slice(message);
                compiler_fence(SeqCst);
            }
            left -= run.count;
        }
        black_box(&mut room);
        Ok(())
    };
    clock(cpus, messages, send, receive)
}

fn open(capacity: u32, wait: Wait) -> Result<(tempfile::TempPath, Sender<Link>, Receiver<Link>)> {
    let file = tempfile::NamedTempFile::new_in("/dev/shm")?.into_temp_path();
    let (sender, receiver) =
        (linux::open_sender(&file, capacity, wait)?, linux::open_receiver(&file, capacity, wait)?);
    Ok((file, sender, receiver))
}

fn trips(name: &str, lab: &Laboratory, cpus: [u32; 2]) -> Result<BenchRow> {
    const TRIPS: u64 = 100_000;
    let trip = || {
        let (_there, mut ask, mut asked) = open(64 << 10, Wait::Spin)?;
        let (_back, mut answer, mut answered) = open(64 << 10, Wait::Spin)?;
        let server = || {
            for _ in 0..TRIPS {
                answer.send(asked.peek()?)?;
            }
            Ok(())
        };
        let client = || {
            for number in 0..TRIPS {
                ask.send(&number.to_ne_bytes())?;
                anyhow::ensure!(answered.peek()? == number.to_ne_bytes(), "another answer");
            }
            Ok(())
        };
        clock(cpus, TRIPS, server, client)
    };
    let [trip] = lab.interleave(ROUNDS, [&trip])?;
    Ok(BenchRow::alone(format!("{name} 8 B, round trip"), Unit::Nanoseconds, trip, Wanted::AtMost(200.0)))
}

/// A position in a cache line of its own, with the other end's as last read.
#[repr(align(128))]
struct Position {
    own: AtomicUsize,
    seen: UnsafeCell<usize>,
}

/// A queue of the kind of rigtorp's SPSCQueue, with one slot more than it holds.
struct Queue<const BYTES: usize> {
    written: Position,
    taken: Position,
    slots: Box<[UnsafeCell<[u8; BYTES]>]>,
}

// SAFETY: `written.seen` is the sender's, `taken.seen` the receiver's; a slot is one end's, by the positions.
unsafe impl<const BYTES: usize> Sync for Queue<BYTES> {}

impl<const BYTES: usize> Queue<BYTES> {
    fn new(slots: usize) -> Self {
        let position = || Position { own: AtomicUsize::new(0), seen: UnsafeCell::new(0) };
        let slots = (0..=slots).map(|_| UnsafeCell::new([0; BYTES])).collect();
        Self { written: position(), taken: position(), slots }
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    fn push(&self, message: &[u8; BYTES]) {
        let at = self.written.own.load(Relaxed);
        let next = self.after(at);
        // SAFETY: the sender's alone.
        let seen = unsafe { &mut *self.written.seen.get() };
        while next == *seen {
            *seen = self.taken.own.load(Acquire);
            if next == *seen {
                spin_loop();
            }
        }
        // SAFETY: the receiver has taken it.
        unsafe { *self.slots[at].get() = *message };
        self.written.own.store(next, Release);
    }

    fn pop(&self, message: &mut [u8; BYTES]) {
        let at = self.taken.own.load(Relaxed);
        // SAFETY: the receiver's alone.
        let seen = unsafe { &mut *self.taken.seen.get() };
        while at == *seen {
            *seen = self.written.own.load(Acquire);
            if at == *seen {
                spin_loop();
            }
        }
        // SAFETY: the sender has written it.
        *message = unsafe { *self.slots[at].get() };
        self.taken.own.store(self.after(at), Release);
    }
}

fn queue_ns<const BYTES: usize>(slots: usize, cpus: [u32; 2], messages: u64) -> Result<f64> {
    let queue = Queue::<BYTES>::new(slots);
    let send = || {
        let message = [7; BYTES];
        (0..messages).for_each(|_| queue.push(black_box(&message)));
        Ok(())
    };
    let receive = || {
        let mut message = [0; BYTES];
        for _ in 0..messages {
            queue.pop(&mut message);
            black_box(&mut message);
        }
        Ok(())
    };
    clock(cpus, messages, send, receive)
}
