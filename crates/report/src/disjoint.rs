//! Records that have no case in common with others.

use std::collections::HashSet;

use model::BenchRecord;

use crate::groups::{Key, key};
use crate::lists::{distinct, first_names};
use crate::view::ranked;

/// A sentence for each bench record that shares no case with any other one; empty if there is only one record.
pub(crate) fn sentences(records: &[(&str, &BenchRecord)]) -> Vec<String> {
    if records.len() < 2 {
        return Vec::new();
    }
    let cases: Vec<HashSet<Key>> = records.iter().map(|(_, record)| identities(record)).collect();
    let shares = |at: usize| {
        let mut others = cases.iter().enumerate().filter(|(other, _)| *other != at);
        others.any(|(_, other)| !cases[at].is_disjoint(other))
    };
    let alone = (0..records.len()).filter(|at| !shares(*at));
    alone.map(|at| sentence(records[at])).collect()
}

/// What two cases of different records must share to be one case.
const IDENTITY: &[&str] =
    &["spec", "writer", "reader", "workload", "data", "tasks", "placement", "relays", "block_bytes"];

fn identities(record: &BenchRecord) -> HashSet<Key> {
    ranked(record).map(|case| key(case, IDENTITY)).collect()
}

fn sentence((name, record): (&str, &BenchRecord)) -> String {
    let specs = distinct(ranked(record).map(|case| case.spec.to_string()));
    let known_specs = if specs.is_empty() { "no case at all".to_owned() } else { first_names(&specs, 4) };
    format!(
        "{name} has no case in common with the other records (it has {known_specs}) and is shown by itself. To compare, measure the same \
         mechanisms, blocks, tasks, placement and data level."
    )
}
