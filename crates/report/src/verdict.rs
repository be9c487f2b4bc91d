//! Which to take: a sentence for streams and one for round trips, by the rule of `hosepipe recommend` ([`stats::choice`]) over
//! steady rows; a mechanism whose ends spin is named with what that costs.

use model::{CaseRecord, NoiseLevel, Tasks, Wait, Workload};
use stats::{Demand, choose, figure, shared_cpu};

use crate::numbers;
use crate::view::{Group, RankedRow, Ranking, View};
use crate::words::whereabouts;

/// Rows named as equally good; with more, the list is no help.
const LEVEL_MAX: usize = 2;

/// So many times the figure of the best steady row the lower bound of another must be, to be taken although it varies.
const FAR_BETTER: f64 = 1.5;

/// Which mechanism to take, for streams and for round trips, then what may be better; empty where there is no choice between
/// two.
pub(crate) fn verdict(view: &View) -> Vec<String> {
    // The figures that say most: of checked bytes, where there are any. Over many block sizes the best changes with the size.
    let Some(Group::Ranked(ranking)) = view.groups().into_iter().next() else { return Vec::new() };
    let verdicts: Vec<Vec<String>> =
        Workload::ALL.iter().map(|workload| of_workload(ranking, *workload)).collect();
    let choices = verdicts.iter().filter_map(|sentences| sentences.first());
    choices.chain(verdicts.iter().flat_map(|sentences| sentences.iter().skip(1))).cloned().collect()
}

/// The verdict for the scheduler's choice or, where nothing is steady there, for pinned ends.
fn of_workload(ranking: &Ranking, workload: Workload) -> Vec<String> {
    let placements = [false, true].map(|pinned| Candidates::new(ranking, workload, pinned));
    let unsteady = |what| format!("{what}: no row is steady enough to choose one.");
    match placements.iter().find_map(Candidates::sentences) {
        Some(sentences) => sentences,
        None => placements[0].what().map(unsteady).into_iter().collect(),
    }
}

/// The cases of one workload in one placement, among which one is to be taken.
struct Candidates<'a> {
    cases: Vec<&'a CaseRecord>,
}

impl<'a> Candidates<'a> {
    fn new(ranking: &Ranking<'a>, workload: Workload, pinned: bool) -> Self {
        let case = |row: &RankedRow<'a>| row.case(workload, pinned);
        let measured = |case: &&CaseRecord| case.throughput.is_some() || case.latency_ns.is_some();
        Self { cases: ranking.rows.iter().filter_map(case).filter(measured).collect() }
    }

    /// "Streams of 64 KiB"; `None` where there are not two to choose from.
    fn what(&self) -> Option<String> {
        let first = self.cases.first().filter(|_| self.cases.len() > 1)?;
        let size = numbers::size(first.block_bytes);
        Some(match first.workload {
            Workload::Stream => format!("Streams of {size}"),
            Workload::PingPong => format!("Round trips of {size}"),
        })
    }

    /// Which to take, and what may be better.
    fn sentences(&self) -> Option<Vec<String>> {
        let what = self.what()?;
        let settled: Vec<&CaseRecord> = self.cases.iter().copied().filter(|case| steady(case)).collect();
        let weighing = choose(&settled, &Demand::default());
        let best = settled[weighing.taken?];
        if let Some(sentence) = self.far_better(&what, best) {
            return Some(vec![sentence]);
        }
        let level: Vec<String> = weighing
            .level()
            .map(|weighed| &settled[weighed.at].spec)
            .filter(|spec| **spec != best.spec)
            .map(|spec| format!("`{spec}`"))
            .collect();
        let level = match level.len() {
            0 => String::new(),
            count if count <= LEVEL_MAX => format!("; no measurable difference: {}", level.join(", ")),
            count => format!("; no measurable difference from {count} others"),
        };
        let (place, figures) = (whereabouts(best), figures(best));
        let mut sentences = vec![format!("{what} {place}: take `{}` ({figures}){level}.", best.spec)];
        sentences.extend(self.better_by_spinning(best));
        let unsteady = self.cases.iter().find(|case| !steady(case) && !spins(case) && above(case, best));
        sentences.extend(
            unsteady.map(|case| format!("`{}` may be better, but its figures vary too much.", case.spec)),
        );
        Some(sentences)
    }

    /// One that varies too much to be weighed, and is so much faster that this does not matter.
    fn far_better(&self, what: &str, best: &CaseRecord) -> Option<String> {
        let least = |case: &CaseRecord| interval(case).map_or(0.0, |(low, ..)| low) / score(best);
        let varying = self.cases.iter().filter(|case| !steady(case) && !spins(case));
        let fastest = varying.max_by(|one, other| least(one).total_cmp(&least(other)))?;
        (least(fastest) > FAR_BETTER).then(|| {
            format!(
                "{what} {}: take `{}` ({}). Its figures vary, but also the lowest {} as `{}`, the best of the steady ones.",
                whereabouts(fastest),
                fastest.spec,
                figures(fastest),
                faster(fastest.workload, least(fastest)),
                best.spec
            )
        })
    }

    /// The best of those whose ends spin, where it is better, and what it costs.
    fn better_by_spinning(&self, best: &CaseRecord) -> Option<String> {
        let spinning = self.cases.iter().filter(|case| spins(case) && above(case, best));
        let fastest = spinning.max_by(|a, b| score(a).total_cmp(&score(b)))?;
        let verb = faster(fastest.workload, score(fastest) / score(best));
        let busy = if fastest.tasks == Tasks::Single || shared_cpu(fastest) == Some(true) {
            "its CPU"
        } else {
            "two CPUs"
        };
        Some(format!("`{}` {verb}, but keeps {busy} busy while it waits.", fastest.spec))
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

/// Whether a case was steady enough to base advice on.
pub(crate) fn steady(case: &CaseRecord) -> bool {
    case.noise == Some(NoiseLevel::Quiet)
}

/// Whether the ends of a case are busy while they wait.
pub(crate) fn spins(case: &CaseRecord) -> bool {
    case.wait == Wait::Spin
}

/// By how many times one case is faster: "moves 3.0 times as much", or "answers 3.0 times as fast".
pub(crate) fn faster(workload: Workload, times: f64) -> String {
    let times = numbers::ratio(times);
    match workload {
        Workload::Stream => format!("moves {times} times as much"),
        Workload::PingPong => format!("answers {times} times as fast"),
    }
}
