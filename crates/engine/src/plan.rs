//! What is to be run.

use std::time::Duration;

use model::{Case, CaseRecord};

/// Every case of a run and how often, in what order, for how long.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The cases; samples come back in this order, whatever order they are taken in.
    pub cases: Vec<Case>,
    /// Trials of each case: with the budget they decide how long a trial is.
    pub trials: u32,
    /// Rounds at the most. With more than there are trials, the cases of which the observer has not enough go on for as long as the
    /// budget lasts.
    pub rounds_max: u32,
    /// Whether rounds in which something else used the CPUs are repeated.
    pub repeats: bool,
    /// Decides the order within each round, and random payloads.
    pub seed: u64,
    /// What the whole run may take, calibration included; `None`: as long as it needs.
    pub budget: Option<Duration>,
}

impl Plan {
    /// So many trials of each case, and no round twice.
    pub fn of(cases: Vec<Case>, trials: u32, seed: u64, budget: Option<Duration>) -> Self {
        Self { cases, trials, rounds_max: trials, repeats: false, seed, budget }
    }
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// One for each case of the plan: raw samples without summaries, or why there are none.
    pub cases: Vec<CaseRecord>,
    /// True where the run ended before every trial was made: a signal, or the budget.
    pub interrupted: bool,
    /// Rounds that were repeated.
    pub repeated_rounds: u32,
}
