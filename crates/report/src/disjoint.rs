//! Records that have no case in common with others.

use std::collections::HashSet;

use model::{BenchRecord, CaseRecord, Spec};

use crate::lists::{distinct, first_names};
use crate::view::{Axes, ranked};

/// A sentence for each bench record that shares no case with any other one; empty if there is only one record.
pub(crate) fn sentences(records: &[(&str, &BenchRecord)]) -> Vec<String> {
    if records.len() < 2 {
        return Vec::new();
    }
    let cases: Vec<HashSet<Identity>> = records.iter().map(|(_, record)| identities(record)).collect();
    let shares = |at: usize| {
        let mut others = cases.iter().enumerate().filter(|(other, _)| *other != at);
        others.any(|(_, other)| !cases[at].is_disjoint(other))
    };
    let alone = (0..records.len()).filter(|at| !shares(*at));
    alone.map(|at| sentence(records[at])).collect()
}

/// What two cases of different records must share to be one case: spec, axes, block, and the workers at both ends.
type Identity<'a> = (&'a Spec, Axes, u64, Option<[String; 2]>);

fn identities(record: &BenchRecord) -> HashSet<Identity<'_>> {
    let workers = |case: &CaseRecord| {
        case.worker.as_ref().map(|worker| [&worker.writer, &worker.reader].map(|end| end.label()))
    };
    ranked(record).map(|case| (&case.spec, Axes::from_case(case), case.block_bytes, workers(case))).collect()
}

fn sentence((name, record): (&str, &BenchRecord)) -> String {
    let specs = distinct(ranked(record).map(|case| case.spec.to_string()));
    let specs = if specs.is_empty() { "no case at all".to_owned() } else { first_names(&specs, 4) };
    format!(
        "{name} has no case in common with the other records (it has {specs}) and is shown by itself. To compare, measure the same \
         mechanisms, blocks, tasks, placement and data level."
    )
}
