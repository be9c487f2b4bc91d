//! The progress bar, and the decision that a case has been measured often enough.

use std::time::{Duration, Instant};

use engine::{Observer, Plan};
use model::{Case, Sample};

use crate::bar::Bar;

/// The bar of a run.
pub(crate) struct Progress {
    bar: Bar,
    precision: Option<f64>,
    cases: usize,
    trials_done: u64,
    trials: u64,
    began: Instant,
    estimate: Duration,
}

/// Steps of the bar for each trial.
const STEPS: u64 = 100;

impl Progress {
    pub(crate) fn new(plan: &Plan, precision: Option<f64>) -> Self {
        Self {
            bar: Bar::new(plan.cases.len() as u64, "{bar:30} {msg}"),
            precision,
            cases: plan.cases.len(),
            trials_done: 0,
            trials: 0,
            began: Instant::now(),
            estimate: Duration::ZERO,
        }
    }

    /// Takes the bar off the terminal.
    pub(crate) fn finish(&self) {
        self.bar.finish();
    }

    fn remaining(&self) -> String {
        let left = self.estimate.saturating_sub(self.began.elapsed()).as_secs();
        if left == 0 { String::new() } else { format!(" · {left} s left") }
    }
}

impl Observer for Progress {
    fn calibrating(&mut self, index: usize, case: &Case) {
        self.bar.set_steps(self.cases as u64);
        self.bar.set_done(index as u64);
        self.bar.say(&format!("warming up {} ({})", case.spec, case.workload));
    }

    fn planned(&mut self, trials: u64, estimate: Duration) {
        (self.trials, self.estimate, self.began) = (trials, estimate, Instant::now());
        self.bar.set_steps(trials.max(1) * STEPS);
        self.bar.set_done(0);
    }

    fn trial_started(&mut self, _index: usize, case: &Case) {
        let (number, trials) = (self.trials_done + 1, self.trials);
        let remaining = self.remaining();
        self.bar.say(&format!("trial {number}/{trials} {} ({}){remaining}", case.spec, case.workload));
    }

    fn trial_progress(&mut self, done: f64) {
        if self.trials > 0 {
            self.bar.set_done(self.trials_done * STEPS + (done.min(1.0) * STEPS as f64) as u64);
        }
    }

    fn trial_finished(&mut self, _index: usize, _sample: &Sample) {
        self.trials_done += 1;
        self.bar.set_done(self.trials_done * STEPS);
    }

    fn enough(&self, _index: usize, samples: &[Sample]) -> bool {
        self.precision.is_some_and(|percent| stats::precise_enough(samples, percent))
    }
}
