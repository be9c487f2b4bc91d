//! A row of a run: what is measured in turn with other rows, whatever makes its trials.

use std::time::Duration;

use crate::{CaseRecord, NoSample, Sample, Sizing, Speed};

/// One row of a run.
pub struct Row<'r> {
    /// Its name in progress messages.
    pub name: String,
    /// Its case with the samples so far. A row whose record has an error gets no further trials.
    pub record: CaseRecord,
    /// Makes its trials.
    pub maker: Box<dyn TrialMaker + 'r>,
}

/// One trial of a row.
pub struct Turn<'a> {
    /// How much it moves, in the row's own unit.
    pub amount: u64,
    /// The round, counted from 0; `None` in the warm-up.
    pub round: Option<u32>,
    /// The row's case, for what a trial shows of it.
    pub record: &'a mut CaseRecord,
    /// Is called with the share of the trial that is done, 0 to 1.
    pub progress: &'a mut dyn FnMut(f64),
    /// Whether the trial must end now.
    pub stop: &'a dyn Fn() -> bool,
}

/// Makes the trials of a row.
pub trait TrialMaker {
    /// The trials before the first round, which find the row's speed; a measured trial will take at most `trial_max`. `None` if there are
    /// none: then the amount of every trial is 0.
    fn sizing(&self, _trial_max: Duration) -> Option<Sizing> {
        None
    }

    /// Whether a sizing trial took so long that another program must have had the CPU: it is repeated.
    fn is_disturbed(&self, _amount: u64, _elapsed: Duration) -> bool {
        false
    }

    /// What a trial moves in `time`, if the row has this speed.
    fn amount(&mut self, speed: &Speed, _time: Duration) -> u64 {
        speed.amount
    }

    /// Makes a trial.
    ///
    /// # Errors
    /// See [`NoSample`].
    fn trial(&mut self, turn: &mut Turn<'_>) -> Result<Sample, NoSample>;
}
