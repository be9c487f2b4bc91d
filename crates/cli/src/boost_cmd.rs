//! `hosepipe boost`: larger pipes for a command, or for what runs already.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::{Args, ValueHint};
use model::{BoostRecord, Host, Record};
use pipeline::boost::{self, BoostError, Boosted};
use report::read::Loaded;
use signal_hook::consts::SIGQUIT;

use crate::copies;
use crate::outputs::Outputs;
use crate::record::record_head;
use crate::script;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::typed;

/// Enlarge the full pipes of a command, or of a running process
#[derive(Debug, Args)]
#[command(
    override_usage = "hosepipe boost [OPTIONS] COMMAND...\n       hosepipe boost [OPTIONS] --pid PID",
    after_help = "\
Examples:
  hosepipe boost make -j8                       whatever it starts, and what that starts
  hosepipe boost bash -c 'cat BIG | wc -l'      a line for a shell: several words are a command and its arguments
  hosepipe boost ./backup.sh /home              a script, a program of any kind, statically linked ones too
  hosepipe boost --pid 4711                     what runs already, until it ends or Ctrl-C

A pipe that is full at two looks in a row becomes four times as large, up to 1 MiB, so that its two ends wake each other
less often. Nothing else is changed: no argument, no descriptor; and of the environment GLIBC_TUNABLES alone, on a CPU that copies slowly
into the addresses where malloc puts large buffers (hosepipe doctor; a threshold of your own stays). What is enlarged takes a quarter of the
quota of pipe pages at the most, and is given back at the end. With a record on standard output (--json -) the command's goes to standard error.
docs/BOOST.md says when it helps.
Exit status: the command's; 127 there is no such command; 126 it cannot be executed; 2 the command line is wrong. With --pid: 0 the process
has ended; 130 stopped by Ctrl-C."
)]
pub(crate) struct BoostArgs {
    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present = "pid",
        value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// A process that runs already: it, and whatever it has started
    #[arg(long, value_name = "PID", conflicts_with = "command", value_parser = typed::whole(1i32..=i32::MAX))]
    pid: Option<i32>,

    /// Say nothing at the end
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    outputs: Outputs,
}

/// Runs the command, or watches the process, and exits as the command did.
pub(crate) fn run(args: &BoostArgs) -> anyhow::Result<ExitCode> {
    args.outputs.check()?;
    let host = if args.outputs.is_empty() { Host::default() } else { host::facts() };
    let started = SystemTime::now();
    let (boosted, stop) = match args.pid {
        None => (boost::run(&args.command, &args.outputs.streams()?, copies::is_slow()), None),
        Some(pid) => {
            if pid.unsigned_abs() == std::process::id() {
                let problem =
                    format!("process {pid} is this boost itself: name the process whose pipes are to grow");
                return Err(UsageError(problem).into());
            }
            let stop = StopRequest::listen()?;
            // Without giving back what it enlarged it shall not end by Ctrl-\ either.
            stop.listen_also(SIGQUIT)?;
            (boost::attach(pid, copies::is_slow(), &|| stop.is_set()), Some(stop))
        }
    };
    let boosted = match boosted {
        Ok(boosted) => boosted,
        Err(error @ (BoostError::Missing(_) | BoostError::NotExecutable(..))) => {
            terminal::remark(&format!("hosepipe: {error}"));
            return Ok(ExitCode::from(if matches!(error, BoostError::Missing(_)) { 127 } else { 126 }));
        }
        Err(error @ (BoostError::NoProcess(_) | BoostError::NotOurs(_))) => {
            return Err(UsageError(error.to_string()).into());
        }
        Err(error) => return Err(error.into()),
    };
    let ended = boosted.ended;
    let record = Record::Boost(record(boosted, host, started));
    if !args.quiet {
        let text = report::terminal(&record, &terminal::style_of_stderr(), study::view);
        terminal::remark_painted(text.trim_end());
    }
    args.outputs.write(&[Loaded::new("this boost", record)])?;
    Ok(match (ended, stop) {
        (Some(ended), _) => script::exit_as(ended, process::shown_status(ended)),
        (None, stop) => stop.map_or(ExitCode::SUCCESS, |stop| stop.exit_code(false)),
    })
}

fn record(boosted: Boosted, host: Host, started: SystemTime) -> BoostRecord {
    let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    BoostRecord {
        head: record_head(host, started),
        pid: boosted.pid,
        wall_ns: ns(boosted.wall),
        status: boosted.ended.map(process::shown_status),
        looks: boosted.looks,
        cpu_ns: ns(boosted.cpu),
        boosted: boosted.pipes,
        refused: boosted.refused,
        pipe_quota: boosted.pipe_quota,
        unseen: boosted.unseen,
        tunables: boosted.tunables.map(|value| value.to_string_lossy().into_owned()),
        slow_buffers: boosted.slow_buffers,
    }
}
