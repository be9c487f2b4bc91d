//! `hosepipe spread`: a pipeline over many files, or over one large one in pieces, as many at a time as there are CPUs.

mod elsewhere;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use anyhow::Context;
use clap::Args;
use model::{ByteSize, Record, RunRecord};
use process::{Cleaner, TemporaryPath};
use remote::launcher::Launcher;
use remote::spread::{self, Blocks, Derived, InputFile, Range, SpreadJob, SpreadPlan, Work};
use report::read::Loaded;
use rustix::fs::CWD;
use rustix::io::fcntl_dupfd_cloexec;

use crate::bar::Bar;
use crate::outputs::Outputs;
use crate::record::record_head;
use crate::script;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::typed;
use elsewhere::Elsewhere;

/// Run a pipeline over many files, or a large one in pieces, and bring together what comes out
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe spread --map 'zcat | grep -c error || true' --reduce \"awk '{ n += \\$1 } END { print n }'\" logs/*.gz
  hosepipe spread --map 'sort | uniq -c' --split 64MiB words.txt       one file in pieces; how they come together is known
  zcat log.gz | hosepipe spread --map 'grep -c error' --split 64MiB -                   what comes in, in blocks of lines
  hosepipe spread --map 'cut -d\" \" -f1' --reduce cat --split 64MiB access.log
  hosepipe spread --map './slow' --reduce cat --work out --keep-going data/*    what is finished is kept in `out` …
  hosepipe spread --map './slow' --reduce cat --work out --resume data/*        … and only the rest is done
  hosepipe spread --hosts a,b --work /shared/w --map 'grep -c error' /shared/logs/*
  hosepipe spread --on slurm --submit --work /shared/w --map 'zcat | grep error || true' --reduce 'sort | uniq -c' logs/*.gz
  hosepipe spread --on spark --work /shared/w --map 'grep -c error' s3a://logs/1 s3a://logs/2 > job.py     (docs/SCALE.md)

MAP reads one input, or one piece of whole lines, at its standard input. REDUCE reads what came out of all of them, in the
order of the inputs. Both are command lines as `hosepipe run` takes them. Of sort, sort | uniq [-c], sort | head, wc and grep -c
the reduce is known. A MAP that ends with another status than 0 has failed (where that is meant: `grep x || true`).
Exit status: that of REDUCE; 1 a partition failed, and nothing was reduced; 2 the command line is wrong; 130 stopped by Ctrl-C.")]
pub(crate) struct SpreadArgs {
    /// The command line that is run once for each input
    #[arg(long, value_name = "TEXT")]
    map: String,

    /// The command line that is run once over all that came out [default: known for some single commands]
    #[arg(long, value_name = "TEXT")]
    reduce: Option<String>,

    /// Files, or patterns in quotes; `-` is standard input, which is cut into pieces at line ends while it comes in
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<OsString>,

    /// Cut inputs into pieces of about this size, at line ends [default: not; standard input into 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = typed::positive_size)]
    split: Option<ByteSize>,

    /// Partitions at a time, with ssh on each host [default: as many as there are CPUs for us; Slurm and Spark decide by themselves]
    #[arg(short, long, value_name = "N", value_parser = typed::whole(1u16..=4096))]
    jobs: Option<u16>,

    /// Run one that failed so many times again [default: 0; Spark decides by itself]
    #[arg(long, value_name = "N", value_parser = typed::whole(0u32..=100))]
    retries: Option<u32>,

    /// Do the others when one has failed
    #[arg(long)]
    keep_going: bool,

    /// Keep what came out of each partition in this folder [default: a temporary one, kept only where something failed]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,

    /// Go on with what an earlier run has left in --work: finished partitions are not run again
    #[arg(long, requires = "work")]
    resume: bool,

    /// First run about this much of the inputs (without --split whole files, at least two) whole and in parts, and compare what
    /// comes out
    #[arg(long, value_name = "SIZE", value_parser = typed::positive_size)]
    check: Option<ByteSize>,

    /// Print, on standard error, what the stages of all partitions did together
    #[arg(long)]
    stats: bool,

    /// What stands between the stages, with options as in tmpfile:order=sequential
    #[arg(long, value_name = "LINK", default_value = "pipe", value_parser = typed::link())]
    via: String,

    /// A text's status is the last failing stage's, as after `set -o pipefail`
    #[arg(long)]
    pipefail: bool,

    /// The shell that runs the texts
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: String,

    #[command(flatten)]
    elsewhere: Elsewhere,

    #[command(flatten)]
    outputs: Outputs,
}

/// Runs every partition, then the reduce.
pub(crate) fn run(args: &SpreadArgs) -> anyhow::Result<ExitCode> {
    let derived = match &args.reduce {
        Some(reduce) => Derived { map: args.map.clone(), reduce: reduce.clone(), reads_names: false },
        None => spread::derive(&args.map).map_err(UsageError)?,
    };
    script::link(&args.via)?;
    let shell = script::shell(args.shell.as_ref())?;
    script::arguments(args.pipefail, &shell, [])?;
    [&derived.map, &derived.reduce].iter().try_for_each(|text| script::check_syntax(text, &shell))?;
    args.outputs.check()?;
    let reads_stdin = args.inputs.iter().any(|input| input == "-");
    if reads_stdin && args.inputs.len() > 1 {
        return Err(
            UsageError("`-`, standard input, is an input by itself: no others beside it".to_owned()).into()
        );
    }
    let mut temporary = None;
    let folder = match &args.work {
        Some(folder) => folder.clone(),
        None => temporary.insert(Temporary::make()?).folder.path().to_owned(),
    };
    let folder = std::path::absolute(folder)?;
    args.elsewhere.check(args)?;
    let launcher = args.elsewhere.launcher();
    // An engine, and a check, read what is there before they begin.
    let is_cut_at_once = matches!(launcher, Launcher::Local | Launcher::Ssh) && args.check.is_none();
    let inputs = match reads_stdin {
        true if is_cut_at_once => Vec::new(),
        true => args.elsewhere.inputs(args, &[keep_stdin(&folder, args.resume)?])?,
        false => args.elsewhere.inputs(args, &args.inputs)?,
    };
    let split = args.split.or(reads_stdin.then_some(STDIN_PIECE));
    let plan = SpreadPlan {
        version: crate::record::version_and_commit(),
        map: derived.map,
        reduce: derived.reduce,
        reduce_reads_names: derived.reads_names,
        via: args.via.clone(),
        shell: args.shell.clone(),
        pipefail: args.pipefail,
        is_stdin: reads_stdin && is_cut_at_once,
        partitions: partitions(&inputs, split).map_err(UsageError)?,
    };
    let submitter = args.elsewhere.submitter().map_err(UsageError)?;
    let hosepipe = std::env::current_exe().context("this program's own file")?;
    let runs = Runs { args, hosepipe: &hosepipe, stop: StopRequest::listen()? };
    if let Some(most) = args.check
        && let Some(code) = runs.check(&plan, spread::sample(&inputs, split, most).map_err(UsageError)?)?
    {
        return Ok(code);
    }
    args.elsewhere.check_words(&folder, &hosepipe)?;
    let work = Work::begin(&folder, &plan, args.resume).map_err(UsageError)?;
    let mut job = runs.job(&work, &plan);
    if launcher != Launcher::Local && (plan.is_stdin || !job.left().is_empty()) {
        job = SpreadJob {
            launcher,
            hosts: &args.elsewhere.hosts,
            submitter: submitter.as_deref(),
            options: &args.elsewhere.engine_option,
            jobs: args.jobs.map(usize::from),
            ..job
        };
    }
    if job.launcher != Launcher::Local && args.elsewhere.only_prints() {
        return elsewhere::print(&job);
    }
    let (started, began, stop) = (SystemTime::now(), Instant::now(), &runs.stop);
    let piece = split.unwrap_or(STDIN_PIECE).0;
    let input = (plan.is_stdin && !args.resume).then(stdin_file).transpose()?;
    let failures = runs.map(&job, input.map(|input| Blocks::new(&work, input, piece)))?;
    let mut is_whole = failures.is_empty() && !stop.is_set();
    let status = match job.launcher {
        _ if !is_whole => i32::from(stop.exit_status().unwrap_or(1)),
        Launcher::Local | Launcher::Ssh => {
            // A format on standard output is alone there.
            let aside = args.outputs.streams()?.pop().map(|(stderr, _)| File::from(stderr));
            job.reduce(aside, &mut || stop.is_set()).context("running the reduce")?
        }
        _ => job.fetch().context("what the reduce has written")?,
    };
    is_whole &= !stop.is_set();
    let maps = if runs.records() { work.results() } else { BTreeMap::new() };
    let reduced = is_whole.then(|| work.record()).flatten();
    if let Some(record) = spread::merged(maps.into_values().filter_map(|result| result.record), reduced) {
        let record = RunRecord {
            head: record_head(record.head.host, started),
            pipeline: format!("{}, then {}", plan.map, plan.reduce),
            wall_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            status,
            ..record
        };
        let record = Record::Run(record);
        if args.stats {
            let text = report::terminal(&record, &terminal::style_of_stderr(), study::view);
            terminal::remark_painted(text.trim_end());
        }
        args.outputs.write(&[Loaded::new("this run", record)])?;
    }
    if !is_whole {
        tell(&failures, stop);
        tell_kept(&job, &inputs, temporary);
    }
    Ok(stop.exit_status().unwrap_or(u8::try_from(status).unwrap_or(1)).into())
}

/// Without --split, what one run of the map reads of standard input: lines enough that it takes longer than its start.
const STDIN_PIECE: ByteSize = ByteSize(1 << 20);

fn stdin_file() -> anyhow::Result<File> {
    Ok(fcntl_dupfd_cloexec(std::io::stdin(), 3).context("standard input")?.into())
}

/// Writes standard input into a file in the folder of the work, which can be read in parts and again; its name. To go on with a work it is
/// there already, and standard input is not read.
fn keep_stdin(folder: &Path, resume: bool) -> anyhow::Result<OsString> {
    let path = folder.join("input");
    if !resume {
        let refused = || format!("keeping standard input in {}", path.display());
        process::make_own_folder(folder).with_context(refused)?;
        // A work that was begun here reads it still.
        if folder.join("plan.jsonl").exists() {
            let message = format!(
                "{} holds work already: --resume goes on with it, and another --work begins anew",
                folder.display()
            );
            return Err(UsageError(message).into());
        }
        let mut file = process::create_at(CWD, &path, 0o600, true).with_context(refused)?;
        std::io::copy(&mut std::io::stdin(), &mut file).with_context(refused)?;
    }
    Ok(path.into())
}

/// What each run of the map reads; one run of nothing where there is nothing, so that `wc` says 0.
fn partitions(inputs: &[InputFile], split: Option<ByteSize>) -> Result<Vec<Vec<Range>>, String> {
    let mut partitions = Vec::new();
    for input in inputs {
        let ranges = match split {
            Some(piece) => spread::cut(input, piece.0, u64::MAX)?,
            None => vec![input.clone().whole()],
        };
        partitions.extend(ranges.into_iter().map(|range| vec![range]));
    }
    if partitions.is_empty() {
        partitions.push(Vec::new());
    }
    Ok(partitions)
}

/// Says what failed.
fn tell(failures: &[String], stop: &StopRequest) {
    const NAMED_MAX: usize = 5;
    failures.iter().take(NAMED_MAX).for_each(|failure| terminal::remark(failure));
    if failures.len() > NAMED_MAX {
        terminal::remark(&format!("… and {} more", failures.len() - NAMED_MAX));
    }
    terminal::remark(if stop.is_set() { "stopped before the end" } else { "nothing was reduced" });
}

/// Says how much is finished, and how the rest is done.
fn tell_kept(job: &SpreadJob<'_>, inputs: &[InputFile], temporary: Option<Temporary>) {
    let finished = job.work.results().values().filter(|result| result.failure.is_none()).count();
    let is_cut_short = job.plan.is_stdin && job.work.blocks().is_none();
    // Before a temporary folder is removed.
    let of = if is_cut_short {
        "the blocks that were read".to_owned()
    } else {
        job.count().to_string() + " partitions"
    };
    let has_changed = |input: &InputFile| {
        !spread::is_url(&input.path) && InputFile::look(&input.path).ok().as_ref() != Some(input)
    };
    // Nothing goes on from a folder with nothing finished in it, or with what was made of other inputs.
    let is_of_use = !is_cut_short && !inputs.iter().any(has_changed) && (temporary.is_none() || finished > 0);
    let kept = is_of_use.then(|| {
        let folder = temporary.map_or(job.work.folder().to_owned(), |temporary| temporary.folder.keep());
        let folder = model::shell_line(&[folder.to_string_lossy().into_owned()]);
        format!(", and kept. To go on: the same command with --work {folder} --resume")
    });
    let kept = kept.unwrap_or_default();
    terminal::remark(&format!("{finished} of {of} are finished{kept}"));
}

/// A folder for a work, removed with this value, and by the cleaner where this process is killed.
struct Temporary {
    folder: TemporaryPath,
    _cleaner: Cleaner,
}

impl Temporary {
    fn make() -> anyhow::Result<Self> {
        let cleaner = Cleaner::start().context("cannot start the process that cleans up after us")?;
        let folder = cleaner.make_folder().with_context(|| {
            let place = model::temporary_folder();
            format!("cannot make a folder in {}: set TMPDIR to one that you can write to, or name one with --work", place.display())
        })?;
        Ok(Self { folder, _cleaner: cleaner })
    }
}

/// What all runs of a command have in common.
struct Runs<'a> {
    args: &'a SpreadArgs,
    hosepipe: &'a Path,
    stop: StopRequest,
}

impl Runs<'_> {
    /// The partitions of a work, to be run here.
    fn job<'a>(&'a self, work: &'a Work, plan: &'a SpreadPlan) -> SpreadJob<'a> {
        SpreadJob {
            launcher: Launcher::Local,
            hosts: &[],
            submitter: None,
            options: &[],
            work,
            plan,
            hosepipe: self.hosepipe,
            jobs: Some(self.args.jobs.map_or_else(|| host::cpus().len(), usize::from).max(1)),
            retries: self.args.retries,
            keep_going: self.args.keep_going,
            records: self.records(),
        }
    }

    /// Whether it is wanted what the stages of partitions did.
    fn records(&self) -> bool {
        self.args.stats || !self.args.outputs.is_empty()
    }

    fn map(&self, job: &SpreadJob<'_>, blocks: Option<Blocks<'_>>) -> anyhow::Result<Vec<String>> {
        // How many blocks there will be is not known.
        let count = if blocks.is_some() { 0 } else { job.count() as u64 };
        let bar = Bar::new(count, " {pos}/{len} partitions {bar:20} {wide_msg} {eta}");
        let mut look = |finished, running| {
            bar.stand_at(finished as u64, &format!("{running} running"));
            self.stop.is_set()
        };
        let failures = job.map(blocks, &mut look, &mut terminal::remark);
        bar.finish();
        failures.context("running the partitions")
    }

    /// Runs a sample of the inputs whole and in parts. The status to leave with where that does not come to the same.
    fn check(&self, plan: &SpreadPlan, sample: Vec<Range>) -> anyhow::Result<Option<ExitCode>> {
        let parts = sample.len();
        let sampled = ByteSize(sample.iter().map(|range| range.bytes).sum());
        if parts < 2 {
            terminal::remark("nothing to check: the inputs do not make two parts");
            return Ok(None);
        }
        let mut came_out = Vec::new();
        for partitions in [vec![sample.clone()], sample.into_iter().map(|range| vec![range]).collect()] {
            let Temporary { folder, .. } = &Temporary::make()?;
            let plan = SpreadPlan { partitions, ..plan.clone() };
            let work = Work::begin(folder.path(), &plan, false).map_err(UsageError)?;
            let job = self.job(&work, &plan);
            let failures = self.map(&job, None)?;
            if !failures.is_empty() || self.stop.is_set() {
                tell(&failures, &self.stop);
                return Ok(Some(self.stop.exit_code(true)));
            }
            let path = folder.path().join("reduced");
            let status = job.reduce(Some(File::create(&path)?), &mut || self.stop.is_set())?;
            came_out.push((status, fs::read(path)?));
        }
        if came_out[0] == came_out[1] {
            let said =
                format!("checked: {sampled} of the inputs, whole and in {parts} parts, came to the same");
            terminal::remark(&said);
            return Ok(None);
        }
        let [whole, each] = [&came_out[0], &came_out[1]];
        let same = whole.1.iter().zip(&each.1).take_while(|(one, other)| one == other).count();
        terminal::remark(&format!(
            "This pipeline cannot be spread so: of {sampled} of the inputs, whole and in {parts} parts, what comes out differs from byte {same} on \
             ({} bytes with status {}, and {} bytes with status {}). Another --reduce may bring the parts together.",
            whole.1.len(),
            whole.0,
            each.1.len(),
            each.0
        ));
        Ok(Some(ExitCode::FAILURE))
    }
}
