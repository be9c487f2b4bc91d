//! `hosepipe compare`: several pipelines, or one pipeline over several links, with alternating trials.

mod parameters;
pub(crate) mod progress;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use model::{CompareRecord, CompareResult, Spec};
use pipeline::contest::{Contender, Contest, NotPrepared, SHELL, run_beside, shell_starts_s};
use pipeline::shell::{Kind, Shell};
use pipeline::{Start, TrialOptions};
use process::Refused;
use report::read::Loaded;
use stats::changes::{PAIRS_MAX, looks_for_order};

use self::parameters::{Values, combined, filled, name_in_records};
use self::progress::CompareProgress;
use crate::outputs::Outputs;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError, usage};
use crate::{copies, record, script, typed};

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

Exit status: 0 all compared; 1 a run failed or could not be started, or outputs of one pipeline over several links differ; 2 the command line is wrong;
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

/// The default links of one pipeline.
const LINKS: &str = "pipe,tmpfile,file,socketpair,shell";
/// The same for --by latency, which the shell's own pipes cannot measure.
const LINKS_WITH_LATENCY: &str = "pipe,tmpfile,file,socketpair";
/// Most timed runs of each by default, unless more are needed for the order of all.
const TRIALS: usize = 8;
/// Default of --time with --precision.
const TIME_FOR_PRECISION: Duration = Duration::from_secs(60);
/// The start of the shell is a large part of a shorter time.
const SHORT_S: f64 = 0.005;
/// Runs that measure the start of the shell.
const SHELL_STARTS: u32 = 9;

/// Runs all pipelines, prints the table and writes the records.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let shell = script::shell(&args.shell)?;
    let beside = [&args.set_up, &args.prepare, &args.conclude, &args.clean_up];
    let beside: Vec<&str> = beside.into_iter().flatten().map(String::as_str).collect();
    check_names(args)?;
    let pipelines = combined(&args.texts, &beside, &parameters::read(&args.parameters)?)?;
    pipelines.iter().try_for_each(|(text, values)| script::check_syntax(&filled(text, values), &shell))?;
    args.outputs.check()?;
    let aligns = args.align_buffers && copies::alignment_has_effect();
    let texts = pipelines.len() * (1 + usize::from(args.without.is_some()) + usize::from(aligns));
    let several = texts > 1;
    let by_latency = args.by == "latency";
    let has_links =
        pipelines.iter().any(|(text, values)| filled(text, values).replace("||", "").contains('|'));
    if !has_links && !several && args.via.is_none() {
        terminal::remark("There is no `|` that a link could replace: the shell alone is timed.");
    }
    let default = match (by_latency, several || !has_links) {
        (true, true) => "pipe",
        (true, false) => LINKS_WITH_LATENCY,
        (false, true) => SHELL,
        (false, false) => LINKS,
    };
    let vias = links(args.via.as_deref().unwrap_or(default));
    vias.iter().filter(|via| via.contains([' ', ';'])).try_for_each(|via| script::link(via).map(drop))?;
    let is_shell = |via: &&String| {
        *via == SHELL || *via == shell.kind.word() || Spec::has_option(via, "order", "sequential")
    };
    if let Some(via) = vias.iter().find(is_shell).filter(|_| by_latency) {
        return usage(format!(
            "--by latency: the time of lines cannot be measured over `{via}`: choose another link, as in --via pipe"
        ));
    }
    let contenders = contenders(args, aligns, &pipelines, &vias, &shell)?;
    let results: Vec<&CompareResult> = contenders.iter().map(|contender| &contender.result).collect();
    let pairs = stats::pairs_to_order(&results);
    let has_time = args.time.is_some() || args.precision.is_some();
    let usual = if has_time { PAIRS_MAX } else { TRIALS.max(stats::rounds_to_order(pairs)) };
    let trials = args.trials.unwrap_or(usual as u32);
    let looks = match args.trials {
        _ if pairs == 0 => vec![trials as usize],
        Some(_) if args.precision.is_none() => vec![trials as usize],
        _ => looks_for_order(pairs, trials as usize),
    };
    let is_certain = |results: &[&CompareResult]| stats::is_order_certain(results, looks.len() as u32);
    let is_enough = |rounds: u32, results: &[&CompareResult]| {
        if let Some(percent) = args.precision {
            return stats::are_times_precise(results, percent);
        }
        looks.len() > 1 && looks.contains(&(rounds as usize)) && is_certain(results) == Some(true)
    };
    let hosepipe = std::env::current_exe().context("cannot find the file of this program")?;
    let head = record::begin(true);
    let stop = StopRequest::listen()?;
    let start = || Start { hosepipe: &hosepipe, shell: &shell };
    let mut elapsed_s = 0.0;
    let (mut results, left_behind) = with_set_up(args, &pipelines, &shell, &stop, || {
        let began = Instant::now();
        let default = (args.precision.is_some() && args.trials.is_none()).then_some(TIME_FOR_PRECISION);
        let time = args.time.or(default);
        let contest = Contest {
            start: start(),
            warmup: args.warmup,
            trials,
            until: time.and_then(|time| began.checked_add(time)),
            is_enough: &is_enough,
            seed: args.seed,
            must_succeed: several,
            shows_messages: true,
        };
        let runs = contenders.len() as u64 * u64::from(args.warmup + trials);
        let made = contest.run(contenders, &mut CompareProgress::new(runs, time, &stop));
        elapsed_s = began.elapsed().as_secs_f64();
        let (results, signal) = made?;
        stop.note(signal);
        Ok(results)
    })?;
    let interrupted = stop.is_set();

    let rounds = results.iter().map(|result| result.times_s.len()).max().unwrap_or(0);
    let looks_made = stats::looks_at_end(&looks, rounds);
    let of_median = if args.precision.is_some() { stats::Looks::Repeatedly } else { stats::Looks::Once };
    stats::summarise_times(&mut results, looks_made, of_median);
    let order_is_certain = stats::is_order_certain(&results.iter().collect::<Vec<_>>(), looks_made);
    let is_short =
        |one: &CompareResult| one.is_shell_alone() && one.median_s.is_some_and(|median| median < SHORT_S);
    let starts =
        (!interrupted && results.iter().any(is_short)).then(|| shell_starts_s(&start(), SHELL_STARTS));
    let record = CompareRecord {
        head,
        seed: args.seed,
        trials,
        warmup: args.warmup,
        looks: Some(looks_made),
        elapsed_s: Some(elapsed_s),
        order_is_certain,
        precision_percent: args.precision,
        interrupted,
        shell_start_s: starts.and_then(|starts| stats::estimate::median(&starts)),
        conditions: conditions(args, &shell),
        results,
    };
    // The output of one of several pipelines may change from run to run; that of one pipeline over several links may not.
    let must_be_equal = !several || vias.len() > 1;
    let has_failed =
        |result: &CompareResult| result.error.is_some() || (must_be_equal && result.equal == Some(false));
    let failed = record.results.iter().any(has_failed) || !left_behind.is_empty();
    args.outputs.show(Loaded::new("this run", record), &terminal::style())?;
    left_behind.iter().for_each(|problem| terminal::remark(problem));
    Ok(stop.exit_code(failed))
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

/// Runs --set-up for each pipeline, then all pipelines, then --clean-up. Returns the results and the failures of --clean-up.
fn with_set_up(
    args: &CompareArgs,
    pipelines: &[(&str, Values)],
    shell: &Shell,
    stop: &StopRequest,
    make: impl FnOnce() -> Result<Vec<CompareResult>, NotPrepared>,
) -> anyhow::Result<(Vec<CompareResult>, Vec<String>)> {
    let each = |text: &Option<String>| -> Vec<String> {
        let text = text.iter();
        text.flat_map(|text| pipelines.iter().map(|(_, values)| filled(text, values))).collect()
    };
    let set_up = each(&args.set_up).iter().try_for_each(|text| run_beside(shell, "--set-up", text));
    let made = set_up.and_then(|()| make());
    let mut left_behind = Vec::new();
    for text in each(&args.clean_up) {
        match run_beside(shell, "--clean-up", &text) {
            Ok(()) => {}
            Err(NotPrepared::Stopped(signal)) => stop.note(Some(signal)),
            Err(NotPrepared::Failed(problem)) => left_behind.push(problem),
        }
    }
    match made {
        Ok(results) => return Ok((results, left_behind)),
        Err(NotPrepared::Stopped(signal)) => stop.note(Some(signal)),
        // Ctrl-C ended the command as well, before its own wait saw the signal.
        Err(NotPrepared::Failed(_)) if stop.is_set() => {}
        Err(NotPrepared::Failed(problem)) => {
            return usage(format!("{problem}: the measurement would not be the one requested"));
        }
    }
    Ok((Vec::new(), left_behind))
}

/// Refuses names that are not different, or more names than command lines.
fn check_names(args: &CompareArgs) -> anyhow::Result<()> {
    let names = &args.names;
    if names.len() > args.texts.len() {
        return usage(format!("-n names {}, and there are {} command lines", names.len(), args.texts.len()));
    }
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, twice)) => {
            usage(format!("`-n {twice}` is given twice: give each command line a name of its own"))
        }
        None => Ok(()),
    }
}

/// Each pipeline as it is, without the refused calls, and with aligned buffers, over each link.
fn contenders(
    args: &CompareArgs,
    aligns: bool,
    pipelines: &[(&str, Values)],
    vias: &[String],
    shell: &Shell,
) -> anyhow::Result<Vec<Contender>> {
    let plain = TrialOptions { latency: args.by == "latency", ..TrialOptions::default() };
    let mut variants = vec![(None, plain.clone())];
    variants.extend(args.without.iter().map(|calls| {
        (Some(("without", calls.to_string())), TrialOptions { without: Some(calls.clone()), ..plain.clone() })
    }));
    let aligned = Some(("align-buffers", "yes".to_owned()));
    variants.extend(aligns.then_some((aligned, TrialOptions { align_buffers: true, ..plain })));
    let mut all = Vec::new();
    for (text, values) in pipelines {
        for (parameter, options) in &variants {
            let place = args.texts.iter().position(|typed| std::ptr::eq(typed.as_str(), *text));
            let name = place.and_then(|place| args.names.get(place));
            let (mut shown, mut parameters) = (name_in_records(text, values), values.clone());
            let mut name = name.map(|name| name_in_records(name, values));
            if let Some((option, value)) = parameter {
                let comment = format!(" # {option}={value}");
                shown += &comment;
                name.iter_mut().for_each(|name| *name += &comment);
                parameters.insert((*option).to_owned(), value.clone());
            }
            for via in vias {
                let mut contender =
                    Contender::new(&filled(text, values), &shown, via, shell).map_err(UsageError::new)?;
                contender.prepare = args.prepare.as_ref().map(|text| filled(text, values));
                contender.conclude = args.conclude.as_ref().map(|text| filled(text, values));
                contender.options = TrialOptions { via: contender.options.via, ..options.clone() };
                contender.result.parameters = parameters.clone();
                contender.result.name = name.clone();
                all.push(contender);
            }
        }
    }
    Ok(all)
}

/// Splits `pipe,file:sync,order=sequential,tcp` into links: a piece that is an option belongs to the link before it, if that one has
/// options.
fn links(text: &str) -> Vec<String> {
    let mut links: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let option = piece.contains('=') && !piece.contains(':');
        match links.last_mut() {
            Some(last) if option && last.contains(':') => {
                last.push(',');
                last.push_str(piece);
            }
            _ => links.push(piece.to_owned()),
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn options_stay_with_their_link() {
        assert_eq!(links("pipe,tmpfile"), ["pipe", "tmpfile"]);
        assert_eq!(links("file:sync,order=sequential,tcp"), ["file:sync,order=sequential", "tcp"]);
        assert_eq!(links("pipe,size=1MiB"), ["pipe", "size=1MiB"], "no option without a colon");
    }
}
