//! `hosepipe spread`: a pipeline over many files, or over one large one in pieces, as many at a time as there are CPUs.

mod elsewhere;

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use anyhow::Context;
use clap::Args;
use model::{ByteSize, RunRecord, SCHEMA};
use process::{Reach, Supervisor, shown_status, spawn};
use report::read::{AnyRecord, Loaded};
use report::sheet;
use spread::{Derived, Engine, Failure, InputFile, Local, Partition, Progress, SpreadPlan, Work};

use crate::bar::Bar;
use crate::outputs::Outputs;
use crate::part_cmd::NOT_RUN;
use crate::record::{arguments, rfc3339, tool};
use crate::script;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::typed;
use elsewhere::Elsewhere;

/// Run a pipeline over many files, or a large one in pieces, and bring together what comes out
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe spread --map 'zcat | grep -c error' --reduce \"awk '{ n += $1 } END { print n }'\" logs/*.gz
  hosepipe spread --map 'sort | uniq -c' --split 64MiB words.txt       one file in pieces; how they come together is known
  hosepipe spread --map 'cut -d\" \" -f1' --reduce cat --split 64MiB access.log
  hosepipe spread --map './slow' --reduce cat --work out --keep-going data/*    what is finished is kept in `out` …
  hosepipe spread --map './slow' --reduce cat --work out --resume data/*        … and only the rest is done
  hosepipe spread --on slurm --submit --work /shared/w --map 'zcat | grep error' --reduce 'sort | uniq -c' logs/*.gz
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

    /// Files, or patterns in quotes
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<OsString>,

    /// Cut inputs into pieces of about this size, at line ends
    #[arg(long, value_name = "SIZE", value_parser = typed::positive_size)]
    split: Option<ByteSize>,

    /// Partitions at a time [default: as many as there are CPUs for us; an engine decides by itself]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    jobs: Option<u16>,

    /// Run one that failed so many times again [default: 0; Spark decides by itself]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
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

    /// First run about so much of the inputs whole and in parts, and compare what comes out
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
    let usage = |problem: &dyn ToString| UsageError(problem.to_string());
    let derived = match &args.reduce {
        Some(reduce) => Derived { map: args.map.clone(), reduce: reduce.clone() },
        None => spread::derive(&args.map).map_err(UsageError)?,
    };
    script::link(&args.via)?;
    let shell = script::shell(args.shell.as_ref())?;
    [&derived.map, &derived.reduce].iter().try_for_each(|text| script::check_syntax(text, &shell))?;
    args.outputs.check()?;
    let inputs = args.elsewhere.inputs(args)?;
    let plan = SpreadPlan {
        version: crate::version(),
        map: derived.map,
        reduce: derived.reduce,
        via: args.via.clone(),
        shell: args.shell.clone(),
        pipefail: args.pipefail,
        partitions: partitions(&inputs, args.split).map_err(|problem| usage(&problem))?,
        inputs,
    };
    let submitter =
        args.elsewhere.submit.then(|| args.elsewhere.engine().map(Engine::submitter)).flatten().transpose();
    let submitter = submitter.map_err(|problem| usage(&problem))?;
    let stop = StopRequest::listen()?;
    if let Some(most) = args.check
        && let Some(code) = check(args, &plan, most, &stop)?
    {
        return Ok(code);
    }
    let temporary = match &args.work {
        None => Some(
            tempfile::Builder::new().prefix("hosepipe-spread-").tempdir().context("a folder for the work")?,
        ),
        Some(_) => None,
    };
    let folder = temporary
        .as_ref()
        .map_or(args.work.as_deref(), |folder| Some(folder.path()))
        .unwrap_or(Path::new("."));
    let folder = std::path::absolute(folder)?;
    let begin = if args.resume { Work::resume } else { Work::begin };
    let work = begin(&folder, &plan).map_err(|problem| usage(&problem))?;
    let (started, began) = (SystemTime::now(), Instant::now());
    let is_left = (0..plan.partitions.len()).any(|number| !work.is_finished(number));
    let (failures, reduced) = match args.elsewhere.engine().filter(|_| is_left) {
        Some(engine) => {
            match elsewhere::map_and_reduce(engine, args, &work, &plan, submitter.as_deref(), &stop)? {
                Some(ended) => ended,
                None => return Ok(ExitCode::SUCCESS),
            }
        }
        None => (map_all(args, &work, &plan, &stop)?, None),
    };
    let is_whole = failures.is_empty() && !stop.is_set();
    let status = match reduced {
        _ if !is_whole => i32::from(stop.exit_status().unwrap_or(1)),
        Some(status) => status,
        None => reduce(&work, None, &stop)?,
    };
    let (maps, reduced) = work.records(plan.partitions.len());
    if let Some(record) = spread::merged(&maps, reduced.as_ref().filter(|_| is_whole)) {
        let record = RunRecord {
            schema: SCHEMA.to_owned(),
            tool: tool(),
            arguments: arguments(),
            started: rfc3339(started),
            pipeline: format!("{}, then {}", plan.map, plan.reduce),
            wall_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            status,
            ..record
        };
        let record = AnyRecord::Run(record);
        if args.stats {
            let text = sheet::terminal(&record, &terminal::style_of_stderr(), study::view);
            terminal::remark_painted(text.trim_end());
        }
        args.outputs.write(&[Loaded::new("this run", record)])?;
    }
    if !is_whole {
        tell(&failures, &plan, stop.is_set());
        tell_kept(&work, &plan, temporary);
    }
    Ok(stop.exit_status().unwrap_or(u8::try_from(status).unwrap_or(1)).into())
}

/// Says how much is finished, and how the rest is done.
fn tell_kept(work: &Work, plan: &SpreadPlan, temporary: Option<tempfile::TempDir>) {
    let count = plan.partitions.len();
    let finished = (0..count).filter(|number| work.is_finished(*number)).count();
    let has_changed = |input: &InputFile| {
        !spread::is_url(&input.path) && InputFile::look(&input.path).ok().as_ref() != Some(input)
    };
    // Nothing goes on from a folder with nothing finished in it, or with what was made of other inputs.
    let is_of_use = !plan.inputs.iter().any(has_changed) && (temporary.is_none() || finished > 0);
    let kept = is_of_use.then(|| {
        let folder = temporary.map_or(work.folder().to_owned(), tempfile::TempDir::keep);
        let folder = model::shell_quoted(folder.as_os_str().as_encoded_bytes());
        format!(", and kept. To go on: the same command with --work {folder} --resume")
    });
    let kept = kept.unwrap_or_default();
    terminal::remark(&format!("{finished} of {count} partitions are finished{kept}"));
}

/// What each run of the map reads; one run of nothing where there is nothing, so that `wc` says 0.
fn partitions(inputs: &[InputFile], split: Option<ByteSize>) -> Result<Vec<Partition>, spread::InputProblem> {
    let mut partitions = Vec::new();
    for input in inputs {
        let ranges = match split {
            Some(piece) => spread::cut(input, piece.0)?,
            None => vec![input.whole()],
        };
        partitions.extend(ranges.into_iter().map(|range| Partition { ranges: vec![range] }));
    }
    if partitions.is_empty() {
        partitions.push(Partition { ranges: Vec::new() });
    }
    Ok(partitions)
}

fn map_all(
    args: &SpreadArgs,
    work: &Work,
    plan: &SpreadPlan,
    stop: &StopRequest,
) -> anyhow::Result<Vec<Failure>> {
    let hosepipe = std::env::current_exe().context("this program's own file")?;
    let jobs = args.jobs.map_or_else(|| host::cpus().len(), usize::from).max(1);
    let local = Local {
        work,
        hosepipe: &hosepipe,
        jobs,
        retries: args.retries.unwrap_or(0),
        keep_going: args.keep_going,
    };
    let count = plan.partitions.len();
    let bar = Bar::new(count as u64, " {pos}/{len} partitions {bar:20} {wide_msg} {eta}");
    let mut progress = SpreadProgress { bar, stop };
    let failures = local.run(count, &mut progress).context("running the partitions");
    progress.bar.finish();
    failures
}

/// Runs the reduce, with standard output elsewhere if that is asked for; gives its status.
fn reduce(work: &Work, output: Option<OwnedFd>, stop: &StopRequest) -> anyhow::Result<i32> {
    let hosepipe = std::env::current_exe().context("this program's own file")?;
    let words = ["hosepipe".into(), "__part".into(), work.folder().as_os_str().to_owned()];
    let copies: Vec<_> = output.into_iter().map(|output| (output, 1)).collect();
    let mut supervisor = Supervisor::new(Reach::AllBelow)?;
    supervisor.watch(spawn(&hosepipe, &words, &std::env::vars_os().collect(), &copies)?)?;
    let (ended, asked) = supervisor.wait(None)?;
    stop.note(asked);
    Ok(shown_status(ended))
}

/// Runs the beginning of the inputs whole and in parts. The status to leave with where that does not come to the same.
fn check(
    args: &SpreadArgs,
    plan: &SpreadPlan,
    most: ByteSize,
    stop: &StopRequest,
) -> anyhow::Result<Option<ExitCode>> {
    let ranges = spread::sample(&plan.inputs, most.0).map_err(|problem| UsageError(problem.to_string()))?;
    let parts = ranges.len();
    let sampled = ByteSize(ranges.iter().map(|range| range.bytes).sum());
    if parts < 2 {
        terminal::remark("nothing to check: the inputs do not make two parts");
        return Ok(None);
    }
    let whole = vec![Partition { ranges: ranges.clone() }];
    let each = ranges.into_iter().map(|range| Partition { ranges: vec![range] }).collect();
    let mut came_out = Vec::new();
    for partitions in [whole, each] {
        let folder = tempfile::tempdir().context("a folder for the check")?;
        let plan = SpreadPlan { partitions, ..plan.clone() };
        let work = Work::begin(folder.path(), &plan).map_err(|problem| UsageError(problem.to_string()))?;
        let failures = map_all(args, &work, &plan, stop)?;
        if !failures.is_empty() || stop.is_set() {
            tell(&failures, &plan, stop.is_set());
            return Ok(Some(stop.exit_code(true)));
        }
        let path = folder.path().join("reduced");
        let status = reduce(&work, Some(File::create(&path)?.into()), stop)?;
        came_out.push((status, std::fs::read(path)?));
    }
    if came_out[0] == came_out[1] {
        terminal::remark(&format!(
            "checked: {sampled} of the inputs, whole and in {parts} parts, came to the same"
        ));
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

/// Says what failed.
fn tell(failures: &[Failure], plan: &SpreadPlan, is_stopped: bool) {
    const NAMED_MAX: usize = 5;
    let count = plan.partitions.len();
    for failure in failures.iter().take(NAMED_MAX) {
        let what = match plan.partitions[failure.partition].ranges.as_slice() {
            [range] if range.offset == 0 => range.path.display().to_string(),
            [range] => format!("{} from byte {} on", range.path.display(), range.offset),
            ranges => format!("{} ranges", ranges.len()),
        };
        let how = match failure.status {
            Some(status) if status == i32::from(NOT_RUN) => {
                failure.how.replacen(&format!("exited with {NOT_RUN}"), "could not be run", 1)
            }
            _ => failure.how.clone(),
        };
        terminal::remark(&format!("partition {} of {count} ({what}) {how}", failure.partition + 1));
    }
    if failures.len() > NAMED_MAX {
        terminal::remark(&format!("… and {} more", failures.len() - NAMED_MAX));
    }
    terminal::remark(if is_stopped { "stopped: nothing was reduced" } else { "nothing was reduced" });
}

struct SpreadProgress<'a> {
    bar: Bar,
    stop: &'a StopRequest,
}

impl Progress for SpreadProgress<'_> {
    fn stops(&self) -> bool {
        self.stop.is_set()
    }

    fn show(&mut self, finished: usize, running: usize) {
        self.bar.stand_at(finished as u64, &format!("{running} running"));
    }
}
