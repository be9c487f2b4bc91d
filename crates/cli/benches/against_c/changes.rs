//! `hosepipe diff`: how often it raises an alarm where nothing changed, how often it finds what did change, and how long it takes over
//! a long record. The first two are measured as a user would: real runs of this machine, in turns.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use model::{BenchRecord, ChangeKind, CompareRecord, DiffRecord, Ratio};

use crate::hosepipe::{PROGRAM, bench, record};
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target};

/// Comparisons of this machine with itself.
const COMPARISONS: usize = 100;
/// At least this many of them are cases of a bench, which are compared several at a time; the others are commands.
const OF_CASES: usize = 40;
const ALARMS_MAX: f64 = 5.0;
/// Runs in which a change of ten percent is to be found.
const RUNS: usize = 40;
/// Samples in the record that is analysed.
const SAMPLES: usize = 20_000;
const ANALYSIS_S_MAX: f64 = 0.200;

pub(crate) const TARGETS: &[Target] = &[
    Target::slow(
        "diff-itself",
        "`diff --run` and `compare --fail-over` of 100 things with themselves: at most 5 alarms (minutes: only when named, or --full)",
        itself,
    ),
    Target::slow(
        "diff-ten-percent",
        "`compare --fail-over 0` of commands of which one does 10 % more: found in 0.95 of the runs (minutes, too)",
        ten_percent,
    ),
    Target::quick(
        "diff-20000",
        "a record of 20,000 samples, and two of them compared: at most 200 ms",
        long_records,
    ),
];

/// Work in proportion to bytes, each of them produced, moved and checked. On one CPU, where the two take turns: where the scheduler may
/// choose, it is a mixture of two speeds, and a run of it says more of the scheduler.
fn work(megabytes: usize) -> String {
    format!("taskset -c 0 sh -c '{PROGRAM} gen --bytes {megabytes}MB | {PROGRAM} sink --verify'")
}

/// What `compare --fail-over 0` says of two commands.
fn compared(seed: u64, commands: [&str; 2]) -> Result<Ratio> {
    let mut command = Command::new(PROGRAM);
    command.args(["compare", "--fail-over", "0", "--json", "-", "--seed", &seed.to_string()]).args(commands);
    let made: CompareRecord = record(command)?;
    made.results[1].times_baseline.with_context(|| format!("{commands:?} gave no figures"))
}

/// What `diff --run` says of hosepipe and itself.
fn cases_compared(seed: u64) -> Result<DiffRecord> {
    let bench = "bench pipe fifo socketpair unix-stream shm-ring --block 16KiB --place any --count 2000";
    let mut command = Command::new(PROGRAM);
    command.args(["diff", "--run", "--json", "-", "--seed", &seed.to_string(), PROGRAM, PROGRAM, "--"]);
    command.args(bench.split_whitespace());
    record(command)
}

/// How many alarms there are among the judged figures of a comparison, and how many such figures.
fn alarms(record: &DiffRecord) -> (usize, usize) {
    let judged = record.changes.iter().filter(|change| !change.control && change.p.is_some());
    let moved = |kind| matches!(kind, ChangeKind::Slower | ChangeKind::Faster);
    (judged.clone().filter(|change| moved(change.kind)).count(), judged.count())
}

fn itself(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let command = work(200);
    let (mut raised, mut made) = (0, 0);
    for seed in lab.seed.. {
        if made >= COMPARISONS {
            break;
        }
        let (further_alarms, further) = if made < OF_CASES {
            alarms(&cases_compared(seed)?)
        } else {
            let ratio = compared(seed, [&command, &command])?;
            (usize::from(ratio.low > 1.0 || ratio.high < 1.0), 1)
        };
        ensure!(further > 0, "no figures");
        (raised, made) = (raised + further_alarms, made + further);
    }
    let (name, wanted) = (format!("{name} ({made})"), Wanted::AtMost(ALARMS_MAX));
    Ok(vec![BenchRow::alone(name, Unit::Count, vec![raised as f64], wanted)])
}

fn ten_percent(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let [less, more] = [work(1000), work(1100)];
    let runs = lab.rounds_or(RUNS);
    let mut found = 0;
    for seed in (lab.seed..).take(runs) {
        found += usize::from(compared(seed, [&less, &more])?.low > 1.0);
    }
    let (name, wanted) = (format!("{name} ({runs})"), Wanted::AtLeast(0.95));
    Ok(vec![BenchRow::alone(name, Unit::Count, vec![found as f64 / runs as f64], wanted)])
}

/// True samples, repeated with jitter until there are enough of them: a command of a second instead of many minutes.
fn long_records(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let made = bench("pipe fifo socketpair unix-stream --place any --count 2000 --trials 20")?;
    let mut random = fastrand::Rng::with_seed(lab.seed);
    let mut keep = || -> Result<tempfile::NamedTempFile> {
        let mut file = tempfile::Builder::new().suffix(".json").tempfile()?;
        serde_json::to_writer_pretty(&mut file, &longer(&made, &mut random))?;
        file.flush()?;
        Ok(file)
    };
    let [old, new] = [keep()?, keep()?];
    let [old, new] = [old.path(), new.path()];
    let time = |words: &[&std::ffi::OsStr]| {
        let began = Instant::now();
        let status =
            Command::new(PROGRAM).args(words).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        let took = began.elapsed().as_secs_f64();
        // Chance may find a change between them.
        ensure!(matches!(status.code(), Some(0 | 1)), "{words:?}: {status}");
        Ok(took)
    };
    let report = || time(&["report".as_ref(), old.as_os_str()]);
    let diff = || time(&["diff".as_ref(), old.as_os_str(), new.as_os_str()]);
    let [report, diff] = lab.interleave(9, [&report, &diff])?;
    let row = |more: &str, ours| {
        BenchRow::alone(format!("{name} {more}"), Unit::Seconds, ours, Wanted::AtMost(ANALYSIS_S_MAX))
    };
    Ok(vec![row("report", report), row("diff of two", diff)])
}

fn longer(made: &BenchRecord, random: &mut fastrand::Rng) -> BenchRecord {
    let mut record = made.clone();
    let each = SAMPLES.div_ceil(record.cases.len());
    for case in &mut record.cases {
        let known = case.samples.clone();
        let repeated = known.iter().cycle().zip(0..each as u32).map(|(sample, round)| {
            let elapsed_ns = (sample.elapsed_ns as f64 * (0.95 + 0.1 * random.f64())) as u64;
            model::Sample { round, elapsed_ns, ..sample.clone() }
        });
        case.samples = repeated.collect();
    }
    record
}
