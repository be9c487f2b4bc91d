//! Which mechanism to take at the sizes of a sweep, in one sentence.

use model::{CaseRecord, Settings, Workload};
use stats::choose_each;

use super::{Candidates, DEMAND, cases_of};
use crate::estimate::quantity;
use crate::limits::{NAMES_MAX, SENTENCES_MAX};
use crate::lists::{distinct, first_names, first_of};
use crate::numbers;
use crate::view::Ranking;
use crate::words;

/// How others stand beside the one that is taken at a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// They surely cost nearly the same as the cheapest, as does the one that is taken ([`stats::race::SAME_TIMES`]).
    SharesFirstPlace,
    /// It is not known which cost less.
    NotToldApart,
    /// They cost less than the one that is taken, by so little that it is taken as the simpler one ([`stats::choice::LEAD_TIMES_MIN`]).
    SlightlyAhead,
}

impl Standing {
    const ALL: [Self; 3] = [Self::SharesFirstPlace, Self::NotToldApart, Self::SlightlyAhead];

    fn label(self) -> &'static str {
        match self {
            Self::SharesFirstPlace => "Sharing the first place",
            Self::NotToldApart => "Not told apart",
            Self::SlightlyAhead => "Ahead by at most 3 %",
        }
    }
}

/// Which to take at one size.
struct SizeAnswer<'a> {
    candidates: Candidates<'a>,
    taken: &'a CaseRecord,
    /// The names of others, and how they stand.
    others: Vec<(Standing, String)>,
}

impl SizeAnswer<'_> {
    fn others(&self, standing: Standing) -> impl Iterator<Item = &String> {
        self.others.iter().filter(move |(own, _)| *own == standing).map(|(_, name)| name)
    }

    fn has_others(&self, standing: Standing) -> bool {
        self.others(standing).next().is_some()
    }
}

/// "Streams, by time and CPU: take `pipe` at 1 B, `shm-ring` from 2 B to 1 MiB. Not told apart: `fifo` at 1 B; of those that cost
/// about the same the simplest is named; to tell them apart: --time 3m."; `None` where there are not two to choose from.
pub(super) fn sentence(rankings: &[Ranking], workload: Workload, settings: &Settings) -> Option<String> {
    let answers = answers(rankings, workload);
    let alike = answers.chunk_by(|one, other| one.taken.spec == other.taken.spec);
    let taken: Vec<String> = alike.map(|run| format!("`{}` {}", run[0].taken.spec, sizes(run))).collect();
    if taken.is_empty() {
        return None;
    }
    let places = distinct(answers.iter().map(|one| words::whereabouts(one.taken))).join(" or ");
    let text =
        format!("{} {places}, by time and CPU: take {}.", quantity(workload).subject, taken.join(", "));
    let others = Standing::ALL.into_iter().filter_map(|standing| others(&answers, standing, settings));
    Some(text + &others.collect::<String>())
}

/// The answers at the sizes at which there are two to choose from.
fn answers<'a>(rankings: &[Ranking<'a>], workload: Workload) -> Vec<SizeAnswer<'a>> {
    let groups: Vec<Vec<&CaseRecord>> =
        rankings.iter().map(|ranking| cases_of(ranking, workload, false)).collect();
    let choices = choose_each(&groups, &DEMAND);
    let answer = |(cases, choice)| {
        let candidates = Candidates { cases, choice };
        Some(SizeAnswer { taken: candidates.taken()?, others: others_at_one_size(&candidates), candidates })
    };
    groups.into_iter().zip(choices).filter_map(answer).collect()
}

fn others_at_one_size(candidates: &Candidates) -> Vec<(Standing, String)> {
    let Some(words) = candidates.words() else { return Vec::new() };
    let choice = &candidates.choice;
    let taken_may_be_first = choice.standing.first.iter().any(|one| one.at == words.taken);
    // Where the one that is taken stands decides how it compares with those at the first place.
    let of_level = match choice.shares_first_place(words.taken) {
        true => Standing::SharesFirstPlace,
        false if taken_may_be_first => Standing::NotToldApart,
        false => Standing::SlightlyAhead,
    };
    let open = words.open().map(|one| (Standing::NotToldApart, candidates.name(one.at)));
    open.chain(words.level().into_iter().map(|name| (of_level, name))).collect()
}

/// " Not told apart: `fifo` at 1 B; of those that cost about the same the simplest is named."; `None` if none stand so at any size.
fn others(answers: &[SizeAnswer], standing: Standing, settings: &Settings) -> Option<String> {
    let runs = answers.chunk_by(|one, other| one.has_others(standing) == other.has_others(standing));
    let with_names = |run: &[SizeAnswer]| {
        let names = distinct(run.iter().flat_map(|one| one.others(standing)).cloned());
        format!("{} {}", first_names(&names, NAMES_MAX), sizes(run))
    };
    let texts: Vec<String> = runs.filter(|run| run[0].has_others(standing)).map(with_names).collect();
    // What decides at the size that needs most rounds decides at the others.
    let rounds = |one: &&SizeAnswer| one.candidates.choice.standing.rounds_needed.unwrap_or(usize::MAX);
    let farthest = answers.iter().filter(|one| one.has_others(standing)).max_by_key(rounds)?;
    let undecided = farthest.candidates.undecided(farthest.taken, settings).unwrap_or_default();
    Some(format!(
        " {}: {}; of those that cost about the same the simplest is named{undecided}.",
        standing.label(),
        first_of(&texts, SENTENCES_MAX, "; ", String::clone)
    ))
}

/// "at 1 B", "from 2 B to 1 MiB"
fn sizes(run: &[SizeAnswer]) -> String {
    let [from, to] = [run.first(), run.last()].map(|one| one.map_or(0, |one| one.taken.block_bytes));
    match from == to {
        true => format!("at {}", numbers::size(from)),
        false => format!("from {} to {}", numbers::size(from), numbers::size(to)),
    }
}
