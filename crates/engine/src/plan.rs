//! The plan of a run, and its outcome.

use std::time::Duration;

use model::{Case, CaseRecord};

use crate::amount::{PLANNED_PART, TRIAL_MAX};

/// Every case of a run and how often, in what order, for how long.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The cases; samples come back in this order, whatever order they are taken in.
    pub cases: Vec<Case>,
    /// Trials of each case: with the budget they decide how long a trial is.
    pub trials: u32,
    /// The most rounds. More rounds than trials are run of the cases of which the observer wants more samples, while the budget lasts.
    pub rounds_max: u32,
    /// Whether a run whose budget ends in those further rounds has come to its end.
    pub further_rounds_are_optional: bool,
    /// The part of the budget that the first `trials` rounds are to fill.
    pub first_part: f64,
    /// What one trial may measure at most, however large the budget is.
    pub trial_max: Duration,
    /// Whether rounds in which other programs used the CPUs are repeated.
    pub repeats: bool,
    /// Seed of the order within each round, and of random payloads.
    pub seed: u64,
    /// Time of the whole run, calibration included; `None` without a limit.
    pub budget: Option<Duration>,
}

impl Plan {
    /// A plan of so many rounds that repeats none.
    pub fn new(cases: Vec<Case>, trials: u32, seed: u64, budget: Option<Duration>) -> Self {
        Self {
            cases,
            trials,
            rounds_max: trials,
            further_rounds_are_optional: false,
            first_part: PLANNED_PART,
            trial_max: TRIAL_MAX,
            repeats: false,
            seed,
            budget,
        }
    }
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// One for each case of the plan: raw samples without summaries, or why there are none.
    pub cases: Vec<CaseRecord>,
    /// True where the run ended before every trial was made: a signal, or the budget.
    pub interrupted: bool,
    /// Rounds that were repeated.
    pub repeated_rounds: u32,
}
