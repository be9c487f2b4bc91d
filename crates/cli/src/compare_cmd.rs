//! `hosepipe compare`: pipelines over several links, in turns.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use clap::Args;
use model::{CompareRecord, CompareResult, SCHEMA};
use pipeline::Start;
use pipeline::contest::{Contender, Contest, Follower};
use pipeline::shell::Shell;
use report::read::{AnyRecord, Loaded};

use crate::bar::Bar;
use crate::outputs::Outputs;
use crate::record::{arguments, rfc3339, tool};
use crate::script;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::typed;

/// Run pipelines over several links, in turns, and compare
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe compare 'cat file.txt | sort | uniq -u | wc -l'
  hosepipe compare --via pipe,bash --trials 20 'cat big | wc -c'     is it faster than bash?
  hosepipe compare --via pipe,tmpfile:order=sequential,file:sync,socketpair --json study.json 'ls -R / | wc -l'
  hosepipe compare --prepare 'sync; echo 3 > /proc/sys/vm/drop_caches' 'cat big | md5sum'

All links of a pipeline take turns in a random order. A time is that of a whole program, from its start to its end:
`hosepipe run` over the link, or `bash -c` for the shell by itself (`--shell` names another one). The table's ratios
are of the medians it shows; those of the record are made within rounds. The status is 1 where outputs differ or a run
could not be made.")]
pub(crate) struct CompareArgs {
    /// The command lines, each as the shell takes it
    #[arg(value_name = "PIPELINE", required = true)]
    texts: Vec<String>,

    /// The links, first the one that others are compared with; `shell`, or its name, is the shell by itself
    #[arg(long, value_name = "LINKS", default_value = "pipe,tmpfile,file,socketpair,shell", value_parser = typed::links())]
    via: String,

    /// Timed runs of each
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    trials: u32,

    /// Untimed runs of each before them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=1000))]
    warmup: u32,

    /// A command line that the shell runs before each run, untimed
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<String>,

    /// The shell that runs them
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: OsString,

    /// Seed of the order within rounds
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    outputs: Outputs,
}

/// Makes all runs, prints the table, writes what was asked for.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let shell = script::shell(&args.shell)?;
    args.texts.iter().try_for_each(|text| script::check_syntax(text, &shell))?;
    args.outputs.check()?;
    let contenders = contenders(args, &shell)?;
    let hosepipe = std::env::current_exe().context("this program's own file")?;
    let host = host::facts();
    let started = SystemTime::now();
    let stop = StopRequest::listen()?;
    let contest = Contest {
        start: Start { hosepipe: &hosepipe, shell: &shell },
        warmup: args.warmup,
        trials: args.trials,
        seed: args.seed,
        prepare: args.prepare.as_deref(),
    };
    let runs = contenders.len() as u64 * u64::from(args.warmup + args.trials);
    let mut turns =
        CompareProgress { bar: Bar::new(runs, " {pos}/{len} {bar:20} {wide_msg} {eta}"), stop: &stop };
    turns.bar.tick_every(Duration::from_millis(200));
    let made = contest.run(contenders, &mut turns);
    turns.bar.finish();
    let (mut results, signal) = made.map_err(|problem| UsageError(problem.to_string()))?;
    stop.note(signal);
    let interrupted = stop.is_set();

    stats::summarise_times(&mut results);
    let record = CompareRecord {
        schema: SCHEMA.to_owned(),
        tool: tool(),
        host,
        arguments: arguments(),
        started: rfc3339(started),
        seed: args.seed,
        trials: args.trials,
        warmup: args.warmup,
        interrupted,
        results,
    };
    let failed = record.results.iter().any(|result| result.error.is_some() || result.equal == Some(false));
    args.outputs.show(Loaded::new("this run", AnyRecord::Compare(record)), &terminal::style())?;
    Ok(stop.exit_code(failed))
}

fn contenders(args: &CompareArgs, shell: &Shell) -> anyhow::Result<Vec<Contender>> {
    let vias = links(&args.via);
    let each =
        args.texts.iter().flat_map(|text| vias.iter().map(move |via| Contender::new(text, text, via, shell)));
    each.collect::<Result<_, _>>().map_err(|problem| UsageError(problem.to_string()).into())
}

/// Splits `pipe,file:sync,order=sequential,tcp`: what follows a comma belongs to the link before it where it is no
/// link by itself and that one has options.
fn links(text: &str) -> Vec<String> {
    let mut links: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let option = piece.contains('=') && !piece.contains(':');
        match links.last_mut() {
            Some(last) if option && last.contains(':') => {
                last.push(',');
                last.push_str(piece);
            }
            _ => links.push(piece.to_owned()),
        }
    }
    links
}

/// Shows whose turn it is.
struct CompareProgress<'a> {
    bar: Bar,
    stop: &'a StopRequest,
}

impl Follower for CompareProgress<'_> {
    fn stops(&self) -> bool {
        self.stop.is_set()
    }

    fn turn(&mut self, next: &CompareResult, _done: f64, make: &mut dyn FnMut()) {
        self.bar.say(&format!("{} · {}", next.via, next.pipeline));
        self.bar.aside(make);
        self.bar.advance();
    }
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn options_stay_with_their_link() {
        assert_eq!(links("pipe,tmpfile"), ["pipe", "tmpfile"]);
        assert_eq!(links("file:sync,order=sequential,tcp"), ["file:sync,order=sequential", "tcp"]);
        assert_eq!(links("pipe,size=1MiB"), ["pipe", "size=1MiB"], "no option without a colon");
    }
}
