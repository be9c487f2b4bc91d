//! The plan of a run, and its outcome.

use std::path::PathBuf;
use std::time::Duration;

use mechanism::PacedClient;
use model::{Case, CaseRecord};

use crate::amount::{PLANNED_PART, TRIAL_MAX, TRIAL_MIN, TRIAL_PACED};

/// The cases of a run, and the number, order and duration of their trials.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The cases; the samples of the outcome are in this order, not in the order of the trials.
    pub cases: Vec<Case>,
    /// Trials of each case, one in each round. The budget divided by them determines the duration of a trial.
    pub trials: u32,
    /// Most rounds. While the budget lasts, rounds after the first `trials` ones run the cases of which the observer wants more
    /// samples.
    pub rounds_max: u32,
    /// Whether a run counts as complete if its budget ends in the rounds after the first `trials` ones.
    pub further_rounds_are_optional: bool,
    /// The part of the budget for the first `trials` rounds.
    pub first_part: f64,
    /// Shortest measured time of a trial, even if the budget is smaller.
    pub trial_min: Duration,
    /// Longest measured time of a trial, even if the budget is larger.
    pub trial_max: Duration,
    /// Measured time of a trial of paced messages, whatever the budget is.
    pub trial_paced: Duration,
    /// How clients of paced round trips wait.
    pub paced_client: PacedClient,
    /// Whether rounds in which other programs used the CPUs are repeated.
    pub repeats: bool,
    /// Seed of the order within each round, and of random payloads.
    pub seed: u64,
    /// Time of the whole run, calibration included; `None` without a limit.
    pub budget: Option<Duration>,
    /// Whether a trial is stopped that takes much longer than the budget. If not, the first round is always made.
    pub stops_late_trials: bool,
    /// The hosepipe that is executed anew for each round, to run its trials ([`crate::serve_round`]); `None`: this process runs them all.
    pub round_program: Option<PathBuf>,
}

impl Plan {
    /// A plan with `trials` rounds that repeats none, all in this process.
    pub fn new(cases: Vec<Case>, trials: u32, seed: u64, budget: Option<Duration>) -> Self {
        Self {
            cases,
            trials,
            rounds_max: trials,
            further_rounds_are_optional: false,
            first_part: PLANNED_PART,
            trial_min: TRIAL_MIN,
            trial_max: TRIAL_MAX,
            trial_paced: TRIAL_PACED,
            paced_client: PacedClient::Polls,
            repeats: false,
            seed,
            budget,
            stops_late_trials: true,
            round_program: None,
        }
    }
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// One for each case of the plan: raw samples without summaries, or why there are none.
    pub cases: Vec<CaseRecord>,
    /// Whether the run ended before all trials were made: because of a signal, or because the budget was used up.
    pub interrupted: bool,
    /// Rounds that were repeated.
    pub repeated_rounds: u32,
}
