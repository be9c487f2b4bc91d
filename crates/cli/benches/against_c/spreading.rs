//! `hosepipe spread` on this machine: beside one run over everything, and beside GNU parallel doing the same.

use anyhow::{Context, Result};

use crate::hosepipe;
use crate::pipelines::{Timed, bash, made, times};
use crate::table::{BenchRow, Wanted};
use crate::target::{Laboratory, Target};

pub(crate) const TARGETS: &[Target] = &[
    Target::slow(
        "spread-run",
        "a map that computes over 1 GB, on two CPUs: at most 0.6 of the time of one run",
        |name, lab| {
            let one_run = Timed::new(&[hosepipe::PROGRAM, "run", &format!("{COUNT} < {}", text()?)]);
            beside(name, lab, &one_run, 0.6)
        },
    ),
    Target::slow(
        "spread-parallel",
        "the same beside GNU parallel, which must be installed: at most its time",
        beside_parallel,
    ),
    Target::slow(
        "spread-short",
        "10,000 partitions of 1 ms beside GNU parallel, two at a time: at most 1.5 of its time",
        many_short,
    ),
];

/// Words of each length: what takes a good part of a second for 100 MB.
const COUNT: &str = "awk '{ n[length($1)] += NF } END { for (k in n) print k, n[k] }'";
const TOGETHER: &str = "awk '{ n[$1] += $2 } END { for (k in n) print k, n[k] }' | sort";
const TEXT_BYTES: u64 = 1_000_000_000;

/// A text of 1 GB.
fn text() -> Result<String> {
    let line = "awk '{ print ($1 * 7919) % 1000003, \"some words of a line\", $1 % 977 }'";
    let path = made("text-1gb", TEXT_BYTES, &format!("seq 100000000 | {line} | head -c {TEXT_BYTES}"))?;
    Ok(path.display().to_string())
}

fn spread() -> Result<Timed> {
    let options = ["spread", "--map", COUNT, "--reduce", TOGETHER, "--split", "64MiB"];
    Ok(Timed::new(&[&[hosepipe::PROGRAM], &options[..], &[&text()?]].concat()))
}

fn beside(name: &str, lab: &Laboratory, reference: &Timed, most: f64) -> Result<Vec<BenchRow>> {
    Ok(vec![times(name, lab, 5, [&spread()?, reference], Wanted::AtMost(most))?])
}

fn needs_parallel() -> Result<()> {
    model::file_on_path("parallel").context("GNU parallel (Debian: apt-get install parallel)").map(drop)
}

/// Each of 10,000 files of one line is read by a `cat` after 1 ms; parallel is given their names, which costs it half of what lines on
/// its standard input do.
fn many_short(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    needs_parallel()?;
    let folder = tempfile::tempdir().context("a folder for 10,000 files")?;
    for number in 0..10_000 {
        std::fs::write(folder.path().join(format!("{number:05}")), format!("{number}\n"))?;
    }
    let folder = folder.path().display();
    let all = format!("{folder}/*");
    let options = ["spread", "-j", "2", "--map", "sleep 0.001; cat", "--reduce", "cat"];
    let ours = Timed::new(&[&[hosepipe::PROGRAM], &options[..], &[&all]].concat());
    let text = format!("printf '%s\\n' {all} | parallel --will-cite -j 2 -k 'sleep 0.001; cat < {{}}'");
    Ok(vec![times(name, lab, 3, [&ours, &bash(&text)], Wanted::AtMost(1.5))?])
}

fn beside_parallel(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    needs_parallel()?;
    let quoted = model::shell_quoted(COUNT.as_bytes());
    let text =
        format!("parallel --will-cite --pipe-part -a {} --block 64M -k {quoted} | {TOGETHER}", text()?);
    beside(name, lab, &bash(&text), 1.0)
}
