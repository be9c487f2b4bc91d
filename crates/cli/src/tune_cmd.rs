//! `hosepipe tune`: what makes a pipeline faster, the output proven the same.

mod judge;
mod part;
mod search;
mod variant;
mod whole;

use std::ffi::OsString;
use std::fmt::Write;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use model::{RunRecord, TuneRecord, shell_quoted};
use pipeline::shell::Kind;
use pipeline::tune::safety;
use report::Style;
use report::read::Loaded;
use report::tune::comments;
use rustix::fs::FileType;

use self::search::{Outcome, Search, Watchdog};
use self::variant::Variant;
use crate::destination::{Destination, OUTPUTS};
use crate::outputs::Outputs;
use crate::signals::StopRequest;
use crate::terminal::{self, usage};
use crate::{record, script, typed};

/// Exit status if nothing faster was found.
const NOTHING: u8 = 1;
/// Longest search.
const TIME_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// A run that has not ended after this multiple of the time is ended.
const PATIENCE: u32 = 2;

/// Find what makes a pipeline faster, and prove that its output stays the same
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/tune.txt"))]
pub(crate) struct TuneArgs {
    /// The pipeline, in the syntax of the shell
    #[arg(value_name = "PIPELINE")]
    text: String,

    /// Begin no more trials after this time
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = typed::positive_duration)]
    time: Duration,

    /// Run it although it writes, removes, sends or asks: it is run many times
    #[arg(long)]
    yes: bool,

    /// Also show what was tried and left out, and why
    #[arg(long)]
    explain: bool,

    /// The shell that runs it
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: OsString,

    /// Write the faster pipeline as a shell script with comments (- is standard output)
    #[arg(long, value_name = "F", help_heading = OUTPUTS, value_parser = Destination::parser())]
    script: Option<Destination>,

    #[command(flatten)]
    outputs: Outputs,
}

/// Searches, prints the answer and writes the records.
pub(crate) fn run(args: &TuneArgs) -> anyhow::Result<ExitCode> {
    let shell = script::shell(&args.shell)?;
    script::check_syntax(&args.text, &shell)?;
    args.outputs.check()?;
    args.script.as_ref().map_or(Ok(()), Destination::check)?;
    if args.script == Some(Destination::Stdout) && args.outputs.has_stdout() {
        return usage("--script and a format cannot share standard output: give one a file");
    }
    if let Some(word) = safety::stops(&args.text).filter(|_| !args.yes) {
        return usage(format!(
            "`{}`: tune runs the pipeline many times, and this may write, remove, send or ask each time. Leave it out, or add --yes \
             if that does no harm",
            model::one_line(&word)
        ));
    }
    if !std::io::stdin().is_terminal() && has_input() {
        terminal::remark("tune gives the pipeline no input: name a file in it.");
    }
    if shell.kind == Kind::Fish {
        return usage("texts of fish are not read: --shell names another shell");
    }
    let hosepipe = std::env::current_exe().context("cannot find the file of this program")?;
    let head = record::begin(true);
    let stop = StopRequest::listen()?;
    let began = Instant::now();
    let time = args.time.min(TIME_MAX);
    let watchdog = Watchdog::start(time * PATIENCE)?;
    let search = Search { text: &args.text, shell: &shell, hosepipe: &hosepipe, stop: &stop, began, time };
    let outcome = search.run();
    let is_over = watchdog.finish();
    let found = match outcome? {
        Outcome::Refused(problem) => return usage(problem),
        Outcome::Done(found) => found,
    };
    let search_s = began.elapsed().as_secs_f64();
    let interrupted = stop.is_set() && !is_over;
    let record = TuneRecord { head, search_s, interrupted, ..*found };
    // What was not compared with the original is no result.
    let is_faster = record.is_faster() && record.equal;
    let script = args.script.as_ref().map_or(Ok(()), |file| file.write(&script_of(&record)));
    let style = Style { explain: args.explain, ..terminal::style() };
    args.outputs.show(Loaded::new("this run", record), &style)?;
    script?;
    if interrupted {
        return Ok(stop.exit_code(true));
    }
    Ok(if is_faster { ExitCode::SUCCESS } else { NOTHING.into() })
}

/// Whether standard input is a file or a pipe, which a user may expect the pipeline to read.
fn has_input() -> bool {
    let kind = rustix::fs::fstat(std::io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    kind.is_ok_and(|kind| matches!(kind, FileType::RegularFile | FileType::Fifo))
}

/// Shortest run that is worth a search.
const WORTH_NS: u64 = 500_000_000;

/// What to try where a stage holds up the pipeline of a run and there is a rule for it; `None` where there is none, or the text must not be run
/// several times.
pub(crate) fn suggestion(record: &RunRecord) -> Option<String> {
    let stage = record.stages.get(record.bottleneck.as_ref()?.stage?)?;
    let has_rule = Variant::new(&stage.command).has_idea();
    let text = &record.pipeline;
    // tune gives no input.
    let is_tunable = !has_input() && record.wall_ns >= WORTH_NS && has_rule && safety::stops(text).is_none();
    is_tunable
        .then(|| format!("`hosepipe tune {}` tries what makes it faster.", shell_quoted(text.as_bytes())))
}

/// A shell script that runs the faster pipeline, with what was changed as comments.
fn script_of(record: &TuneRecord) -> String {
    let mut script = format!("#!/usr/bin/env {}\n", record.shell);
    for line in comments(record) {
        // A format that is written to a string cannot fail.
        let _ = writeln!(script, "# {}", model::one_line(&line));
    }
    script + &record.text + "\n"
}
