//! Who watches: progress on a terminal, records written as a run goes on.

use model::{CaseError, Sample};

use crate::build::Built;
use crate::failure::Failure;
use crate::measure::Row;
use crate::registry::Language;
use crate::workshop::Unbuilt;

/// Told of everything that happens; every hook may be left out.
pub trait Observer {
    /// A language's toolchain is being looked for, and its program built where it is not.
    fn building(&mut self, _language: &Language) {}
    /// It is ready, or cannot be.
    fn built(&mut self, _language: &Language, _result: &Result<Built, Unbuilt>) {}
    /// A row is launched for the first time, unmeasured; `index` is its place in the plan.
    fn warming_up(&mut self, _index: usize, _row: &Row) {}
    /// The system calls of a row are being counted.
    fn counting(&mut self, _index: usize, _row: &Row) {}
    /// They cannot be counted here; the row is measured without.
    fn not_counted(&mut self, _index: usize, _row: &Row, _why: &Failure) {}
    /// Every row has been launched once: so many trials are to come.
    fn planned(&mut self, _trials: u64) {}
    /// A trial is about to start.
    fn trial_started(&mut self, _index: usize, _row: &Row) {}
    /// A trial has ended well.
    fn trial_finished(&mut self, _index: usize, _sample: &Sample) {}
    /// A row has failed, and will not be run again.
    fn row_failed(&mut self, _index: usize, _row: &Row, _error: &CaseError) {}
}

/// Watches nothing.
pub struct Silent;

impl Observer for Silent {}
