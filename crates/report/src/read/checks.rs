//! Checks of a record beyond its types: numbers that can be measured, indexes that exist, histograms that can be read.

use model::{CaseRecord, Chain, ChainLink, FleetRecord, Record, RunRecord, decode_histogram};
use serde_json::Value;

/// Largest number that a record may hold: no rate, time or share that can be measured is larger, nor a quotient of two of them.
const NUMBER_MAX: f64 = 1e40;
/// Largest whole number that a record may hold: more nanoseconds or bytes than any trial has, and few enough for the sum of any that are
/// counted together.
const WHOLE_NUMBER_MAX: u64 = 1 << 53;
/// A field whose number measures nothing.
const SEED: &str = "seed";
/// Largest number of pairs of a writer and a reader in all links of a chain.
const JOINED_MAX: usize = 1 << 20;

/// Checks that no number in a tree is negative, larger than [`NUMBER_MAX`], or a whole number larger than [`WHOLE_NUMBER_MAX`].
///
/// # Errors
/// A sentence on the first one that is, with its keys and indexes from the root.
pub(super) fn numbers(tree: &Value) -> Result<(), String> {
    immeasurable(tree).map_or(Ok(()), |(mut path, problem)| {
        path.reverse();
        Err(format!("`{}` is {problem}", path.join(".")))
    })
}

/// The first number that cannot be measured: its keys and indexes, the last one first, and what is wrong with it.
fn immeasurable(tree: &Value) -> Option<(Vec<String>, String)> {
    let at = |key: &dyn ToString, value: &Value| {
        immeasurable(value).map(|(mut path, problem)| {
            path.push(key.to_string());
            (path, problem)
        })
    };
    match tree {
        Value::Array(values) => values.iter().enumerate().find_map(|(index, value)| at(&index, value)),
        Value::Object(fields) => {
            fields.iter().filter(|(key, _)| *key != SEED).find_map(|(key, value)| at(key, value))
        }
        Value::Number(number) => match number.as_f64() {
            Some(value) if value < 0.0 => Some((Vec::new(), format!("{number}: negative"))),
            Some(value)
                if value > NUMBER_MAX || number.as_u64().is_some_and(|whole| whole > WHOLE_NUMBER_MAX) =>
            {
                Some((Vec::new(), format!("{value:e}: more than anything that can be measured")))
            }
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

/// Checks that every index in a record exists, and that every histogram can be read.
///
/// # Errors
/// A sentence on the first one that does not.
pub(super) fn check(record: &Record) -> Result<(), String> {
    match record {
        Record::Bench(record) => histograms(&record.cases),
        Record::Study(record) => record.parts.iter().try_for_each(|part| histograms(&part.cases)),
        Record::Fleet(record) => check_fleet(record),
        Record::Top(record) => record.seen.chains.iter().try_for_each(check_chain),
        Record::Run(record) => check_run(record),
        Record::Compare(_) | Record::Diff(_) | Record::Boost(_) | Record::Why(_) => Ok(()),
    }
}

fn histograms(cases: &[CaseRecord]) -> Result<(), String> {
    let samples = cases.iter().flat_map(|case| case.samples.iter().chain(&case.disturbed));
    let texts = samples.flat_map(|sample| [&sample.latency_histogram, &sample.service_histogram]);
    texts.flatten().try_for_each(|text| decode_histogram(text).map(drop).map_err(|error| error.to_string()))
}

fn check_fleet(record: &FleetRecord) -> Result<(), String> {
    let ranks = record.meetings.iter().flat_map(|meeting| [meeting.from, meeting.to]);
    indexes("a rank in `meetings`", 0, ranks, "nodes", record.nodes.len())?;
    let own = record.nodes.iter().filter_map(|node| Some(&node.bench.as_ref()?.cases));
    own.chain(record.meetings.iter().map(|meeting| &meeting.cases)).try_for_each(|cases| histograms(cases))
}

fn check_run(record: &RunRecord) -> Result<(), String> {
    let stage = record.bottleneck.as_ref().and_then(|bottleneck| bottleneck.stage);
    indexes("`bottleneck.stage`", 1, stage, "stages", record.stages.len())
}

fn check_chain(chain: &Chain) -> Result<(), String> {
    let stages = chain.stages.len();
    if stages == 0 {
        return Err("a chain has no `stages`".to_owned());
    }
    indexes("`held_up_by`", 1, chain.held_up_by, "stages", stages)?;
    let pairs = |link: &ChainLink| link.writers.len().saturating_mul(link.readers.len());
    let joined = chain.links.iter().map(pairs).fold(0, usize::saturating_add);
    if joined > JOINED_MAX {
        return Err(format!("the links of a chain join {joined} pairs of stages"));
    }
    let ends = chain.links.iter().flat_map(|link| link.writers.iter().chain(&link.readers));
    indexes("an end of a link", 1, ends.copied(), "stages", stages)?;
    let waits_at = chain.stages.iter().filter_map(|stage| stage.waits_at);
    indexes("`waits_at`", 1, waits_at, "links", chain.links.len())
}

/// Checks that all indexes are before the end of a list. In the record they count from `first`.
fn indexes(
    what: &str,
    first: usize,
    indexes: impl IntoIterator<Item = usize>,
    list: &str,
    end: usize,
) -> Result<(), String> {
    match indexes.into_iter().find(|index| *index >= end) {
        Some(index) => Err(format!("{what} is {}, and `{list}` ends before it", index.saturating_add(first))),
        None => Ok(()),
    }
}
