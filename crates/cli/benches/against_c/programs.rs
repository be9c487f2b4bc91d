//! The programs that `hosepipe recommend` prints, beside hosepipe's own row of the same mechanism: nothing that is recommended may be slower
//! as a program than as it was measured.
//!
//! Both run in turn within a round, on the same CPUs, with as many messages of the same size. Their data differ: a row's sender writes every
//! byte of a message and its receiver hashes them, a program's sender writes a number into each message and its receiver compares
//! every byte.

use std::path::Path;

use anyhow::{Context, Result};
use model::{BenchRecord, CaseRecord, Workload};

use crate::hosepipe::{bench, case, cpus, ns_per_message};
use crate::printed::{C, Language, PYTHON, Printed, RUST};
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, RUN_S, Skipped, Target};
use crate::trips::PLACES;

const SIZES: [&str; 4] = ["64B", "200B", "4KiB", "64KiB"];
const LANGUAGES: [(Language, Wanted); 3] =
    [(C, Wanted::AtMost(1.25)), (RUST, Wanted::AtMost(1.25)), (PYTHON, Wanted::Nothing)];
const ROUNDS: usize = 7;

/// The targets' names, and the specs. Ends that spin are printed as the same program, less its sleep.
const FAMILIES: [(&str, &str); 12] = [
    ("recommended-programs-pipe", "pipe"),
    ("recommended-programs-large-pipe", "pipe:size=1MiB"),
    ("recommended-programs-socketpair", "socketpair"),
    ("recommended-programs-fifo", "fifo"),
    ("recommended-programs-unix-stream", "unix-stream"),
    ("recommended-programs-unix-seqpacket", "unix-seqpacket"),
    ("recommended-programs-unix-dgram", "unix-dgram"),
    ("recommended-programs-tcp", "tcp"),
    ("recommended-programs-file", "file"),
    ("recommended-programs-posix-mq", "posix-mq"),
    ("recommended-programs-sysv-msgq", "sysv-msgq"),
    ("recommended-programs-shm-ring", "shm-ring:wait=futex"),
];

/// One target for each mechanism.
pub(crate) fn targets() -> impl Iterator<Item = Target> {
    let promise = "what `recommend` prints, ns per message, two CPUs and one: in C and Rust at most 1.25 of hosepipe's own row";
    FAMILIES.iter().map(move |(name, _)| Target::slow(name, promise, programs))
}

fn programs(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let (_, spec) = FAMILIES.iter().find(|(target, _)| *target == name).context("no such family")?;
    let pin = lab.references.library("pin")?.display().to_string();
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let mut rows = Vec::new();
    for size in SIZES {
        let programs = match own_row(spec, size, PLACES[0].0, None) {
            Ok((record, own)) => compile(size, &record, &own, &folder.path().join(size))?,
            // A message may be larger than a queue takes.
            Err(error) if error.is::<Skipped>() => continue,
            Err(error) => return Err(error),
        };
        for (place, more) in PLACES {
            let own = own_row(spec, size, place, None)?.1;
            let [one, other] = cpus(&own)?;
            let seats = format!("{one} {other}");
            let environment = [("LD_PRELOAD", pin.as_str()), ("PIN", seats.as_str())];
            let probe_ns = ns_per_message(&own.samples[0]);
            // Programs of `file` have each message on the disk, which the row has not.
            let count = |program: &Printed| match *spec {
                "file" => program.count_for(RUN_S * 1e9),
                _ => Ok(((RUN_S * 1e9 / probe_ns) as u64).max(1)),
            };
            let counts = [count(&programs[0])?, count(&programs[1])?, count(&programs[2])?];
            let row = || -> Result<f64> {
                Ok(ns_per_message(&own_row(spec, size, place, Some(counts[0]))?.1.samples[0]))
            };
            let run = |at: usize| -> Result<f64> { Ok(programs[at].run(counts[at], &environment)?.time_ns) };
            let [reference, ours @ ..] =
                lab.interleave(ROUNDS, [&row, &|| run(0), &|| run(1), &|| run(2)])?;
            for ((language, wanted), ours) in LANGUAGES.into_iter().zip::<[Vec<f64>; 3]>(ours) {
                let wanted = if *spec == "file" { Wanted::Nothing } else { wanted };
                let name = format!("{spec} {size} {}{more}", language.word);
                rows.push(BenchRow::beside(name, Unit::Nanoseconds, [ours, reference.clone()], wanted));
            }
        }
    }
    Ok(rows)
}

/// One trial of hosepipe's own loops, of `count` messages, or of as many as hosepipe chooses.
fn own_row(spec: &str, size: &str, place: &str, count: Option<u64>) -> Result<(BenchRecord, CaseRecord)> {
    let count = count.map_or(String::new(), |count| format!("--count {count}"));
    let record =
        bench(&format!("{spec} --block {size} --workload stream --place {place} --trials 1 {count}"))?;
    let own = case(&record, spec, Workload::Stream)?.clone();
    Ok((record, own))
}

/// The three programs.
fn compile(size: &str, record: &BenchRecord, own: &CaseRecord, folder: &Path) -> Result<[Printed; 3]> {
    let print = |language: &Language| {
        let printed =
            Printed::new(record, own, &format!("--message {size}"), language, &folder.join(language.word))?;
        printed.with_context(|| format!("{} is recommended of nothing else", own.spec))
    };
    Ok([print(&C)?, print(&RUST)?, print(&PYTHON)?])
}
