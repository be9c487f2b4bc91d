//! `hosepipe __part`: runs one partition of a spread, or its reduce, from the plan in the work's folder.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Error, anyhow, ensure};
use clap::Args;
use process::{Child, create_at, write_anew};
use remote::spread::{BEGUN, Fed, InputFile, NOT_RUN, Range, SpreadPlan, Work, feed, is_url};
use rustix::fs::CWD;
use rustix::process::{Signal, kill_process};
use rustix::stdio::{dup2_stdin, dup2_stdout};

use crate::run_cmd::{self, RunArgs};
use crate::{terminal, typed};

/// One partition of a spread, or its reduce.
#[derive(Debug, Args)]
pub(crate) struct PartArgs {
    /// The folder of the work
    folder: PathBuf,
    /// The partition, counted from 0; without one, the reduce
    number: Option<usize>,
    /// Say when it begins, and end when standard input does: ssh has started it
    #[arg(long)]
    connected: bool,
}

/// Returns the exit code of what it ran.
pub(crate) fn run(args: &PartArgs) -> ExitCode {
    part(args).unwrap_or_else(|error| {
        terminal::report_error(&error);
        NOT_RUN.into()
    })
}

fn part(args: &PartArgs) -> anyhow::Result<ExitCode> {
    process::end_with_parent()?;
    let work = Work::open(&args.folder);
    let (plan, count) = work.plan_of(args.number.unwrap_or(0)).with_context(|| {
        format!("the plan in {}, a folder that every node has to see", args.folder.display())
    })?;
    ensure!(
        plan.version == crate::version(),
        "the work was begun by hosepipe {}, and this is {}: it takes the same one everywhere",
        plan.version,
        crate::version()
    );
    let _watch = if args.connected { Some(begin_connected()?) } else { None };
    match args.number {
        Some(number) if work.is_finished(number) => Ok(ExitCode::SUCCESS),
        Some(number) => map(&work, &plan, number),
        None => reduce(&work, &plan, count),
    }
}

/// Prints that the program has begun, and starts a child that sends it SIGTERM when standard input, the ssh connection,
/// closes.
fn begin_connected() -> anyhow::Result<Child<'static>> {
    let own = rustix::process::getpid();
    let watch = Child::fork(c"hosepipe-watch", |_| {
        // The launcher sends nothing: this returns when the connection closes.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = kill_process(own, Signal::TERM);
    });
    terminal::print(&format!("{BEGUN}{}\n", host::cpus().len()))?;
    watch.context("watching the connection")
}

fn map(work: &Work, plan: &SpreadPlan, number: usize) -> anyhow::Result<ExitCode> {
    let ranges = plan.partitions.first().context("nothing to read")?;
    // The engine (Spark) reads URLs and writes their bytes to our standard input.
    let is_given = ranges.iter().any(|range| is_url(&range.file.path));
    let fed = if is_given { None } else { Some(feed_stdin(ranges)?) };
    let output =
        create_at(CWD, &work.unfinished(number), 0o666, true).context("a file for what comes out")?;
    dup2_stdout(&output)?;
    drop(output);
    let code = run_text(plan, &plan.map, &work.file(Some(number), "json"))?;
    if let Some(fed) = fed {
        finish(fed)?;
        ensure_unchanged(ranges)?;
    }
    if code == ExitCode::SUCCESS {
        dup2_stdout(File::options().write(true).open("/dev/null")?)?;
        pipeline::wait_for_writers(&work.unfinished(number)).context("what comes out")?;
        work.finish(number).context("naming what came out")?;
    } else {
        drop(fs::remove_file(work.unfinished(number)));
    }
    Ok(code)
}

fn reduce(work: &Work, plan: &SpreadPlan, count: usize) -> anyhow::Result<ExitCode> {
    let outputs = work.outputs(count).map_err(Error::msg)?;
    let record = work.file(None, "json");
    if plan.reduce_reads_names {
        // Each name ends with a zero byte, the format of `sort --files0-from`.
        let names = outputs.iter().map(|output| output.file.path.as_os_str().as_encoded_bytes());
        let names = names.flat_map(|name| [name, b"\0"].concat()).collect::<Vec<u8>>();
        let list = work.file(None, "parts");
        write_anew(&list, 0o666, &names).context("the list of what came out")?;
        dup2_stdin(&File::open(&list).context("the list of what came out")?)?;
        return run_text(plan, &plan.reduce, &record);
    }
    let fed = feed_stdin(&outputs)?;
    let code = run_text(plan, &plan.reduce, &record)?;
    finish(fed)?;
    Ok(code)
}

fn finish(fed: Fed) -> anyhow::Result<()> {
    fed.finish().map_err(|problem| anyhow!("not everything could be read: {problem}"))
}

/// Makes the bytes of these ranges standard input.
fn feed_stdin(ranges: &[Range]) -> anyhow::Result<Fed> {
    ensure_unchanged(ranges)?;
    let (input, fed) = feed(ranges.to_vec()).context("what is to be read")?;
    dup2_stdin(&input)?;
    Ok(fed)
}

fn ensure_unchanged(ranges: &[Range]) -> anyhow::Result<()> {
    for file in ranges.iter().map(|range| &range.file) {
        let found = InputFile::look(&file.path).map_err(Error::msg)?;
        let name = model::one_line(&file.path.to_string_lossy());
        ensure!(found == *file, "{name} has changed since the work was begun: begin anew");
    }
    Ok(())
}

/// Runs a pipeline as `hosepipe run` does.
fn run_text(plan: &SpreadPlan, text: &str, record: &Path) -> anyhow::Result<ExitCode> {
    let mut json = OsString::from("--json=");
    json.push(record);
    let mut words: Vec<OsString> =
        vec![format!("--via={}", plan.via).into(), format!("--shell={}", plan.shell).into(), json];
    words.extend(plan.pipefail.then(|| "--pipefail".into()));
    words.extend(["--".into(), text.into()]);
    run_cmd::run(&typed::arguments::<RunArgs>("run", words)?)
}
