//! A row of a run: what is measured in turn with other rows, whatever makes its trials.

use std::time::Duration;

use crate::{CaseRecord, NoSample, Sample, Sizing, Speed};

/// One trial of a row.
pub struct Turn<'a> {
    /// How much it moves, in the row's own unit.
    pub amount: u64,
    /// The round, counted from 0; `None` in the warm-up.
    pub round: Option<u32>,
    /// Is called with the share of the trial that is done, 0 to 1.
    pub progress: &'a mut dyn FnMut(f64),
    /// Whether the trial must end now.
    pub stop: &'a dyn Fn() -> bool,
}

/// One row of a run.
pub trait Row {
    /// Its name in progress messages.
    fn name(&self) -> String;

    /// Its case with the samples so far. A row whose record has an error gets no further trials.
    fn record(&mut self) -> &mut CaseRecord;

    /// The record after the run.
    fn into_record(self: Box<Self>) -> CaseRecord;

    /// The trials before the first round, which find its speed; a measured trial will take at most `trial_max`. `None` if there are none:
    /// then each trial is given the amount 0.
    fn sizing(&self, trial_max: Duration) -> Option<Sizing>;

    /// Whether a sizing trial took so long that another program must have had the CPU: it is repeated.
    fn is_disturbed(&self, _amount: u64, _elapsed: Duration) -> bool {
        false
    }

    /// What a trial moves in `time`, if the row has this speed.
    fn amount(&mut self, speed: &Speed, time: Duration) -> u64;

    /// Makes a trial.
    ///
    /// # Errors
    /// See [`NoSample`].
    fn trial(&mut self, turn: &mut Turn<'_>) -> Result<Sample, NoSample>;
}
