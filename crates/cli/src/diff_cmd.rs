//! `hosepipe diff`: what changed between records, or between two hosepipes with alternating trials.

mod in_turns;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use clap::{Args, ValueEnum};
use model::{ChangeKind, DiffRecord, DiffSide, RUNS_MIN, RecordHead};
use report::Style;
use report::difference::go::Sides;
use report::difference::{go, sides};
use report::read::Loaded;
use stats::CaseFigures;
use stats::measured::of_runs;

use crate::destination::Destination;
use crate::outputs::Outputs;
use crate::terminal::{self, UsageError, usage};
use crate::{record, typed};

/// How much worse figures of two records may be by default: figures of two runs of one program differ, too, by what lies between the runs.
const MARGIN_PERCENT: f64 = 10.0;

/// Show what changed between records, or between two hosepipes with alternating trials
#[derive(Debug, Args)]
#[command(
    override_usage = "hosepipe diff [OPTIONS] OLD NEW\n       hosepipe diff [OPTIONS] OLD... -- NEW...\n       hosepipe diff [OPTIONS] --run OLD NEW -- bench...",
    after_help = "\
Examples:
  hosepipe diff monday.json tuesday.json                      records of `bench --json F`, or of `compare`
  hosepipe diff old.json new.json --fail-over 5%              status 1 if something is surely more than 5 % worse, not 10 %
  hosepipe diff old*.json -- new*.json                        several runs of each side: what lies between runs counts, too
  hosepipe diff old.json new.json --md change.md              for a pull request
  hosepipe diff old.json new.json --format go | benchstat -col side -
  hosepipe diff --run ./old ./new -- bench pipe fifo          two hosepipes in turns: every case of their bench, pair by pair
  hosepipe compare --fail-over 5 ./sort-old ./sort-new        any two commands

Figures belong to the same case if all requested properties are equal. A change is found by a rank test that is corrected
for the number of figures; all intervals hold at once, with 95 %. What lies between two runs of one program is not in them: a
difference of two records is a change only if it is surely larger than --fail-over, and other programs ran beside both or neither.
With three or more records of each side the medians of runs are compared, and smaller changes can be found.
Exit status: 0 nothing became worse; 1 something did (its whole interval is worse by more than --fail-over), or failed on the
new side only; 2 the command line is wrong, or these records have no figure in common; 130 stopped by Ctrl-C."
)]
pub(crate) struct DiffArgs {
    /// The record to compare with, and the record that may have changed; with --run two hosepipes. If `--` follows: the records of several
    /// old runs
    #[arg(value_name = "OLD", required = true)]
    first: Vec<OsString>,

    /// After `--`: the records of several new runs; with --run the bench that both run, `bench …`
    #[arg(value_name = "NEW", last = true)]
    last: Vec<OsString>,

    /// OLD and NEW are hosepipes: run a bench of them alternately, in pairs
    #[arg(long)]
    run: bool,

    /// How much worse a figure may become, in percent: a failure is only what is surely worse than that; 0: every change that is found. A
    /// rate cannot fall by more than 100 % [default: 10; with --run 0]
    #[arg(long, value_name = "PERCENT", value_parser = typed::margin)]
    fail_over: Option<f64>,

    /// Compare records of different hosts, or of one with different settings; all outputs say so
    #[arg(long, conflicts_with = "run")]
    across_hosts: bool,

    /// With --run: number of pairs, with one test at the end [default: 10 to 163, until the result no longer changes]
    #[arg(long, value_name = "N", requires = "run", value_parser = typed::whole(1u32..=10_000))]
    trials: Option<u32>,

    /// With --run: start no pair after this time [default: 5m, but not before the first test]
    #[arg(long, value_name = "DURATION", requires = "run", value_parser = typed::positive_duration)]
    time: Option<Duration>,

    /// With --run: untimed runs of each before the pairs
    #[arg(long, value_name = "N", default_value_t = 1, requires = "run", value_parser = typed::whole(0u32..=1000))]
    warmup: u32,

    /// With --run: seed of the order within the pairs
    #[arg(long, value_name = "N", default_value_t = 1, requires = "run", value_parser = typed::seed)]
    seed: u64,

    /// Print this format instead of the tables
    #[arg(long, value_name = "FORMAT")]
    format: Option<ForeignFormat>,

    /// With --format go: the samples of OLD, of NEW, or of both, distinguished by `side:` (benchstat -col side)
    #[arg(long, value_name = "SIDE", default_value_t = Sides::Both, value_parser = typed::one_of(Sides::ALL), requires = "format")]
    side: Sides,

    /// Print all remarks under the tables, not only the most important ones
    #[arg(long)]
    explain: bool,

    #[command(flatten)]
    outputs: Outputs,
}

/// A format that other programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ForeignFormat {
    /// Go's benchmark format, a line for each sample, for benchstat
    Go,
}

/// Compares and prints the result; the status shows whether anything became worse.
pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    args.outputs.check()?;
    if args.format.is_some() && args.outputs.has_stdout() {
        return usage("two formats cannot share standard output: give one a file");
    }
    if args.run {
        return in_turns::run(args);
    }
    let record = compare_records(args)?;
    show(args, record)
}

impl DiffArgs {
    /// The old and the new records, or hosepipes, and their bench.
    fn sides(&self) -> anyhow::Result<([&[OsString]; 2], &[OsString])> {
        match (self.first.as_slice(), self.last.as_slice()) {
            ([old, new], arguments) if self.run || arguments.is_empty() => {
                Ok(([old, new].map(std::slice::from_ref), arguments))
            }
            _ if self.run => usage("--run takes two hosepipes, OLD and NEW, and after -- the bench of both"),
            (_, []) => usage(
                "two records are compared, OLD and NEW, or several runs of each side with -- between the sides: \
                 hosepipe diff OLD… -- NEW…",
            ),
            (old, new) => Ok(([old, new], &[])),
        }
    }
}

/// Writes and prints the record; the status shows whether anything became worse.
fn show(args: &DiffArgs, record: DiffRecord) -> anyhow::Result<ExitCode> {
    let worse = record.regressions().next().is_some();
    let is_compared =
        record.changes.iter().any(|change| !change.control && change.kind != ChangeKind::Incomparable);
    let foreign = args.format.map(|ForeignFormat::Go| go::text(&record, args.side));
    let style = Style { explain: args.explain, ..terminal::style() };
    let loaded = Loaded::new("this comparison", record);
    match foreign {
        None => args.outputs.show(loaded, &style)?,
        Some(text) => {
            // Standard output has the format: text for the user goes to standard error.
            args.outputs.show_on_stderr(loaded, true)?;
            Destination::Stdout.write(&text)?;
        }
    }
    // "Nothing became worse" would be false where nothing was compared.
    Ok(ExitCode::from(if is_compared { u8::from(worse) } else { 2 }))
}

/// A record, and its figures.
struct ReadRun {
    loaded: Loaded,
    figures: Vec<CaseFigures>,
}

/// The comparison of records.
fn compare_records(args: &DiffArgs) -> anyhow::Result<DiffRecord> {
    let ([old_paths, new_paths], _) = args.sides()?;
    let read = |paths: &[OsString]| -> anyhow::Result<Vec<ReadRun>> {
        let one = |path: &OsString| {
            let loaded = record::load(Path::new(path))?;
            let figures = sides::figures(&loaded);
            Ok(ReadRun { loaded, figures })
        };
        paths.iter().map(one).collect()
    };
    // Reading large records takes time, mostly for histograms: the old ones are read by another thread.
    let (old, new) = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || read(old_paths));
        let new = read(new_paths);
        // If no thread can be started, this one reads them.
        (thread.map_or_else(|_| Ok(read(old_paths)), ScopedJoinHandle::join), new)
    });
    let old = old.map_err(|_| anyhow::anyhow!("the thread that read the old records failed"))??;
    let new = new?;
    let hosts_differ = check(args, &old, &new)?;
    let runs_are_shown = old.len().min(new.len()) >= RUNS_MIN;
    let interrupted = old.iter().chain(&new).any(|run| run.loaded.record.is_interrupted());
    let host = new[0].loaded.record.head().host.clone();
    let side = |runs: &[ReadRun]| DiffSide {
        further_runs: runs[1..].iter().map(|run| sides::side(&run.loaded)).collect(),
        ..sides::side(&runs[0].loaded)
    };
    let (old_side, new_side) = (side(&old), side(&new));
    let figures = |runs: Vec<ReadRun>| of_runs(runs.into_iter().map(|run| run.figures));
    let (old_figures, new_figures) = (figures(old), figures(new));
    let changes = if runs_are_shown {
        stats::differences_of_runs(&old_figures, &new_figures)
    } else {
        stats::differences(&old_figures, &new_figures, false, 1)
    };
    Ok(DiffRecord {
        head: RecordHead { host, ..record::begin(false) },
        old: old_side,
        new: new_side,
        paired: false,
        analyses: 1,
        hosts_differ,
        fail_over_percent: Some(args.fail_over.unwrap_or(MARGIN_PERCENT)),
        interrupted,
        changes,
    })
}

/// Checks that records can be compared: each of them with the first old one. Returns the facts in which their hosts differ.
fn check(args: &DiffArgs, old: &[ReadRun], new: &[ReadRun]) -> anyhow::Result<Vec<String>> {
    let ReadRun { loaded: first, figures: of_first } = &old[0];
    let all: Vec<&ReadRun> = old.iter().chain(new).collect();
    let mut hosts_differ = Vec::new();
    for (at, ReadRun { loaded, figures }) in all.iter().enumerate().skip(1) {
        let facts = sides::machines_differ(&first.record, &loaded.record);
        if !facts.is_empty() && !args.across_hosts {
            return usage(format!(
                "{} and {} are of different hosts, or of one with different settings ({}), so that their difference does not show a \
                 change of the programs: --across-hosts compares them anyway",
                first.name,
                loaded.name,
                facts.join("; ")
            ));
        }
        hosts_differ.extend(facts);
        if let Some(problem) = sides::suites_differ(&first.record, &loaded.record) {
            return usage(problem);
        }
        sides::check(first, loaded, &[of_first, figures]).map_err(UsageError)?;
        // Two records may be of one run, to see what `diff` makes of that; among several it would count twice.
        let is_same = |other: &&&ReadRun| {
            sides::are_one_run(&other.loaded.record, &loaded.record) && other.figures == *figures
        };
        if let Some(other) = all[..at].iter().find(is_same).filter(|_| all.len() > 2) {
            return usage(format!(
                "{} and {} are the same run, which would count twice: leave one out",
                other.loaded.name, loaded.name
            ));
        }
    }
    hosts_differ.sort_unstable();
    hosts_differ.dedup();
    Ok(hosts_differ)
}
