//! Which to take: one sentence for streams and one for round trips, at the end of a table. Only steady rows are named as the
//! choice; a mechanism whose ends spin is named with what that costs.

use model::{CaseRecord, Tasks, Workload};
use stats::{figure, shared_cpu};

use crate::advice::{spins, steady};
use crate::view::{Group, Row, Section, View};
use crate::{numbers, words};

/// Rows named as equally good; with more, the list is no help.
const LEVEL_MAX: usize = 2;

/// Which mechanism to take, for streams and for round trips; empty where there is no choice between two.
pub(crate) fn verdict(view: &View) -> Vec<String> {
    // The figures that say most: of checked bytes, where there are any. Over many block sizes the best changes with the size.
    let Some(Group::Ranked(section)) = view.groups().into_iter().next() else { return Vec::new() };
    Workload::ALL.iter().filter_map(|workload| of_workload(section, *workload)).collect()
}

/// The verdict for the scheduler's choice or, where nothing is steady there, for pinned ends.
fn of_workload(section: &Section, workload: Workload) -> Option<String> {
    let free = Candidates::of(section, workload, false);
    let pinned = Candidates::of(section, workload, true);
    let sentences = [free.sentence(), pinned.sentence()];
    let what = free.what()?;
    sentences.into_iter().flatten().next().or_else(|| {
        Some(format!("For {what} no row is steady enough to say which to take: measure on a quieter machine, or more trials."))
    })
}

/// The cases of one workload in one placement, among which one is to be taken.
struct Candidates<'a> {
    cases: Vec<&'a CaseRecord>,
}

impl<'a> Candidates<'a> {
    fn of(section: &Section<'a>, workload: Workload, pinned: bool) -> Self {
        let case = |row: &Row<'a>| row.case(workload, pinned);
        let measured = |case: &&CaseRecord| case.throughput.is_some() || case.latency_ns.is_some();
        Self { cases: section.rows.iter().filter_map(case).filter(measured).collect() }
    }

    /// "streams of 64 KiB blocks"; `None` where there are not two to choose from.
    fn what(&self) -> Option<String> {
        let first = self.cases.first().filter(|_| self.cases.len() > 1)?;
        let size = numbers::size(first.block_bytes);
        Some(match first.workload {
            Workload::Stream => format!("streams in blocks of {size}"),
            Workload::PingPong => format!("round trips of {size}"),
        })
    }

    fn sentence(&self) -> Option<String> {
        let what = self.what()?;
        let sleeping = || self.cases.iter().copied().filter(|case| steady(case) && !spins(case));
        let fastest = sleeping().max_by(|a, b| score(a).total_cmp(&score(b)))?;
        // Of those that cannot be told apart the plainest.
        let best =
            sleeping().filter(|case| overlap(case, fastest)).min_by_key(|case| case.spec.options.len())?;
        let level: Vec<String> = sleeping()
            .filter(|case| case.spec != best.spec && overlap(case, best))
            .map(|case| format!("`{}`", case.spec))
            .collect();
        let level = match level.len() {
            0 => String::new(),
            count if count <= LEVEL_MAX => {
                format!(", or {}, which cannot be told apart from it", level.join(" or "))
            }
            count => format!(", which cannot be told apart from {count} others"),
        };
        let mut sentence =
            format!("For {what}, {}, take `{}` ({}){level}.", whereabouts(best), best.spec, figures(best),);
        if let Some(spinning) = self.better_by_spinning(best) {
            sentence.push_str(&format!(" {spinning}"));
        }
        if let Some(unsteady) =
            self.cases.iter().find(|case| !steady(case) && !spins(case) && above(case, best))
        {
            sentence.push_str(&format!(" `{}` may be better, but was too unsteady to say.", unsteady.spec));
        }
        Some(sentence)
    }

    /// The best of those whose ends spin, where it is better, and what it costs.
    fn better_by_spinning(&self, best: &CaseRecord) -> Option<String> {
        let spinning = self.cases.iter().filter(|case| spins(case) && above(case, best));
        let fastest = spinning.max_by(|a, b| score(a).total_cmp(&score(b)))?;
        let times = numbers::ratio(score(fastest) / score(best));
        let verb = match fastest.workload {
            Workload::Stream => format!("moves {times} times as much"),
            Workload::PingPong => format!("answers {times} times as fast"),
        };
        let busy = if fastest.tasks == Tasks::Single || shared_cpu(fastest) == Some(true) {
            "its CPU"
        } else {
            "two CPUs"
        };
        Some(format!("`{}` {verb}, and keeps {busy} busy also while it waits.", fastest.spec))
    }
}

/// The figure that ranks, such that more is better.
fn score(case: &CaseRecord) -> f64 {
    interval(case).map_or(0.0, |(_, median, _)| median)
}

/// Low, median and high, such that more is better.
fn interval(case: &CaseRecord) -> Option<(f64, f64, f64)> {
    if let Some(throughput) = &case.throughput {
        return Some((throughput.low, throughput.median_bytes_per_s, throughput.high));
    }
    let latency = case.latency_ns.as_ref()?;
    let per_second = |ns: u64| 1e9 / ns.max(1) as f64;
    Some((per_second(latency.p50_high), per_second(latency.p50), per_second(latency.p50_low)))
}

fn overlap(one: &CaseRecord, other: &CaseRecord) -> bool {
    let pair = interval(one).zip(interval(other));
    pair.is_some_and(|((low, _, high), (other_low, _, other_high))| low <= other_high && other_low <= high)
}

/// Whether the whole interval of one lies above that of the other.
fn above(one: &CaseRecord, other: &CaseRecord) -> bool {
    score(one) > score(other) && !overlap(one, other)
}

fn whereabouts(case: &CaseRecord) -> String {
    match case.cpus.as_slice() {
        [] => "left to the scheduler".to_owned(),
        cpus => format!("pinned to {}", words::cpus(cpus)),
    }
}

/// The figure and what it costs: "8.73 GB/s, 7.50 µs of CPU per block".
fn figures(case: &CaseRecord) -> String {
    let cpu = figure::median_of(case, figure::cpu_per_block_ns).map(numbers::time);
    let (figure, unit) = match (&case.throughput, &case.latency_ns) {
        (Some(throughput), _) => (numbers::throughput(throughput.median_bytes_per_s), "block"),
        (_, Some(latency)) => (numbers::time(latency.p50 as f64), "trip"),
        _ => (String::new(), ""),
    };
    let cpu = cpu.map(|cpu| format!(", {cpu} of CPU per {unit}")).unwrap_or_default();
    format!("{figure}{cpu}")
}
