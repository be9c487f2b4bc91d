//! What is to be run.

use std::time::Duration;

use model::{Case, CaseRecord};

/// Every case of a run and how often, in what order, for how long.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The cases; samples come back in this order, whatever order they are taken in.
    pub cases: Vec<Case>,
    /// Trials of each case.
    pub trials: u32,
    /// Decides the order within each round, and random payloads.
    pub seed: u64,
    /// What the whole run may take, calibration included; `None`: as long as it needs.
    pub budget: Option<Duration>,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// One for each case of the plan: raw samples without summaries, or why there are none.
    pub cases: Vec<CaseRecord>,
    /// True where the run ended before every trial was made: a signal, or the budget.
    pub interrupted: bool,
}
