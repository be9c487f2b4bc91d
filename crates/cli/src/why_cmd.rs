//! `hosepipe why`: what a program waits for, whose fault it is, and what ends it.

mod after;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueHint};
use model::{RecordHead, WhyRecord, WhyVerdict, to_see_other_users};
use observe::endpoint::are_hidden;
use observe::why::{Asked, explain};
use process::proc::{Stat, has_ended, is_listed};
use report::read::Loaded;

use crate::outputs::Outputs;
use crate::terminal::{self, usage};
use crate::typed;

/// Exit status if the cause is not known.
const UNKNOWN: u8 = 3;

/// Say what a program or a pipeline waits for, whose fault it is, and what ends it
#[derive(Debug, Args)]
#[command(
    override_usage = "hosepipe why [OPTIONS] [PID|PATTERN]\n       hosepipe why --after DURATION [--end] [OPTIONS] -- COMMAND...",
    after_help = include_str!("help/why.txt")
)]
pub(crate) struct WhyArgs {
    /// A process and what it has started, or the processes with this text in their name or command line [default: those of yours that are stuck]
    #[arg(value_name = "PID|PATTERN", conflicts_with = "after")]
    which: Option<String>,

    /// All of yours that wait, also those that wait for you
    #[arg(long, conflicts_with_all = ["which", "after"])]
    all: bool,

    /// Run a command, and say why when it has neither used CPU time nor moved a byte for so long
    #[arg(long, value_name = "DURATION", value_parser = typed::positive_duration, requires = "command")]
    after: Option<Duration>,

    /// Then end it, with status 124
    #[arg(long, requires = "after")]
    end: bool,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", last = true, requires = "after", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    #[command(flatten)]
    outputs: Outputs,
}

/// Answers, or runs the command and answers if it hangs.
pub(crate) fn run(args: &WhyArgs) -> anyhow::Result<ExitCode> {
    args.outputs.check()?;
    let head = args.outputs.begin();
    if let Some(after) = args.after {
        return after::run(&args.command, after, args.end, head, &args.outputs);
    }
    let asked = asked(args)?;
    let record = record(head, &asked);
    if record.answers.is_empty() {
        match &asked {
            Asked::Process(pid) => return usage(format!("there is no process {pid}")),
            Asked::Named(text) => {
                return usage(format!(
                    "no process has `{text}` in its name or its command line: ps -ef lists them"
                ));
            }
            Asked::Longest { .. } | Asked::Each(_) => {}
        }
    }
    let verdict = record.verdict();
    args.outputs.show(Loaded::new("this look", record), &terminal::style())?;
    Ok(match verdict {
        WhyVerdict::Stuck => ExitCode::SUCCESS,
        WhyVerdict::NotStuck => ExitCode::from(1),
        WhyVerdict::Unknown => ExitCode::from(UNKNOWN),
    })
}

fn record(head: RecordHead, asked: &Asked) -> WhyRecord {
    // This process's own ancestors have the pattern in their command lines, or wait for it.
    let parent = |pid: &i32| Some(Stat::of(*pid)?.parent);
    let except: Vec<i32> = std::iter::successors(Some(std::process::id().cast_signed()), parent).collect();
    let explained = explain(asked, &except);
    let left_out = Some(explained.left_out).filter(|count| *count > 0);
    WhyRecord { head, answers: explained.answers, left_out, unseen_processes: explained.unseen }
}

fn asked(args: &WhyArgs) -> anyhow::Result<Asked> {
    let Some(which) = &args.which else { return Ok(Asked::Longest { all: args.all }) };
    let Ok(pid) = which.parse::<i32>() else { return Ok(Asked::Named(which.clone())) };
    let is_zombie = || Stat::of(pid).is_some_and(|stat| stat.state == 'Z');
    if pid <= 0 || (has_ended(pid) && !is_zombie()) || !is_listed(pid) {
        return usage(format!("there is no process {pid}"));
    }
    if are_hidden(pid) && !is_zombie() {
        let remedy = to_see_other_users(&format!("hosepipe why {pid}"));
        return usage(format!(
            "process {pid} belongs to another user, or has more rights, and its open files cannot be read: {remedy}"
        ));
    }
    Ok(Asked::Process(pid))
}
