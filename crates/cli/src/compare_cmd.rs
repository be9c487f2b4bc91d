//! `hosepipe compare`: several pipelines, or one pipeline over several links, with alternating trials.

mod parameters;
mod plan;
pub(crate) mod progress;
mod rounds;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use model::{CompareRecord, CompareResult};
use pipeline::Start;
use pipeline::contest::{Contest, NotPrepared, run_beside, shell_starts_s};
use pipeline::shell::{Kind, Shell};
use process::Refused;
use report::read::Loaded;

use self::parameters::filled;
use self::plan::Plan;
use self::progress::CompareProgress;
use self::rounds::EndRule;
use crate::outputs::Outputs;
use crate::signals::StopRequest;
use crate::terminal::{self, usage};
use crate::{record, script, typed};

/// Compare pipelines, or one pipeline over several links, with alternating trials
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe compare 'grep -c x f' 'rg -c x f'                        which one is faster, and is the output the same?
  hosepipe compare -P cpus 1,2,4 'sort --parallel={cpus} f'         which value is the fastest?
  hosepipe compare -n gnu -n rust 'grep -c x f' 'rg -c x f'         the same, with names in the table
  hosepipe compare --prepare 'sync; echo 3 > /proc/sys/vm/drop_caches' 'cat big | md5sum' 'cat big | b3sum'
  hosepipe compare --md - 'gzip -c f' 'zstd -c f'                   a table for a README
  hosepipe compare 'cat file.txt | sort | uniq -u | wc -l'          one pipeline over several links
  hosepipe compare --without splice,vmsplice 'cat big | wc -c'      with and without these system calls
  hosepipe compare --align-buffers 'cat big | zstd -1'              with and without, on a CPU that copies slowly into some addresses
  hosepipe compare --by latency 'cat log | grep x | cat' 'cat log | grep --line-buffered x | cat'
  hosepipe compare --fail-over 5 './sort-old f' './sort-new f'      for CI: status 1 if the second one surely takes more than 5 % longer
  hosepipe compare --via pipe,bash --trials 20 'cat big | wc -c'    is it faster than bash?
  hosepipe compare --via pipe,ssh:db2 'hosepipe gen --bytes 1GiB | hosepipe sink'     what it costs to go through another host
  hosepipe compare --via pipe,tmpfile:order=sequential,file:sync,socketpair --json study.json 'ls -R / | wc -l'

They take turns in a random order, until it is certain which of any two is faster (see --time and --trials), or with --precision until
the intervals are narrow. A time is that of a whole program, from its start to its end: `bash -c` for the shell alone (--shell names
another one), or `hosepipe run` over a link. Its input is empty, its output is read and compared.

Several pipelines are ranked by how many times as long as the fastest each takes, within rounds; the bounds hold for all of them at
once. A pipeline that ends with a status other than 0 has failed. Different outputs of different pipelines are reported, but are not
a failure.

One pipeline over several links: the ratios in the table are those of its medians; the ratios in the record are within rounds.

Exit status: 0 all compared; 1 a run failed or could not be started, outputs of one pipeline over several links differ, or one takes longer
than --fail-over allows; 2 the command line is wrong;
130 stopped by Ctrl-C.")]
pub(crate) struct CompareArgs {
    /// The command lines, each in the syntax of the shell
    #[arg(value_name = "PIPELINE", required = true)]
    texts: Vec<String>,

    /// A name for a command line, in the tables instead of its text; once for each of the first ones, in their order
    #[arg(short = 'n', long = "name", value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), allow_hyphen_values = true)]
    names: Vec<String>,

    /// The links; the others are compared with the first. `shell`, or its name, is the shell alone [default: `shell` for several
    /// pipelines, or one without a `|`, else pipe,tmpfile,file,socketpair,shell]
    #[arg(long, value_name = "LINKS", value_parser = typed::links())]
    via: Option<String>,

    /// Rank by how long a run takes, or by the median time that lines take from the first link to the last (`hosepipe run --latency`)
    #[arg(long, value_name = "FIGURE", default_value = "time", value_parser = ["time", "latency"])]
    by: String,

    /// Run each pipeline as it is, and once more with these system calls refused to it (ENOSYS)
    #[arg(long, value_name = "CALL,…")]
    without: Option<Refused>,

    /// Run each pipeline as it is, and once more with its programs' large buffers where this CPU copies at full speed; the
    /// table also shows their memory
    #[arg(long)]
    align_buffers: bool,

    /// Timed runs of each [default: until it is certain which of any two is faster, at most 8, or up to five more than are needed
    /// to distinguish this many pipelines and links]
    #[arg(long, value_name = "N", value_parser = typed::whole(1u32..=100_000))]
    trials: Option<u32>,

    /// Start no round after this time, except the first timed one; without --trials, rounds go on until then while the order is not certain
    #[arg(long, value_name = "DURATION", value_parser = typed::positive_duration)]
    time: Option<Duration>,

    /// Run rounds until the interval of each median is this narrow, in percent of the median on either side [at most 163 rounds
    /// within one minute, unless --time or --trials is given]
    #[arg(long, value_name = "PERCENT", value_parser = typed::percent)]
    precision: Option<f64>,

    /// Exit with status 1 if a pipeline surely takes longer than the first one by more than this, in percent, 0 for by anything; of one
    /// pipeline, if a link takes longer than the first. Rounds go on until that is certain of each [at most 163 within five minutes, unless
    /// --time or --trials is given]
    #[arg(long, value_name = "PERCENT", value_parser = typed::margin, conflicts_with = "precision")]
    fail_over: Option<f64>,

    /// Untimed runs of each before the timed ones
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = typed::whole(0u32..=1000))]
    warmup: u32,

    /// Replace {NAME} in the command lines by each of these values, separated by commas (`\,` is a comma in a value); several times:
    /// every combination
    #[arg(short = 'P', long = "parameter", num_args = 2, value_names = ["NAME", "VALUES"], allow_hyphen_values = true)]
    parameters: Vec<String>,

    /// A command line that the shell runs once for each pipeline, before all runs. Pipelines take turns, so files that it makes for one
    /// must not replace those of another
    #[arg(long, value_name = "COMMAND", alias = "setup")]
    set_up: Option<String>,

    /// A command line that the shell runs before each run, untimed
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<String>,

    /// A command line that the shell runs after each run, untimed
    #[arg(long, value_name = "COMMAND")]
    conclude: Option<String>,

    /// A command line that the shell runs once for each pipeline, after all runs, also if they were stopped
    #[arg(long, value_name = "COMMAND", alias = "cleanup")]
    clean_up: Option<String>,

    /// The shell that runs them
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: OsString,

    /// Seed of the order within rounds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = typed::seed)]
    seed: u64,

    #[command(flatten)]
    outputs: Outputs,
}

/// The start of the shell is a large part of a shorter time.
const SHORT_S: f64 = 0.005;
/// Runs that measure the start of the shell.
const SHELL_STARTS: u32 = 9;

/// Runs all pipelines, prints the table and writes the records.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let shell = script::shell(&args.shell)?;
    let plan = Plan::new(args, &shell)?;
    args.outputs.check()?;
    let rule = EndRule::new(args, &plan)?;
    let hosepipe = std::env::current_exe().context("cannot find the file of this program")?;
    let start = || Start { hosepipe: &hosepipe, shell: &shell };
    let head = record::begin(true);
    let stop = StopRequest::listen()?;
    let must_be_equal = plan.must_be_equal();
    let made = take_turns(args, plan, &rule, start(), &stop)?;
    let record = CompareRecord {
        head,
        seed: args.seed,
        trials: rule.trials,
        warmup: args.warmup,
        elapsed_s: Some(made.elapsed_s),
        precision_percent: args.precision,
        fail_over_percent: args.fail_over,
        interrupted: stop.is_set(),
        conditions: conditions(args, &shell),
        results: made.results,
        ..CompareRecord::default()
    };
    let record = summarised(record, &rule, || shell_starts_s(&start(), SHELL_STARTS));
    let has_failed =
        |result: &CompareResult| result.error.is_some() || (must_be_equal && result.equal == Some(false));
    let failed = record.results.iter().any(has_failed)
        || record.regressions().next().is_some()
        || !made.left_behind.is_empty();
    args.outputs.show(Loaded::new("this run", record), &terminal::style())?;
    made.left_behind.iter().for_each(|problem| terminal::remark(problem));
    Ok(stop.exit_code(failed))
}

/// What the rounds gave.
struct Made {
    results: Vec<CompareResult>,
    elapsed_s: f64,
    /// The failures of --clean-up.
    left_behind: Vec<String>,
}

/// Runs --set-up for each pipeline, then the rounds, then --clean-up.
fn take_turns(
    args: &CompareArgs,
    plan: Plan<'_>,
    rule: &EndRule,
    start: Start<'_>,
    stop: &StopRequest,
) -> anyhow::Result<Made> {
    let each = |text: &Option<String>| -> Vec<String> {
        text.iter().flat_map(|text| plan.pipelines.iter().map(|(_, values)| filled(text, values))).collect()
    };
    let (set_up, clean_up) = (each(&args.set_up), each(&args.clean_up));
    let shell = start.shell;
    let prepared = set_up.iter().try_for_each(|text| run_beside(shell, "--set-up", text));
    let began = Instant::now();
    let results = prepared.and_then(|()| {
        let contest = Contest {
            start,
            warmup: args.warmup,
            trials: rule.trials,
            until: rule.time.and_then(|time| began.checked_add(time)),
            is_enough: &|rounds, results| rule.is_enough(rounds, results),
            seed: args.seed,
            must_succeed: plan.several,
            shows_messages: true,
        };
        let runs = plan.contenders.len() as u64 * u64::from(args.warmup + rule.trials);
        let (results, signal) =
            contest.run(plan.contenders, &mut CompareProgress::new(runs, rule.time, stop))?;
        stop.note(signal);
        Ok(results)
    });
    let elapsed_s = began.elapsed().as_secs_f64();
    let mut left_behind = Vec::new();
    for text in clean_up {
        match run_beside(shell, "--clean-up", &text) {
            Ok(()) => {}
            Err(NotPrepared::Stopped(signal)) => stop.note(Some(signal)),
            Err(NotPrepared::Failed(problem)) => left_behind.push(problem),
        }
    }
    let results = match results {
        Ok(results) => results,
        Err(NotPrepared::Stopped(signal)) => {
            stop.note(Some(signal));
            Vec::new()
        }
        // Ctrl-C ended the command as well, before its own wait saw the signal.
        Err(NotPrepared::Failed(_)) if stop.is_set() => Vec::new(),
        Err(NotPrepared::Failed(problem)) => {
            return usage(format!("{problem}: the measurement would not be the one requested"));
        }
    };
    Ok(Made { results, elapsed_s, left_behind })
}

/// The record with the summaries of its results.
fn summarised(
    mut record: CompareRecord,
    rule: &EndRule,
    shell_starts: impl FnOnce() -> Vec<f64>,
) -> CompareRecord {
    let results = &mut record.results;
    let rounds = results.iter().map(|result| result.times_s.len()).max().unwrap_or(0);
    let analyses = stats::analyses_at_end(&rule.analyses, rounds);
    let of_median = match record.precision_percent {
        Some(_) => stats::Analyses::Repeatedly,
        None => stats::Analyses::Once,
    };
    stats::summarise_times(results, analyses, of_median);
    if record.fail_over_percent.is_some() {
        stats::summarise_baselines(results, analyses);
    }
    record.analyses = Some(analyses);
    record.order_is_certain = stats::is_order_certain(&results.iter().collect::<Vec<_>>(), analyses);
    let is_short =
        |one: &CompareResult| one.is_shell_alone() && one.median_s.is_some_and(|median| median < SHORT_S);
    if !record.interrupted && results.iter().any(is_short) {
        record.shell_start_s = stats::estimate::median(&shell_starts());
    }
    record
}

/// The conditions that all results have in common, for the record.
fn conditions(args: &CompareArgs, shell: &Shell) -> BTreeMap<String, String> {
    let word = match shell.kind {
        Kind::Bash => None,
        Kind::Other => Some(shell.path.display().to_string()),
        known => Some(known.word().to_owned()),
    };
    let by = Some(args.by.clone()).filter(|by| by == "latency");
    let all = [
        ("by", &by),
        ("shell", &word),
        ("set-up", &args.set_up),
        ("prepare", &args.prepare),
        ("conclude", &args.conclude),
        ("clean-up", &args.clean_up),
    ];
    all.into_iter().filter_map(|(name, word)| Some((name.to_owned(), word.clone()?))).collect()
}
