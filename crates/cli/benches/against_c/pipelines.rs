//! Real pipelines: `hosepipe run` against bash, and links against one another. All figures are of whole commands, from
//! their start to their end, as a person at a shell waits for them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::hosepipe;
use crate::memory::{Whose, peak_bytes};
use crate::reference::succeed;
use crate::rounds::median;
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target};

/// Bytes in the file that is copied, and in the text that is worked on.
const COPIED_BYTES: u64 = 1_000_000_000;
const TEXT_LINES: u64 = 2_000_000;
/// Most memory of hosepipe's own processes at this number of stages.
const MEMORY_BYTES_MAX: f64 = (10u64 << 20) as f64;
const STAGES: usize = 500;

pub(crate) const TARGETS: &[Target] = &[
    Target::quick(
        "run-copy",
        "`cat FILE | wc -c` of 1 GB and its like: at most 0.45 of bash's time",
        |name, lab| copying(name, lab, |text| run(&[], text), "-c", 0.45),
    ),
    Target::slow(
        "run-optimum",
        "the same programs, coupled by a C program with the best pipe size: at most 1.03 of its time",
        against_the_best,
    ),
    Target::quick(
        "run-cpu",
        "pipelines held up by a stage that computes: at most 1.02 of bash's time",
        computing,
    ),
    Target::quick(
        "run-tmpfile",
        "`cat FILE | sort | uniq -u | wc -l` over tmpfile: at most 1.10 of a true pipe's time",
        through_files,
    ),
    Target::quick(
        "run-keep",
        "--keep on `cat FILE | wc -c` of 1 GB: at most 1.60 of the time without, on two CPUs",
        keeping,
    ),
    Target::quick(
        "run-lines",
        "--lines on `cat FILES | wc -c` of 0.5 GB of text: at most 2.00 of the time without, on two CPUs",
        counting_lines,
    ),
    Target::quick(
        "run-500",
        "500 stages of cat over served links: at most 10 MiB in the server",
        many_stages,
    ),
];

/// A command, as often as it is asked for.
pub(crate) struct Timed(Vec<String>);

impl Timed {
    pub(crate) fn new(words: &[&str]) -> Self {
        Self(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]).stdin(Stdio::null());
        command
    }
}

fn run(options: &[&str], text: &str) -> Timed {
    Timed::new(&[&[hosepipe::PROGRAM, "run"], options, &[text]].concat())
}

pub(crate) fn bash(text: &str) -> Timed {
    Timed::new(&["bash", "-c", text])
}

/// Seconds of a command.
pub(crate) fn seconds(timed: &Timed) -> Result<f64> {
    let command = timed.command();
    let started = Instant::now();
    succeed(command)?;
    Ok(started.elapsed().as_secs_f64())
}

/// Seconds of two commands, in turns.
pub(crate) fn times(
    name: &str,
    lab: &Laboratory,
    rounds: usize,
    pair: [&Timed; 2],
    wanted: Wanted,
) -> Result<BenchRow> {
    let pair = lab.interleave(rounds, [&|| seconds(pair[0]), &|| seconds(pair[1])])?;
    Ok(BenchRow::beside(name, Unit::Seconds, pair, wanted))
}

/// Pipelines in which hardly anything happens but copying, beside bash; `count` is the option of wc(1).
pub(crate) fn copying(
    name: &str,
    lab: &Laboratory,
    ours: impl Fn(&str) -> Timed,
    count: &str,
    most: f64,
) -> Result<Vec<BenchRow>> {
    let texts = [
        ("", format!("| wc {count}"), Wanted::AtMost(most)),
        (" tail", "| tail -c 1".to_owned(), Wanted::AtMost(most)),
        (" cat", "| cat | wc -c".to_owned(), Wanted::Nothing),
    ];
    let file = big_file()?;
    let row = |(more, rest, wanted): (&str, String, Wanted)| {
        let text = format!("cat {} {rest}", file.display());
        times(&format!("{name}{more}"), lab, 11, [&ours(&text), &bash(&text)], wanted)
    };
    texts.into_iter().map(row).collect()
}

/// Sizes of pipes among which the best is looked for, and whether the stages are pinned to the first two CPUs in turns.
const BY_HAND: [(u64, &str); 7] = [
    (128 << 10, "-"),
    (256 << 10, "-"),
    (512 << 10, "-"),
    (1 << 20, "-"),
    (256 << 10, "0,1,0"),
    (1 << 20, "0,1,0"),
    (256 << 10, "0,0,0"),
];

/// The best way by hand is looked for first, and then runs in turns with ours.
fn against_the_best(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let (file, program) = (big_file()?, lab.references.program("pipeline")?);
    let texts: [&[&[&str]]; 2] = [&[&["wc", "-c"]], &[&["cat"], &["wc", "-l"]]];
    let file = file.display().to_string();
    let mut rows = Vec::new();
    for further in texts {
        let stages: Vec<Vec<&str>> =
            [vec!["cat", &file]].into_iter().chain(further.iter().map(|stage| stage.to_vec())).collect();
        let text = stages.iter().map(|stage| stage.join(" ")).collect::<Vec<_>>().join(" | ");
        let by_hand = &BY_HAND.map(|(bytes, cpus)| {
            let (program, bytes) = (program.display().to_string(), bytes.to_string());
            Timed::new(&[&[&program, &bytes, cpus], &stages.join(&"--")[..]].concat())
        });
        let each: [_; BY_HAND.len()] = std::array::from_fn(|at| move || seconds(&by_hand[at]));
        let found = lab.interleave(7, each.each_ref().map(|one| one as &dyn Fn() -> Result<f64>))?;
        let medians = found.map(|times| median(&times));
        let best =
            (0..BY_HAND.len()).min_by(|one, other| medians[*one].total_cmp(&medians[*other])).unwrap_or(0);
        let (bytes, cpus) = BY_HAND[best];
        let row = format!("{name} {} ({}, CPUs {cpus})", further.len() + 1, model::ByteSize(bytes));
        rows.push(times(&row, lab, 15, [&run(&[], &text), &by_hand[best]], Wanted::AtMost(1.03))?);
    }
    Ok(rows)
}

/// Pipelines in which a program computes: plumbing cannot help, and must not harm.
fn computing(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let file = text_file()?;
    let file = file.display();
    let texts = [
        (" sort", format!("cat {file} | sort | uniq -c | sort -rn | head -3")),
        (" gzip", format!("head -c 60000000 {file} | gzip -1 | wc -c")),
        (" awk", format!("awk '{{ n += length($0) }} END {{ print n }}' {file} {file} {file} {file} | cat")),
    ];
    let row = |(more, text): (&str, String)| {
        times(&format!("{name}{more}"), lab, 7, [&run(&[], &text), &bash(&text)], Wanted::AtMost(1.02))
    };
    texts.into_iter().map(row).collect()
}

fn through_files(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let file = text_file()?;
    let text = format!("cat {} | sort | uniq -u | wc -l", file.display());
    let both_work = format!("gzip -1 < {} | gzip -dc | wc -c", file.display());
    let via = |link: &str, text: &str| run(&["--via", link], text);
    let in_order = [&via("tmpfile", &both_work), &via("tmpfile:order=sequential", &both_work)];
    Ok(vec![
        times(name, lab, 7, [&via("tmpfile", &text), &via("pipe", &text)], Wanted::AtMost(1.10))?,
        times(&format!("{name} order"), lab, 7, in_order, Wanted::AtMost(1.0))?,
    ])
}

/// Each time into a new folder: removing what an earlier run has kept takes as long as keeping it.
fn keeping(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let (folder, file) = (built("kept"), big_file()?);
    let text = format!("cat {} | wc -c", file.display());
    let kept = run(&["--keep", &folder.display().to_string()], &text);
    let plain = run(&[], &text);
    let forget = || match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("removing what was kept")
        }
        _ => Ok(()),
    };
    let ours = || forget().and_then(|()| seconds(&kept));
    let pair = lab.interleave(7, [&ours, &|| seconds(&plain)])?;
    forget()?;
    Ok(vec![BenchRow::beside(name, Unit::Seconds, pair, Wanted::AtMost(1.60))])
}

/// A third process beside two CPUs, which copies every byte once more.
fn counting_lines(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let text = format!("cat{} | wc -c", format!(" {}", text_file()?.display()).repeat(8));
    let pair = [&run(&["--lines"], &text), &run(&[], &text)];
    Ok(vec![times(name, lab, 11, pair, Wanted::AtMost(2.0))?])
}

/// Only our own processes: the stages' memory is theirs.
fn many_stages(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let text = format!("head -c 10000000 /dev/zero{} > /dev/null; sleep 0.1", " | cat".repeat(STAGES));
    let row = |via: &str| {
        let peak = || peak_bytes(run(&["--via", via], &text).command(), Whose::Largest(hosepipe::PROGRAM));
        let (name, wanted) = (format!("{name} {via}"), Wanted::AtMost(MEMORY_BYTES_MAX));
        Ok(BenchRow::alone(name, Unit::Bytes, lab.repeat(3, peak)?, wanted))
    };
    ["socketpair", "tmpfile"].into_iter().map(row).collect()
}

/// A file in the folder that cargo gives to a bench; it is made once and kept.
pub(crate) fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

pub(crate) fn big_file() -> Result<PathBuf> {
    made("copied", COPIED_BYTES, &format!("head -c {COPIED_BYTES} /dev/urandom"))
}

fn text_file() -> Result<PathBuf> {
    let lines = format!(
        "seq {TEXT_LINES} | awk '{{ print ($1 * 7919) % 1000003, \"some words of a line\", $1 % 977 }}'"
    );
    made("text", 0, &lines)
}

/// Makes a file with a shell command, unless it exists with at least this many bytes.
pub(crate) fn made(name: &str, bytes: u64, command: &str) -> Result<PathBuf> {
    let path = built(name);
    if std::fs::metadata(&path).is_ok_and(|found| found.len() >= bytes.max(1)) {
        return Ok(path);
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{command} > {}", path.display())]);
    succeed(shell)?;
    Ok(path)
}
