//! What lies between two runs, one after the other, is in no interval: these sentences are always shown.

use model::{DiffRecord, DiffSide, OtherLoad};

use crate::numbers::percent;
use crate::remarks::PROGRAMS_FROM;

/// Smallest share of other guests that is reported.
const STOLEN_FROM: f64 = 0.01;

/// The sentences; none for trials in turns.
pub(super) fn between_runs(record: &DiffRecord) -> Vec<String> {
    if record.paired {
        return Vec::new();
    }
    let two_runs = "Two runs, one after the other: what differs between runs of one and the same program (other programs, the layout in \
                    memory, the CPUs that the scheduler chose) is not in the intervals. `hosepipe diff --run` measures both in turns.";
    vec![two_runs.to_owned(), other_load(record)]
}

/// What else used the CPUs during the run of each side.
fn other_load(record: &DiffRecord) -> String {
    let load = |side: &DiffSide| side.other_load.clone();
    let (old, new) = (load(&record.old), load(&record.new));
    if old.is_none() && new.is_none() {
        return "What other programs used of the CPUs during the two runs is not recorded.".to_owned();
    }
    let stolen = [&old, &new].map(|load| load.as_ref().map_or(0.0, |load| load.stolen_share));
    let guests = if stolen.iter().any(|share| *share >= STOLEN_FROM) {
        format!(" Other guests of the hypervisor: {} and {}.", percent(stolen[0]), percent(stolen[1]))
    } else {
        String::new()
    };
    let [old, new] = [old, new].map(|load| programs(load.as_ref()));
    format!("Other programs used {old} during the old run, {new} during the new one.{guests}")
}

/// "44 % of the CPUs (most: rustc (4711))".
fn programs(load: Option<&OtherLoad>) -> String {
    let Some(load) = load else { return "an unknown share of the CPUs".to_owned() };
    let largest = load.programs.first().filter(|_| load.programs_share >= PROGRAMS_FROM);
    let largest = largest.map(|name| format!(" (most: {name})")).unwrap_or_default();
    format!("{} of the CPUs{largest}", percent(load.programs_share))
}
