//! `hosepipe spread`: runs a pipeline over many files, or over pieces of a large one, as many at a time as there are CPUs.

mod launcher_args;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use model::{ByteSize, RecordHead, RunRecord};
use pipeline::stuck::StuckWatch;
use process::{Cleaner, TemporaryPath};
use remote::launcher::Launcher;
use remote::spread::{self, Blocks, Derived, InputFile, Range, SpreadJob, SpreadPlan, Work};
use report::read::Loaded;
use rustix::fs::CWD;
use rustix::io::fcntl_dupfd_cloexec;

use crate::bar::Bar;
use crate::outputs::Outputs;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError, usage};
use crate::{record, script, typed};
use launcher_args::LauncherArgs;

/// Run a pipeline over many files, or over pieces of a large one, and merge the outputs
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/spread.txt"))]
pub(crate) struct SpreadArgs {
    /// The command line that is run once for each input
    #[arg(long, value_name = "TEXT")]
    map: String,

    /// The command line that is run once over all outputs of MAP [default: known for some single commands]
    #[arg(long, value_name = "TEXT")]
    reduce: Option<String>,

    /// Files, or patterns in quotes; `-` is standard input, which is cut into pieces at line ends while it is read
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<OsString>,

    /// Cut inputs into pieces of about this size, at line ends [default: whole files; standard input into 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = typed::positive_size)]
    split: Option<ByteSize>,

    /// Number of partitions at a time, with ssh on each host [default: the number of usable CPUs; Slurm and Spark decide by themselves]
    #[arg(short, long, value_name = "N", value_parser = typed::whole(1u16..=4096))]
    jobs: Option<u16>,

    /// How many times a failed partition is run again [default: 0; Spark decides by itself]
    #[arg(long, value_name = "N", value_parser = typed::whole(0u32..=100))]
    retries: Option<u32>,

    /// Run the other partitions after one has failed
    #[arg(long)]
    keep_going: bool,

    /// Keep the output of each partition in this folder [default: a temporary one, kept only if a partition failed]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,

    /// Continue an earlier run in --work: finished partitions are not run again
    #[arg(long, requires = "work")]
    resume: bool,

    /// First run about this much of the inputs (without --split whole files, at least two) as a whole and in parts, and compare the
    /// outputs
    #[arg(long, value_name = "SIZE", value_parser = typed::positive_size)]
    check: Option<ByteSize>,

    /// Print, on standard error, the figures of the stages, summed over all partitions
    #[arg(long)]
    stats: bool,

    /// The link between the stages, with options as in tmpfile:order=sequential
    #[arg(long, value_name = "LINK", default_value = "pipe", value_parser = typed::link())]
    via: String,

    /// The status of MAP and REDUCE is their last failing stage's, as after `set -o pipefail`
    #[arg(long)]
    pipefail: bool,

    /// The shell that runs MAP and REDUCE
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: String,

    #[command(flatten)]
    launcher_args: LauncherArgs,

    #[command(flatten)]
    outputs: Outputs,
}

/// Runs every partition, then the reduce.
pub(crate) fn run(args: &SpreadArgs) -> anyhow::Result<ExitCode> {
    let derived = commands(args)?;
    args.outputs.check()?;
    let mut temporary = None;
    let named = match &args.work {
        Some(folder) => folder.clone(),
        None => temporary.insert(Temporary::make()?).folder.path().to_owned(),
    };
    let folder = std::path::absolute(named)?;
    args.launcher_args.check(args)?;
    let launcher = args.launcher_args.launcher();
    let Inputs { files: inputs, is_cut_while_read, split } = inputs(args, &folder, launcher)?;
    let partitions = partitions(&inputs, split).map_err(UsageError)?;
    let plan = plan(args, derived, partitions, is_cut_while_read);
    let submitter = args.launcher_args.submitter().map_err(UsageError)?;
    let hosepipe = std::env::current_exe().context("cannot find the file of this program")?;
    let runs = Runs { args, hosepipe: &hosepipe, stop: StopRequest::listen()? };
    if let Some(most) = args.check
        && let Some(code) = runs.check(&plan, spread::sample(&inputs, split, most).map_err(UsageError)?)?
    {
        return Ok(code);
    }
    args.launcher_args.check_words(&folder, &hosepipe)?;
    let work = Work::begin(&folder, &plan, args.resume).map_err(UsageError)?;
    let mut job = runs.job(&work, &plan);
    if launcher != Launcher::Local && (plan.is_stdin || !job.left().is_empty()) {
        job = SpreadJob {
            launcher,
            hosts: &args.launcher_args.hosts,
            submitter: submitter.as_deref(),
            options: &args.launcher_args.engine_option,
            jobs: args.jobs.map(usize::from),
            ..job
        };
    }
    if job.launcher != Launcher::Local && args.launcher_args.only_prints() {
        return launcher_args::print(&job);
    }
    let (head, began, stop) = (record::begin(false), Instant::now(), &runs.stop);
    let piece = split.unwrap_or(STDIN_PIECE).0;
    let duplicated = (plan.is_stdin && !args.resume).then(|| fcntl_dupfd_cloexec(std::io::stdin(), 3));
    let input = duplicated.transpose().context("standard input")?.map(File::from);
    let failures = runs.map(&job, input.map(|input| Blocks::new(&work, input, piece)))?;
    let status = runs.reduce(&job, &failures)?;
    let is_whole = failures.is_empty() && !stop.is_set();
    if let Some(record) = runs.merged(&work, is_whole) {
        let record = report::with_sentence(RunRecord {
            head: RecordHead { host: record.head.host, ..head },
            pipeline: format!("{}, then {}", plan.map, plan.reduce),
            wall_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            status,
            ..record
        });
        args.outputs.show_on_stderr(Loaded::new("this run", record), args.stats)?;
    }
    if !is_whole {
        report_failures(&failures, stop);
        report_kept_work(&job, &inputs, temporary);
    }
    Ok(stop.exit_status().unwrap_or(u8::try_from(status).unwrap_or(1)).into())
}

fn plan(args: &SpreadArgs, derived: Derived, partitions: Vec<Vec<Range>>, is_stdin: bool) -> SpreadPlan {
    SpreadPlan {
        version: record::version_and_commit(),
        map: derived.map,
        reduce: derived.reduce,
        reduce_reads_names: derived.reads_names,
        via: args.via.clone(),
        shell: args.shell.clone(),
        pipefail: args.pipefail,
        is_stdin,
        partitions,
    }
}

/// The command lines of the map and of the reduce, which the shell and the link accept.
fn commands(args: &SpreadArgs) -> anyhow::Result<Derived> {
    let derived = match &args.reduce {
        Some(reduce) => Derived { map: args.map.clone(), reduce: reduce.clone(), reads_names: false },
        None => spread::derive(&args.map).map_err(UsageError)?,
    };
    script::link(&args.via)?;
    let shell = script::shell(args.shell.as_ref())?;
    script::arguments(args.pipefail, &shell, [])?;
    [&derived.map, &derived.reduce].iter().try_for_each(|text| script::check_syntax(text, &shell))?;
    Ok(derived)
}

/// What is read.
struct Inputs {
    files: Vec<InputFile>,
    /// Whether standard input is cut into pieces while it is read; then there are no files.
    is_cut_while_read: bool,
    /// The size of pieces.
    split: Option<ByteSize>,
}

/// The inputs; standard input is kept in `folder` if all of it is needed before the first partition runs.
fn inputs(args: &SpreadArgs, folder: &Path, launcher: Launcher) -> anyhow::Result<Inputs> {
    let reads_stdin = args.inputs.iter().any(|input| input == "-");
    if reads_stdin && args.inputs.len() > 1 {
        return usage("`-`, standard input, must be the only input");
    }
    // Slurm, Spark and --check need all of the input before they begin.
    let is_cut_while_read = reads_stdin && launcher.starts_each() && args.check.is_none();
    let files = match reads_stdin {
        true if is_cut_while_read => Vec::new(),
        true => args.launcher_args.inputs(args, &[keep_stdin(folder, args.resume)?])?,
        false => args.launcher_args.inputs(args, &args.inputs)?,
    };
    Ok(Inputs { files, is_cut_while_read, split: args.split.or(reads_stdin.then_some(STDIN_PIECE)) })
}

/// Size of the pieces of standard input without --split: large enough that reading one takes longer than starting the map.
const STDIN_PIECE: ByteSize = ByteSize(1 << 20);

/// Writes standard input into a file in the folder of the work, so that it can be read in parts and repeatedly. With `resume` the file
/// exists already, and standard input is not read.
fn keep_stdin(folder: &Path, resume: bool) -> anyhow::Result<OsString> {
    let path = folder.join("input");
    if !resume {
        let refused = || format!("keeping standard input in {}", path.display());
        process::make_own_folder(folder).with_context(refused)?;
        // The partitions of an earlier run read the file that is there.
        if folder.join("plan.jsonl").exists() {
            return usage(format!(
                "{} holds work already: --resume goes on with it, and another --work begins anew",
                folder.display()
            ));
        }
        let mut file = process::create_at(CWD, &path, 0o600, true).with_context(refused)?;
        std::io::copy(&mut std::io::stdin(), &mut file).with_context(refused)?;
    }
    Ok(path.into())
}

/// The partitions: what each run of the map reads. Without any input there is one that reads nothing, so that `wc` prints 0.
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

/// Prints the first failures.
fn report_failures(failures: &[String], stop: &StopRequest) {
    const NAMED_MAX: usize = 5;
    failures.iter().take(NAMED_MAX).for_each(|failure| terminal::remark(failure));
    if failures.len() > NAMED_MAX {
        terminal::remark(&format!("… and {} more", failures.len() - NAMED_MAX));
    }
    terminal::remark(if stop.is_set() { "stopped before the end" } else { "nothing was reduced" });
}

/// Prints how many partitions are finished, and the options that continue the run.
fn report_kept_work(job: &SpreadJob<'_>, inputs: &[InputFile], temporary: Option<Temporary>) {
    let finished = job.work.results().values().filter(|result| result.failure.is_none()).count();
    let is_cut_short = job.plan.is_stdin && job.work.blocks().is_none();
    // Counted before the temporary folder is removed.
    let of = if is_cut_short {
        "the blocks that were read".to_owned()
    } else {
        job.count().to_string() + " partitions"
    };
    let has_changed = |input: &InputFile| {
        !spread::is_url(&input.path) && InputFile::from_path(&input.path).ok().as_ref() != Some(input)
    };
    // A run cannot be continued if its input was cut short or has changed, or if nothing is finished.
    let can_resume =
        !is_cut_short && !inputs.iter().any(has_changed) && (temporary.is_none() || finished > 0);
    let kept = can_resume.then(|| {
        let folder = temporary.map_or(job.work.folder().to_owned(), |temporary| temporary.folder.keep());
        let folder = model::shell_line(&[folder.to_string_lossy().into_owned()]);
        format!(", and kept. To go on: the same command with --work {folder} --resume")
    });
    let kept = kept.unwrap_or_default();
    terminal::remark(&format!("{finished} of {of} are finished{kept}"));
}

/// A temporary folder for the files of a run; removed with this value, or by the cleaner if this process is killed.
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

/// What the run of all partitions and the runs of --check have in common.
struct Runs<'a> {
    args: &'a SpreadArgs,
    hosepipe: &'a Path,
    stop: StopRequest,
}

impl Runs<'_> {
    /// The job that runs the partitions of a work on this machine.
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

    /// Whether the stages of partitions are recorded.
    fn records(&self) -> bool {
        self.args.stats || !self.args.outputs.is_empty()
    }

    fn map(&self, job: &SpreadJob<'_>, blocks: Option<Blocks<'_>>) -> anyhow::Result<Vec<String>> {
        // The number of blocks of standard input is not known.
        let count = if blocks.is_some() { 0 } else { job.count() as u64 };
        let bar = Bar::new(count, " {pos}/{len} partitions {bar:20} {wide_msg} {eta}");
        let mut stuck = StuckWatch::new(None);
        let mut on_progress = |finished, running| {
            stuck.look();
            bar.set_position(finished as u64, &format!("{running} running"));
            self.stop.is_set()
        };
        let mapped =
            job.map(blocks, &mut on_progress, &mut terminal::remark).context("running the partitions");
        self.explain(stuck);
        mapped
    }

    /// Says why nothing moved before it was stopped.
    fn explain(&self, stuck: StuckWatch) {
        if let Some(answer) = self.stop.is_set().then(|| stuck.finish()).flatten() {
            terminal::remark(&report::why::at_last_look(&answer));
        }
    }

    /// Runs the reduce, or takes the output that another engine's reduce made. Returns its status; without all partitions that of a failure.
    fn reduce(&self, job: &SpreadJob<'_>, failures: &[String]) -> anyhow::Result<i32> {
        match job.launcher {
            _ if !failures.is_empty() || self.stop.is_set() => {
                Ok(i32::from(self.stop.exit_status().unwrap_or(1)))
            }
            launcher if launcher.starts_each() => {
                // With a record on standard output, the output of the reduce goes to standard error.
                let output = self.args.outputs.streams()?.pop().map(|(stderr, _)| File::from(stderr));
                let mut stuck = StuckWatch::new(None);
                let mut stops = || {
                    stuck.look();
                    self.stop.is_set()
                };
                let status = job.reduce(output, &mut stops).context("running the reduce");
                self.explain(stuck);
                status
            }
            _ => job.fetch().context("the output of the reduce"),
        }
    }

    /// The record of all partitions, and of the reduce if everything is there.
    fn merged(&self, work: &Work, is_whole: bool) -> Option<RunRecord> {
        let maps = if self.records() { work.results() } else { BTreeMap::new() };
        let reduced = is_whole.then(|| work.record()).flatten();
        spread::merged(maps.into_values().filter_map(|result| result.record), reduced)
    }

    /// Runs a sample of the inputs as a whole and in parts. Returns the exit status if the outputs differ.
    fn check(&self, plan: &SpreadPlan, sample: Vec<Range>) -> anyhow::Result<Option<ExitCode>> {
        let parts = sample.len();
        let sampled = ByteSize(sample.iter().map(|range| range.bytes).sum());
        if parts < 2 {
            terminal::remark("nothing to check: the inputs do not make two parts");
            return Ok(None);
        }
        // The status of the reduce and its output, of the whole sample and of its parts.
        let mut outcomes = Vec::new();
        for partitions in [vec![sample.clone()], sample.into_iter().map(|range| vec![range]).collect()] {
            let Temporary { folder, .. } = &Temporary::make()?;
            let plan = SpreadPlan { partitions, ..plan.clone() };
            let work = Work::begin(folder.path(), &plan, false).map_err(UsageError)?;
            let job = self.job(&work, &plan);
            let failures = self.map(&job, None)?;
            if !failures.is_empty() || self.stop.is_set() {
                report_failures(&failures, &self.stop);
                return Ok(Some(self.stop.exit_code(true)));
            }
            let path = folder.path().join("reduced");
            let status = job.reduce(Some(File::create(&path)?), &mut || self.stop.is_set())?;
            outcomes.push((status, fs::read(path)?));
        }
        let [(whole_status, whole), (parts_status, merged)] = &outcomes[..] else { return Ok(None) };
        if (whole_status, whole) == (parts_status, merged) {
            terminal::remark(&format!(
                "checked: {sampled} of the inputs, whole and in {parts} parts, gave the same result"
            ));
            return Ok(None);
        }
        let same = whole.iter().zip(merged).take_while(|(one, other)| one == other).count();
        terminal::remark(&format!(
            "This pipeline cannot be spread in this way: of {sampled} of the inputs, whole and in {parts} parts, the outputs differ from byte {same} \
             on ({} bytes with status {whole_status}, and {} bytes with status {parts_status}). Another --reduce may merge the parts correctly.",
            whole.len(),
            merged.len(),
        ));
        Ok(Some(ExitCode::FAILURE))
    }
}
