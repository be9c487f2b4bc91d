//! Round trips of one byte: each mechanism that can wait asleep against the plainest C program that makes the same
//! calls. The rows are one function and a table.

use anyhow::{Context, Result, ensure};
use model::{CaseRecord, Workload};

use crate::hosepipe::{self, ns_per_message};
use crate::reference::{Clock, PingPong, RoundTrips};
use crate::rounds::interleave;
use crate::table::{Row, Unit, Wanted};
use crate::targets::{Laboratory, RUN_S, Target};

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
const TRIPS: &[Trip] = &[
    PIPE,
    Trip::processes("trip-fifo", "pingpong_bytes"),
    Trip::processes("trip-socketpair", "pingpong_bytes"),
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
        promise: "mean round trip of 1 byte, asleep in between, two CPUs and one: at most 1.02 of C",
        slow: false,
        measure: against_c,
    })
}

/// Judged against a C program that reads the clock twice in all.
fn against_c(name: &str, lab: &Laboratory) -> Result<Vec<Row>> {
    let trip = TRIPS.iter().find(|trip| trip.name == name).context("no such round trip")?;
    let row = |(place, suffix): (&str, &str)| {
        let contest = Contest::prepare(lab, trip, place)?;
        let [ours, reference] =
            interleave(lab.rounds_or(ROUNDS), lab.seed, [&|| contest.ours(), &|| contest.c(Clock::Total)])?;
        Ok(mean_row(format!("{name}{suffix}"), &ours, &reference, Wanted::AtMost(1.02)))
    };
    PLACES.into_iter().map(row).collect()
}

/// What remains of a difference once the C program, too, times each round trip: of the mean, and of the median.
pub(crate) fn against_timed_c(name: &str, lab: &Laboratory) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (place, suffix) in PLACES {
        let contest = Contest::prepare(lab, &PIPE, place)?;
        let [ours, reference] =
            interleave(lab.rounds_or(ROUNDS), lab.seed, [&|| contest.ours(), &|| contest.c(Clock::Each)])?;
        rows.push(mean_row(format!("{name}{suffix}"), &ours, &reference, Wanted::Nothing));
        rows.push(Row {
            name: format!("{name}{suffix} p50"),
            unit: Unit::Nanoseconds,
            ours: ours.iter().map(|one| one.p50_ns).collect(),
            reference: reference.iter().map(|one| one.p50_ns).collect(),
            wanted: Wanted::Nothing,
        });
    }
    Ok(rows)
}

fn mean_row(name: String, ours: &[RoundTrips], reference: &[RoundTrips], wanted: Wanted) -> Row {
    let means = |all: &[RoundTrips]| all.iter().map(|one| one.mean_ns).collect();
    Row { name, unit: Unit::Nanoseconds, ours: means(ours), reference: means(reference), wanted }
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
        let count = (RUN_S * 1e9 / pace.mean_ns).max(1.0) as u64;
        let c = lab.references.pingpong(trip.program)?;
        Ok(Self { trip, place, c, count, cpus: hosepipe::cpus(&probe)? })
    }

    fn ours(&self) -> Result<RoundTrips> {
        Ok(ours(self.trip, self.place, self.count)?.1)
    }

    fn c(&self, clock: Clock) -> Result<RoundTrips> {
        self.c.run(self.trip.kind(), self.count, self.cpus, clock)
    }
}

/// One run of hosepipe.
fn ours(trip: &Trip, place: &str, count: u64) -> Result<(CaseRecord, RoundTrips)> {
    let (kind, tasks) = (trip.kind(), trip.tasks);
    let record = hosepipe::bench(&format!(
        "{kind} --block 1 --count {count} --data none --workload pingpong --tasks {tasks} --place {place} --trials 1"
    ))?;
    let case = hosepipe::case(&record, kind, Workload::PingPong)?.clone();
    ensure!(case.samples[0].messages == count, "hosepipe made {} round trips", case.samples[0].messages);
    let p50_ns = case.latency_ns.as_ref().context("a ping-pong without latencies")?.p50 as f64;
    let mean_ns = ns_per_message(&case.samples[0]);
    Ok((case, RoundTrips { mean_ns, p50_ns }))
}
