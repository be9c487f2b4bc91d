//! Observers of a run: a progress bar, a precision target, a record that is saved after each part of a study.

use std::io;
use std::time::{Duration, Instant};

use crate::Sample;
use crate::study::StudyRecord;

/// Callbacks for the events of a run; each has an empty default.
pub trait Observer {
    /// The current action, in words, and the share of the run (or of the part of a study) that is done, 0 to 1, if known. Called at
    /// most twenty times per second.
    fn progress(&mut self, _what: &str, _done: Option<f64>) {}
    /// A language's program was built, or could not be built because of a problem.
    fn built(&mut self, _language: &str, _problem: Option<&str>) {}
    /// A measured trial of a row is about to start; `index` is the row's index in the plan.
    fn trial_started(&mut self, _index: usize) {}
    /// The trial has ended without an error.
    fn trial_finished(&mut self, _index: usize, _sample: &Sample) {}
    /// The trial has failed, and the row gets no further trials.
    fn trial_failed(&mut self, _index: usize) {}
    /// Whether these samples of a row are enough, so that its remaining trials can be left out.
    fn enough(&mut self, _index: usize, _samples: &[Sample]) -> bool {
        false
    }
    /// A part of a study begins; `number` counts from 1, and `of` is the number of parts.
    fn part_started(&mut self, _name: &str, _title: &str, _number: usize, _of: usize) {}
    /// A part of a study has ended and is in the record.
    ///
    /// # Errors
    /// The record could not be saved, which ends the run.
    fn part_ended(&mut self, _record: &StudyRecord) -> io::Result<()> {
        Ok(())
    }
}

/// An observer that does nothing.
pub struct Silent;

impl Observer for Silent {}

/// Counts the trials of a run and calls an observer.
pub struct RunProgress<'a> {
    /// Gets every other event of the run, too.
    pub observer: &'a mut dyn Observer,
    trials: u64,
    finished: u64,
    /// When the last trial is expected to end.
    over_at: Option<Instant>,
    /// Whether the planned trials are over, and further ones are made until a decision is possible.
    decides: bool,
    what: String,
}

impl<'a> RunProgress<'a> {
    /// Begins with no planned trials.
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, trials: 0, finished: 0, over_at: None, decides: false, what: String::new() }
    }

    /// Sets the number of trials to come, and their estimated time if known.
    pub fn planned(&mut self, trials: u64, estimate: Option<Duration>) {
        self.trials = trials;
        self.over_at = estimate.map(|estimate| Instant::now() + estimate);
    }

    /// All planned trials were made; more follow until a decision is possible, or until the time `at_most` has passed.
    pub fn deciding(&mut self, at_most: Duration) {
        self.decides = true;
        self.over_at = Some(Instant::now() + at_most);
    }

    /// A trial of a row is about to start.
    pub fn trial_started(&mut self, index: usize, name: &str) {
        self.observer.trial_started(index);
        let left_s = self.over_at.map_or(0, |at| at.saturating_duration_since(Instant::now()).as_secs());
        let at_most = if self.decides { "at most " } else { "" };
        let left = if left_s == 0 { String::new() } else { format!(" · {at_most}{left_s} s left") };
        let of = if self.decides { " (undecided)".to_owned() } else { format!("/{}", self.trials) };
        self.what = format!("trial {}{of} {name}{left}", self.finished + 1);
        self.trial_progress(0.0);
    }

    /// The completed share of the current trial, 0 to 1. Ignored until trials are planned.
    pub fn trial_progress(&mut self, part: f64) {
        if self.trials > 0 {
            let done = (self.finished as f64 + part.min(1.0)) / self.trials as f64;
            // Cases that run until the time is used up may have more trials than planned.
            self.observer.progress(&self.what, Some(done.min(1.0)));
        }
    }

    /// The trial has ended without an error.
    pub fn trial_finished(&mut self, index: usize, sample: &Sample) {
        self.finished += 1;
        self.observer.trial_finished(index, sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes what it is called with, and says that the row of index 1 has enough samples.
    #[derive(Default)]
    struct Notes(Vec<String>);

    impl Observer for Notes {
        fn progress(&mut self, what: &str, done: Option<f64>) {
            self.0.push(format!("{what}: {done:?}"));
        }
        fn trial_started(&mut self, index: usize) {
            self.0.push(format!("{index} started"));
        }
        fn trial_finished(&mut self, index: usize, _sample: &Sample) {
            self.0.push(format!("{index} finished"));
        }
        fn trial_failed(&mut self, index: usize) {
            self.0.push(format!("{index} failed"));
        }
        fn enough(&mut self, index: usize, _samples: &[Sample]) -> bool {
            index == 1
        }
    }

    /// What an observer is called with.
    fn notes(act: impl FnOnce(&mut RunProgress<'_>)) -> Vec<String> {
        let mut notes = Notes::default();
        act(&mut RunProgress::new(&mut notes));
        notes.0
    }

    #[test]
    fn trials_are_counted_and_shown_as_a_share_of_all() {
        let seen = notes(|run| {
            run.observer.progress("compiling", Some(0.5));
            run.trial_progress(0.5);
            run.planned(4, None);
            run.trial_started(7, "pipe");
            run.trial_finished(7, &Sample::default());
            run.trial_started(8, "fifo");
            run.trial_progress(0.5);
            run.trial_progress(3.0);
            run.observer.trial_failed(8);
        });
        let expected = [
            "compiling: Some(0.5)",
            "7 started",
            "trial 1/4 pipe: Some(0.0)",
            "7 finished",
            "8 started",
            "trial 2/4 fifo: Some(0.25)",
            "trial 2/4 fifo: Some(0.375)",
            "trial 2/4 fifo: Some(0.5)",
            "8 failed",
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn more_trials_than_planned_are_all_done() {
        let seen = notes(|run| {
            run.planned(1, None);
            run.trial_finished(0, &Sample::default());
            run.trial_started(0, "pipe");
            run.trial_progress(0.5);
        });
        assert_eq!(seen[2..], ["trial 2/1 pipe: Some(1.0)", "trial 2/1 pipe: Some(1.0)"]);
    }

    /// The hours are so many that the seconds of a busy machine do not change their number.
    #[test]
    fn the_time_that_is_left_is_shown() {
        let hours = Duration::from_secs(1000 * 3600);
        let seen = notes(|run| {
            run.planned(2, Some(hours));
            run.trial_started(0, "pipe");
            run.deciding(2 * hours);
            run.trial_started(0, "pipe");
            run.deciding(Duration::ZERO);
            run.trial_started(0, "pipe");
        });
        assert!(seen[1].starts_with("trial 1/2 pipe · 3599") && seen[1].contains(" s left: "), "{seen:?}");
        let undecided = "trial 1 (undecided) pipe";
        assert!(seen[3].starts_with(&format!("{undecided} · at most 7199")), "{seen:?}");
        assert_eq!(seen[5], format!("{undecided}: Some(0.0)"));
    }

    #[test]
    fn the_observer_says_whether_a_row_has_enough_samples() {
        let mut notes = Notes::default();
        let run = RunProgress::new(&mut notes);
        assert!(run.observer.enough(1, &[]) && !run.observer.enough(2, &[]));
        assert!(!Silent.enough(1, &[]), "by default none has");
    }
}
