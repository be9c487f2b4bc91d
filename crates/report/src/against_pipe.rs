//! Every mechanism as a multiple of the plain pipe that was measured beside it.

use std::collections::HashMap;

use model::{BenchRecord, CaseRecord, Load, Ratio, Role, Spec, Workload};
use stats::{figure, paired_ratio};

use crate::view::Axes;

/// What a case and the pipe it is held against have in common. How the ends wait may differ (`shm-ring:wait=spin` has
/// no blocking pipe of its own kind).
type Key = (Axes, u64, Load);

/// The plain pipes of a record.
pub(crate) struct Pipes<'a>(HashMap<Key, Vec<&'a CaseRecord>>);

impl<'a> Pipes<'a> {
    pub(crate) fn of(record: &'a BenchRecord) -> Self {
        let plain = Spec::plain("pipe");
        let mut pipes: HashMap<Key, Vec<&CaseRecord>> = HashMap::new();
        for case in record.cases.iter().filter(|case| case.role == Role::Ranked && case.spec == plain) {
            pipes.entry(key(case)).or_default().push(case);
        }
        Self(pipes)
    }

    /// How many times as fast as the plain `pipe` with the same axes: more bytes in the same time for a
    /// stream, sooner back for a round trip. `None` where the record has no such pipe.
    pub(crate) fn against(&self, case: &CaseRecord) -> Option<Ratio> {
        let pipe = self.beside(case).filter(|_| case.role == Role::Ranked && case.worker.is_none())?;
        match case.workload {
            Workload::Stream => paired_ratio(&case.samples, &pipe.samples, figure::throughput_bytes_per_s),
            Workload::PingPong => paired_ratio(&pipe.samples, &case.samples, figure::round_trip_p50_ns),
        }
    }

    /// The plain pipe beside a case; where there are several, the one that waits alike.
    fn beside(&self, case: &CaseRecord) -> Option<&'a CaseRecord> {
        let alike = self.0.get(&key(case))?.iter().copied();
        alike.min_by_key(|pipe| (pipe.wait != case.wait, pipe.payload != case.payload))
    }
}

fn key(case: &CaseRecord) -> Key {
    (Axes::of(case), case.block_bytes, case.load())
}
