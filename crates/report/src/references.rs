//! The floors and ceilings of a record, and which of them belong to a ranking: those that share most of its axes.

use std::collections::HashMap;

use model::{BenchRecord, CaseRecord, DataLevel, Placement, Role, Workload};

use crate::lists::grouped;

/// A case and its index in the record.
type Indexed<'a> = (usize, &'a CaseRecord);

/// All floors and ceilings of a record that were measured.
#[derive(Debug)]
pub(crate) struct References<'a>(Vec<ReferenceCases<'a>>);

/// Those of one role, spec and workload.
#[derive(Debug)]
struct ReferenceCases<'a> {
    role: Role,
    workload: Workload,
    by_block: HashMap<u64, Vec<Indexed<'a>>>,
    all: Vec<Indexed<'a>>,
}

impl<'a> References<'a> {
    pub(crate) fn from_record(record: &'a BenchRecord) -> Self {
        let cases = record.cases.iter().enumerate();
        let cases = cases.filter(|(_, case)| case.role != Role::Ranked && !case.samples.is_empty());
        let kinds = grouped(cases.map(|(at, case)| ((case.role, &case.spec, case.workload), (at, case))));
        let kind = |((role, _, workload), all): ((Role, _, Workload), Vec<Indexed<'a>>)| {
            let by_block = grouped(all.iter().map(|(at, case)| (case.block_bytes, (*at, *case))));
            ReferenceCases { role, workload, by_block: by_block.into_iter().collect(), all }
        };
        Self(kinds.into_iter().map(kind).collect())
    }

    /// The cases of a role that share most with a ranking, whose streams and round trips have these blocks, in their order in the record.
    pub(crate) fn nearest(
        &self,
        role: Role,
        (data, placement): (DataLevel, Placement),
        blocks: [Option<u64>; 2],
    ) -> Vec<&'a CaseRecord> {
        let mut found: Vec<Indexed> = Vec::new();
        for kind in self.0.iter().filter(|kind| kind.role == role) {
            let Some(block) = blocks[kind.workload as usize] else { continue };
            let distance = |case: &CaseRecord| (case.data != data, case.placement != placement);
            let cases = kind.by_block.get(&block).unwrap_or(&kind.all);
            let least = cases.iter().map(|(_, case)| distance(case)).min();
            found.extend(cases.iter().filter(|(_, case)| Some(distance(case)) == least));
        }
        found.sort_unstable_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, case)| case).collect()
    }
}
