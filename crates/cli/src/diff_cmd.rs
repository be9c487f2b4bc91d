//! `hosepipe diff`: what changed between two records, or between two commands with alternating trials.

mod in_turns;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use clap::{Args, ValueEnum};
use model::{DiffRecord, RecordHead};
use report::Style;
use report::difference::go::Sides;
use report::difference::{action, go, sides};
use report::read::Loaded;

use crate::destination::Destination;
use crate::outputs::Outputs;
use crate::terminal::{self, UsageError, usage};
use crate::{record, typed};

/// How much worse figures of two records may be by default: figures of two runs of one program differ, too, by what lies between the runs.
const MARGIN_PERCENT: f64 = 10.0;

/// Show what changed between two records, or between two commands with alternating trials
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe diff monday.json tuesday.json                      records of `bench --json F`, or of `compare`
  hosepipe diff old.json new.json --fail-over 5%              status 1 if something is surely more than 5 % worse, not 10 %
  hosepipe diff old.json new.json --md change.md              for a pull request
  hosepipe diff old.json new.json --format go | benchstat -col side -
  hosepipe diff --run ./sort-old ./sort-new -- words.txt      two programs, in turns, pair by pair
  hosepipe diff --run 'cat big | wc -c' 'wc -c < big'         two command lines
  hosepipe diff --run ./old ./new -- bench pipe fifo          two hosepipes: every case of their bench

Figures belong to the same case if all requested properties are equal. A change is found by a rank test that is corrected
for the number of figures; all intervals hold at once, with 95 %. What lies between two runs of one program is not in them: a
difference of two records is a change only if it is surely larger than --fail-over, and other programs ran beside both or neither.
Exit status: 0 nothing became worse; 1 something did (its whole interval is worse by more than --fail-over), or failed on the
new side only, or a command of --run ended with a status other than 0, on either side; 2 the command line is wrong, or these
records cannot be compared; 130 stopped by Ctrl-C.")]
pub(crate) struct DiffArgs {
    /// The record to compare with; with --run a command, or a hosepipe
    #[arg(value_name = "OLD")]
    old: OsString,

    /// The record that may have changed; with --run a command, or a hosepipe
    #[arg(value_name = "NEW")]
    new: OsString,

    /// Arguments for both commands; `bench …` for two hosepipes
    #[arg(value_name = "ARGS", last = true, requires = "run")]
    arguments: Vec<OsString>,

    /// OLD and NEW are commands: run them alternately, in pairs
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
    /// JSON for github-action-benchmark (customSmallerIsBetter): only NEW
    GithubAction,
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

/// Writes and prints the record; the status shows whether anything became worse.
fn show(args: &DiffArgs, record: DiffRecord) -> anyhow::Result<ExitCode> {
    let worse = record.regressions().next().is_some();
    let foreign = match args.format {
        None => None,
        Some(ForeignFormat::GithubAction) => Some(action::text(&record)?),
        Some(ForeignFormat::Go) => Some(go::text(&record, args.side)),
    };
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
    Ok(ExitCode::from(u8::from(worse)))
}

/// The comparison of two records.
fn compare_records(args: &DiffArgs) -> anyhow::Result<DiffRecord> {
    let read = |path: &OsString| -> anyhow::Result<_> {
        let loaded = record::load(Path::new(path))?;
        let figures = sides::figures(&loaded);
        Ok((loaded, figures))
    };
    // Reading large records takes time, mostly for histograms: the old one is read by another thread.
    let (old, new) = std::thread::scope(|scope| {
        let old = std::thread::Builder::new().spawn_scoped(scope, || read(&args.old));
        let new = read(&args.new);
        // If no thread can be started, this one reads it.
        (old.map_or_else(|_| Ok(read(&args.old)), ScopedJoinHandle::join), new)
    });
    let (old, old_figures) =
        old.map_err(|_| anyhow::anyhow!("the thread that read the old record failed"))??;
    let (new, new_figures) = new?;
    let figures = [old_figures, new_figures];
    let hosts_differ = sides::machines_differ(&old.record, &new.record);
    if !hosts_differ.is_empty() && !args.across_hosts {
        return usage(format!(
            "{} and {} are of different hosts, or of one with different settings ({}), so that their difference does not show a \
             change of the programs: --across-hosts compares them anyway",
            old.name,
            new.name,
            hosts_differ.join("; ")
        ));
    }
    if let Some(problem) = sides::suites_differ(&old.record, &new.record) {
        return usage(problem);
    }
    sides::check(&old, &new, &figures).map_err(UsageError)?;
    let [old_figures, new_figures] = &figures;
    Ok(DiffRecord {
        head: RecordHead { host: new.record.head().host.clone(), ..record::begin(false) },
        old: sides::side(&old),
        new: sides::side(&new),
        paired: false,
        looks: 1,
        hosts_differ,
        fail_over_percent: Some(args.fail_over.unwrap_or(MARGIN_PERCENT)),
        interrupted: [&old, &new].iter().any(|loaded| loaded.record.is_interrupted()),
        changes: stats::differences(old_figures, new_figures, false, 1),
    })
}
