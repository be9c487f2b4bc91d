//! `hosepipe boost`: larger pipes for a command, or for a running process.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, ValueHint};
use pipeline::boost::{self, BoostError};
use report::read::Loaded;
use signal_hook::consts::SIGQUIT;

use crate::outputs::Outputs;
use crate::signals::StopRequest;
use crate::terminal::{self, usage};
use crate::{copies, script, typed};

/// Enlarge the full pipes of a command, or of a running process
#[derive(Debug, Args)]
#[command(
    override_usage = "hosepipe boost [OPTIONS] COMMAND...\n       hosepipe boost [OPTIONS] --pid PID",
    after_help = include_str!("help/boost.txt")
)]
pub(crate) struct BoostArgs {
    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present = "pid",
        value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// A running process and all processes that it has started
    #[arg(long, value_name = "PID", conflicts_with = "command", value_parser = typed::whole(1i32..=i32::MAX))]
    pid: Option<i32>,

    /// Print no summary at the end
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    outputs: Outputs,
}

/// Runs the command, or watches the process, and exits as the command did.
pub(crate) fn run(args: &BoostArgs) -> anyhow::Result<ExitCode> {
    args.outputs.check()?;
    let head = args.outputs.begin();
    let (boosted, stop) = match args.pid {
        None => {
            let result = boost::run(head, &args.command, &args.outputs.streams()?, copies::is_slow());
            (result.map(|(record, ended)| (record, Some(ended))), None)
        }
        Some(pid) => {
            if pid.unsigned_abs() == std::process::id() {
                return usage(format!(
                    "process {pid} is this boost itself: name the process whose pipes are to grow"
                ));
            }
            let stop = StopRequest::listen()?;
            // Ctrl-\ must not end this program before it has shrunk the pipes that it enlarged.
            stop.listen_also(SIGQUIT)?;
            let result = boost::attach(head, pid, copies::is_slow(), &|| stop.is_set());
            (result.map(|record| (record, None)), Some(stop))
        }
    };
    // Of a command also how it ended.
    let (record, ended) = match boosted {
        Ok(found) => found,
        Err(error @ (BoostError::Missing(_) | BoostError::NotExecutable(..))) => {
            terminal::remark(&format!("hosepipe: {error}"));
            return Ok(ExitCode::from(if matches!(error, BoostError::Missing(_)) { 127 } else { 126 }));
        }
        Err(error @ (BoostError::NoProcess(_) | BoostError::NotOurs(_))) => {
            return usage(error.to_string());
        }
        Err(error) => return Err(error.into()),
    };
    args.outputs.show_on_stderr(Loaded::new("this boost", record), !args.quiet)?;
    Ok(match (ended, stop) {
        (Some(ended), _) => script::exit_as(ended, process::shown_status(ended)),
        (None, stop) => stop.map_or(ExitCode::SUCCESS, |stop| stop.exit_code(false)),
    })
}
