//! The languages against each other, and what hosepipe adds to a worker that is started by hand.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use model::{BenchRecord, CaseRecord};

use crate::hosepipe::{self, bytes_per_s};
use crate::reference::succeed;
use crate::rounds::median;
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target, skip};

/// Bytes of a trial, which takes at most half a second: many short trials show more of a pipe's rhythm than a few long ones.
const BYTES: u64 = 512 << 20;
const WARMUP_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: u64 = 64 << 10;
const ROUNDS: usize = 15;

/// The tuned variants of these are to be within 3 % of the best of them.
const COMPILED: [&str; 6] = ["C", "C++", "Rust", "Zig", "Go", "Fortran"];
/// The tuned variants of these are to reach this share of C.
const MANAGED: [(&str, f64); 3] = [("Java", 0.90), ("JavaScript", 0.60), ("Python", 0.85)];

pub(crate) const TARGETS: &[Target] = &[
    Target::quick(
        "workers",
        "tuned C, C++, Rust, Zig, Go, Fortran: 0.97 of the best; Java 0.90 of C, JavaScript 0.60, Python 0.85",
        languages,
    ),
    Target::quick(
        "worker-by-hand",
        "the C worker under hosepipe as fast as started by hand: at least 0.98",
        by_hand,
    ),
];

/// Placed by the scheduler, as the study was; and all on one CPU, where no rhythm of wake-ups drowns the work.
fn languages(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let mut rows = Vec::new();
    for (place, suffix) in [(None, ""), (Some("0"), " one CPU")] {
        let record = measured(lab, "all:tuned", place)?;
        let best = COMPILED
            .iter()
            .filter_map(|language| case(&record, language).ok())
            .max_by(|one, other| median(&rates(one)).total_cmp(&median(&rates(other))))
            .context("no language was measured")?;
        let c = case(&record, "C")?;
        let compiled = COMPILED.map(|language| (language, 0.97, best));
        let managed = MANAGED.map(|(language, share)| (language, share, c));
        for (language, share, reference) in compiled.into_iter().chain(managed) {
            let pair = [case(&record, language)?, reference].map(rates);
            let (name, wanted) = (format!("{name} {language}{suffix}"), Wanted::AtLeast(share));
            rows.push(BenchRow::beside(name, Unit::BytesPerSecond, pair, wanted));
        }
    }
    Ok(rows)
}

/// One run of hosepipe, which interleaves the languages itself.
fn measured(lab: &Laboratory, workers: &str, cpu: Option<&str>) -> Result<BenchRecord> {
    let bytes = lab.bytes.unwrap_or(BYTES);
    let arguments =
        format!("bench --workers {workers} --bytes {bytes} --trials {} --json -", lab.rounds_or(ROUNDS));
    let pinned = ["taskset", "-c", cpu.unwrap_or_default(), hosepipe::PROGRAM];
    let words = if cpu.is_some() { &pinned } else { &pinned[3..] };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(arguments.split_whitespace());
    hosepipe::record(command)
}

fn case<'r>(record: &'r BenchRecord, language: &str) -> Result<&'r CaseRecord> {
    let of =
        |case: &&CaseRecord| case.worker.as_ref().is_some_and(|worker| worker.writer.language == language);
    let case = record.cases.iter().find(of).with_context(|| format!("no case of {language}"))?;
    hosepipe::with_samples(case, language)
}

fn rates(case: &CaseRecord) -> Vec<f64> {
    case.samples.iter().map(bytes_per_s).collect()
}

/// The same program with the same job: started by hosepipe, and by hand.
fn by_hand(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let bytes = lab.bytes.unwrap_or(BYTES);
    let program = built_worker()?;
    let folder = tempfile::tempdir()?;
    let result = folder.path().join("result");
    let hosepipe = || {
        let options = format!("--workers c:tuned --bytes {bytes} --trials 1");
        let record = hosepipe::bench(&options)?;
        Ok(rates(case(&record, "C")?)[0])
    };
    let hand = || run_by_hand(&program, &result, bytes);
    let pair = lab.interleave(ROUNDS, [&hosepipe, &hand])?;
    Ok(vec![BenchRow::beside(name, Unit::BytesPerSecond, pair, Wanted::AtLeast(0.98))])
}

/// Where hosepipe has built the C worker.
fn built_worker() -> Result<PathBuf> {
    let output = Command::new(hosepipe::PROGRAM).args(["workers", "--build", "--json", "c"]).output()?;
    let entries: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    match entries[0]["folder"].as_str() {
        Some(folder) => Ok(Path::new(folder).join("out/worker")),
        None => skip(format!("the C worker was not built: {}", entries[0]["reason"])),
    }
}

/// Bytes per second, as the two result lines of docs/WORKERS.md have it.
fn run_by_hand(program: &Path, result: &Path, bytes: u64) -> Result<f64> {
    let _ = std::fs::remove_file(result);
    let numbers = [bytes, BLOCK_BYTES, WARMUP_BYTES.min(bytes / 4)].map(|number| number.to_string());
    let mut command = Command::new(program);
    command.args(["tuned", "pair"]).args(&numbers).arg(result);
    command.arg(program).args(["tuned", "recv"]).args(&numbers).arg(result);
    succeed(command)?;
    let text = std::fs::read_to_string(result)?;
    let field = |name: &str| -> Result<u64> {
        let word = text.split_whitespace().find_map(|word| word.strip_prefix(name));
        Ok(word.with_context(|| format!("no {name} in {text:?}"))?.parse()?)
    };
    let elapsed_ns = field("ended_ns=")?.saturating_sub(field("began_ns=")?);
    ensure!(elapsed_ns > 0, "the worker ended before it began: {text:?}");
    Ok(bytes as f64 * 1e9 / elapsed_ns as f64)
}
