//! The programs that `hosepipe recommend` prints, beside hosepipe's own row of the same mechanism: nothing that is recommended may be slower
//! as a program than as it was measured.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use model::Workload;
use stats::choice::SIMPLEST_FIRST;

use crate::hosepipe::{PROGRAM, case, ns_per_message};
use crate::table::{BenchRow, Unit, Wanted};
use crate::targets::{Laboratory, Skipped, Target};

const SIZES: [&str; 4] = ["64B", "200B", "4KiB", "64KiB"];
/// Each language, what compiles `source` to `program`, and what is wanted of its programs.
const LANGUAGES: [(&str, &str, Wanted); 3] = [
    ("c", "cc -O2 -pthread -x c -o program source -lrt", Wanted::AtMost(1.25)),
    ("rust", "rustc -O --edition 2021 -o program source", Wanted::AtMost(1.25)),
    ("python", "", Wanted::Nothing),
];
const ROUNDS: usize = 5;
/// A run lasts about so long, in nanoseconds.
const RUN_NS: f64 = 1e8;

pub(crate) const TARGETS: &[Target] = &[Target {
    name: "recommended-programs",
    promise: "the programs of `recommend`, ns per message: in C and Rust at most 1.25 of hosepipe's own row",
    slow: true,
    measure: programs,
}];

fn programs(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let folder = folder.path();
    let rounds = lab.rounds.unwrap_or(ROUNDS);
    let mut rows = Vec::new();
    // Ends that spin are printed as the same program, less its sleep.
    let specs = SIMPLEST_FIRST.iter().filter(|spec| !spec.contains("spin"));
    for (spec, size) in specs.flat_map(|spec| SIZES.map(|size| (*spec, size))) {
        let reference = match own_row(spec, size, rounds, folder) {
            Ok(reference) => reference,
            // A message may be larger than a queue takes.
            Err(error) if error.is::<Skipped>() => continue,
            Err(error) => return Err(error),
        };
        for (language, compiler, wanted) in LANGUAGES {
            let ours = program(spec, size, language, compiler, rounds, folder)?;
            // The printed program of `file` has each message on the disk, which the row has not.
            let wanted = if spec == "file" { Wanted::Nothing } else { wanted };
            let name = format!("{name} {spec} {size} {language}");
            rows.push(BenchRow { name, unit: Unit::Nanoseconds, ours, reference: reference.clone(), wanted });
        }
    }
    Ok(rows)
}

/// Nanoseconds per message of hosepipe's own loops; the record stays in the folder.
fn own_row(spec: &str, size: &str, rounds: usize, folder: &Path) -> Result<Vec<f64>> {
    let record = crate::hosepipe::bench(&format!("{spec} --block {size} --place any --trials {rounds}"))?;
    fs::write(folder.join("row.json"), serde_json::to_string(&record)?).context("the record")?;
    let own = case(&record, spec, Workload::Stream)?;
    Ok(own.samples.iter().map(ns_per_message).collect())
}

/// What the printed program says of itself, run by run.
fn program(
    spec: &str,
    size: &str,
    language: &str,
    compiler: &str,
    rounds: usize,
    folder: &Path,
) -> Result<Vec<f64>> {
    let mut recommend = Command::new(PROGRAM);
    recommend.args([
        "recommend",
        "--message",
        size,
        "--from",
        "row.json",
        "--code",
        language,
        "--code-to",
        "source",
    ]);
    output(recommend.current_dir(folder))?;
    let mut words = compiler.split_whitespace();
    if let Some(compiler) = words.next() {
        output(Command::new(compiler).args(words).current_dir(folder))?;
    }
    let run = |count: u64| -> Result<f64> {
        let mut command = match compiler {
            "" => Command::new("python3"),
            _ => Command::new(folder.join("program")),
        };
        command.args(if compiler.is_empty() { &["source"][..] } else { &[] });
        let said = output(command.arg(count.to_string()).current_dir(folder))?;
        let number = said.split(' ').next().unwrap_or_default();
        number.parse().with_context(|| format!("{spec} in {language} printed `{said}`"))
    };
    // The first runs are mostly start-up.
    let mut count = 100;
    for _ in 0..3 {
        count = (RUN_NS / run(count)?).max(1.0) as u64;
    }
    (0..rounds).map(|_| run(count)).collect()
}

/// What a command prints.
fn output(command: &mut Command) -> Result<String> {
    let done = command.output().with_context(|| format!("{command:?} does not start"))?;
    ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
