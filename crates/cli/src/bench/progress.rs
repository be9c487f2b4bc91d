//! The progress bar of a run, and the decision whether a case needs more trials.

use model::{Observer, Sample};

use super::decision::Decision;
use crate::bar::Bar;

/// When the trials of a case end.
pub(crate) enum Until {
    /// After the planned number.
    Planned,
    /// When its interval has at most this half width, in percent of the median.
    Precise(f64),
    /// When the best case is known.
    Decided(Decision),
}

/// Draws the progress of a run.
pub(crate) struct BenchProgress {
    bar: Bar,
    until: Until,
}

impl BenchProgress {
    pub(crate) fn new(until: Until) -> Self {
        Self { bar: Bar::of_shares("{bar:30} {msg}"), until }
    }
}

impl Observer for BenchProgress {
    fn progress(&mut self, what: &str, done: Option<f64>) {
        self.bar.show(what, done);
    }

    fn built(&mut self, language: &str, problem: Option<&str>) {
        if problem.is_none() {
            self.bar.show(&format!("{language} is ready"), None);
        }
    }

    fn trial_finished(&mut self, index: usize, sample: &Sample) {
        if let Until::Decided(decision) = &mut self.until {
            decision.add(index, sample);
        }
    }

    fn trial_failed(&mut self, index: usize) {
        if let Until::Decided(decision) = &mut self.until {
            decision.exclude(index);
        }
    }

    fn enough(&mut self, index: usize, samples: &[Sample]) -> bool {
        match &mut self.until {
            Until::Planned => false,
            Until::Precise(percent) => stats::precise_enough(samples, *percent),
            Until::Decided(decision) => decision.is_enough(index, samples),
        }
    }
}
