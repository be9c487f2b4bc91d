//! `--workers`, `--worker` and `--matrix`: what of the command line goes with them.

use std::path::{Path, PathBuf};

use clap::Args;

use super::args::BenchArgs;
use crate::terminal::UsageError;

/// Programs in other languages instead of mechanisms.
#[derive(Debug, Args)]
#[command(next_help_heading = "Programs in other languages (docs/WORKERS.md)")]
pub(crate) struct WorkersArgs {
    /// Measure one workload in these languages: all, or LANG, LANG:idiomatic, LANG:tuned… with commas; placed by the
    /// scheduler, unless --place says otherwise
    #[arg(long, value_name = "LANG", conflicts_with_all = NOT_WITH_WORKERS)]
    pub(crate) workers: Option<String>,

    /// Measure a program of your own that keeps the contract; may be given several times
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = NOT_WITH_WORKERS)]
    pub(crate) worker: Vec<PathBuf>,

    /// Put the writer of each against the reader of every other over one pipe (of a language its tuned variant)
    #[arg(long)]
    pub(crate) matrix: bool,
}

/// What a worker decides by itself, or has no meaning for one.
const NOT_WITH_WORKERS: [&str; 9] =
    ["specs", "all", "sweep", "workload", "tasks", "wait", "data", "payload", "precision"];

impl WorkersArgs {
    /// Whether workers are what is measured.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.workers.is_some() || !self.worker.is_empty()
    }
}

/// Refuses what the parser cannot know to be in the way.
///
/// # Errors
/// Several block sizes, relays, or a matrix of nothing.
pub(crate) fn check(args: &BenchArgs) -> Result<(), UsageError> {
    let wrong = |message: &str| Err(UsageError(message.to_owned()));
    match args {
        _ if args.workers.matrix && !args.workers.are_asked_for() => {
            wrong("--matrix needs programs to pair: --workers all --matrix")
        }
        _ if !args.workers.are_asked_for() => Ok(()),
        _ if args.block.len() > 1 => wrong("workers take one block size at a time: --block 64KiB"),
        _ if args.workers.worker.iter().any(|path| names_no_file(path)) => {
            wrong("--worker names a program that is not there: a path, as in ./my-program, or a name in PATH")
        }
        _ if args.chain > 0 => wrong("there are no relays between workers: without --chain"),
        _ => Ok(()),
    }
}

/// A path that leads nowhere; a bare name may be found in PATH.
fn names_no_file(path: &Path) -> bool {
    path.components().count() > 1 && !path.is_file()
}
