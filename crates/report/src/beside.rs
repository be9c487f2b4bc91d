//! The floors and ceilings of a record, and which of them stand beside a ranking: those that share most of its axes.

use std::collections::HashMap;

use model::{BenchRecord, CaseRecord, Role, Workload};

use crate::lists::grouped;
use crate::view::RankingAxes;

/// A case and its place in the record.
type Placed<'a> = (usize, &'a CaseRecord);

/// All floors and ceilings of a record that were measured.
#[derive(Debug)]
pub(crate) struct Beside<'a>(Vec<Kind<'a>>);

/// Those of one role, spec and workload.
#[derive(Debug)]
struct Kind<'a> {
    role: Role,
    workload: Workload,
    by_block: HashMap<u64, Vec<Placed<'a>>>,
    all: Vec<Placed<'a>>,
}

impl<'a> Beside<'a> {
    pub(crate) fn of(record: &'a BenchRecord) -> Self {
        let cases = record.cases.iter().enumerate();
        let cases = cases.filter(|(_, case)| case.role != Role::Ranked && !case.samples.is_empty());
        let kinds = grouped(cases.map(|(at, case)| ((case.role, &case.spec, case.workload), (at, case))));
        let kind = |((role, _, workload), all): ((Role, _, Workload), Vec<Placed<'a>>)| {
            let by_block = grouped(all.iter().map(|(at, case)| (case.block_bytes, (*at, *case))));
            Kind { role, workload, by_block: by_block.into_iter().collect(), all }
        };
        Self(kinds.into_iter().map(kind).collect())
    }

    /// The cases of a role that stand beside a ranking, in their order in the record.
    pub(crate) fn ranking(&self, axes: &RankingAxes, role: Role) -> Vec<&'a CaseRecord> {
        let mut found: Vec<Placed> = Vec::new();
        for kind in self.0.iter().filter(|kind| kind.role == role) {
            let block = match kind.workload {
                Workload::Stream => axes.stream_bytes,
                Workload::PingPong => axes.round_trip_bytes,
            };
            let Some(block) = block else { continue };
            let strange = |case: &CaseRecord| (case.data != axes.data, case.placement != axes.placement);
            let cases = kind.by_block.get(&block).unwrap_or(&kind.all);
            let least = cases.iter().map(|(_, case)| strange(case)).min();
            found.extend(cases.iter().filter(|(_, case)| Some(strange(case)) == least));
        }
        found.sort_unstable_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, case)| case).collect()
    }
}
