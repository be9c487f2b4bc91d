//! Every mechanism as a multiple of the plain pipe that was measured beside it.

use std::collections::HashMap;

use model::{BenchRecord, CaseRecord, Load, Ratio, Role, Spec};
use stats::estimate::median;
use stats::ratio_of;

use crate::case_figure::paired_speeds;
use crate::lists::grouped;
use crate::view::{Axes, transports};

/// What a case and the pipe that it is compared with have in common. Their ways of waiting may differ: a ring can spin, a pipe cannot.
type Key = (Axes, u64, Load);

/// The plain pipes of a record.
pub(crate) struct Pipes<'a>(HashMap<Key, Vec<&'a CaseRecord>>);

impl<'a> Pipes<'a> {
    pub(crate) fn from_record(record: &'a BenchRecord) -> Self {
        let plain = Spec::plain("pipe");
        let pipes = transports(record).filter(|case| case.spec == plain);
        Self(grouped(pipes.map(|case| (key(case), case))).into_iter().collect())
    }

    /// How many times as fast a ranked case is as the plain pipe with the same axes, in the rounds that both have, with bounds. `None` if
    /// there is no pipe.
    pub(crate) fn against(&self, case: &CaseRecord) -> Option<Ratio> {
        ratio_of(&paired_speeds(case, self.pipe(case)?))
    }

    /// The same in the median round, without bounds.
    pub(crate) fn times(&self, case: &CaseRecord) -> Option<f64> {
        median(&paired_speeds(case, self.pipe(case)?)).filter(|times| times.is_finite())
    }

    /// The pipe to compare a case with. Of several, one that waits in the same way is preferred, then one with the same payload.
    fn pipe(&self, case: &CaseRecord) -> Option<&'a CaseRecord> {
        let is_ranked = case.role == Role::Ranked && case.worker.is_none();
        let pipes = self.0.get(&key(case)).filter(|_| is_ranked)?.iter().copied();
        pipes.min_by_key(|pipe| (pipe.wait != case.wait, pipe.payload != case.payload))
    }
}

fn key(case: &CaseRecord) -> Key {
    (Axes::from_case(case), case.block_bytes, case.load())
}
