//! The targets: what is measured, against what, and what is wanted. A target is a line of [`TARGETS`] and a
//! function that runs the contenders. Where hosepipe is compared with C, hosepipe has one run more, before
//! the others: the C program then gets the CPUs and the amount of that run.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use model::{CaseRecord, Check, DataLevel, Workload};

use crate::hosepipe::{self, bytes_per_s, ns_per_message};
use crate::memory::{Whose, peak_bytes};
use crate::one_run::{one_run, throughput};
use crate::reference::succeed;
use crate::rounds::{interleave, median};
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{GIB, Laboratory, RUN_S, Skipped, Target};
use crate::{
    aligns, boosts, by_reference, changes, peers, pipelines, programs, prompt, recommended, rings, scripts,
    spreading, tops, trips, workers,
};

/// Rounds against C, unless asked otherwise.
const ROUNDS_AGAINST_C: usize = 31;
const BLOCK_BYTES: u64 = 64 << 10;

/// The targets that are not alike, in the order of measuring.
const TARGETS: &[Target] = &[
    Target {
        name: "pipe-none",
        promise: "64 KiB blocks over a pipe, two CPUs, untouched: at least 0.98 of C",
        slow: false,
        measure: |name, lab| pipe_stream(name, lab, None),
    },
    Target {
        name: "pipe-xor",
        promise: "the same, every byte produced and XORed on either side: at least 0.98 of C",
        slow: false,
        measure: |name, lab| pipe_stream(name, lab, Some(Check::Xor)),
    },
    Target {
        name: "pipe-xxh3",
        promise: "the same with XXH3-64 (needs the header of libxxhash-dev): at least 0.98 of C",
        slow: false,
        measure: |name, lab| pipe_stream(name, lab, Some(Check::Xxh3)),
    },
    Target {
        name: "null",
        promise: "the harness itself: at most 5 ns per block",
        slow: false,
        measure: null,
    },
    Target {
        name: "trip-clock",
        promise: "what timing each round trip costs, beside a C program that reads the clock twice in all",
        slow: false,
        measure: trips::against_untimed_c,
    },
    Target {
        name: "shm-ring",
        promise: "1 MiB ring, spinning: at least 0.40 of a memory copy in the same run",
        slow: false,
        measure: |name, lab| {
            let specs = ["shm-ring:wait=spin,size=1MiB", "memcpy"];
            one_run(name, lab, specs, "--data none", throughput(Wanted::AtLeast(0.40)))
        },
    },
    Target {
        name: "by-reference",
        promise: "a pipe whose pages pass by reference, 256 KiB blocks: at least 0.5 of a memory copy",
        slow: false,
        measure: by_reference::against_memcpy,
    },
    Target {
        name: "yes-pv",
        promise: "the same: at least 1.1 times the best `yes | pv > /dev/null` (needs Debian's pv)",
        slow: false,
        measure: by_reference::against_pv,
    },
    Target {
        name: "verified",
        promise: "streams through rings with every byte checked: at least 0.5 of a memory copy",
        slow: false,
        measure: |name, lab| {
            let row = |(spec, how): (&str, &str)| {
                // The ceiling is plain copying: hosepipe adds it by itself, at data level none.
                let name = format!("{name} {how}");
                one_run(
                    &name,
                    lab,
                    [spec, "memcpy"],
                    "--data verify --check compare",
                    throughput(Wanted::AtLeast(0.5)),
                )
            };
            let rows = [row((VERIFIED, "in place"))?, row(("shm-ring:wait=spin", "copied"))?];
            Ok(rows.into_iter().flatten().collect())
        },
    },
    Target {
        name: "verified-pipe",
        promise: "the fastest pipe with every byte checked: at least 2.5 times the default pipe",
        slow: false,
        measure: |name, lab| {
            one_run(name, lab, [VERIFIED_PIPE, "pipe"], "--data verify", throughput(Wanted::AtLeast(2.5)))
        },
    },
    Target {
        name: "filters",
        promise: "gen | sink --verify: at least 6 times as fast as dd | dd with 64 KiB",
        slow: false,
        measure: filters,
    },
    Target {
        name: "memory",
        promise: "8 GiB over pipe and shm-ring: below 300 MiB resident in all processes",
        slow: false,
        measure: memory,
    },
    Target {
        name: "default-table",
        promise: "`hosepipe bench` without arguments: at most 60 s (only when named, or --full)",
        slow: true,
        measure: default_table,
    },
];

/// Every target, in the order of measuring.
pub(crate) fn all() -> impl Iterator<Item = Target> {
    TARGETS
        .iter()
        .copied()
        .chain(rings::TARGETS.iter().copied())
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
        return Err(
            Skipped("no xxhash.h to compile the C side with: install libxxhash-dev".to_owned()).into()
        );
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
    let [ours, reference] = interleave(lab.rounds_or(ROUNDS_AGAINST_C), lab.seed, [&ours, &reference])?;
    Ok(BenchRow { name, unit: Unit::BytesPerSecond, ours, reference, wanted: Wanted::AtLeast(0.98) })
}

/// What the loops and calls around a mechanism cost where the mechanism does nothing.
fn null(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let ours = || {
        let record = hosepipe::bench("null --block 64KiB --data none --workload stream --trials 5")?;
        let case = hosepipe::case(&record, "null", Workload::Stream)?;
        Ok(median(&case.samples.iter().map(ns_per_message).collect::<Vec<f64>>()))
    };
    let [ours] = interleave(lab.rounds_or(5), lab.seed, [&ours])?;
    let (name, wanted) = (name.to_owned(), Wanted::AtMost(5.0));
    Ok(vec![BenchRow { name, unit: Unit::Nanoseconds, ours, reference: Vec::new(), wanted }])
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
    let [ours, reference] = interleave(lab.rounds_or(5), lab.seed, [&ours, &reference])?;
    let (name, wanted) = (name.to_owned(), Wanted::AtLeast(6.0));
    Ok(vec![BenchRow { name, unit: Unit::BytesPerSecond, ours, reference, wanted }])
}

fn memory(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let bytes = lab.bytes.unwrap_or(8 * GIB);
    let run = || {
        Ok(peak_bytes(
            hosepipe::bench_command(&format!("pipe shm-ring --workload stream --bytes {bytes} --trials 1")),
            Whose::All,
        )? as f64)
    };
    let ours = repeat(lab.rounds_or(1), run)?;
    let (name, wanted) = (name.to_owned(), Wanted::AtMost((300u64 << 20) as f64));
    Ok(vec![BenchRow { name, unit: Unit::Bytes, ours, reference: Vec::new(), wanted }])
}

fn default_table(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let run = || {
        let started = Instant::now();
        hosepipe::bench("")?;
        Ok(started.elapsed().as_secs_f64())
    };
    let ours = repeat(lab.rounds_or(1), run)?;
    let (name, wanted) = (name.to_owned(), Wanted::AtMost(60.0));
    Ok(vec![BenchRow { name, unit: Unit::Seconds, ours, reference: Vec::new(), wanted }])
}

/// Figures of one program alone: nothing to alternate with, no warm-up.
fn repeat(rounds: usize, run: impl Fn() -> Result<f64>) -> Result<Vec<f64>> {
    (0..rounds).map(|_| run()).collect()
}
