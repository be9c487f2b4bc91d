//! Scripts that do almost nothing, so that the figures show what hosepipe adds to their shell: to its start, to each line that is
//! not a pipeline, and to each pipeline.

use anyhow::{Context, Result};

use crate::hosepipe;
use crate::pipelines::{Timed, bash, built, seconds, times};
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target};

const LINES: usize = 200;
const ROUNDS: usize = 31;
const STARTS: usize = 101;
/// What a start may take longer than the shell's own, and one that prints the version than that of true(1).
const START_S_MAX: f64 = 0.001;
const VERSION_S_MAX: f64 = 0.0007;
const THREE: &str = "true | true | true";
const WANTED: Wanted = Wanted::AtMost(1.10);

pub(crate) const TARGETS: &[Target] = &[
    Target::quick(
        "sh-start",
        "`hosepipe --version`: at most 0.7 ms more than `true`; `sh -c :`: 1 ms more than `bash -c :`",
        start,
    ),
    Target::quick("run-start", "`hosepipe run 'true | true | true'`: at most 1.30 of bash's time", run_start),
    Target::quick(
        "sh-lines",
        "a script of 200 lines of assignments, functions, `cd` and `$(…)`: at most 1.10 of bash's time",
        lines,
    ),
    Target::quick(
        "sh-pipelines",
        "`true | true | true` 200 times in one script: at most 1.10 of bash's time",
        pipelines,
    ),
];

fn sh(options: &[&str], arguments: &[&str]) -> Timed {
    Timed::new(&[&[hosepipe::PROGRAM, "sh"], options, arguments].concat())
}

/// One start each, and what ours took longer in the same round.
fn start(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let row = |more: &str, ours: Timed, reference: Timed, most_s: f64| -> Result<BenchRow> {
        let [ours, reference] = lab.interleave(STARTS, [&|| seconds(&ours), &|| seconds(&reference)])?;
        let further = ours.iter().zip(&reference).map(|(ours, reference)| ours - reference).collect();
        Ok(BenchRow::alone(format!("{name}{more} (more)"), Unit::Seconds, further, Wanted::AtMost(most_s)))
    };
    let shell = |more: &str, text: &str| row(more, sh(&[], &["-c", text]), bash(text), START_S_MAX);
    let (version, nothing) = (Timed::new(&[hosepipe::PROGRAM, "--version"]), Timed::new(&["true"]));
    Ok(vec![
        row(" --version", version, nothing, VERSION_S_MAX)?,
        shell("", ":")?,
        shell(&format!(" {THREE}"), THREE)?,
    ])
}

fn run_start(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let row = |text: &str, wanted| {
        let ours = Timed::new(&[hosepipe::PROGRAM, "run", text]);
        times(&format!("{name} {text}"), lab, STARTS, [&ours, &bash(text)], wanted)
    };
    // What a process between the caller and bash costs at least: one in C that starts bash and waits.
    let program = lab.references.program("pipeline")?.display().to_string();
    let in_c = Timed::new(&[&program, "0", "-", "bash", "-c", THREE]);
    let floor = times(&format!("{name} in C {THREE}"), lab, STARTS, [&in_c, &bash(THREE)], Wanted::Nothing)?;
    Ok(vec![row(THREE, Wanted::AtMost(1.30))?, floor, row(":", Wanted::Nothing)?])
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
    let line = [THREE];
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
    times(name, lab, ROUNDS, [&sh(options, &[&file]), &Timed::new(&["bash", &file])], wanted)
}
