//! Which to take: a sentence for streams and one for round trips, by the rule of `hosepipe recommend` ([`stats::choice`]); a
//! mechanism whose ends spin is named with what that costs.

use model::{CaseRecord, Placement, Tasks, Wait, Workload};
use stats::{Demand, Estimate, Excluded, Weighed, Weighing, choose, figure, paired_ratios, shared_cpu};

use crate::lists::first_of;
use crate::numbers;
use crate::view::{Group, RankedRow, Ranking, View};
use crate::words::whereabouts;

/// Names in a list of rows that share the first place.
const NAMES_MAX: usize = 4;
/// Of fewer rounds nothing is said of how many more it takes.
const FEW_ROUNDS: usize = 20;
/// A time longer than this is not suggested, in seconds.
const TIME_MAX_S: f64 = 1800.0;

/// Which mechanism to take.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// A sentence for streams and one for round trips; none where there is no choice between two.
    pub(crate) answers: Vec<String>,
    /// What is faster by spinning.
    pub(crate) further: Vec<String>,
}

/// Which mechanism to take, for streams and for round trips.
pub(crate) fn verdict(view: &View) -> Verdict {
    // The figures that say most: of checked bytes, where there are any.
    let verdicts: Vec<Vec<String>> = match view.groups().into_iter().next() {
        Some(Group::Ranked(ranking)) => {
            let of_workload = |workload: &Workload| {
                let candidates = [false, true].map(|pinned| Candidates::new(ranking, *workload, pinned));
                candidates
                    .iter()
                    .find_map(|one| one.sentences(view.record.settings.took_s))
                    .unwrap_or_default()
            };
            Workload::ALL.iter().map(of_workload).collect()
        }
        Some(Group::Sweep(rankings)) => {
            let of_workload = |workload: &Workload| sweep(&rankings, *workload).into_iter().collect();
            Workload::ALL.iter().map(of_workload).collect()
        }
        None => Vec::new(),
    };
    let mut verdict = Verdict::default();
    for mut sentences in verdicts {
        verdict.further.extend(sentences.drain(sentences.len().min(1)..));
        verdict.answers.append(&mut sentences);
    }
    verdict
}

/// "Streams: take `pipe` up to 512 B, `shm-ring` from 1 KiB to 1 MiB."; `None` where there are not two to choose from.
fn sweep(rankings: &[&Ranking], workload: Workload) -> Option<String> {
    let mut runs: Vec<(String, u64, u64)> = Vec::new();
    for ranking in rankings {
        let candidates = Candidates::new(ranking, workload, false);
        let Some(taken) = candidates.taken() else { continue };
        let (name, block) = (taken.spec.to_string(), taken.block_bytes);
        match runs.last_mut().filter(|(last, ..)| *last == name) {
            Some((_, _, to)) => *to = block,
            None => runs.push((name, block, block)),
        }
    }
    let run = |(name, from, to): &(String, u64, u64)| match from == to {
        true => format!("`{name}` at {}", numbers::size(*from)),
        false => format!("`{name}` from {} to {}", numbers::size(*from), numbers::size(*to)),
    };
    let texts: Vec<String> = runs.iter().map(run).collect();
    (!texts.is_empty()).then(|| format!("{}: take {}.", what(workload), texts.join(", ")))
}

fn what(workload: Workload) -> &'static str {
    match workload {
        Workload::Stream => "Streams",
        Workload::PingPong => "Round trips",
    }
}

/// The cases of one workload in one placement, of which one is to be taken.
struct Candidates<'a> {
    cases: Vec<&'a CaseRecord>,
    weighing: Weighing,
}

impl<'a> Candidates<'a> {
    fn new(ranking: &Ranking<'a>, workload: Workload, pinned: bool) -> Self {
        let case = |row: &RankedRow<'a>| row.case(workload, pinned);
        let measured = |case: &&CaseRecord| case.throughput.is_some() || case.latency_ns.is_some();
        let cases: Vec<&CaseRecord> = ranking.rows.iter().filter_map(case).filter(measured).collect();
        let weighing = choose(&cases, &Demand::default());
        Self { cases, weighing }
    }

    /// The case to take; `None` where there are not two to choose from.
    fn taken(&self) -> Option<&'a CaseRecord> {
        self.weighing.taken.filter(|_| self.cases.len() > 1).map(|at| self.cases[at])
    }

    fn name(&self, at: usize) -> String {
        format!("`{}`", self.cases[at].spec)
    }

    /// Which to take, how the others stand to it, and what is faster by spinning. `took_s`: what the run took.
    fn sentences(&self, took_s: Option<f64>) -> Option<Vec<String>> {
        let taken = self.taken()?;
        let what = format!("{} of {}", what(taken.workload), numbers::size(taken.block_bytes));
        let standing = [self.lead(), self.shared(taken), self.undecided(taken, took_s)];
        let standing: String = standing.into_iter().flatten().collect();
        let mut sentences = vec![format!(
            "{what} {}: take `{}` ({}){standing}.",
            whereabouts(taken),
            taken.spec,
            figures(taken)
        )];
        sentences.extend(self.better_by_spinning(taken));
        Some(sentences)
    }

    /// By how much the one winner leads, where there is one.
    fn lead(&self) -> Option<String> {
        let standing = &self.weighing.standing;
        let (next, factor) = standing.beaten.first().filter(|_| self.weighing.level().count() == 1)?;
        let [_] = standing.first.as_slice() else { return None };
        // Of less than two the second decimal matters.
        let factor_text =
            |times: f64| if times < 2.0 { numbers::fixed(times, 2) } else { numbers::ratio(times) };
        let [low, high] = [standing.lead, factor.high.max(standing.lead)].map(factor_text);
        let times = match standing.lead {
            lead if lead <= 1.0 => "more".to_owned(),
            _ if factor.high.is_infinite() => format!("at least {low} times as much"),
            _ if low == high => format!("{low} times as much"),
            _ => format!("{low} to {high} times as much"),
        };
        Some(format!("; the next, {}, costs {times} in time and CPU", self.name(*next)))
    }

    /// Those that share the first place with what is taken, and those that may lead.
    fn shared(&self, taken: &CaseRecord) -> Option<String> {
        let names = |these: &dyn Fn(&Weighed) -> bool| -> Vec<String> {
            let others = self.weighing.weighed.iter().filter(|one| self.cases[one.at].spec != taken.spec);
            others.filter(|one| these(one)).map(|one| self.name(one.at)).collect()
        };
        let list = |names: &[String]| first_of(names, NAMES_MAX, ", ", String::clone);
        let may_lead = |one: &Weighed| self.weighing.standing.first.iter().any(|(at, _)| *at == one.at);
        let (level, open) = (names(&|one| one.level), names(&|one| !one.level && may_lead(one)));
        let level = (!level.is_empty()).then(|| {
            format!(
                ", the simplest of {} that share the first place (also {})",
                level.len() + 1,
                list(&level)
            )
        });
        let open = (!open.is_empty()).then(|| format!("; too few rounds to rule out {}", list(&open)));
        Some(level.into_iter().chain(open).collect())
    }

    /// What it takes to tell apart those that may be the best.
    fn undecided(&self, taken: &CaseRecord, took_s: Option<f64>) -> Option<String> {
        let standing = &self.weighing.standing;
        if standing.is_decided() {
            return None;
        }
        let made = standing.first.iter().map(|(at, _)| self.cases[*at].samples.len()).max()?;
        let rounds = standing.rounds_needed.map(|needed| needed.max(made + 1));
        let seconds = rounds.zip(took_s).map(|(needed, took_s)| took_s * needed as f64 / made.max(1) as f64);
        let pin = if taken.placement == Placement::Any { ", or --place cross" } else { "" };
        Some(match (seconds, rounds) {
            (Some(seconds), _) if seconds <= TIME_MAX_S => {
                format!("; to tell them apart: --time {:.0}m{pin}", (seconds / 60.0).ceil())
            }
            (None, Some(rounds)) => format!("; to tell them apart: --trials {rounds}{pin}"),
            _ if made < FEW_ROUNDS => format!("; to tell them apart: --trials {FEW_ROUNDS}{pin}"),
            _ => format!("; half an hour would not tell them apart{}", pin.replace(", or", ", maybe")),
        })
    }

    /// The fastest of those whose ends spin, where it surely is faster, and what it costs.
    fn better_by_spinning(&self, best: &CaseRecord) -> Option<String> {
        let spinning = self
            .weighing
            .weighed
            .iter()
            .filter(|one| matches!(one.excluded, Some(Excluded::Spins | Excluded::SpinsOnOneCpu)));
        let faster_by = |case: &'a CaseRecord| times_as_fast(case, best).map(|times| (case, times));
        let all =
            spinning.filter_map(|one| faster_by(self.cases[one.at])).filter(|(_, times)| times.low > 1.0);
        let (fastest, times) = all.max_by(|one, other| one.1.median.total_cmp(&other.1.median))?;
        let verb = faster(fastest.workload, times.median);
        let busy = if fastest.tasks == Tasks::Single || shared_cpu(fastest) == Some(true) {
            "its CPU"
        } else {
            "two CPUs"
        };
        Some(format!("`{}` {verb}, but keeps {busy} busy while it waits.", fastest.spec))
    }
}

/// How many times as fast one case is as another of its workload, round by round; `None` where fewer rounds than an interval needs
/// have both.
pub(crate) fn times_as_fast(one: &CaseRecord, other: &CaseRecord) -> Option<Estimate> {
    let ratios = match one.workload {
        Workload::Stream => paired_ratios(&one.samples, &other.samples, figure::throughput_bytes_per_s),
        Workload::PingPong => paired_ratios(&other.samples, &one.samples, figure::round_trip_p50_ns),
    };
    Estimate::of(&ratios).filter(|times| times.count >= stats::estimate::ENOUGH_FOR_95_PERCENT)
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
