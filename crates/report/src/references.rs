//! The floors and ceilings of a record, and which of them belong to a ranking: those that share most of its axes.

use std::collections::HashMap;

use model::{BenchRecord, CaseRecord, Role, Workload};

use crate::lists::grouped;
use crate::view::RankingAxes;

/// All floors and ceilings of a record that were measured.
#[derive(Debug)]
pub(crate) struct References<'a>(Vec<ReferenceCases<'a>>);

/// Those of one role, spec and workload.
#[derive(Debug)]
struct ReferenceCases<'a> {
    role: Role,
    workload: Workload,
    by_block: HashMap<u64, Vec<&'a CaseRecord>>,
    all: Vec<&'a CaseRecord>,
}

impl<'a> References<'a> {
    pub(crate) fn from_record(record: &'a BenchRecord) -> Self {
        let cases = record.cases.iter().filter(|case| case.role != Role::Ranked && !case.samples.is_empty());
        let kinds = grouped(cases.map(|case| ((case.role, &case.spec, case.workload), case)));
        let kind = |((role, _, workload), all): ((Role, _, Workload), Vec<&'a CaseRecord>)| {
            let by_block = grouped(all.iter().map(|case| (case.block_bytes, *case)));
            ReferenceCases { role, workload, by_block: by_block.into_iter().collect(), all }
        };
        Self(kinds.into_iter().map(kind).collect())
    }

    /// The cases of a role that share most with a ranking of these axes, in their order in the record.
    pub(crate) fn nearest(&self, role: Role, axes: &RankingAxes) -> Vec<&'a CaseRecord> {
        let mut found: Vec<&CaseRecord> = Vec::new();
        for kind in self.0.iter().filter(|kind| kind.role == role) {
            let Some(block) = axes.block_bytes[kind.workload as usize] else { continue };
            let distance = |case: &CaseRecord| (case.data != axes.data, case.placement != axes.placement);
            let cases = kind.by_block.get(&block).unwrap_or(&kind.all);
            let least = cases.iter().map(|case| distance(case)).min();
            found.extend(cases.iter().filter(|case| Some(distance(case)) == least));
        }
        // They are in one list, so that their addresses have its order.
        found.sort_unstable_by_key(|case| std::ptr::from_ref(*case));
        found
    }
}
