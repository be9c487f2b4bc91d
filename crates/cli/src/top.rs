//! `hosepipe top`: the pipelines that run on this machine, sampled from outside: on a terminal until `q` is typed, or once.

mod chain_filter;
mod interactive;
mod screen;
mod still;
mod view;

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use model::TopRecord;
use observe::chains::ChainSampler;
use report::read::Loaded;

use crate::copies::CostsOnDemand;
use crate::outputs::Outputs;
use crate::signals::StopRequest;
use crate::terminal::{self, usage};
use crate::typed;
use chain_filter::ChainFilter;

/// Default time between two samples on a terminal.
const LIVE_INTERVAL: Duration = Duration::from_secs(2);
/// Default time that --once samples for.
const ONCE_INTERVAL: Duration = Duration::from_secs(1);
/// Samples of --once: several, because one shows only what each stage did at that moment, and not which stage the others waited for.
const SAMPLES: u32 = 5;

/// Show the pipelines that run on this machine: throughput, which stage waits for which, and the bottleneck
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/top.txt"))]
pub(crate) struct TopArgs {
    /// Only chains of this process and its descendants, or chains with this text in the name of a program
    #[arg(value_name = "PID|PATTERN")]
    which: Option<String>,

    /// Sample for one interval, print the chains, and end
    #[arg(long)]
    once: bool,

    /// Sample for one interval, print the chains as a graph for Graphviz, and end
    #[arg(long)]
    dot: bool,

    /// Time between two samples [default: 2s]; with --once, the time that it samples for [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = typed::positive_duration)]
    interval: Option<Duration>,

    #[command(flatten)]
    outputs: Outputs,
}

/// Shows chains, live in a terminal or once.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    args.outputs.check()?;
    let filter = args.which.as_deref().map_or(Ok(ChainFilter::All), ChainFilter::parse)?;
    let stop = StopRequest::listen()?;
    if args.dot && args.outputs.has_stdout() {
        return usage("--dot prints the graph on standard output: write the other format into a file");
    }
    let is_live =
        !args.once && !args.dot && args.outputs.is_empty() && stdout().is_terminal() && !model::is_dumb();
    if is_live {
        return interactive::run(args.interval.unwrap_or(LIVE_INTERVAL), filter, &stop);
    }
    once(args, &filter, &stop)
}

fn once(args: &TopArgs, filter: &ChainFilter, stop: &StopRequest) -> anyhow::Result<ExitCode> {
    let head = args.outputs.begin();
    let mut sampler = ChainSampler::start();
    for _ in 0..SAMPLES {
        stop.wait(args.interval.unwrap_or(ONCE_INTERVAL) / SAMPLES);
        sampler.sample();
    }
    let mut snapshot = sampler.snapshot();
    snapshot.chains.retain(|chain| filter.matches(chain));
    CostsOnDemand::default().judge_all(&mut snapshot);
    still::explain_still(&mut snapshot);
    let text = if args.dot {
        Some(report::dot(&snapshot))
    } else {
        let reason = snapshot.chains.is_empty().then(|| filter.explain_none(&snapshot)).flatten();
        reason.filter(|_| !args.outputs.has_stdout()).map(|reason| reason + "\n")
    };
    let record = Loaded::new("this sample", TopRecord { head, seen: snapshot });
    match text {
        Some(text) => {
            args.outputs.write(&[record])?;
            terminal::print(&text)?;
        }
        None => args.outputs.show(record, &terminal::style())?,
    }
    Ok(stop.exit_code(false))
}
