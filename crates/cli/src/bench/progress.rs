//! The progress bar, and the decision that a case has been measured often enough.

use model::{Observer, Sample};

use crate::bar::Bar;

/// BenchProgresses a run.
pub(crate) struct BenchProgress {
    bar: Bar,
    /// The interval's half width, in percent of the median, that is narrow enough.
    precision_percent: Option<f64>,
}

impl BenchProgress {
    pub(crate) fn new(precision_percent: Option<f64>) -> Self {
        Self { bar: Bar::of_shares("{bar:30} {msg}"), precision_percent }
    }

    /// Takes the bar off the terminal.
    pub(crate) fn finish(&self) {
        self.bar.finish();
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

    fn enough(&self, _index: usize, samples: &[Sample]) -> bool {
        self.precision_percent.is_some_and(|percent| stats::precise_enough(samples, percent))
    }
}
