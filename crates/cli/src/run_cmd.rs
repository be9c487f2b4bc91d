//! `hosepipe run`: a real command line over a link of the user's choice.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Context;
use clap::Args;
use mechanism::Folder;
use model::{Host, RunRecord, SCHEMA};
use pipeline::link::LinkSpec;
use pipeline::{Finished, Group, Keep, Outcome, RunOptions, Seen, Watch};

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

    /// Show each stage's time, bytes and waits afterwards, and which one held the pipeline up
    #[arg(long)]
    stats: bool,

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
    let watched = args.stats || args.live || args.json.is_some();
    if !watched && args.keep.is_none() && args.outcome.is_none() && args.state.is_none() {
        return in_the_shell(args);
    }
    let script = script::read(&args.text, &args.how.shell)?;
    let via = script::link(&args.how.via)?;
    if let Some(json) = &args.json {
        json.check()?;
    }
    let keep = args.keep.as_ref().map(|folder| Keep::new(folder, args.force, &script));
    let keep = keep.transpose().map_err(|problem| UsageError(problem.to_string()))?;
    // Read before the run, whose load they would show afterwards; the table alone has no use for them.
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
    let stats = args.stats || args.live;
    let watched = stats || args.json.is_some();
    let mut live = Live::on_stderr();
    let mut show = |commands: &[String], seen: &[Seen]| live.show(commands, seen);
    let watch = watched.then(|| Watch::new(args.live.then_some(&mut show)));
    let here = std::env::current_dir();
    let finished = pipeline::run(&script, &args.text, &mut session, &options, watch);
    drop(folder);
    if let Some(outcome) = &args.outcome {
        Outcome::of(&finished).write(outcome)?;
        return Ok(finished.map_or(ExitCode::FAILURE, |finished| script::exit(&finished)));
    }
    // Its text has its causes in it already.
    let finished = finished.map_err(|error| anyhow::Error::msg(error.to_string()))?;
    live.clear();
    // The text may have gone elsewhere, and the record's name was meant from here.
    if let Ok(here) = here {
        std::env::set_current_dir(&here).with_context(|| format!("cannot return to {}", here.display()))?;
    }

    if watched {
        let record = record(args, host, &via, &finished, started);
        if stats {
            let style = terminal::style_of_stderr();
            terminal::remark_painted(report::stages::render(&record, &style).trim_end());
        }
        if let Some(json) = &args.json {
            json.write(&report::json::to_text(&record)?)?;
        }
    }
    script::remarks(&finished, watched, args.how.via != "pipe");
    Ok(script::exit(&finished))
}

/// Runs the text in the shell itself.
fn in_the_shell(args: &RunArgs) -> anyhow::Result<ExitCode> {
    if args.text.trim().is_empty() {
        let message = "the pipeline is empty: give a command line, as in hosepipe run 'ls | wc -l'";
        return Err(UsageError(message.to_owned()).into());
    }
    let pipefail: &[&str] = if args.how.pipefail { &["-o", "pipefail"] } else { &[] };
    let words = [pipefail, &["-c", &args.text]].concat();
    script::in_the_shell(args.how.shell.as_ref(), &args.how.via, words.iter().map(Into::into).collect())
}

fn record(args: &RunArgs, host: Host, via: &LinkSpec, finished: &Finished, started: SystemTime) -> RunRecord {
    RunRecord {
        schema: SCHEMA.to_owned(),
        tool: tool(),
        host,
        arguments: arguments(),
        started: rfc3339(started),
        pipeline: args.text.clone(),
        via: via.to_string(),
        wall_ns: u64::try_from(finished.wall.as_nanos()).unwrap_or(u64::MAX),
        status: finished.status,
        pipestatus: finished.pipestatus.clone(),
        bottleneck: pipeline::judge(&finished.stages, &finished.links),
        stages: finished.stages.clone(),
        links: finished.links.clone(),
    }
}
