//! `hosepipe run`: a real command line over a link of the user's choice.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::SystemTime;

use clap::Args;
use model::{Host, Record, RunRecord, SeenCopies, StageRecord};
use pipeline::link::{LinkSpec, Order};
use pipeline::{
    Keep, LineBuffered, Ran, ShellUse, StagePainter, StageSnapshot, Summary, Text, Watched, tell_outcome,
};
use process::Refused;
use report::read::Loaded;

use crate::copies;
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
  hosepipe run --line-buffered 'tail -f log | grep x | cut -c 9-'  each line at once, in all stages
  hosepipe run --align-buffers 'cat big | zstd -1 | wc -c'       where this CPU copies slowly into some addresses
  hosepipe run --latency 'cat log | grep GET | cut -f1 | cat'    how long does a line take?
  hosepipe run --without splice,vmsplice 'cat big | wc -c'       what if the kernel had no such call?
  hosepipe run --via tmpfile 'seq 1000000 | sort | tail -1'      files instead of pipes
  hosepipe run --keep kept 'du -a | sort -n | tail'              look at what flowed afterwards
  hosepipe run --via tcp --pipefail --json run.json 'a | b'      a record of it all

The shell itself runs the text, whatever is in it; only the pipes between stages are hosepipe's.
A record on standard output (`--json -`) is alone there: what the pipeline prints goes to standard error then.
For scripts with arguments see `hosepipe sh`.
Exit status: that of the pipeline, as the shell gives it; 2 the command line is wrong.")]
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

    /// Show the same, and how long lines take from the first link to the last, and in which stage: a relay notes when each came
    #[arg(long)]
    latency: bool,

    /// Show the same while it runs, on a terminal, and how far the first stage has come in what it reads
    #[arg(long)]
    live: bool,

    /// Let stages write each line at once, also where programs would fill a buffer first: all, or those with these numbers from 1, as in
    /// --line-buffered=2,3
    #[arg(long, value_name = "STAGES", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    line_buffered: Option<LineBuffered>,

    /// Start programs so that malloc does not put their large buffers 16 bytes into a page, where some CPUs copy at a fraction of their
    /// speed; on a CPU that does not, nothing is changed
    #[arg(long)]
    align_buffers: bool,

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

    /// Refuse these system calls to the shell and all that it starts, with ENOSYS, as a kernel without them would
    #[arg(long, value_name = "CALL,…")]
    without: Option<Refused>,

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
    if args.latency && via.order() == Order::Sequential {
        let message = "with order=sequential a stage begins when the one before it has ended: --latency needs a link that both use";
        return Err(UsageError(message.to_owned()).into());
    }
    let shown = args.stats || args.live || args.meter || args.lines || args.latency && args.outcome.is_none();
    let show: Option<&StagePainter<'_>> = if args.live { Some(&show) } else { None };
    let watched = Watched { meter: args.meter, lines: args.lines, latency: args.latency, show };
    let watched = (shown || args.latency || !args.outputs.is_empty()).then_some(watched);
    // Read before the run, whose load they would show afterwards; the table alone has no use for them.
    let host = if !args.outputs.is_empty() { host::facts() } else { Host::default() };
    let own = pipeline::text_arguments(&shell, &args.text);
    let arguments = script::arguments(args.how.pipefail, &shell, own)?;
    if let Some(outcome) = &args.outcome {
        process::end_with_parent()?;
        // If this program is killed, there is nothing else to tell.
        tell_outcome(outcome, &Ok(&Summary::default()))?;
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
        line_buffered: args.line_buffered.clone(),
        align_buffers: args.align_buffers && copies::are_to_be_aligned(),
        recorded,
        without: args.how.without.as_ref(),
        prompt: None,
        shell_use,
    };
    let ran = pipeline::run(&text);
    if let Some(outcome) = &args.outcome {
        let came = ran.as_ref().map(|ran| &ran.summary);
        tell_outcome(outcome, &came.map_err(ToString::to_string))?;
    }
    let ran = ran?;
    if watched.is_some() {
        let text = args.text.to_string_lossy().into_owned();
        let record = Record::Run(RunRecord {
            without: args.how.without.as_ref().map(ToString::to_string),
            latency: args.latency.then(|| ran.summary.latency.clone()),
            ..record(text, host, &via, &ran, started)
        });
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

/// The stages, with the copies that are slow on this machine.
fn with_slow_copies(summary: &Summary) -> Vec<StageRecord> {
    let link = |stage: &StageRecord, at: Option<u32>| {
        let mut links = summary.links.iter().filter(|link| link.pipeline == stage.pipeline);
        Some(links.nth(at? as usize)?.flowed()?.0)
    };
    let costs = copies::CostsOnDemand::default();
    let mut stages = summary.stages.clone();
    for stage in &mut stages {
        stage.slow_copies = costs.judge(&SeenCopies {
            read_offset: stage.read_buffer_offset,
            write_offset: stage.write_buffer_offset,
            read_bytes: link(stage, stage.stage.checked_sub(1)),
            written_bytes: link(stage, Some(stage.stage)),
            wall_ns: stage.wall_ns,
            cpu_ns: stage.user_ns + stage.system_ns,
            kernel_ns: stage.system_ns,
        });
    }
    stages
}

/// The record of a text that was run.
pub(crate) fn record(text: String, host: Host, via: &LinkSpec, ran: &Ran, started: SystemTime) -> RunRecord {
    let summary = &ran.summary;
    let last = summary.stages.last().map(|stage| stage.pipeline);
    let of_last = summary.stages.iter().filter(|stage| Some(stage.pipeline) == last);
    RunRecord {
        head: record_head(host, started),
        pipeline: text,
        via: via.to_string(),
        wall_ns: u64::try_from(ran.wall.as_nanos()).unwrap_or(u64::MAX),
        status: ran.status(),
        partitions: None,
        pipestatus: of_last.map(|stage| stage.status).collect(),
        without: None,
        latency: None,
        bottleneck: summary.bottleneck.clone(),
        stages: with_slow_copies(summary),
        links: summary.links.clone(),
    }
}
