//! Whether records have anything in common, and what to say where they have not.

use model::BenchRecord;

use super::cases::Axes;
use crate::view::ranked;

/// A sentence for each bench record that shares no case with any other one; empty where there is one record only.
pub(super) fn strangers(records: &[(&str, &BenchRecord)]) -> Vec<String> {
    if records.len() < 2 {
        return Vec::new();
    }
    let shares = |at: usize| {
        let others = records.iter().enumerate().filter(|(other, _)| *other != at);
        let mut others = others.map(|(_, (_, record))| record);
        others.any(|other| has_common_case(records[at].1, other))
    };
    let alone = (0..records.len()).filter(|at| !shares(*at));
    alone.map(|at| sentence(records[at])).collect()
}

/// The same spec under the same axes with the same block.
fn has_common_case(one: &BenchRecord, other: &BenchRecord) -> bool {
    ranked(one).any(|case| {
        ranked(other).any(|twin| {
            case.block_bytes == twin.block_bytes
                && case.spec == twin.spec
                && Axes::of(case) == Axes::of(twin)
                && case.worker.as_ref().map(|worker| (worker.writer.label(), worker.reader.label()))
                    == twin.worker.as_ref().map(|worker| (worker.writer.label(), worker.reader.label()))
        })
    })
}

fn sentence((name, record): (&str, &BenchRecord)) -> String {
    let mut specs: Vec<String> = Vec::new();
    for case in ranked(record) {
        let spec = case.spec.to_string();
        if !specs.contains(&spec) {
            specs.push(spec);
        }
    }
    let rest = specs.len().saturating_sub(4);
    specs.truncate(4);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let what =
        if specs.is_empty() { "no case at all".to_owned() } else { format!("{}{more}", specs.join(", ")) };
    format!(
        "{name} has no case in common with the other records (it has {what}): its figures stand by themselves. To compare, \
         measure the same mechanisms, blocks, tasks, placement and data level."
    )
}
