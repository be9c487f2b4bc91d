//! The ring in shared memory beside a public ring of its kind (the crate rtrb, between two threads of this process), and what its
//! waiting and its check cost.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use model::{CaseRecord, Workload};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::hosepipe::{self, ns_per_message};
use crate::one_run::one_run;
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target};

pub(crate) const TARGETS: &[Target] = &[
    Target::quick(
        "ring-stream",
        "4, 8 and 64 B over a spinning ring, ns per message: at most 1.0 of the crate rtrb (the fastest of three capacities and three loops, without a program around it), in threads and in processes",
        streams,
    ),
    Target::quick(
        "ring-trip",
        "a round trip over a spinning ring of 1 to 64 B: at most 1.1 of a bare cache line's bounce",
        trips,
    ),
    Target::quick(
        "ring-futex",
        "a ring whose ends may sleep while both keep up: at least 0.9 of one whose ends spin",
        |name, lab| {
            let row = |block: &str| {
                let (name, options) = (format!("{name} {block}"), format!("--data none --block {block}"));
                let specs = ["shm-ring:wait=futex", "shm-ring:wait=spin"];
                one_run(&name, lab, specs, &options, Workload::Stream, Wanted::AtLeast(0.9))
            };
            ["8", "64", "4KiB", "64KiB"].into_iter().map(row).collect()
        },
    ),
];

const ROUNDS: usize = 11;
/// Long enough for the clock: a tenth of a second at 5 ns.
const MESSAGES: u64 = 20_000_000;
/// Messages that the other ring holds: in each round the fastest of them and of the loops counts.
pub(crate) const CAPACITIES: [usize; 3] = [256, 4096, 65536];

fn streams(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    Ok([of_size::<4>(name, lab)?, of_size::<8>(name, lab)?, of_size::<64>(name, lab)?].concat())
}

fn of_size<const BYTES: usize>(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let run = |tasks: &str| -> Result<CaseRecord> {
        let record = hosepipe::bench(&format!(
            "shm-ring:wait=spin --block {BYTES} --count {MESSAGES} --data none --workload stream --tasks {tasks} --place cross \
             --trials 1"
        ))?;
        Ok(hosepipe::case(&record, "shm-ring:wait=spin", Workload::Stream)?.clone())
    };
    let cpus = hosepipe::cpus(&run("threads")?)?;
    let ours = |tasks| Ok(ns_per_message(&run(tasks)?.samples[0]));
    let fastest_rtrb = || {
        let loops = CAPACITIES
            .iter()
            .flat_map(|capacity| LOOPS.map(|of_loop| rtrb_ns::<BYTES>(*capacity, of_loop, cpus, MESSAGES)));
        loops.collect::<Result<Vec<_>>>().map(|found| found.into_iter().fold(f64::INFINITY, f64::min))
    };
    let [threads, processes, reference] =
        lab.interleave(ROUNDS, [&|| ours("threads"), &|| ours("processes"), &fastest_rtrb])?;
    let row = |tasks: &str, ours: Vec<f64>| {
        let (name, pair) = (format!("{name} {BYTES} B {tasks}"), [ours, reference.clone()]);
        BenchRow::beside(name, Unit::Nanoseconds, pair, Wanted::AtMost(1.0))
    };
    Ok(vec![row("threads", threads), row("processes", processes)])
}

/// How a program uses the other ring.
#[derive(Clone, Copy)]
pub(crate) enum Loop {
    /// One message in a call, and this many pauses after a call that found no room or no message.
    OneByOne { pauses: usize },
    /// Up to this many messages in a call: hosepipe moves as many.
    Together(usize),
}

/// With one pause both ends wait for the other's cache line at each message; 64 pauses let messages collect.
pub(crate) const LOOPS: [Loop; 3] =
    [Loop::OneByOne { pauses: 1 }, Loop::OneByOne { pauses: 64 }, Loop::Together(64)];

/// Nanoseconds per message between two threads that spin.
pub(crate) fn rtrb_ns<const BYTES: usize>(
    capacity: usize,
    of_loop: Loop,
    cpus: [u32; 2],
    messages: u64,
) -> Result<f64> {
    let (mut producer, mut consumer) = RingBuffer::<[u8; BYTES]>::new(capacity);
    let start = Barrier::new(2);
    let elapsed = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let pinned = process::pin(cpus[0]);
            start.wait();
            send(&mut producer, of_loop, messages);
            pinned
        });
        let receiver = scope.spawn(|| {
            let pinned = process::pin(cpus[1]);
            start.wait();
            let started = Instant::now();
            receive(&mut consumer, of_loop, messages);
            (pinned, started.elapsed())
        });
        let (sender, receiver) = (sender.join().ok()?, receiver.join().ok()?);
        Some(sender.and(receiver.0).map(|()| receiver.1))
    });
    let elapsed = elapsed.context("a thread panicked")?.context("pinning a thread")?;
    Ok(elapsed.as_nanos() as f64 / messages as f64)
}

fn send<const BYTES: usize>(producer: &mut Producer<[u8; BYTES]>, of_loop: Loop, count: u64) {
    let messages = [[7; BYTES]; 64];
    match of_loop {
        Loop::OneByOne { pauses } => {
            for _ in 0..count {
                while producer.push(*black_box(&messages[0])).is_err() {
                    (0..pauses).for_each(|_| spin_loop());
                }
            }
        }
        Loop::Together(most) => {
            let mut left = count as usize;
            while left > 0 {
                let Ok(room) = producer.write_chunk_uninit(most.min(left)) else {
                    spin_loop();
                    continue;
                };
                // The fence stops the compiler from making one copy of several, as in hosepipe's ring.
                left -= room.fill_from_iter(messages.iter().map(|message| {
                    compiler_fence(SeqCst);
                    *message
                }));
            }
        }
    }
}

fn receive<const BYTES: usize>(consumer: &mut Consumer<[u8; BYTES]>, of_loop: Loop, count: u64) {
    match of_loop {
        Loop::OneByOne { pauses } => {
            for _ in 0..count {
                let mut message = loop {
                    match consumer.pop() {
                        Ok(message) => break message,
                        Err(_) => (0..pauses).for_each(|_| spin_loop()),
                    }
                };
                black_box(&mut message);
            }
        }
        Loop::Together(most) => {
            let mut room = [[0; BYTES]; 64];
            let mut left = count as usize;
            while left > 0 {
                let Ok(found) = consumer.read_chunk(consumer.slots().min(most)) else { continue };
                let (first, second) = found.as_slices();
                for (place, message) in room.iter_mut().zip(first.iter().chain(second)) {
                    *place = *message;
                    compiler_fence(SeqCst);
                }
                left -= found.len();
                if found.is_empty() {
                    spin_loop();
                }
                found.commit_all();
            }
            black_box(&mut room);
        }
    }
}

/// Up to 56 bytes travel beside their announcement; 64 take a second cache line each way. Between CPUs that are far apart it is less than
/// the bounce, between near ones 1.6 to 2.0 of it: `docs/BOUNDS.md` says why.
fn trips(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let row = |block: u32| {
        let (name, options) = (format!("{name} {block} B"), format!("--data none --block {block}"));
        let specs = ["shm-ring:wait=spin", "cache-line"];
        one_run(&name, lab, specs, &options, Workload::PingPong, Wanted::AtMost(1.1))
    };
    [1, 4, 8, 64].into_iter().map(row).collect()
}
