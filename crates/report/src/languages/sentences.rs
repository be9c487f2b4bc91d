//! Sentences under the table of languages: how much slower idiomatic code is than tuned code.

use std::collections::HashMap;

use model::{BenchRecord, CaseRecord, WorkerStart};
use stats::{figure, paired_ratio};

use super::{PlacedCases, speed, worker};
use crate::numbers;

/// Smallest slowdown of idiomatic code that gets a sentence.
const COST_MIN: f64 = 1.05;

/// A sentence for each placement and each language whose idiomatic code is slower, the slowest first.
pub(super) fn all(record: &BenchRecord) -> Vec<String> {
    let groups = PlacedCases::all(record);
    let apart = |placed: &PlacedCases| match groups.len() {
        1 => String::new(),
        _ => format!(" ({})", placed.ends()),
    };
    groups.iter().flat_map(|placed| costs(placed, &apart(placed))).collect()
}

fn costs(placed: &PlacedCases, apart: &str) -> Vec<String> {
    let mut tuned: HashMap<&str, &CaseRecord> = HashMap::new();
    for case in placed.started_by(WorkerStart::Pair) {
        if let Some(worker) = worker(case).filter(|worker| worker.writer.variant == "tuned") {
            tuned.entry(&worker.writer.language).or_insert(case);
        }
    }
    let mut costs: Vec<(f64, String)> = placed
        .ranked()
        .into_iter()
        .filter(|case| worker(case).is_some_and(|worker| worker.writer.variant == "idiomatic"))
        .filter_map(|idiomatic| {
            let tuned = *tuned.get(worker(idiomatic)?.writer.language.as_str())?;
            let ratio = paired_ratio(&tuned.samples, &idiomatic.samples, figure::throughput_bytes_per_s)?;
            let disjoint = tuned.throughput.as_ref()?.low > idiomatic.throughput.as_ref()?.high;
            let times = speed(tuned) / speed(idiomatic);
            (disjoint && ratio.low > COST_MIN && times > COST_MIN)
                .then(|| (times, cost(idiomatic, times, apart)))
        })
        .collect();
    costs.sort_by(|one, other| other.0.total_cmp(&one.0));
    costs.into_iter().map(|(_, sentence)| sentence).collect()
}

fn cost(idiomatic: &CaseRecord, times: f64, apart: &str) -> String {
    let language = worker(idiomatic).map_or("", |worker| worker.writer.language.as_str());
    let times = numbers::ratio(times);
    format!("{language} idiomatic{apart} takes {times} times as long as tuned.")
}
