//! What a reader must know of a case whose trials have no steady state: its figure depends on the length of a trial, on chance, or on
//! the trial before it.

use model::{BenchRecord, CaseRecord, Workload};
use stats::{CarryOver, carry_over, states, unlike_halves};

use crate::estimate::quantity;
use crate::limits::CASES_MAX;
use crate::lists::first_lines;
use crate::view::transports;
use crate::{numbers, words};

/// A sentence for each case whose halves differ, whose trials fall into two states, or whose trials differ by what ran before them.
pub(crate) fn remarks(record: &BenchRecord) -> Vec<String> {
    let mut all = first_lines(transports(record).filter_map(two_states).collect(), CASES_MAX);
    all.extend(first_lines(transports(record).filter_map(two_halves).collect(), CASES_MAX));
    all.extend(first_lines(after_others(record), CASES_MAX));
    all
}

fn after_others(record: &BenchRecord) -> Vec<String> {
    let cases: Vec<&CaseRecord> = record.cases.iter().collect();
    let line = |found: CarryOver| {
        let quantity = quantity(cases[found.case].workload);
        let times = numbers::ratio(found.shift.ratio);
        let [case, after] = [found.case, found.after].map(|at| name(cases[at]));
        format!(
            "{case} has {times} times its other {} right after {after}: what that leaves behind is in the figure.",
            quantity.name
        )
    };
    carry_over(&cases, |case, sample| (quantity(case.workload).of_sample)(case, sample))
        .into_iter()
        .map(line)
        .collect()
}

fn two_states(case: &CaseRecord) -> Option<String> {
    let quantity = quantity(case.workload);
    let [low, high] = states(case, |sample| (quantity.of_sample)(case, sample))?;
    let [low_text, high_text] = [low, high].map(|group| quantity.unit.text(group.median));
    let all = words::count(low.trials + high.trials, "trial");
    Some(format!(
        "{} has two states: {low_text} in {} of {all}, {high_text} in {}. Its median says how often each occurred.",
        name(case),
        low.trials,
        high.trials
    ))
}

fn two_halves(case: &CaseRecord) -> Option<String> {
    let found = unlike_halves(case)?;
    let [times, low, high] = [found.median, found.low, found.high].map(numbers::ratio);
    Some(format!(
        "{}: the second half of a trial takes {times} times as long as the first ({low} to {high}): longer trials may give another figure \
         (--bytes, --count).",
        name(case)
    ))
}

/// "`shm-ring` (streams of 64 KiB, CPUs 0,1)"
pub(crate) fn name(case: &CaseRecord) -> String {
    let what = match case.workload {
        Workload::Stream => "streams",
        Workload::PingPong => "round trips",
    };
    format!("`{}` ({what} of {}, {})", case.spec, numbers::size(case.block_bytes), words::whereabouts(case))
}
