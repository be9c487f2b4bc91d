//! Who watches a run: progress bars, precision targets, records written as the run goes on.

use std::time::Duration;

use model::{Case, CaseError, Sample};

/// Told of everything that happens; every hook may be left out.
pub trait Observer {
    /// A case is being warmed up and its trials are being sized; `index` is its place in the plan.
    fn calibrating(&mut self, _index: usize, _case: &Case) {}
    /// All trials are sized: `trials` of them, expected to take `estimate` in all.
    fn planned(&mut self, _trials: u64, _estimate: Duration) {}
    /// A trial is about to start.
    fn trial_started(&mut self, _index: usize, _case: &Case) {}
    /// A trial is under way: the part of it that is done, 0 to 1. Called some ten times a second.
    fn trial_progress(&mut self, _done: f64) {}
    /// A trial has ended well.
    fn trial_finished(&mut self, _index: usize, _sample: &Sample) {}
    /// A case has failed, and will not be run again.
    fn case_failed(&mut self, _index: usize, _case: &Case, _error: &CaseError) {}
    /// Whether these samples of a case are enough, so that its remaining trials can be left out.
    fn enough(&self, _index: usize, _samples: &[Sample]) -> bool {
        false
    }
}

/// Watches nothing.
pub struct Silent;

impl Observer for Silent {}
