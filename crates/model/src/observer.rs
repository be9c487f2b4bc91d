//! Who watches a run: a progress bar, a precision target, a record saved after each part of a study.

use std::io;
use std::time::{Duration, Instant};

use crate::record::Sample;
use crate::study::StudyRecord;

/// Told what happens in a run; every hook may be left out.
pub trait Observer {
    /// What is under way, in words, and the share of the run (of the part of a study) that is done, 0 to 1, where it is known.
    /// Called up to twenty times a second.
    fn progress(&mut self, _what: &str, _done: Option<f64>) {}
    /// A language's program is ready, or why it cannot be.
    fn built(&mut self, _language: &str, _problem: Option<&str>) {}
    /// A measured trial of a row is about to start; `index` is the row's place in the plan.
    fn trial_started(&mut self, _index: usize) {}
    /// It has ended well.
    fn trial_finished(&mut self, _index: usize, _sample: &Sample) {}
    /// Whether these samples of a row are enough, so that its remaining trials can be left out.
    fn enough(&self, _index: usize, _samples: &[Sample]) -> bool {
        false
    }
    /// A part of a study begins: its number from 1, of so many.
    fn part_started(&mut self, _name: &str, _title: &str, _number: usize, _of: usize) {}
    /// A part of a study has ended; the record has it.
    ///
    /// # Errors
    /// The record could not be saved, which ends the run.
    fn part_ended(&mut self, _record: &StudyRecord) -> io::Result<()> {
        Ok(())
    }
}

/// Watches nothing.
pub struct Silent;

impl Observer for Silent {}

/// The trials of a run, counted and told to an observer.
pub struct RunProgress<'a> {
    observer: &'a mut dyn Observer,
    trials: u64,
    finished: u64,
    /// When the last trial is expected to end.
    over_at: Option<Instant>,
    what: String,
}

impl<'a> RunProgress<'a> {
    /// No trial is planned yet.
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, trials: 0, finished: 0, over_at: None, what: String::new() }
    }

    /// Something else than a trial is under way.
    pub fn preparing(&mut self, what: &str, done: Option<f64>) {
        self.observer.progress(what, done);
    }

    /// So many trials are to come, in about so much time where that is known.
    pub fn planned(&mut self, trials: u64, estimate: Option<Duration>) {
        self.trials = trials;
        self.over_at = estimate.map(|estimate| Instant::now() + estimate);
    }

    /// A trial of a row is about to start.
    pub fn trial_started(&mut self, index: usize, name: &str) {
        self.observer.trial_started(index);
        let left_s = self.over_at.map_or(0, |at| at.saturating_duration_since(Instant::now()).as_secs());
        let left = if left_s == 0 { String::new() } else { format!(" · {left_s} s left") };
        self.what = format!("trial {}/{} {name}{left}", self.finished + 1, self.trials);
        self.trial_progress(0.0);
    }

    /// A part of the trial under way is done, 0 to 1. Nothing is told of trials before the planned ones.
    pub fn trial_progress(&mut self, part: f64) {
        if self.trials > 0 {
            let done = (self.finished as f64 + part.min(1.0)) / self.trials as f64;
            // Where cases go on for as long as there is time, there may be more than were planned.
            self.observer.progress(&self.what, Some(done.min(1.0)));
        }
    }

    /// The trial has ended well.
    pub fn trial_finished(&mut self, index: usize, sample: &Sample) {
        self.finished += 1;
        self.observer.trial_finished(index, sample);
    }

    /// As [`Observer::enough`].
    pub fn enough(&self, index: usize, samples: &[Sample]) -> bool {
        self.observer.enough(index, samples)
    }
}
