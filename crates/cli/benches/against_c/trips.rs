//! Round trips of one byte: each mechanism that can wait asleep against the plainest C program that makes the same
//! calls. The rows are one function and a table.

use anyhow::{Context, Result, ensure};
use model::{CaseRecord, Workload};

use crate::hosepipe::{self, ns_per_message};
use crate::reference::pingpong_ns;
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, RUN_S, Target};

/// Fewer than against a stream, so that all rows together take less than four minutes.
const ROUNDS: usize = 11;
/// Round trips of the run that finds out how many fill [`RUN_S`].
const PROBE_ROUND_TRIPS: u64 = 2_000;

/// A row, the C program in `c/` that does the same, and what hosepipe's `--tasks` is given; the C program has the same.
type Trip = (&'static str, &'static str, &'static str);

const TRIPS: &[Trip] = &[
    ("trip-pipe", "pingpong_bytes", "processes"),
    ("trip-fifo", "pingpong_bytes", "processes"),
    ("trip-socketpair", "pingpong_bytes", "processes"),
    ("trip-unix-stream", "pingpong_bytes", "processes"),
    ("trip-unix-seqpacket", "pingpong_messages", "processes"),
    ("trip-unix-dgram", "pingpong_messages", "processes"),
    ("trip-tcp", "pingpong_bytes", "processes"),
    ("trip-udp", "pingpong_messages", "processes"),
    ("trip-sysv-msgq", "pingpong_sysv_msgq", "processes"),
    ("trip-posix-mq", "pingpong_posix_mq", "processes"),
    ("trip-pty", "pingpong_bytes", "processes"),
    ("trip-eventfd", "pingpong_eventfd", "processes"),
    ("trip-futex", "pingpong_futex", "processes"),
    ("trip-signal", "pingpong_signal", "processes"),
    ("trip-condvar", "pingpong_condvar", "threads"),
];

/// The placement of the two ends, and its words in the row's name: on two CPUs the time is mostly that of wake-ups, on one it is that
/// of the work.
pub(crate) const PLACES: [(&str, &str); 2] = [("cross", ""), ("same", " one CPU")];

/// One target for each mechanism.
pub(crate) fn targets() -> impl Iterator<Item = Target> {
    let promise = "mean round trip of 1 byte, asleep in between, two CPUs and one: at most 1.02 of a C program that times each, too";
    TRIPS.iter().map(move |(name, ..)| Target::quick(name, promise, against_c))
}

/// Judged against a C program that, like hosepipe, reads the clock after each round trip: a median and a tail need it.
fn against_c(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    rows_against(name, lab, name, "each", Wanted::AtMost(1.02))
}

/// What timing each round trip costs beside a C program that reads the clock twice in all, where it costs little and
/// where it costs most.
pub(crate) fn against_untimed_c(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let rows = |kind: &str| {
        rows_against(&format!("{name} {kind}"), lab, &format!("trip-{kind}"), "total", Wanted::Nothing)
    };
    Ok([rows("pipe")?, rows("socketpair")?].concat())
}

/// Both sides in turns, on the CPUs that hosepipe chose, with as many round trips as fill a run.
fn rows_against(
    name: &str,
    lab: &Laboratory,
    trip: &str,
    clock: &str,
    wanted: Wanted,
) -> Result<Vec<BenchRow>> {
    let found = TRIPS.iter().find(|(known, ..)| *known == trip);
    let (_, program, tasks) = found.context("no such round trip")?;
    // The mechanism, as both sides call it.
    let kind = trip.trim_start_matches("trip-");
    let row = |(place, suffix): (&str, &str)| {
        let (probe, pace_ns) = ours(kind, tasks, place, PROBE_ROUND_TRIPS)?;
        let count = (RUN_S * 1e9 / pace_ns).max(1.0) as u64;
        let (program, cpus) = (lab.references.program(program)?, hosepipe::cpus(&probe)?);
        let ours = || Ok(ours(kind, tasks, place, count)?.1);
        let pair = lab.interleave(ROUNDS, [&ours, &|| pingpong_ns(&program, kind, count, cpus, clock)])?;
        Ok(BenchRow::beside(format!("{name}{suffix}"), Unit::Nanoseconds, pair, wanted))
    };
    PLACES.into_iter().map(row).collect()
}

/// One run of hosepipe, and the mean round trip in nanoseconds.
fn ours(kind: &str, tasks: &str, place: &str, count: u64) -> Result<(CaseRecord, f64)> {
    let record = hosepipe::bench(&format!(
        "{kind} --block 1 --count {count} --data none --workload pingpong --tasks {tasks} --place {place} --trials 1"
    ))?;
    let case = hosepipe::case(&record, kind, Workload::PingPong)?.clone();
    ensure!(case.samples[0].messages == count, "hosepipe made {} round trips", case.samples[0].messages);
    let mean_ns = ns_per_message(&case.samples[0]);
    Ok((case, mean_ns))
}
