//! What a row of `cargo bench` is: a name, a promise, and a function that measures it.

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

/// Runs the contenders. The name given becomes the row's; rows that only inform may follow.
type Measure = fn(&str, &Laboratory) -> Result<Vec<BenchRow>>;

/// One promise and how it is measured.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// What is promised, for `--help`.
    pub(crate) promise: &'static str,
    /// True where it takes a minute: measured when named or with `--full`.
    pub(crate) slow: bool,
    pub(crate) measure: Measure,
}

impl Target {
    pub(crate) const fn quick(name: &'static str, promise: &'static str, measure: Measure) -> Self {
        Self { name, promise, slow: false, measure }
    }

    pub(crate) const fn slow(name: &'static str, promise: &'static str, measure: Measure) -> Self {
        Self { name, promise, slow: true, measure }
    }
}

/// This machine lacks what the row needs, which is not a failure.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Skipped(pub(crate) String);

/// Leaves a row out, and says why.
pub(crate) fn skip<T>(why: impl Into<String>) -> Result<T> {
    Err(Skipped(why.into()).into())
}
