//! The ring in shared memory beside a public ring of its kind (the crate rtrb, between two threads of this process), and what its
//! waiting and its check cost.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use model::{CaseRecord, Workload};
use rtrb::RingBuffer;

use crate::hosepipe::{self, ns_per_message};
use crate::one_run::{one_run, round_trip, throughput};
use crate::rounds::interleave;
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "ring-stream",
        promise: "4, 8 and 64 B over a spinning ring, ns per message: at most 1.0 of the crate rtrb (the fastest of three capacities, in a bare loop), in threads and in processes",
        slow: false,
        measure: streams,
    },
    Target {
        name: "ring-trip",
        promise: "a round trip over a spinning ring of 1 to 64 B: at most 1.1 of a bare cache line's bounce",
        slow: false,
        measure: trips,
    },
    Target {
        name: "ring-futex",
        promise: "a ring whose ends may sleep while both keep up: at least 0.9 of one whose ends spin",
        slow: false,
        measure: |name, lab| {
            let row = |block: &str| {
                let specs = ["shm-ring:wait=futex", "shm-ring:wait=spin"];
                let options = format!("--data none --block {block}");
                one_run(&format!("{name} {block}"), lab, specs, &options, throughput(Wanted::AtLeast(0.9)))
            };
            let rows = [row("8")?, row("64")?, row("4KiB")?, row("64KiB")?];
            Ok(rows.into_iter().flatten().collect())
        },
    },
];

const ROUNDS: usize = 11;
/// Long enough for the clock: a tenth of a second at 5 ns.
const MESSAGES: u64 = 20_000_000;
/// Messages that the other ring holds: in each round the fastest of them counts.
const CAPACITIES: [usize; 3] = [256, 4096, 65536];

fn streams(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let rows = [of_size::<4>(name, lab)?, of_size::<8>(name, lab)?, of_size::<64>(name, lab)?];
    Ok(rows.into_iter().flatten().collect())
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
    let rtrb = |capacity| rtrb_ns::<BYTES>(capacity, cpus);
    let [threads, processes, small, medium, large] = interleave(
        lab.rounds_or(ROUNDS),
        lab.seed,
        [
            &|| ours("threads"),
            &|| ours("processes"),
            &|| rtrb(CAPACITIES[0]),
            &|| rtrb(CAPACITIES[1]),
            &|| rtrb(CAPACITIES[2]),
        ],
    )?;
    let best = small.iter().zip(&medium).zip(&large).map(|((a, b), c)| a.min(*b).min(*c));
    let reference: Vec<f64> = best.collect();
    let row = |tasks: &str, ours: Vec<f64>| BenchRow {
        name: format!("{name} {BYTES} B {tasks}"),
        unit: Unit::Nanoseconds,
        ours,
        reference: reference.clone(),
        wanted: Wanted::AtMost(1.0),
    };
    Ok(vec![row("threads", threads), row("processes", processes)])
}

/// Nanoseconds per message, one call each, between two threads that spin.
fn rtrb_ns<const BYTES: usize>(capacity: usize, cpus: [u32; 2]) -> Result<f64> {
    let (mut producer, mut consumer) = RingBuffer::<[u8; BYTES]>::new(capacity);
    let start = Barrier::new(2);
    let elapsed = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let pinned = process::pin(cpus[0]);
            let message = [7; BYTES];
            start.wait();
            for _ in 0..MESSAGES {
                while producer.push(*black_box(&message)).is_err() {
                    spin_loop();
                }
            }
            pinned
        });
        let receiver = scope.spawn(|| {
            let pinned = process::pin(cpus[1]);
            start.wait();
            let started = Instant::now();
            for _ in 0..MESSAGES {
                let mut room = loop {
                    match consumer.pop() {
                        Ok(message) => break message,
                        Err(_) => spin_loop(),
                    }
                };
                black_box(&mut room);
            }
            (pinned, started.elapsed())
        });
        let (sender, receiver) = (sender.join().ok()?, receiver.join().ok()?);
        Some(sender.and(receiver.0).map(|()| receiver.1))
    });
    let elapsed = elapsed.context("a thread panicked")?.context("pinning a thread")?;
    Ok(elapsed.as_nanos() as f64 / MESSAGES as f64)
}

/// Up to 56 bytes travel beside their announcement; 64 take a second cache line each way. Between CPUs that are far apart it is less than
/// the bounce, between near ones 1.6 to 2.0 of it: `docs/BOUNDS.md` says why.
fn trips(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let mut rows = Vec::new();
    for block in [1, 4, 8, 64] {
        let specs = ["shm-ring:wait=spin", "cache-line"];
        let options = format!("--data none --block {block}");
        let name = format!("{name} {block} B");
        rows.extend(one_run(&name, lab, specs, &options, round_trip(Wanted::AtMost(1.1)))?);
    }
    Ok(rows)
}
