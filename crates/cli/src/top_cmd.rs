//! `hosepipe top`: the pipelines that run on this machine, as they are seen from outside.

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use model::{Chain, TopRecord, TopSnapshot};
use observe::chains::ChainSampler;
use report::read::Loaded;

use crate::copies::CostsOnDemand;
use crate::outputs::Outputs;
use crate::record::record_head;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::{top, typed};

/// Between two looks, where nothing else is asked for.
const LIVE_INTERVAL: Duration = Duration::from_secs(2);
const ONCE_INTERVAL: Duration = Duration::from_secs(1);
/// Samples within one interval: from these it is known which stage was waited for.
const LOOKS: u32 = 5;

/// Show the pipelines that run on this machine: throughput, which stage waits for which, and the bottleneck
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe top                          every chain, until q is typed; ? lists the keys
  hosepipe top 812                      the chains that process 812, or what it has started, is in
  hosepipe top gzip                     those with `gzip` in the name of a program
  hosepipe top --once                   two looks, one second apart, as text
  hosepipe top --dot | dot -Tsvg > chains.svg     as a graph, by Graphviz
  hosepipe top --once --json - | jq '.chains[] | select(.held_up_by)'
  sudo hosepipe top                     those of all users

Shown are processes that pipes, FIFOs, sockets and pseudoterminals join. Nothing is changed or slowed down, and no
rights are needed for one's own processes. How to read it: docs/TOP.md. Without a terminal, and with --json and its like,
it is as with --once.
Exit status: 0, also where there is no chain; 2 there is no such process, or it does not
show what it has open; 130 stopped by Ctrl-C.")]
pub(crate) struct TopArgs {
    /// Only chains that this process, or what it has started, is in, or that have this in the name of a program
    #[arg(value_name = "PID|PATTERN")]
    which: Option<String>,

    /// Look twice, print what was seen, and leave
    #[arg(long)]
    once: bool,

    /// Look twice, print the chains as a graph for Graphviz, and leave
    #[arg(long)]
    dot: bool,

    /// Between two looks [default: 2s, once 1s]
    #[arg(long, value_name = "DURATION", value_parser = typed::positive_duration)]
    interval: Option<Duration>,

    #[command(flatten)]
    outputs: Outputs,
}

/// Which chains are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// Those of a process and of what it has started.
    Of(i32),
    /// Those with this in a name, in whatever case.
    Named(String),
}

impl Which {
    fn read(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Named(text.to_lowercase()), Self::Of)
    }

    pub(crate) fn is(&self, chain: &Chain) -> bool {
        let mut processes = chain.stages.iter().flat_map(|stage| &stage.processes);
        match self {
            Self::All => true,
            Self::Of(pid) => processes.any(|process| has_come_from(process.pid, *pid)),
            Self::Named(text) => processes.any(|process| process.name.to_lowercase().contains(text)),
        }
    }
}

/// Whether a process is this one, or was started by it or by what it has started.
fn has_come_from(pid: i32, ancestor: i32) -> bool {
    const DEPTH_MAX: usize = 64;
    let parent = |pid: &i32| process::proc::Stat::of(*pid).map(|stat| stat.parent);
    std::iter::successors(Some(pid), parent).take(DEPTH_MAX).any(|pid| pid == ancestor)
}

/// Shows chains, live in a terminal or once.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    args.outputs.check()?;
    let which = args.which.as_deref().map_or(Which::All, Which::read);
    if let Which::Of(pid) = which {
        check(pid)?;
    }
    let stop = StopRequest::listen()?;
    if args.dot && args.outputs.has_stdout() {
        let message = "--dot prints the graph on standard output: write the other format into a file";
        return Err(UsageError(message.to_owned()).into());
    }
    let is_live =
        !args.once && !args.dot && args.outputs.is_empty() && stdout().is_terminal() && !model::is_dumb();
    if is_live {
        return top::run(args.interval.unwrap_or(LIVE_INTERVAL), which, &stop);
    }
    once(args, &which, &stop)
}

/// Refuses a process that is not there, or does not show what it has open.
fn check(pid: i32) -> anyhow::Result<()> {
    if pid <= 0 || process::proc::Stat::of(pid).is_none() {
        return Err(UsageError(format!("there is no process {pid}")).into());
    }
    if std::fs::read_dir(format!("/proc/{pid}/fd"))
        .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    {
        let problem = format!(
            "process {pid} is another user's and does not show what it has open: try sudo hosepipe top {pid}"
        );
        return Err(UsageError(problem).into());
    }
    Ok(())
}

fn once(args: &TopArgs, which: &Which, stop: &StopRequest) -> anyhow::Result<ExitCode> {
    let host = if args.outputs.is_empty() { model::Host::default() } else { host::facts() };
    let started = SystemTime::now();
    let mut sampler = ChainSampler::default();
    for _ in 0..LOOKS {
        stop.wait(args.interval.unwrap_or(ONCE_INTERVAL) / LOOKS);
        sampler.sample();
    }
    let mut seen = sampler.seen();
    seen.chains.retain(|chain| which.is(chain));
    CostsOnDemand::default().judge_all(&mut seen);
    let graph = args.dot.then(|| report::dot(&seen));
    let nothing = seen.chains.is_empty().then(|| nothing(which, &seen)).flatten();
    let record = TopRecord { head: record_head(host, started), seen };
    let loaded = [Loaded::new("this look", record)];
    args.outputs.write(&loaded)?;
    if let Some(graph) = graph {
        terminal::print(&graph)?;
    } else if !args.outputs.has_stdout() {
        match nothing {
            Some(sentence) => terminal::print(&format!("{sentence}\n"))?,
            None => terminal::print_painted(&report::terminal(
                &loaded[0].record,
                &terminal::style(),
                study::view,
            ))?,
        }
    }
    Ok(stop.exit_code(false))
}

/// What is said where there are none of those that were asked for.
pub(crate) fn nothing(which: &Which, seen: &TopSnapshot) -> Option<String> {
    let ended = |pid: i32| process::proc::Stat::of(pid).is_none();
    let said = match which {
        Which::All => return None,
        Which::Of(pid) if ended(*pid) => format!("Process {pid} has ended."),
        Which::Of(pid) if observe::sockets::has_pair(*pid) => {
            format!("Process {pid} is in no chain: its pair of sockets does not say which way bytes go.")
        }
        Which::Of(pid) => format!(
            "Process {pid} is in no chain: no pipe, FIFO, socket or pseudoterminal joins it, or what it has started, to another process."
        ),
        Which::Named(text) => format!("No chain has `{text}` in the name of a program."),
    };
    let foreign = match seen.foreign_processes {
        0 => "",
        _ => " Those of other users cannot be seen: root sees them.",
    };
    Some(said + foreign)
}
