//! Which mechanism to take: a sentence for streams and one for round trips, by the rule of `hosepipe recommend` ([`stats::choice`]). A
//! faster mechanism whose ends spin is named with its cost.

mod sweep;

use model::{CaseRecord, DataLevel, Load, Placement, Settings, Tasks, Workload};
use stats::choice::{costly_cpu_ns, counts_server_only};
use stats::estimate::ENOUGH_FOR_95_PERCENT;
use stats::load::torn_share;
use stats::race::SAME_TIMES;
use stats::{Choice, Demand, Estimate, Excluded, RankedCase, choose, figure, shared_cpu};

use crate::estimate::{estimated, paired_speeds, quantity, speed};
use crate::groups::{OF_ONE_LOAD, groups};
use crate::limits::NAMES_MAX;
use crate::lists::first_if_any;
use crate::load;
use crate::numbers;
use crate::race::RaceWords;
use crate::unit::Unit;
use crate::value::Value;
use crate::view::{Ranking, View, transports};
use crate::words::{self, whereabouts};

/// Fewest rounds from which the number of rounds needed is estimated.
const FEW_ROUNDS: usize = 20;
/// Nothing more is asked of a mechanism than to cost little.
const DEMAND: Demand = Demand { messages_per_s: None, cpus_max: None };
/// Longest suggested time, in seconds.
const TIME_MAX_S: f64 = 1800.0;

/// Sentences on a record of mechanisms.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The mechanism to take: a sentence for streams and one for round trips, of each block and placement that was measured.
    pub(crate) answers: Vec<String>,
    /// Further facts and suggestions, the most important first.
    pub(crate) further: Vec<String>,
}

/// Which mechanism to take, for streams and for round trips; further, which ones are faster because they spin.
pub(crate) fn verdict(view: &View) -> Findings {
    let settings = &view.record().settings;
    let mut groups = view.groups();
    // The most informative figures: of checked bytes, if there are any.
    let most = groups.first().map(|group| group[0].axes.data);
    groups.retain(|group| Some(group[0].axes.data) == most);
    let of_group = |workload: Workload, group: &[Ranking]| match group {
        [ranking] => {
            let candidates = [false, true].map(|pinned| Candidates::in_ranking(ranking, workload, pinned));
            let sentences = candidates.iter().find_map(|one| one.sentences(settings));
            sentences.or_else(|| candidates.iter().find_map(Candidates::no_choice)).unwrap_or_default()
        }
        rankings => sweep::sentence(rankings, workload, settings).into_iter().collect(),
    };
    let verdicts =
        Workload::ALL.iter().flat_map(|workload| groups.iter().map(move |group| of_group(*workload, group)));
    let mut verdict = Findings::default();
    for sentences in verdicts.chain(under_load(view)) {
        let mut sentences = sentences.into_iter();
        verdict.answers.extend(sentences.next());
        verdict.further.extend(sentences);
    }
    verdict
}

/// The sentences of each requested load.
fn under_load<'a>(view: &View<'a>) -> Vec<Vec<String>> {
    let cases = transports(view.record()).filter(|case| case.load().is_requested());
    let candidates = groups(cases, |case| *case, OF_ONE_LOAD).into_iter().map(Candidates::among);
    candidates.filter_map(|one| one.sentences(&view.record().settings).or_else(|| one.all_torn())).collect()
}

/// ", 4 senders, 1,000 a second"; empty if no load was requested.
fn load_words(case: &CaseRecord) -> String {
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
    fn in_ranking(ranking: &Ranking<'a>, workload: Workload, pinned: bool) -> Self {
        Self::among(cases_of(ranking, workload, pinned))
    }

    fn among(mut cases: Vec<&'a CaseRecord>) -> Self {
        cases.retain(|case| estimated(case).is_some());
        let choice = choose(&cases, &DEMAND);
        Self { cases, choice }
    }

    fn words(&self) -> Option<RaceWords<'_>> {
        let Self { cases, choice } = self;
        Some(RaceWords { cases, choice, taken: choice.taken?, demand: &DEMAND })
    }

    /// The case to take; `None` if there are not two to choose from.
    fn taken(&self) -> Option<&'a CaseRecord> {
        self.choice.taken.filter(|_| self.cases.len() > 1).map(|at| self.cases[at])
    }

    fn name(&self, at: usize) -> String {
        format!("`{}`", self.cases[at].spec)
    }

    /// The cases whose ends spin, the cheapest first.
    fn spinning(&self) -> impl Iterator<Item = &'a CaseRecord> {
        let spins =
            |one: &&RankedCase| matches!(one.excluded, Some(Excluded::Spins | Excluded::SpinsOnOneCpu));
        self.choice.ranked.iter().filter(spins).map(|one| self.cases[one.at])
    }

    /// Which to take, how the others compare with it, and what is faster by spinning.
    fn sentences(&self, settings: &Settings) -> Option<Vec<String>> {
        let taken = self.taken()?;
        let torn = self.torn().map(|torn| format!("; left out, as {}: {torn}", torn_how(taken)));
        let is_unchecked = taken.load().has_several_at_an_end() && torn_share(taken).is_none();
        let unsure = match is_unchecked {
            true => Some(format!("; not checked (--data {}): whether {}", taken.data, torn_how(taken))),
            false => unpromised(taken),
        };
        let words = self.words()?;
        let lead = words.lead(cost_words(taken)).map(|(next, lead)| format!("; the next, {next}, {lead}"));
        let simplest = words.simplest().map(|simplest| format!(", {simplest}"));
        let open = words.not_told_apart().map(|open| format!("; {open}"));
        let standing = [lead, simplest, open, self.undecided(taken, settings), torn, unsure];
        let standing_text: String = standing.into_iter().flatten().collect();
        let take = format!("take `{}` ({}){standing_text}.", taken.spec, figures(taken));
        let sentence = format!("{}: {take}", what(taken));
        Some(std::iter::once(sentence).chain(self.better_by_spinning(taken)).collect())
    }

    /// The names of the cases whose blocks did not all arrive in one piece, and how many did not: "`pipe` (58 %), `fifo` (61 %)".
    fn torn(&self) -> Option<String> {
        let torn = self.choice.ranked.iter().filter(|one| one.excluded == Some(Excluded::TornBlocks));
        let with_share =
            |one: &RankedCase| Some(format!("{} ({})", self.name(one.at), load::torn(self.cases[one.at])?));
        first_if_any(torn.filter_map(with_share), NAMES_MAX, ", ")
    }

    /// That none of several cases is to be taken, because of torn blocks.
    fn all_torn(&self) -> Option<Vec<String>> {
        let first = self.cases.first().filter(|_| self.cases.len() > 1)?;
        let torn = self.torn()?;
        Some(vec![format!("{}: none to take, as {}: {torn}.", what(first), torn_how(first))])
    }

    /// Why there are not two to choose from; `None` if nothing was measured.
    fn no_choice(&self) -> Option<Vec<String>> {
        let first = self.cases.first()?;
        let text = match (self.cases.as_slice(), self.spinning().next()) {
            _ if first.data == DataLevel::None => {
                "no advice, because the bytes were not touched (--data none)".to_owned()
            }
            ([one], _) => format!("only `{}` was measured ({})", one.spec, figures(one)),
            (_, Some(cheapest)) => format!(
                "the ends of all rows spin while they wait; `{}` costs the least ({})",
                cheapest.spec,
                figures(cheapest)
            ),
            _ => return None,
        };
        Some(vec![format!("{}: {text}.", what(first))])
    }

    /// How many more rounds, or how much time, would decide which of those that may be the best is the best.
    fn undecided(&self, taken: &CaseRecord, settings: &Settings) -> Option<String> {
        let standing = &self.choice.standing;
        if standing.is_decided() {
            return None;
        }
        if settings.precision_percent.is_some() {
            return Some("; without --precision, more rounds of them would be run".to_owned());
        }
        let made = standing.first.iter().map(|one| self.cases[one.at].samples.len()).max()?;
        let rounds = standing.rounds_needed.map(|needed| needed.max(made + 1));
        let seconds =
            rounds.zip(settings.took_s).map(|(needed, took_s)| took_s * needed as f64 / made.max(1) as f64);
        let pin = if taken.placement == Placement::Any { ", or --place cross" } else { "" };
        Some(match (seconds, rounds) {
            (Some(seconds), _) if seconds <= TIME_MAX_S => {
                format!("; to tell them apart: --time {:.0}m{pin}", (seconds / 60.0).ceil())
            }
            (None, Some(rounds)) => format!("; to tell them apart: --trials {rounds}{pin}"),
            _ if made < FEW_ROUNDS => {
                format!("; more rounds may tell them apart: --trials {FEW_ROUNDS}{pin}")
            }
            // A share of rounds that is near one half says little on how many more are needed.
            _ => return None,
        })
    }

    /// The fastest case whose ends spin, if it is certainly faster, and what it costs.
    fn better_by_spinning(&self, best: &CaseRecord) -> Option<String> {
        let faster = self.spinning().filter_map(|case| Some((case, times_as_fast(case, best, 1.0)?)));
        let (fastest, times) = faster.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let on_one_cpu = fastest.tasks == Tasks::Single || shared_cpu(fastest) == Some(true);
        let busy = if on_one_cpu { "its CPU" } else { "two CPUs" };
        let verb = quantity(fastest.workload).faster(times);
        Some(format!("`{}` {verb}, but keeps {busy} busy while it waits.", fastest.spec))
    }
}

/// The cases of a ranking that have figures.
fn cases_of<'a>(ranking: &Ranking<'a>, workload: Workload, pinned: bool) -> Vec<&'a CaseRecord> {
    let cases = ranking.rows.iter().filter_map(|row| row.case(workload, pinned));
    cases.filter(|case| estimated(case).is_some()).collect()
}

/// That the blocks arrived in one piece here, and need not elsewhere: a pipe of 64 KiB that is read in blocks of 64 KiB holds one block.
fn unpromised(taken: &CaseRecord) -> Option<String> {
    let but = match taken.atomic_bytes {
        _ if !taken.load().has_several_at_an_end() => return None,
        Some(promised) if promised >= taken.block_bytes => return None,
        Some(0) => "a stream of bytes does not promise that".to_owned(),
        Some(promised) => format!("it promises that only up to {}", numbers::size(promised)),
        // The program that wrote the record did not know it.
        None => "the record does not say whether it promises that".to_owned(),
    };
    Some(format!(
        "; here each block of `{}` arrived in one piece, but {but}: with other programs it may not",
        taken.spec
    ))
}

/// What happens to blocks that do not arrive in one piece.
fn torn_how(case: &CaseRecord) -> &'static str {
    match case.load().senders {
        Some(_) => "blocks of several senders were mixed",
        None => "blocks were divided among receivers",
    }
}

/// "Streams of 64 KiB, 4 senders on CPUs 0,1"
fn what(case: &CaseRecord) -> String {
    let (subject, size) = (quantity(case.workload).subject, numbers::size(case.block_bytes));
    format!("{subject} of {size}{} {}", load_words(case), whereabouts(case))
}

/// How many times as fast one case is as another of its workload, in the median of the rounds that both have. `None` unless this, with 95 %
/// confidence, and the quotient of the medians, which the tables show, are above `least`.
pub(crate) fn times_as_fast(one: &CaseRecord, other: &CaseRecord, least: f64) -> Option<f64> {
    let within_rounds = Estimate::of(&paired_speeds(one, other))?;
    let is_sure = within_rounds.count >= ENOUGH_FOR_95_PERCENT && within_rounds.low > least;
    let is_seen = speed(one)? / speed(other)? > least;
    Some(within_rounds.median).filter(|times| is_sure && is_seen && times.is_finite())
}

/// What counts as the cost of a case ([`stats::choice`]).
fn cost_words(case: &CaseRecord) -> &'static str {
    match case.rate_per_s {
        Some(_) if counts_server_only(case) => "response time and the server's CPU",
        Some(_) => "CPU",
        None => "time and CPU",
    }
}

/// The figure and the CPU time: "8.73 GB/s, 7.50 µs of CPU per block".
fn figures(case: &CaseRecord) -> String {
    let unit = if case.workload == Workload::Stream { "block" } else { "trip" };
    let figure = estimated(case).map(|[median, ..]| {
        let text = quantity(case.workload).unit.text(median);
        match figure::median_of(case, figure::round_trip_mean_ns) {
            Some(mean_ns) if mean_ns.max(median) / mean_ns.min(median) > SAME_TIMES => {
                format!("{text} in the median, {} in the mean", numbers::time(mean_ns))
            }
            _ => text,
        }
    });
    let whose = if counts_server_only(case) { "the server's CPU" } else { "CPU" };
    let cpu = cpu_per_block_ns(case).map(|cpu| format!(", {} of {whose} per {unit}", numbers::time(cpu)));
    figure.unwrap_or_default() + &cpu.unwrap_or_default()
}

/// The CPU time that counts per block, in the median: of both ends, or of the server of paced round trips; `None` if the kernel counted
/// none, as in trials that are too short for it, and of workers, whose CPU time includes their start.
pub(crate) fn cpu_per_block_ns(case: &CaseRecord) -> Option<f64> {
    let of_sample = |sample: &model::Sample| costly_cpu_ns(case, sample, &Demand::default());
    figure::median_of(case, of_sample).filter(|ns| *ns > 0.0 && case.worker.is_none())
}

/// The same in a cell.
pub(crate) fn cpu_per_block(case: &CaseRecord) -> Option<Value> {
    cpu_per_block_ns(case).map(|ns| Unit::Ns.of(ns))
}
