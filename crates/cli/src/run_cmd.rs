//! `hosepipe run`: a real command line over a link of the user's choice.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Context;
use clap::Args;
use mechanism::Folder;
use model::{Host, RunRecord, SCHEMA};
use pipeline::link::LinkSpec;
use pipeline::{Glance, Group, Keep, Outcome, RunOptions, Summary, Watch, Watched};

use crate::destination::{Destination, OUTPUTS};
use crate::live::Live;
use crate::record::{arguments, rfc3339, tool};
use crate::script;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::typed;

/// Run a pipeline as bash would, over any link
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe run 'zcat access.log.gz | cut -d\" \" -f1 | sort | uniq -c | sort -rn | head'
  hosepipe run --stats 'cat big | tr a-z A-Z | sort | uniq -c'   which stage holds it up?
  hosepipe run --via tmpfile 'seq 1000000 | sort | tail -1'      files instead of pipes
  hosepipe run --keep kept 'du -a | sort -n | tail'              look at what flowed afterwards
  hosepipe run --via tcp --pipefail --json run.json 'a | b'      a record of it all

The text is bash's: lists, quotes, here-documents, `|&`, `time`. It gives what bash gives, and exits as bash would.
A stage of literal words is started without a shell; one that needs a shell is given to it as it stands.")]
pub(crate) struct RunArgs {
    /// The command line, as bash takes it
    #[arg(value_name = "PIPELINE")]
    text: String,

    #[command(flatten)]
    how: How,

    /// Show each stage's time and how full the links were afterwards, and which stage held the pipeline up
    #[arg(long)]
    stats: bool,

    /// Show the same, and count the bytes of each link, through a relay where nothing else counts them
    #[arg(long)]
    meter: bool,

    /// Show the same while it runs, on a terminal
    #[arg(long)]
    live: bool,

    /// Keep what flows through each link in this folder, as files named by position and command
    #[arg(long, value_name = "DIR", help_heading = OUTPUTS)]
    keep: Option<PathBuf>,

    /// Let --keep use a folder in which it kept something before, and overwrite that
    #[arg(long, requires = "keep", help_heading = OUTPUTS)]
    force: bool,

    /// A file from which the shell reads what was defined before, as `hosepipe sh` keeps it
    #[arg(long = "definitions", value_name = "FILE", hide = true)]
    state: Option<PathBuf>,

    /// Tell the comparison that started this run what came of it, in this file and not on standard error
    #[arg(long, value_name = "FILE", hide = true)]
    outcome: Option<PathBuf>,

    /// Write the record as JSON (- is standard output)
    #[arg(long, value_name = "F", help_heading = OUTPUTS, value_parser = Destination::parser())]
    json: Option<Destination>,
}

/// How a text is run.
#[derive(Debug, Args)]
pub(crate) struct How {
    /// What stands between the stages, with options as in tmpfile:order=sequential
    #[arg(long, value_name = "LINK", default_value = "pipe", value_parser = typed::Link::One)]
    via: String,

    /// The status is the last failing stage's, as after `set -o pipefail`
    #[arg(long)]
    pipefail: bool,

    /// The shell for stages that need one
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: String,
}

/// Runs the text and exits as it did.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    if args.keep.is_none() && args.outcome.is_none() && args.state.is_none() {
        return in_the_shell(args);
    }
    let script = script::read(&args.text, &args.how.shell)?;
    let via = script::link(&args.how.via)?;
    if let Some(json) = &args.json {
        json.check()?;
    }
    let keep = args.keep.as_ref().map(|folder| Keep::new(folder, args.force, &script));
    let keep = keep.transpose().map_err(|problem| UsageError(problem.to_string()))?;
    let host = if args.json.is_some() { host::facts() } else { Host::default() };
    let stop = StopRequest::listen()?;
    let started = SystemTime::now();
    let mut session = script::session(&args.how.shell, args.state.as_deref())?;
    let folder = Folder::private();
    let options = RunOptions {
        via: &via,
        folder: &folder,
        pipefail: args.how.pipefail,
        keep: keep.as_ref(),
        group: Group::Ours,
        asked_to_end: &|| stop.signal(),
    };
    let watched = args.stats || args.live || args.json.is_some();
    let here = std::env::current_dir();
    let finished =
        pipeline::run(&script, &args.text, &mut session, &options, watched.then(|| Watch::new(None)));
    drop(folder);
    if let Some(outcome) = &args.outcome {
        Outcome::of(&finished).write(outcome)?;
        return Ok(finished.map_or(ExitCode::FAILURE, |finished| script::exit(&finished)));
    }
    // Its text has its causes in it already.
    let finished = finished.map_err(|error| anyhow::Error::msg(error.to_string()))?;
    // The text may have gone elsewhere, and the record's name was meant from here.
    if let Ok(here) = here {
        std::env::set_current_dir(&here).with_context(|| format!("cannot return to {}", here.display()))?;
    }
    let summary =
        Summary { stages: finished.stages.clone(), links: finished.links.clone(), ..Summary::default() };
    let record = RunRecord {
        wall_ns: u64::try_from(finished.wall.as_nanos()).unwrap_or(u64::MAX),
        status: finished.status,
        pipestatus: finished.pipestatus.clone(),
        ..record(args, host, &via, summary, started)
    };
    tell(args, &record)?;
    script::remarks(&finished, watched, args.how.via != "pipe");
    Ok(script::exit(&finished))
}

/// Runs the text in the shell itself.
fn in_the_shell(args: &RunArgs) -> anyhow::Result<ExitCode> {
    if args.text.trim().is_empty() {
        let message = "the pipeline is empty: give a command line, as in hosepipe run 'ls | wc -l'";
        return Err(UsageError(message.to_owned()).into());
    }
    let via = script::link(&args.how.via)?;
    if let Some(json) = &args.json {
        json.check()?;
    }
    let pipefail: &[&str] = if args.how.pipefail { &["-o", "pipefail"] } else { &[] };
    let words = [pipefail, &["-c", &args.text]].concat();
    // Read before the run, whose load they would show afterwards; the table alone has no use for them.
    let host = if args.json.is_some() { host::facts() } else { Host::default() };
    let live = RefCell::new(Live::on_stderr());
    let show = |stages: &[Glance]| live.borrow_mut().show(stages);
    let watched = Watched { meter: args.meter, show: args.live.then_some(&show) };
    let is_watched = args.stats || args.live || args.meter || args.json.is_some();
    let started = SystemTime::now();
    let words = words.iter().map(Into::into).collect();
    let ran = script::run(&args.how.shell, &via, words, is_watched.then_some(watched))?;
    let record = RunRecord {
        wall_ns: u64::try_from(ran.wall.as_nanos()).unwrap_or(u64::MAX),
        status: ran.ending.status(),
        ..record(args, host, &via, ran.summary.clone(), started)
    };
    tell(args, &record)?;
    Ok(script::exit_as(&ran))
}

/// Prints the table and writes the record, as asked.
fn tell(args: &RunArgs, record: &RunRecord) -> anyhow::Result<()> {
    if args.stats || args.live || args.meter {
        let style = terminal::style_of_stderr();
        terminal::remark_painted(report::stages::render(record, &style).trim_end());
    }
    match &args.json {
        Some(json) => json.write(&report::json::to_text(record)?),
        None => Ok(()),
    }
}

fn record(args: &RunArgs, host: Host, via: &LinkSpec, summary: Summary, started: SystemTime) -> RunRecord {
    let last = summary.stages.last().map(|stage| stage.pipeline);
    let of_last = summary.stages.iter().filter(|stage| Some(stage.pipeline) == last);
    RunRecord {
        schema: SCHEMA.to_owned(),
        tool: tool(),
        host,
        arguments: arguments(),
        started: rfc3339(started),
        pipeline: args.text.clone(),
        via: via.to_string(),
        wall_ns: 0,
        status: 0,
        pipestatus: of_last.map(|stage| stage.status).collect(),
        bottleneck: summary.bottleneck,
        stages: summary.stages,
        links: summary.links,
    }
}
