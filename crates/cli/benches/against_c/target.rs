//! What a row of `cargo bench` is: a name, a promise, and a function that measures it.

use std::fmt;

use anyhow::Result;

use crate::reference::References;
use crate::table::BenchRow;

/// How long one timed run against C lasts: long enough for the clock and for a few thousand blocks. Each run of a
/// default pipe between two CPUs falls into a rhythm of sleeps and wake-ups of its own, which moves its figure by
/// half: many short runs say more than a few long ones.
pub(crate) const RUN_S: f64 = 0.1;
pub(crate) const GIB: u64 = 1 << 30;

/// Everything a target may need.
pub(crate) struct Laboratory {
    /// Rounds asked for; each target has its own default.
    pub(crate) rounds: Option<usize>,
    /// Bytes asked for, in the rows that move a fixed amount.
    pub(crate) bytes: Option<u64>,
    /// Seed of the order within rounds.
    pub(crate) seed: u64,
    /// Of the questions of `recommend` only every N-th.
    pub(crate) every: usize,
    pub(crate) references: References,
}

/// One promise and how it is measured.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// What is promised, for `--help`.
    pub(crate) promise: &'static str,
    /// True where it takes a minute: measured when named or with `--full`.
    pub(crate) slow: bool,
    /// Runs the contenders. The name given becomes the row's; rows that only inform may follow.
    pub(crate) measure: fn(&str, &Laboratory) -> Result<Vec<BenchRow>>,
}

/// This machine lacks what the row needs, which is not a failure.
#[derive(Debug)]
pub(crate) struct Skipped(pub(crate) String);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skipped {}

impl Laboratory {
    /// The rounds asked for, or the target's own.
    pub(crate) fn rounds_or(&self, default: usize) -> usize {
        self.rounds.unwrap_or(default)
    }
}
