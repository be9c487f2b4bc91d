//! `hosepipe __part`: runs partitions of a spread, or its reduce command, by the plan in the folder of the work.

mod task;

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use anyhow::{Context, Error, anyhow, ensure};
use clap::Args;
use model::RunRecord;
use pipeline::{Ran, ShellRun, ShellUse, Watched};
use process::{create_at, write_anew};
use remote::spread::{
    FeedProcess, InputFile, NOT_RUN, PartResult, Range, SpreadPlan, Work, describe, feed, is_url,
};
use rustix::fs::CWD;
use rustix::stdio::{dup2_stdin, dup2_stdout};

use crate::{record, run_cmd, script, terminal};

/// Partitions of a spread, or its reduce command.
#[derive(Debug, Args)]
pub(crate) struct PartArgs {
    /// The folder of the work
    folder: PathBuf,
    /// The partition, counted from 0; its result is a line of standard output
    number: Option<usize>,
    /// Run the partitions whose numbers are lines of standard input
    #[arg(long)]
    task: bool,
    /// Run the unfinished partitions that no other task of this Slurm job has taken
    #[arg(long, value_name = "JOB")]
    take: Option<String>,
    /// With --take: how many times a failed partition is run again
    #[arg(long, default_value_t = 0)]
    retries: u32,
    /// With --take: run the other partitions after one has failed
    #[arg(long)]
    keep_going: bool,
    /// Write standard error into a file of the folder
    #[arg(long)]
    log: bool,
    /// Record what the stages of a partition did
    #[arg(long)]
    records: bool,
}

/// Runs one partition, the partitions of a task, or the reduce, and returns its exit code.
pub(crate) fn run(args: &PartArgs) -> ExitCode {
    let work = Work::open(&args.folder);
    let done = match args.number {
        _ if args.task || args.take.is_some() => task::run(args, &work),
        Some(number) => task::run_one(args, &work, number),
        None => process::finish_with_parent().map_err(Error::from).and_then(|()| reduce(&work)),
    };
    done.unwrap_or_else(|error| {
        terminal::report_error(&error);
        NOT_RUN.into()
    })
}

/// The plan of a partition, or of the reduce if there is no number; and how many partitions there are.
fn plan_of(work: &Work, number: Option<usize>) -> anyhow::Result<(SpreadPlan, usize)> {
    let folder = work.folder().display();
    let (mut plan, mut count) = work
        .plan_of(number.unwrap_or(0))
        .with_context(|| format!("the plan in {folder}, a folder that every node must be able to read"))?;
    let own_version = record::version_and_commit();
    ensure!(
        plan.version == own_version,
        "the work was started by hosepipe {}, and this is {own_version}: all nodes need the same version",
        plan.version
    );
    if plan.is_stdin {
        count = work.blocks().unwrap_or(0);
    }
    if let Some(number) = number.filter(|_| plan.is_stdin) {
        let block = InputFile::from_path(&work.file(Some(number), "in")).map_err(Error::msg)?;
        plan.partitions = vec![vec![block.whole()]];
    }
    Ok((plan, count))
}

/// Runs the map for one partition in this process; returns its status, too.
fn map(args: &PartArgs, work: &Work, number: usize, attempt: &str) -> anyhow::Result<(PartResult, i32)> {
    // The other tasks of a Slurm job know by the file of its output that a partition was taken.
    let is_claimed = args.take.is_some();
    let (plan, _) = plan_of(work, Some(number))?;
    let ranges = plan.partitions.first().context("nothing to read")?;
    // Spark reads URLs itself, and writes their bytes to our standard input.
    let is_given = ranges.iter().any(|range| is_url(&range.file.path));
    let fed = if is_given { None } else { Some(feed_stdin(ranges)?) };
    let unfinished = work.unfinished(number, attempt);
    let output = if is_claimed {
        File::options().write(true).truncate(true).open(&unfinished)
    } else {
        create_at(CWD, &unfinished, 0o666, true)
    };
    dup2_stdout(output.context("a file for the output")?)?;
    let (ran, record) = run_text(&plan, &plan.map, args.records)?;
    if let Some(fed) = fed {
        finish(fed)?;
        ensure_unchanged(ranges)?;
    }
    let status = ran.status();
    if status != 0 {
        let _ = if is_claimed { Ok(()) } else { fs::remove_file(unfinished) };
        let ended = if ran.ended.success() { ExitStatus::from_raw(status << 8) } else { ran.ended };
        return Ok((PartResult { record, ..failed(number, describe(ended)) }, status));
    }
    dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    pipeline::wait_for_writers(&unfinished).context("the output")?;
    let bytes = work.finish(number, attempt).context("renaming the output")?;
    Ok((PartResult { partition: number, bytes, failure: None, record }, 0))
}

fn failed(partition: usize, failure: String) -> PartResult {
    PartResult { partition, bytes: 0, failure: Some(failure), record: None }
}

fn reduce(work: &Work) -> anyhow::Result<ExitCode> {
    let (plan, count) = plan_of(work, None)?;
    let outputs = work.outputs(count).map_err(Error::msg)?;
    let fed = if plan.reduce_reads_names {
        // Each name ends with a zero byte, the format of `sort --files0-from`.
        let names = outputs.iter().map(|output| output.file.path.as_os_str().as_encoded_bytes());
        let names = names.flat_map(|name| [name, b"\0"].concat()).collect::<Vec<u8>>();
        let list = work.file(None, "parts");
        write_anew(&list, 0o666, &names).context("the list of outputs")?;
        dup2_stdin(&File::open(&list).context("the list of outputs")?)?;
        None
    } else {
        Some(feed_stdin(&outputs)?)
    };
    let (ran, record) = run_text(&plan, &plan.reduce, true)?;
    let record = serde_json::to_vec(&record.unwrap_or_default())?;
    write_anew(&work.file(None, "json"), 0o666, &record).context("the record of the reduce")?;
    fed.map_or(Ok(()), finish)?;
    Ok(script::exit(&ran))
}

fn finish(fed: FeedProcess) -> anyhow::Result<()> {
    fed.finish().map_err(|problem| anyhow!("not everything could be read: {problem}"))
}

/// Starts a process that feeds the bytes of these ranges to standard input.
fn feed_stdin(ranges: &[Range]) -> anyhow::Result<FeedProcess> {
    ensure_unchanged(ranges)?;
    let (input, fed) = feed(ranges.to_vec()).context("the input")?;
    dup2_stdin(&input)?;
    Ok(fed)
}

fn ensure_unchanged(ranges: &[Range]) -> anyhow::Result<()> {
    for file in ranges.iter().map(|range| &range.file) {
        let found = InputFile::from_path(&file.path).map_err(Error::msg)?;
        let name = model::one_line(&file.path.to_string_lossy());
        ensure!(found == *file, "{name} has changed since the work was started: start it again");
    }
    Ok(())
}

/// Runs a pipeline as `hosepipe run` does.
fn run_text(plan: &SpreadPlan, text: &str, records: bool) -> anyhow::Result<(Ran, Option<RunRecord>)> {
    let (via, shell) = (script::link(&plan.via)?, script::shell(plan.shell.as_ref())?);
    let own = pipeline::text_arguments(&shell, text.as_ref());
    let head = record::begin(records);
    let arguments = script::arguments(plan.pipefail, &shell, own)?;
    let ran = pipeline::run(&ShellRun {
        watched: records.then_some(Watched { meter: false, lines: false, latency: false, show: None }),
        recorded: records,
        ..script::shell_run(&shell, arguments, &via, ShellUse::Run)
    })?;
    let record = records.then(|| run_cmd::record(head, text.to_owned(), &via, &ran));
    Ok((ran, record))
}
