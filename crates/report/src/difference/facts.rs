//! What lies between runs that were made one after the other: these sentences are always shown, because no interval of trials has it.

use model::{CaseChange, DiffFigure, DiffRecord, DiffSide, DiffUnit, OtherLoad, RUNS_MIN};

use super::name;
use crate::limits::PROGRAMS_FROM;
use crate::lists::first_names;
use crate::numbers::{self, percent};

/// Smallest share of other guests that is reported.
const STOLEN_FROM: f64 = 0.01;

/// The sentences; none for trials in turns.
pub(super) fn between_runs(record: &DiffRecord, judged: &[&CaseChange]) -> Vec<String> {
    let between = match record.unit() {
        DiffUnit::Pair => return Vec::new(),
        DiffUnit::Trial if is_of_two_runs(record) => {
            let is_of_commands = judged.iter().all(|change| change.figure == DiffFigure::WallTime);
            let in_turns = if is_of_commands { "compare" } else { "diff --run" };
            Some(format!(
                "Two runs, one after the other: what differs between runs of one and the same program (other programs, the layout in \
                 memory, the CPUs that the scheduler chose) is not in the intervals. `hosepipe {in_turns}` measures both in turns; or \
                 make three runs of each side or more: `hosepipe diff OLD… -- NEW…`."
            ))
        }
        DiffUnit::Trial => Some(format!(
            "{}, one after the other: too few to show what differs between runs of one and the same program, which is not in the \
             intervals. It takes {} of each side.",
            runs_of_each_side(record),
            RUNS_MIN
        )),
        DiffUnit::Run => spread(record, judged),
    };
    let order = (record.unit() == DiffUnit::Run && is_old_first(record)).then(|| {
        "All old runs were made before the new ones: what changed on the machine in between looks like a change. Make old and new \
         runs in turns."
            .to_owned()
    });
    between.into_iter().chain(order).chain([other_load(record)]).chain(moved_controls(record)).collect()
}

/// "3 old and 4 new runs".
pub(super) fn runs_of_each_side(record: &DiffRecord) -> String {
    format!("{} old and {} new runs", record.old.runs().count(), record.new.runs().count())
}

pub(super) fn is_of_two_runs(record: &DiffRecord) -> bool {
    record.old.further_runs.is_empty() && record.new.further_runs.is_empty()
}

/// Floors and ceilings that changed.
pub(super) fn moved_controls(record: &DiffRecord) -> Option<String> {
    let text = |change: &CaseChange| {
        Some(format!("{} {} {}", name(change), change.figure, numbers::change(change.ratio?)))
    };
    let moved: Vec<String> = record.moved_controls().filter_map(text).collect();
    (!moved.is_empty()).then(|| {
        let only = if record.unit() == DiffUnit::Trial { ": only larger changes count" } else { "" };
        format!(
            "The machine was not in the same state on both sides: figures that show only its state differ, too ({}){only}.",
            first_names(&moved, 3)
        )
    })
}

/// How much runs of one side differ.
fn spread(record: &DiffRecord, judged: &[&CaseChange]) -> Option<String> {
    let spread = |change: &&CaseChange| stats::spread_between_runs(&change.old_runs, &change.new_runs);
    let mut spreads: Vec<(f64, &CaseChange)> =
        judged.iter().filter_map(|change| Some((spread(change)?, *change))).collect();
    model::sort_by(&mut spreads, |(one, _), (other, _)| one.total_cmp(other));
    let (largest, widest) = spreads.last()?;
    let typical = spreads[spreads.len() / 2].0;
    Some(format!(
        "{}: what differs between runs of one side is in the intervals. Their medians differ by {} (standard deviation, the \
         middle one of all figures), and by {} at the most ({} {}).",
        runs_of_each_side(record),
        percent(typical),
        percent(*largest),
        name(widest),
        widest.figure
    ))
}

/// What the test of few runs assumes.
pub(super) fn assumption(record: &DiffRecord, judged: &[&CaseChange]) -> Option<String> {
    let runs = judged.iter().map(|change| change.old_runs.len().min(change.new_runs.len()));
    let compared: Vec<usize> = runs.filter(|runs| *runs >= RUNS_MIN).collect();
    let needed = stats::figures_needed(compared.len(), 1, false);
    let is_assumed =
        record.unit() == DiffUnit::Run && compared.iter().min().is_some_and(|runs| *runs < needed);
    is_assumed.then(|| {
        format!(
            "With so few runs a change is tested as if runs scattered normally (Welch's t); from {needed} runs of each side on \
             nothing is assumed (Mann and Whitney's ranks)."
        )
    })
}

/// Whether every old run began before every new one. (RFC 3339 in UTC sorts as text.)
fn is_old_first(record: &DiffRecord) -> bool {
    let starts = |side: &DiffSide| side.runs().map(|run| run.started.clone()).collect::<Vec<_>>();
    starts(&record.old).iter().max() < starts(&record.new).iter().min()
}

/// What else used the CPUs during the runs of each side.
fn other_load(record: &DiffRecord) -> String {
    let loads = |side: &DiffSide| side.runs().filter_map(|run| run.other_load.clone()).collect::<Vec<_>>();
    let (old, new) = (loads(&record.old), loads(&record.new));
    let (runs, one) = if is_of_two_runs(record) { ("run", " one") } else { ("runs", " ones") };
    if old.is_empty() && new.is_empty() {
        return "What other programs used of the CPUs during the runs is not recorded.".to_owned();
    }
    let stolen = |load: &OtherLoad| load.stolen_share;
    let guests = if old.iter().chain(&new).any(|load| stolen(load) >= STOLEN_FROM) {
        format!(" Other guests of the hypervisor: {} and {}.", range(&old, stolen), range(&new, stolen))
    } else {
        String::new()
    };
    let [old, new] = [old, new].map(|loads| programs(&loads));
    format!("Other programs used {old} during the old {runs}, {new} during the new{one}.{guests}")
}

/// "44 % of the CPUs (most: rustc (4711))".
fn programs(loads: &[OtherLoad]) -> String {
    let share = |load: &OtherLoad| load.programs_share;
    let Some(busiest) = loads.iter().max_by(|one, other| share(one).total_cmp(&share(other))) else {
        return "an unknown share of the CPUs".to_owned();
    };
    let largest = busiest.programs.first().filter(|_| share(busiest) >= PROGRAMS_FROM);
    let most = largest.map(|name| format!(" (most: {name})")).unwrap_or_default();
    format!("{} of the CPUs{most}", range(loads, share))
}

/// "3.0 %", "3.0 % to 44 %".
fn range(loads: &[OtherLoad], share: impl Fn(&OtherLoad) -> f64) -> String {
    let shares = || loads.iter().map(&share);
    let least = percent(shares().fold(f64::INFINITY, f64::min));
    let most = percent(shares().fold(0.0, f64::max));
    match loads {
        [] => "unknown".to_owned(),
        _ if least == most => most,
        _ => format!("{least} to {most}"),
    }
}
