//! Round trips of one byte: each mechanism that can wait asleep against the plainest C program that makes the same
//! calls. The rows are one function and a table.

use anyhow::{Context, Result, ensure};
use model::{CaseRecord, Workload};

use crate::hosepipe::{self, ns_per_message};
use crate::reference::{Clock, PingPong};
use crate::rounds::interleave;
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, RUN_S, Target};

/// Fewer than against a stream, so that all rows together take less than four minutes.
const ROUNDS: usize = 11;
/// Round trips of the run that finds out how many fill [`RUN_S`].
const PROBE_ROUND_TRIPS: u64 = 2_000;

/// A row: what is measured, and the C program that does the same.
struct Trip {
    name: &'static str,
    /// In `c/`.
    program: &'static str,
    /// What hosepipe's `--tasks` is given; the C program has the same.
    tasks: &'static str,
}

impl Trip {
    const fn processes(name: &'static str, program: &'static str) -> Self {
        Self { name, program, tasks: "processes" }
    }

    /// The mechanism, as both sides call it.
    fn kind(&self) -> &'static str {
        self.name.trim_start_matches("trip-")
    }
}

const PIPE: Trip = Trip::processes("trip-pipe", "pingpong_bytes");
const SOCKETPAIR: Trip = Trip::processes("trip-socketpair", "pingpong_bytes");
const TRIPS: &[Trip] = &[
    PIPE,
    Trip::processes("trip-fifo", "pingpong_bytes"),
    SOCKETPAIR,
    Trip::processes("trip-unix-stream", "pingpong_bytes"),
    Trip::processes("trip-unix-seqpacket", "pingpong_messages"),
    Trip::processes("trip-unix-dgram", "pingpong_messages"),
    Trip::processes("trip-tcp", "pingpong_bytes"),
    Trip::processes("trip-udp", "pingpong_messages"),
    Trip::processes("trip-sysv-msgq", "pingpong_sysv_msgq"),
    Trip::processes("trip-posix-mq", "pingpong_posix_mq"),
    Trip::processes("trip-pty", "pingpong_bytes"),
    Trip::processes("trip-eventfd", "pingpong_eventfd"),
    Trip::processes("trip-futex", "pingpong_futex"),
    Trip::processes("trip-signal", "pingpong_signal"),
    Trip { name: "trip-condvar", program: "pingpong_condvar", tasks: "threads" },
];

/// Where the two ends sit, and what the row's name says of it: on two CPUs wake-ups drown all else, on one only the
/// work is left.
const PLACES: [(&str, &str); 2] = [("cross", ""), ("same", " one CPU")];

/// One target for each mechanism.
pub(crate) fn targets() -> impl Iterator<Item = Target> {
    TRIPS.iter().map(|trip| Target {
        name: trip.name,
        promise: "mean round trip of 1 byte, asleep in between, two CPUs and one: at most 1.02 of a C program that times each, too",
        slow: false,
        measure: against_c,
    })
}

/// Judged against a C program that, like hosepipe, reads the clock after each round trip: who wants a median and a tail
/// must.
fn against_c(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let trip = TRIPS.iter().find(|trip| trip.name == name).context("no such round trip")?;
    rows_against(name, lab, trip, Clock::Each, Wanted::AtMost(1.02))
}

/// What timing each round trip costs beside a C program that reads the clock twice in all, where it costs little and
/// where it costs most.
pub(crate) fn against_untimed_c(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let mut rows = Vec::new();
    for trip in [PIPE, SOCKETPAIR] {
        let name = format!("{name} {}", trip.kind());
        rows.extend(rows_against(&name, lab, &trip, Clock::Total, Wanted::Nothing)?);
    }
    Ok(rows)
}

fn rows_against(
    name: &str,
    lab: &Laboratory,
    trip: &Trip,
    clock: Clock,
    wanted: Wanted,
) -> Result<Vec<BenchRow>> {
    let row = |(place, suffix): (&str, &str)| {
        let contest = Contest::prepare(lab, trip, place)?;
        let [ours, reference] =
            interleave(lab.rounds_or(ROUNDS), lab.seed, [&|| contest.ours(), &|| contest.c(clock)])?;
        Ok(BenchRow { name: format!("{name}{suffix}"), unit: Unit::Nanoseconds, ours, reference, wanted })
    };
    PLACES.into_iter().map(row).collect()
}

/// Both sides of a row, with as much to do as fills a run, where hosepipe chose to sit.
struct Contest<'t> {
    trip: &'t Trip,
    place: &'t str,
    c: PingPong,
    count: u64,
    cpus: [u32; 2],
}

impl<'t> Contest<'t> {
    fn prepare(lab: &Laboratory, trip: &'t Trip, place: &'t str) -> Result<Self> {
        let (probe, pace) = ours(trip, place, PROBE_ROUND_TRIPS)?;
        let count = (RUN_S * 1e9 / pace).max(1.0) as u64;
        let c = lab.references.pingpong(trip.program)?;
        Ok(Self { trip, place, c, count, cpus: hosepipe::cpus(&probe)? })
    }

    fn ours(&self) -> Result<f64> {
        Ok(ours(self.trip, self.place, self.count)?.1)
    }

    fn c(&self, clock: Clock) -> Result<f64> {
        self.c.run(self.trip.kind(), self.count, self.cpus, clock)
    }
}

/// One run of hosepipe, and the mean round trip in nanoseconds.
fn ours(trip: &Trip, place: &str, count: u64) -> Result<(CaseRecord, f64)> {
    let (kind, tasks) = (trip.kind(), trip.tasks);
    let record = hosepipe::bench(&format!(
        "{kind} --block 1 --count {count} --data none --workload pingpong --tasks {tasks} --place {place} --trials 1"
    ))?;
    let case = hosepipe::case(&record, kind, Workload::PingPong)?.clone();
    ensure!(case.samples[0].messages == count, "hosepipe made {} round trips", case.samples[0].messages);
    let mean_ns = ns_per_message(&case.samples[0]);
    Ok((case, mean_ns))
}
