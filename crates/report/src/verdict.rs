//! Which to take: a sentence for streams and one for round trips, by the rule of `hosepipe recommend` ([`stats::choice`]); a
//! mechanism whose ends spin is named with what that costs.

use model::{CaseRecord, DataLevel, Load, Placement, Settings, Tasks, Wait, Workload};
use stats::{Choice, Demand, Estimate, Excluded, RankedCase, choose, figure, paired_ratios, shared_cpu};

use crate::lists::{distinct, first_of, grouped};
use crate::numbers;
use crate::view::{Group, RankedRow, Ranking, View, transports};
use crate::words::{self, whereabouts};

/// Names in a list of rows that share the first place.
const NAMES_MAX: usize = 4;
/// Ranges of sizes in a list of those where rows are not told apart.
const RUNS_MAX: usize = 5;
/// Of fewer rounds nothing is said of how many more it takes.
const FEW_ROUNDS: usize = 20;
/// A time longer than this is not suggested, in seconds.
const TIME_MAX_S: f64 = 1800.0;

/// Which mechanism to take.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// A sentence for streams and one for round trips, of each block and placement; none where nothing was measured.
    pub(crate) answers: Vec<String>,
    /// What is faster by spinning.
    pub(crate) further: Vec<String>,
}

/// Which mechanism to take, for streams and for round trips.
pub(crate) fn verdict(view: &View) -> Verdict {
    let settings = &view.record.settings;
    let mut groups = view.groups();
    // The figures that say most: of checked bytes, where there are any.
    let data = |group: &Group| match group {
        Group::Ranked(ranking) => Some(ranking.axes.data),
        Group::Sweep(rankings) => rankings.first().map(|ranking| ranking.axes.data),
    };
    let most = groups.first().and_then(data);
    groups.retain(|group| data(group) == most);
    let of_group = |workload: Workload, group: &Group| match group {
        Group::Ranked(ranking) => {
            let candidates = [false, true].map(|pinned| Candidates::new(ranking, workload, pinned));
            let sentences = candidates.iter().find_map(|one| one.sentences(settings));
            sentences.or_else(|| candidates.iter().find_map(Candidates::no_choice)).unwrap_or_default()
        }
        Group::Sweep(rankings) => sweep(rankings, workload, settings).into_iter().collect(),
    };
    let verdicts =
        Workload::ALL.iter().flat_map(|workload| groups.iter().map(move |group| of_group(*workload, group)));
    let verdicts = verdicts.chain(under_load(view));
    let mut verdict = Verdict::default();
    for mut sentences in verdicts {
        verdict.further.extend(sentences.drain(sentences.len().min(1)..));
        verdict.answers.append(&mut sentences);
    }
    verdict
}

/// The sentences of each load that was asked for.
fn under_load<'a>(view: &View<'a>) -> Vec<Vec<String>> {
    let cases = transports(view.record).filter(|case| case.load().is_asked() && is_measured(case));
    let with_key = |case: &'a CaseRecord| {
        ((case.workload, case.load(), case.block_bytes, case.tasks, case.placement, case.data), case)
    };
    let alike = grouped(cases.map(with_key)).into_iter();
    alike.filter_map(|(_, cases)| Candidates::among(cases).sentences(&view.record.settings)).collect()
}

fn is_measured(case: &CaseRecord) -> bool {
    case.throughput.is_some() || case.latency_ns.is_some()
}

/// Which to take at each size of a sweep.
struct SizeAnswer<'a> {
    block_bytes: u64,
    spec: String,
    /// Whether the others that may be taken as well are surely as good, and not only not told apart.
    is_decided: bool,
    others: Vec<String>,
    candidates: Candidates<'a>,
    taken: &'a CaseRecord,
}

/// "Streams, by time and CPU: take `pipe` at 1 B, `shm-ring` from 2 B to 1 MiB. Not told apart: `fifo` at 1 B; of those that cost
/// about the same the simplest is named; to tell them apart: --time 3m."; `None` where there are not two to choose from.
fn sweep<'a>(rankings: &[&Ranking<'a>], workload: Workload, settings: &Settings) -> Option<String> {
    let answer = |ranking: &&Ranking<'a>| -> Option<SizeAnswer<'a>> {
        let candidates = Candidates::new(ranking, workload, false);
        let taken = candidates.taken()?;
        let standing = &candidates.choice.standing;
        let may_lead = |at: usize| standing.first.iter().any(|(one, _)| *one == at);
        Some(SizeAnswer {
            block_bytes: taken.block_bytes,
            spec: taken.spec.to_string(),
            is_decided: standing.is_decided(),
            others: candidates.others(taken, &|one| one.shares_first_place || may_lead(one.at)),
            candidates,
            taken,
        })
    };
    let answers: Vec<SizeAnswer> = rankings.iter().filter_map(answer).collect();
    let runs = answers.chunk_by(|one, other| one.spec == other.spec);
    let runs: Vec<String> = runs.map(|run| format!("`{}` {}", run[0].spec, sizes(run))).collect();
    if runs.is_empty() {
        return None;
    }
    let mut text = format!("{}, by time and CPU: take {}.", what(workload), runs.join(", "));
    // Where the others are surely as good, and where nobody knows.
    for (is_decided, are) in [(true, "Sharing the first place"), (false, "Not told apart")] {
        let kind = |one: &SizeAnswer| !one.others.is_empty() && one.is_decided == is_decided;
        let runs = answers.chunk_by(|one, other| kind(one) == kind(other)).filter(|run| kind(&run[0]));
        let with_names = |run: &[SizeAnswer]| {
            let names = distinct(run.iter().flat_map(|one| one.others.iter().cloned()));
            format!("{} {}", first_of(&names, NAMES_MAX, ", ", String::clone), sizes(run))
        };
        let runs: Vec<String> = runs.map(with_names).collect();
        if !runs.is_empty() {
            text += &format!(
                " {are}: {}; of those that cost about the same the simplest is named",
                first_of(&runs, RUNS_MAX, "; ", String::clone)
            );
            let open = answers.iter().filter(|one| kind(one) && !is_decided);
            let farthest =
                open.max_by_key(|one| one.candidates.choice.standing.rounds_needed.unwrap_or(usize::MAX));
            text +=
                &farthest.and_then(|one| one.candidates.undecided(one.taken, settings)).unwrap_or_default();
            text.push('.');
        }
    }
    Some(text)
}

/// "at 1 B", "from 2 B to 1 MiB"
fn sizes(run: &[SizeAnswer]) -> String {
    let [from, to] = [run.first(), run.last()].map(|one| one.map_or(0, |one| one.block_bytes));
    match from == to {
        true => format!("at {}", numbers::size(from)),
        false => format!("from {} to {}", numbers::size(from), numbers::size(to)),
    }
}

fn what(workload: Workload) -> &'static str {
    match workload {
        Workload::Stream => "Streams",
        Workload::PingPong => "Round trips",
    }
}

/// ", 4 senders, 1,000 a second"; nothing where no load was asked for.
fn load(case: &CaseRecord) -> String {
    let Load { pairs, senders, receivers, rate_per_s } = case.load();
    let parts = [(pairs, "pair"), (senders, "sender"), (receivers, "receiver")];
    let part = |(count, one): (Option<u32>, &str)| Some(format!(", {}", words::count(count? as usize, one)));
    let rate = rate_per_s.map(|rate| format!(", {} a second", numbers::grouped(f64::from(rate), 0)));
    parts.into_iter().filter_map(part).chain(rate).collect()
}

/// The cases of one workload in one placement, of which one is to be taken.
struct Candidates<'a> {
    cases: Vec<&'a CaseRecord>,
    choice: Choice,
}

impl<'a> Candidates<'a> {
    fn new(ranking: &Ranking<'a>, workload: Workload, pinned: bool) -> Self {
        let case = |row: &RankedRow<'a>| row.case(workload, pinned);
        Self::among(ranking.rows.iter().filter_map(case).filter(|case| is_measured(case)).collect())
    }

    fn among(cases: Vec<&'a CaseRecord>) -> Self {
        let choice = choose(&cases, &Demand::default());
        Self { cases, choice }
    }

    /// The case to take; `None` where there are not two to choose from.
    fn taken(&self) -> Option<&'a CaseRecord> {
        self.choice.taken.filter(|_| self.cases.len() > 1).map(|at| self.cases[at])
    }

    fn name(&self, at: usize) -> String {
        format!("`{}`", self.cases[at].spec)
    }

    /// The names of these, what is taken left out.
    fn others(&self, taken: &CaseRecord, these: &dyn Fn(&RankedCase) -> bool) -> Vec<String> {
        let others = self.choice.ranked.iter().filter(|one| self.cases[one.at].spec != taken.spec);
        others.filter(|one| these(one)).map(|one| self.name(one.at)).collect()
    }

    /// Which to take, how the others stand to it, and what is faster by spinning.
    fn sentences(&self, settings: &Settings) -> Option<Vec<String>> {
        let taken = self.taken()?;
        let what = format!("{} of {}{}", what(taken.workload), numbers::size(taken.block_bytes), load(taken));
        let standing = [self.lead(), self.shared(taken), self.undecided(taken, settings)];
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

    /// What there is to say where there are not two to choose from; `None` where nothing was measured.
    fn no_choice(&self) -> Option<Vec<String>> {
        let first = self.cases.first()?;
        let which = format!(
            "{} of {} {}",
            what(first.workload),
            numbers::size(first.block_bytes),
            whereabouts(first)
        );
        let spins =
            |one: &&RankedCase| matches!(one.excluded, Some(Excluded::Spins | Excluded::SpinsOnOneCpu));
        let spinning = self.choice.ranked.iter().find(spins).map(|one| self.cases[one.at]);
        let text = match (self.cases.as_slice(), spinning) {
            _ if first.data == DataLevel::None => {
                "no advice, because the bytes were not touched (--data none)".to_owned()
            }
            ([one], _) => format!("only `{}` was measured ({})", one.spec, figures(one)),
            (_, Some(fastest)) => format!(
                "the ends of all rows spin while they wait; `{}` costs the least ({})",
                fastest.spec,
                figures(fastest)
            ),
            _ => return None,
        };
        Some(vec![format!("{which}: {text}.")])
    }

    /// By how much the one winner leads, where there is one.
    fn lead(&self) -> Option<String> {
        let standing = &self.choice.standing;
        let (next, factor) = standing.beaten.first().filter(|_| self.choice.first_place().count() == 1)?;
        let [_] = standing.first.as_slice() else { return None };
        // Of less than two the second decimal matters.
        let factor_text =
            |times: f64| if times < 2.0 { numbers::fixed(times, 2) } else { numbers::ratio(times) };
        let [low, high] = [standing.lead, factor.high.max(standing.lead)].map(factor_text);
        let times = match standing.lead {
            lead if lead <= 1.0 => "more".to_owned(),
            _ if factor.high.is_infinite() => format!("at least {low} times as much"),
            _ if low == high || factor.high < 1.01 * standing.lead => format!("{low} times as much"),
            _ => format!("{low} to {high} times as much"),
        };
        Some(format!("; the next, {}, costs {times} in time and CPU", self.name(*next)))
    }

    /// Those that share the first place with what is taken, and those that may lead.
    fn shared(&self, taken: &CaseRecord) -> Option<String> {
        let names = |these: &dyn Fn(&RankedCase) -> bool| self.others(taken, these);
        let list = |names: &[String]| first_of(names, NAMES_MAX, ", ", String::clone);
        let may_lead = |one: &RankedCase| self.choice.standing.first.iter().any(|(at, _)| *at == one.at);
        let (level, open) =
            (names(&|one| one.shares_first_place), names(&|one| !one.shares_first_place && may_lead(one)));
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
    fn undecided(&self, taken: &CaseRecord, settings: &Settings) -> Option<String> {
        let standing = &self.choice.standing;
        if standing.is_decided() {
            return None;
        }
        if settings.precision_percent.is_some() {
            return Some("; without --precision rounds go on among them".to_owned());
        }
        let made = standing.first.iter().map(|(at, _)| self.cases[*at].samples.len()).max()?;
        let rounds = standing.rounds_needed.map(|needed| needed.max(made + 1));
        let seconds =
            rounds.zip(settings.took_s).map(|(needed, took_s)| took_s * needed as f64 / made.max(1) as f64);
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
            .choice
            .ranked
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
    let cpu = cpu_per_block_ns(case).map(numbers::time);
    let (figure, unit) = match (&case.throughput, &case.latency_ns) {
        (Some(throughput), _) => (numbers::throughput(throughput.median_bytes_per_s), "block"),
        (_, Some(latency)) => (numbers::time(latency.p50 as f64), "trip"),
        _ => (String::new(), ""),
    };
    let cpu = cpu.map(|cpu| format!(", {cpu} of CPU per {unit}")).unwrap_or_default();
    format!("{figure}{cpu}")
}

/// The CPU time of both ends per block, in the median; `None` where the kernel counted none, as in trials that are too short for it.
pub(crate) fn cpu_per_block_ns(case: &CaseRecord) -> Option<f64> {
    figure::median_of(case, figure::cpu_per_block_ns).filter(|ns| *ns > 0.0)
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
