//! `hosepipe __part`: one partition of a spread, or its reduce, as the folder of the work says.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, Command, FromArgMatches};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use spread::{Fed, InputFile, PARTS, SpreadPlan, Work, feed, is_url};

use crate::run_cmd::{self, RunArgs};
use crate::terminal;

/// One partition of a spread, or its reduce.
#[derive(Debug, Args)]
pub(crate) struct PartArgs {
    /// The folder of the work
    folder: PathBuf,
    /// The partition, counted from 0; without one, the reduce
    number: Option<usize>,
}

/// The status where it could not be run, or not as was asked: the text's own are told apart from it.
pub(crate) const NOT_RUN: u8 = 125;

/// Runs it and exits as it did.
pub(crate) fn run(args: &PartArgs) -> ExitCode {
    part(args).unwrap_or_else(|error| {
        terminal::report_error(&error);
        NOT_RUN.into()
    })
}

fn part(args: &PartArgs) -> anyhow::Result<ExitCode> {
    process::end_with_parent()?;
    let work = Work::of(&args.folder);
    let plan = args.number.map_or_else(|| work.plan(), |number| work.plan_of(number));
    let plan = plan.with_context(|| {
        format!("the plan in {}, a folder that every node has to see", args.folder.display())
    })?;
    ensure!(
        plan.version == crate::version(),
        "the work was begun by hosepipe {}, and this is {}: it takes the same one everywhere",
        plan.version,
        crate::version()
    );
    match args.number {
        Some(number) if work.is_finished(number) => Ok(ExitCode::SUCCESS),
        Some(number) => map(&work, &plan, number),
        None => reduce(&work, &plan),
    }
}

fn map(work: &Work, plan: &SpreadPlan, number: usize) -> anyhow::Result<ExitCode> {
    let partition = plan.partitions.first().context("nothing to read")?;
    // What this program cannot open, the engine reads for it.
    let is_given = partition.ranges.iter().any(|range| is_url(&range.path));
    for range in partition.ranges.iter().filter(|_| !is_given) {
        let planned = plan.inputs.iter().find(|input| input.path == range.path);
        ensure!(
            Some(&InputFile::look(&range.path)?) == planned,
            "{} has changed since the work was begun: begin anew",
            range.path.display()
        );
    }
    let fed = match is_given {
        true => None,
        false => {
            let (input, fed) = feed(partition.ranges.clone()).context("what the partition reads")?;
            dup2_stdin(&input)?;
            Some(fed)
        }
    };
    let output = work.start_output(number).context("a file for what comes out")?;
    dup2_stdout(&output)?;
    drop(output);
    let code = run_text(plan, &plan.map, &work.record_file(number))?;
    if let Some(Err(problem)) = fed.map(Fed::finish) {
        bail!("not everything could be read: {problem}");
    }
    if code == ExitCode::SUCCESS {
        dup2_stdout(File::options().write(true).open("/dev/null")?)?;
        pipeline::wait_for_writers(&work.unfinished(number)).context("what comes out")?;
        work.finish_output(number).context("naming what came out")?;
    } else {
        drop(std::fs::remove_file(work.unfinished(number)));
    }
    Ok(code)
}

fn reduce(work: &Work, plan: &SpreadPlan) -> anyhow::Result<ExitCode> {
    let partitions = plan.partitions.len();
    let outputs = work.outputs(partitions).context("what came out of the partitions")?;
    let record = work.reduce_record_file();
    if plan.reduce.contains(PARTS) {
        let list = work.list_outputs(partitions).context("the list of what came out")?;
        let list = model::shell_quoted(list.as_os_str().as_encoded_bytes());
        return run_text(plan, &plan.reduce.replace(PARTS, &list), &record);
    }
    let (input, fed) = feed(outputs).context("what came out of the partitions")?;
    dup2_stdin(&input)?;
    drop(input);
    let code = run_text(plan, &plan.reduce, &record)?;
    fed.finish().map_err(anyhow::Error::msg)?;
    Ok(code)
}

/// As `hosepipe run` does what is typed.
fn run_text(plan: &SpreadPlan, text: &str, record: &Path) -> anyhow::Result<ExitCode> {
    let mut json = OsString::from("--json=");
    json.push(record);
    let mut words: Vec<OsString> =
        vec![format!("--via={}", plan.via).into(), format!("--shell={}", plan.shell).into(), json];
    words.extend(plan.pipefail.then(|| "--pipefail".into()));
    words.extend(["--".into(), text.into()]);
    let command = RunArgs::augment_args(Command::new("run").no_binary_name(true));
    run_cmd::run(&RunArgs::from_arg_matches(&command.try_get_matches_from(words)?)?)
}
