//! `--workers`, `--worker` and `--matrix`: what of the command line goes with them.

use std::path::PathBuf;

use clap::Args;

/// Programs in other languages instead of mechanisms.
#[derive(Debug, Args)]
#[command(next_help_heading = "Programs in other languages (docs/WORKERS.md)")]
pub(crate) struct WorkersArgs {
    /// Measure one workload in these languages: all, or LANG, LANG:idiomatic, LANG:tuned… with commas, placed by the
    /// scheduler unless --place says otherwise; peers: other projects' transports, ranked beside hosepipe's
    #[arg(long, value_name = "LANG", conflicts_with_all = NOT_WITH_WORKERS)]
    pub(crate) workers: Option<String>,

    /// Measure a program of your own that keeps the contract; may be given several times
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = NOT_WITH_WORKERS)]
    pub(crate) worker: Vec<PathBuf>,

    /// Put the writer of each against the reader of every other over one pipe (each language in its tuned variant)
    #[arg(long)]
    pub(crate) matrix: bool,
}

/// What a worker decides by itself, or has no meaning for one.
const NOT_WITH_WORKERS: [&str; 12] = [
    "specs",
    "all",
    "sweep",
    "tasks",
    "wait",
    "data",
    "payload",
    "precision",
    "pairs",
    "senders",
    "receivers",
    "rate",
];

impl WorkersArgs {
    /// Whether workers are what is measured.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.workers.is_some() || !self.worker.is_empty()
    }
}
