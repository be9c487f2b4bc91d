//! Scripts that do next to nothing, so that what hosepipe adds to their shell shows: to its start, to each line that is no
//! pipeline, and to each pipeline.

use anyhow::{Context, Result};

use crate::hosepipe;
use crate::pipelines::{Timed, bash, built, seconds, times};
use crate::rounds::interleave;
use crate::table::{BenchRow, Unit, Wanted};
use crate::targets::{Laboratory, Target};

const LINES: usize = 200;
const ROUNDS: usize = 31;
const STARTS: usize = 101;
/// What a start may take longer than the shell's own.
const START_S_MAX: f64 = 0.003;
const WANTED: Wanted = Wanted::AtMost(1.10);

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "sh-start",
        promise: "`hosepipe sh -c :`: at most 3 ms more than `bash -c :`",
        slow: false,
        measure: start,
    },
    Target {
        name: "sh-lines",
        promise: "a script of 200 lines of assignments, functions, `cd` and `$(…)`: at most 1.10 of bash's time",
        slow: false,
        measure: lines,
    },
    Target {
        name: "sh-pipelines",
        promise: "`true | true | true` 200 times in one script: at most 1.10 of bash's time",
        slow: false,
        measure: pipelines,
    },
];

fn sh(options: &[&str], arguments: &[&str]) -> Timed {
    let words = [hosepipe::PROGRAM, "sh"].iter().chain(options).chain(arguments);
    Timed(words.map(|word| (*word).to_owned()).collect())
}

/// One start each, and what ours took longer in the same round.
fn start(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let row = |more: &str, text: &str, wanted| -> Result<BenchRow> {
        let (ours, reference) = (sh(&[], &["-c", text]), bash(text));
        let [ours, reference] =
            interleave(lab.rounds_or(STARTS), lab.seed, [&|| seconds(&ours), &|| seconds(&reference)])?;
        let ours = ours.iter().zip(&reference).map(|(ours, reference)| ours - reference).collect();
        let name = format!("{name}{more} (more)");
        Ok(BenchRow { name, unit: Unit::Seconds, ours, reference: Vec::new(), wanted })
    };
    Ok(vec![
        row("", ":", Wanted::AtMost(START_S_MAX))?,
        row(" true | true | true", "true | true | true", Wanted::AtMost(START_S_MAX))?,
    ])
}

/// Lines of all kinds in turns; and each kind alone, which takes bash about as long as our start takes us, unless it forks.
fn lines(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let kinds = [
        (" assignments", "x=1 y=$x"),
        (" functions", "f() { y=$1; }; f x"),
        (" cd", "cd /tmp"),
        (" $(…)", "x=$(echo 1)"),
    ];
    let mixed: Vec<&str> = kinds.iter().map(|(_, line)| *line).collect();
    let mut rows = vec![script(name, lab, &mixed, &[], WANTED)?];
    for (kind, line) in kinds {
        rows.push(script(&format!("{name}{kind}"), lab, &[line], &[], Wanted::Nothing)?);
    }
    Ok(rows)
}

fn pipelines(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let line = ["true | true | true"];
    let mut rows = vec![script(name, lab, &line, &[], WANTED)?];
    for via in ["socketpair", "tmpfile"] {
        let name = format!("{name} {via}");
        rows.push(script(&name, lab, &line, &["--via", via], Wanted::Nothing)?);
    }
    Ok(rows)
}

/// A script of these lines in turns, from its start to its end.
fn script(
    name: &str,
    lab: &Laboratory,
    lines: &[&str],
    options: &[&str],
    wanted: Wanted,
) -> Result<BenchRow> {
    let path = built("script");
    let text: String = lines.iter().cycle().take(LINES).flat_map(|line| [*line, "\n"]).collect();
    std::fs::write(&path, text).context("a script")?;
    let file = path.display().to_string();
    let bash = Timed(vec!["bash".to_owned(), file.clone()]);
    times(name, lab, ROUNDS, [&sh(options, &[&file]), &bash], wanted)
}
