//! `--workers`, `--worker` and `--matrix`.

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

    /// Measure a program of your own, which follows docs/WORKERS.md; may be given several times
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = NOT_WITH_WORKERS)]
    pub(crate) worker: Vec<PathBuf>,

    /// Measure the writer of each language with the reader of every other over one pipe (each in its tuned variant)
    #[arg(long)]
    pub(crate) matrix: bool,
}

/// Options that a worker decides by itself, or that have no meaning for it.
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
    /// Whether workers are measured instead of mechanisms.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.workers.is_some() || !self.worker.is_empty()
    }
}
