//! The targets: what is measured, against what, and what is wanted. A target is a line of [`TARGETS`] and a
//! function that runs the contenders. Where hosepipe is compared with C, hosepipe has one run more, before
//! the others: the C program then gets the CPUs and the amount of that run.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use model::{CaseRecord, Check, DataLevel, Workload};

use crate::hosepipe::{self, bytes_per_s, ns_per_message};
use crate::memory::{Whose, peak_bytes};
use crate::one_run::one_run;
use crate::reference::succeed;
use crate::rounds::median;
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{GIB, Laboratory, RUN_S, Target, skip};
use crate::{
    aligns, boosts, by_reference, changes, peers, pipelines, programs, prompt, recommended, ring_library,
    rings, scripts, spreading, tops, trips, tuned, workers,
};

/// Rounds against C, unless asked otherwise.
const ROUNDS_AGAINST_C: usize = 31;
const BLOCK_BYTES: u64 = 64 << 10;

/// The targets that are not alike, in the order of measuring.
const TARGETS: &[Target] = &[
    Target::quick(
        "pipe-none",
        "64 KiB blocks over a pipe, two CPUs, untouched: at least 0.98 of C",
        |name, lab| pipe_stream(name, lab, None),
    ),
    Target::quick(
        "pipe-xor",
        "the same, every byte produced and XORed on either side: at least 0.98 of C",
        |name, lab| pipe_stream(name, lab, Some(Check::Xor)),
    ),
    Target::quick(
        "pipe-xxh3",
        "the same with XXH3-64 (needs the header of libxxhash-dev): at least 0.98 of C",
        |name, lab| pipe_stream(name, lab, Some(Check::Xxh3)),
    ),
    Target::quick("null", "the harness itself: at most 5 ns per block", null),
    Target::quick(
        "trip-clock",
        "what timing each round trip costs, beside a C program that reads the clock twice in all",
        trips::against_untimed_c,
    ),
    Target::quick(
        "shm-ring",
        "1 MiB ring, spinning: at least 0.40 of a memory copy in the same run",
        |name, lab| {
            let specs = ["shm-ring:wait=spin,size=1MiB", "memcpy"];
            Ok(vec![one_run(name, lab, specs, "--data none", Workload::Stream, Wanted::AtLeast(0.40))?])
        },
    ),
    Target::quick(
        "by-reference",
        "a pipe whose pages pass by reference, 256 KiB blocks: at least 0.5 of a memory copy",
        by_reference::against_memcpy,
    ),
    Target::quick(
        "yes-pv",
        "the same: at least 1.1 times the best `yes | pv > /dev/null` (needs Debian's pv)",
        by_reference::against_pv,
    ),
    Target::quick(
        "verified",
        "streams through rings with every byte checked: at least 0.5 of a memory copy",
        |name, lab| {
            let row = |spec: &str, how: &str| {
                // The ceiling is plain copying: hosepipe adds it by itself, at data level none.
                let (name, options) = (format!("{name} {how}"), "--data verify --check compare");
                one_run(&name, lab, [spec, "memcpy"], options, Workload::Stream, Wanted::AtLeast(0.5))
            };
            Ok(vec![row(VERIFIED, "in place")?, row("shm-ring:wait=spin", "copied")?])
        },
    ),
    Target::quick(
        "verified-pipe",
        "the fastest pipe with every byte checked: at least 2.5 times the default pipe",
        |name, lab| {
            let specs = [VERIFIED_PIPE, "pipe"];
            Ok(vec![one_run(name, lab, specs, "--data verify", Workload::Stream, Wanted::AtLeast(2.5))?])
        },
    ),
    Target::quick("filters", "gen | sink --verify: at least 6 times as fast as dd | dd with 64 KiB", filters),
    Target::quick("memory", "8 GiB over pipe and shm-ring: below 300 MiB resident in all processes", memory),
    Target::slow(
        "default-table",
        "`hosepipe bench` without arguments: at most 60 s (only when named, or --full)",
        default_table,
    ),
];

/// Every target, in the order of measuring.
pub(crate) fn all() -> impl Iterator<Item = Target> {
    TARGETS
        .iter()
        .copied()
        .chain(rings::TARGETS.iter().copied())
        .chain(ring_library::TARGETS.iter().copied())
        .chain(trips::targets())
        .chain(pipelines::TARGETS.iter().copied())
        .chain(boosts::TARGETS.iter().copied())
        .chain(aligns::targets())
        .chain(spreading::TARGETS.iter().copied())
        .chain(peers::TARGETS.iter().copied())
        .chain(scripts::TARGETS.iter().copied())
        .chain(workers::TARGETS.iter().copied())
        .chain(prompt::TARGETS.iter().copied())
        .chain(tops::TARGETS.iter().copied())
        .chain(tuned::TARGETS.iter().copied())
        .chain(recommended::TARGETS.iter().copied())
        .chain(programs::targets())
        .chain(changes::TARGETS.iter().copied())
}

/// The rows and their promises, for `--help` and for the error about an unknown row.
pub(crate) fn list() -> String {
    let lines = all().map(|target| format!("  {:<19} {}\n", target.name, target.promise));
    format!("Rows:\n{}", lines.collect::<String>())
}

/// One way through a pipe; with a check, sender and receiver touch every byte, in hosepipe as in C. Between two
/// CPUs, where the promise is made and wake-ups drown all else, and on one CPU, where only the work is left.
fn pipe_stream(name: &str, lab: &Laboratory, check: Option<Check>) -> Result<Vec<BenchRow>> {
    let cross = pipe_stream_at("cross", name.to_owned(), lab, check)?;
    let same = pipe_stream_at("same", format!("{name} one CPU"), lab, check)?;
    Ok(vec![cross, same])
}

fn pipe_stream_at(place: &str, name: String, lab: &Laboratory, check: Option<Check>) -> Result<BenchRow> {
    if check == Some(Check::Xxh3) && !lab.references.has_xxhash {
        return skip("no xxhash.h to compile the C side with: install libxxhash-dev");
    }
    let (data, word) = match check {
        None => ("--data none".to_owned(), "none"),
        Some(check) => (format!("--data verify --check {check} --payload random"), check.word()),
    };
    let run = |bytes: u64| -> Result<CaseRecord> {
        let record = hosepipe::bench(&format!(
            "pipe --block 64KiB --bytes {bytes} {data} --workload stream --tasks processes --place {place} --trials 1"
        ))?;
        let case = hosepipe::case(&record, "pipe", Workload::Stream)?.clone();
        let level = if check.is_some() { DataLevel::Verify } else { DataLevel::None };
        ensure!(
            (case.data, case.check, case.samples[0].bytes) == (level, check, bytes),
            "hosepipe did not do what was asked"
        );
        Ok(case)
    };
    let probe = run(GIB / 4)?;
    let blocks = bytes_per_s(&probe.samples[0]) * RUN_S / BLOCK_BYTES as f64;
    let bytes = (blocks as u64).max(1) * BLOCK_BYTES;
    let cpus = hosepipe::cpus(&probe)?;

    let ours = || Ok(bytes_per_s(&run(bytes)?.samples[0]));
    let reference = || lab.references.pipe_stream(bytes, BLOCK_BYTES, cpus, word);
    let pair = lab.interleave(ROUNDS_AGAINST_C, [&ours, &reference])?;
    Ok(BenchRow::beside(name, Unit::BytesPerSecond, pair, Wanted::AtLeast(0.98)))
}

/// What the loops and calls around a mechanism cost where the mechanism does nothing.
fn null(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let ours = || {
        let record = hosepipe::bench("null --block 64KiB --data none --workload stream --trials 5")?;
        let case = hosepipe::case(&record, "null", Workload::Stream)?;
        Ok(median(&case.samples.iter().map(ns_per_message).collect::<Vec<f64>>()))
    };
    let [ours] = lab.interleave(5, [&ours])?;
    Ok(vec![BenchRow::alone(name, Unit::Nanoseconds, ours, Wanted::AtMost(5.0))])
}

/// The fastest verified transport and the fastest verified pipe, as `hosepipe bench --all` found them.
const VERIFIED: &str = "shm-ring:copy=in-place,wait=spin";
const VERIFIED_PIPE: &str = "pipe:size=1MiB";

/// `gen | sink` against `dd | dd`, both in bash; the scheduler places all four.
fn filters(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let blocks = lab.bytes.unwrap_or(10 * GIB).div_ceil(BLOCK_BYTES);
    let bytes = blocks * BLOCK_BYTES;
    let bash = |script: String| -> Result<f64> {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("set -o pipefail; {script}"), hosepipe::PROGRAM]);
        let started = Instant::now();
        succeed(command)?;
        Ok(bytes as f64 / started.elapsed().as_secs_f64())
    };
    let ours = || bash(format!(r#""$0" gen --bytes {bytes} | "$0" sink --verify"#));
    let reference = || {
        bash(format!(
            "dd if=/dev/zero bs=64k count={blocks} status=none | dd of=/dev/null bs=64k status=none"
        ))
    };
    let pair = lab.interleave(5, [&ours, &reference])?;
    Ok(vec![BenchRow::beside(name, Unit::BytesPerSecond, pair, Wanted::AtLeast(6.0))])
}

fn memory(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let bytes = lab.bytes.unwrap_or(8 * GIB);
    let arguments = format!("pipe shm-ring --workload stream --bytes {bytes} --trials 1");
    let ours = lab.repeat(1, || peak_bytes(hosepipe::bench_command(&arguments), Whose::All))?;
    Ok(vec![BenchRow::alone(name, Unit::Bytes, ours, Wanted::AtMost((300u64 << 20) as f64))])
}

fn default_table(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let run = || {
        let started = Instant::now();
        hosepipe::bench("")?;
        Ok(started.elapsed().as_secs_f64())
    };
    Ok(vec![BenchRow::alone(name, Unit::Seconds, lab.repeat(1, run)?, Wanted::AtMost(60.0))])
}
