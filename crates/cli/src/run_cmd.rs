//! `hosepipe run`: a command line, run by a shell over the chosen link.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use clap::Args;
use model::{CopyFigures, RecordHead, RunRecord, StageRecord};
use pipeline::link::{LinkSpec, Order};
use pipeline::{
    Keep, LineBuffered, Ran, ShellRun, ShellUse, StagePainter, StageSnapshot, Summary, Watched, write_outcome,
};
use process::Refused;
use report::read::Loaded;

use crate::destination::OUTPUTS;
use crate::live::Live;
use crate::outputs::Outputs;
use crate::terminal::{self, UsageError, usage};
use crate::{copies, script, tune_cmd, typed};

/// Run a pipeline in bash, or another shell, over any link
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/run.txt"))]
pub(crate) struct RunArgs {
    /// The command line, as the shell takes it
    #[arg(value_name = "PIPELINE")]
    text: OsString,

    /// The link between the stages, with options as in tmpfile:order=sequential
    #[arg(long, value_name = "LINK", default_value = "pipe", value_parser = typed::link())]
    via: String,

    /// Let these system calls fail in the shell and in all that it starts, with ENOSYS, as in a kernel that does not have them
    #[arg(long, value_name = "CALL,…")]
    without: Option<Refused>,

    /// The status is the last failing stage's, as after `set -o pipefail`
    #[arg(long)]
    pipefail: bool,

    /// The shell that runs it
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: OsString,

    /// Show each stage's time, how full the link behind it was, and which stage was the bottleneck
    #[arg(long)]
    stats: bool,

    /// Show the same, and count the bytes of each link, in a relay where the kernel does not count them
    #[arg(long)]
    meter: bool,

    /// Show the same, and count the lines that go through each link, and how many a second: a relay reads every byte
    #[arg(long)]
    lines: bool,

    /// Show the same, and how long lines take from the first link to the last, and in which stage: a relay notes when each came
    #[arg(long)]
    latency: bool,

    /// Show the same while it runs, on a terminal, and how much of its input the first stage has read
    #[arg(long)]
    live: bool,

    /// Let stages write each line at once, also programs that would fill a buffer first: all stages, or those with these numbers (from 1),
    /// as in --line-buffered=2,3
    #[arg(long, value_name = "STAGES", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    line_buffered: Option<LineBuffered>,

    /// Start programs so that malloc does not put their large buffers 16 bytes into a page, where some CPUs copy at a fraction of their
    /// speed; without effect on other CPUs
    #[arg(long)]
    align_buffers: bool,

    /// Keep what flows through each link in this folder, as files named by position and command
    #[arg(long, value_name = "DIR", help_heading = OUTPUTS)]
    keep: Option<PathBuf>,

    /// Let --keep overwrite files that it kept in this folder before
    #[arg(long, requires = "keep", help_heading = OUTPUTS)]
    force: bool,

    /// Write the outcome for the comparison that started this run into this file, and not on standard error
    #[arg(long, value_name = "FILE", hide = true)]
    outcome: Option<PathBuf>,

    #[command(flatten)]
    outputs: Outputs,
}

/// Runs the pipeline and exits with its status.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    script::check(&args.text)?;
    let via = script::link(&args.via)?;
    let shell = script::shell(&args.shell)?;
    args.outputs.check()?;
    let kept_in = |folder: &PathBuf| Keep::new(folder, args.force).map(Rc::new);
    let keep = args.keep.as_ref().map(kept_in).transpose().map_err(UsageError::new)?;
    if args.latency && via.order() == Order::Sequential {
        return usage(
            "with order=sequential a stage starts after the one before it has ended: --latency needs a link that both stages use at once",
        );
    }
    let live = RefCell::new(Live::on_stderr());
    let show = |stages: &[StageSnapshot]| live.borrow_mut().show(stages);
    let painter: Option<&StagePainter<'_>> = if args.live { Some(&show) } else { None };
    // A comparison of pipelines (`args.outcome`) wants the lines' times in its own record, and no table.
    let has_latency_table = args.latency && args.outcome.is_none();
    let has_table = args.stats || args.live || args.meter || args.lines || has_latency_table;
    let is_watched = has_table || args.latency || !args.outputs.is_empty();
    let watched = Watched { meter: args.meter, lines: args.lines, latency: args.latency, show: painter };
    let own = pipeline::text_arguments(&shell, &args.text);
    let arguments = script::arguments(args.pipefail, &shell, own)?;
    if let Some(outcome) = &args.outcome {
        process::finish_with_parent()?;
        // This empty outcome stays in the file if this program is killed.
        write_outcome(outcome, &Ok(&Summary::default()))?;
    }
    let head = args.outputs.begin();
    let shell_run = ShellRun {
        streams: args.outputs.streams()?,
        keep,
        watched: is_watched.then_some(watched),
        line_buffered: args.line_buffered.clone(),
        align_buffers: args.align_buffers && copies::alignment_has_effect(),
        // The stages' statuses, which a comparison needs also where nothing else of them is watched.
        recorded: is_watched || args.outcome.is_some(),
        without: args.without.as_ref(),
        ..script::shell_run(
            &shell,
            arguments,
            &via,
            if args.outcome.is_some() { ShellUse::Trial } else { ShellUse::Run },
        )
    };
    let ran = pipeline::run(&shell_run);
    if let Some(outcome) = &args.outcome {
        let summary = ran.as_ref().map(|ran| &ran.summary);
        write_outcome(outcome, &summary.map_err(ToString::to_string))?;
    }
    let ran = ran?;
    if is_watched {
        let record = RunRecord {
            without: args.without.as_ref().map(ToString::to_string),
            latency: args.latency.then(|| ran.summary.latency.clone()),
            ..record(head, args.text.to_string_lossy().into_owned(), &via, &ran)
        };
        let text = has_table.then(|| tune_cmd::suggestion(&record)).flatten();
        let saved = args.outputs.show_on_stderr(Loaded::new("this run", record), has_table);
        text.iter().for_each(|text| terminal::remark(text));
        if (args.meter || args.lines) && ran.summary.links.is_empty() {
            terminal::remark(
                "Nothing was counted: bytes and lines are counted in links, and there was none.",
            );
        }
        saved?;
    }
    Ok(script::exit(&ran))
}

/// The stages, each with its slow copies, if this machine copies slowly at some offsets in a page.
fn with_slow_copies(summary: &Summary) -> Vec<StageRecord> {
    let link = |stage: &StageRecord, at: Option<u32>| {
        let mut links = summary.links.iter().filter(|link| link.pipeline == stage.pipeline);
        Some(links.nth(at? as usize)?.flowed()?.0)
    };
    let costs = copies::CostsOnDemand::default();
    let mut stages = summary.stages.clone();
    for stage in &mut stages {
        stage.slow_copies = costs.find_slow(&CopyFigures {
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

/// The record of a pipeline that was run; `text` is its command line.
pub(crate) fn record(head: RecordHead, text: String, via: &LinkSpec, ran: &Ran) -> RunRecord {
    let summary = &ran.summary;
    let last = summary.stages.last().map(|stage| stage.pipeline);
    let last_stages = summary.stages.iter().filter(|stage| Some(stage.pipeline) == last);
    report::with_sentence(RunRecord {
        head,
        pipeline: text,
        via: via.to_string(),
        wall_ns: u64::try_from(ran.wall.as_nanos()).unwrap_or(u64::MAX),
        status: ran.status(),
        partitions: None,
        pipestatus: last_stages.map(|stage| stage.status).collect(),
        without: None,
        latency: None,
        bottleneck: summary.bottleneck.clone(),
        why: ran.why.clone(),
        stages: with_slow_copies(summary),
        links: summary.links.clone(),
    })
}
