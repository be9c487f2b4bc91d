//! `hosepipe run`: a real command line over a link of the user's choice.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::SystemTime;

use clap::Args;
use model::{Host, Record, RunRecord};
use pipeline::link::LinkSpec;
use pipeline::{Keep, Ran, ShellUse, StageSnapshot, Text, Watched, tell_outcome};
use report::read::Loaded;

use crate::destination::OUTPUTS;
use crate::live::Live;
use crate::outputs::Outputs;
use crate::record::record_head;
use crate::script;
use crate::terminal::{self, UsageError};
use crate::typed;

/// Run a pipeline in bash, or another shell, over any link
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe run 'zcat access.log.gz | cut -d\" \" -f1 | sort | uniq -c | sort -rn | head'
  hosepipe run --stats 'cat big | tr a-z A-Z | sort | uniq -c'   which stage holds it up?
  hosepipe run --live 'cat big | sort | uniq -c'                 how far is it, and how long does it take?
  hosepipe run --lines 'cat log | grep GET | cut -f1'            lines a second, stage by stage
  hosepipe run --via tmpfile 'seq 1000000 | sort | tail -1'      files instead of pipes
  hosepipe run --keep kept 'du -a | sort -n | tail'              look at what flowed afterwards
  hosepipe run --via tcp --pipefail --json run.json 'a | b'      a record of it all

The shell itself runs the text, whatever is in it; only the pipes between stages are hosepipe's. It exits as the shell would.
A record on standard output (`--json -`) is alone there: what the pipeline prints goes to standard error then.
For scripts with arguments see `hosepipe sh`.")]
pub(crate) struct RunArgs {
    /// The command line, as the shell takes it
    #[arg(value_name = "PIPELINE")]
    text: OsString,

    #[command(flatten)]
    how: How,

    /// Show each stage's time and how full the link behind it was, and which stage held the pipeline up
    #[arg(long)]
    stats: bool,

    /// Show the same, and count the bytes of each link, through a relay where nothing else counts them
    #[arg(long)]
    meter: bool,

    /// Show the same, and count the lines that go through each link, and how many a second: a relay reads every byte
    #[arg(long)]
    lines: bool,

    /// Show the same while it runs, on a terminal, and how far the first stage has come in what it reads
    #[arg(long)]
    live: bool,

    /// Keep what flows through each link in this folder, as files named by position and command
    #[arg(long, value_name = "DIR", help_heading = OUTPUTS)]
    keep: Option<PathBuf>,

    /// Let --keep use a folder in which it kept something before, and overwrite that
    #[arg(long, requires = "keep", help_heading = OUTPUTS)]
    force: bool,

    /// Tell the comparison that started this run what came of it, in this file and not on standard error
    #[arg(long, value_name = "FILE", hide = true)]
    outcome: Option<PathBuf>,

    #[command(flatten)]
    outputs: Outputs,
}

/// How a text is run.
#[derive(Debug, Args)]
pub(crate) struct How {
    /// What stands between the stages, with options as in tmpfile:order=sequential
    #[arg(long, value_name = "LINK", default_value = "pipe", value_parser = typed::link())]
    via: String,

    /// The status is the last failing stage's, as after `set -o pipefail`
    #[arg(long)]
    pipefail: bool,

    /// The shell that runs it
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: OsString,
}

/// Runs the text and exits as it did.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    script::check(&args.text)?;
    let via = script::link(&args.how.via)?;
    let shell = script::shell(&args.how.shell)?;
    args.outputs.check()?;
    let keep = args.keep.as_ref().map(|folder| Keep::new(folder, args.force).map(Rc::new));
    let keep = keep.transpose().map_err(|problem| UsageError(problem.to_string()))?;
    let live = RefCell::new(Live::on_stderr());
    let show = |stages: &[StageSnapshot]| live.borrow_mut().show(stages);
    let shown = args.stats || args.live || args.meter || args.lines;
    let watched =
        Watched { meter: args.meter, lines: args.lines, show: if args.live { Some(&show) } else { None } };
    let watched = (shown || !args.outputs.is_empty()).then_some(watched);
    // Read before the run, whose load they would show afterwards; the table alone has no use for them.
    let host = if !args.outputs.is_empty() { host::facts() } else { Host::default() };
    let own = pipeline::text_arguments(&shell, &args.text);
    let arguments = script::arguments(args.how.pipefail, &shell, own)?;
    if let Some(outcome) = &args.outcome {
        process::end_with_parent()?;
        // If this program is killed, there is nothing else to tell.
        tell_outcome(outcome, &Ok(&[]))?;
    }
    let started = SystemTime::now();
    let streams = args.outputs.streams()?;
    let shell_use = if args.outcome.is_some() { ShellUse::Trial } else { ShellUse::Run };
    let recorded = watched.is_some() || args.outcome.is_some();
    let text = Text {
        shell: &shell,
        arguments,
        streams,
        via: &via,
        keep,
        watched,
        recorded,
        prompt: None,
        shell_use,
    };
    let ran = pipeline::run(&text);
    if let Some(outcome) = &args.outcome {
        let links = ran.as_ref().map(|ran| &ran.summary.links[..]);
        tell_outcome(outcome, &links.map_err(ToString::to_string))?;
    }
    let ran = ran?;
    if watched.is_some() {
        let record = Record::Run(record(args, host, &via, &ran, started));
        if shown {
            let text = report::terminal(&record, &terminal::style_of_stderr(), study::view);
            terminal::remark_painted(text.trim_end());
            if (args.meter || args.lines) && ran.summary.links.is_empty() {
                terminal::remark(
                    "Nothing was counted: bytes and lines are counted in links, and there was none.",
                );
            }
        }
        args.outputs.write(&[Loaded::new("this run", record)])?;
    }
    Ok(script::exit(&ran))
}

fn record(args: &RunArgs, host: Host, via: &LinkSpec, ran: &Ran, started: SystemTime) -> RunRecord {
    let summary = &ran.summary;
    let last = summary.stages.last().map(|stage| stage.pipeline);
    let of_last = summary.stages.iter().filter(|stage| Some(stage.pipeline) == last);
    RunRecord {
        head: record_head(host, started),
        pipeline: args.text.to_string_lossy().into_owned(),
        via: via.to_string(),
        wall_ns: u64::try_from(ran.wall.as_nanos()).unwrap_or(u64::MAX),
        status: ran.status(),
        partitions: None,
        pipestatus: of_last.map(|stage| stage.status).collect(),
        bottleneck: summary.bottleneck.clone(),
        stages: summary.stages.clone(),
        links: summary.links.clone(),
    }
}
