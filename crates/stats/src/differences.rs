//! Two lists of figures, case by case: what became of each case.

use std::collections::BTreeMap;

use model::{CaseChange, ChangeKind, DiffFigure};

use crate::changes::{BothSides, Shift, shifts};
use crate::estimate::median;
use crate::measured::CaseFigures;

/// What became of the figures of every case of either side, in the order of the old side; what is new comes last. Figures are
/// taken pair by pair, each pair of one round, where `paired`. `looks`: how often one could stop.
///
/// Floors and ceilings are corrected among themselves: they are not what was asked.
pub fn differences(old: &[CaseFigures], new: &[CaseFigures], paired: bool, looks: u32) -> Vec<CaseChange> {
    let (of_old, of_new) = (index(old), index(new));
    let known = old.iter().map(|one| (Some(one), of_new.get(&one.key()).copied()));
    let added = new.iter().filter(|one| !of_old.contains_key(&one.key()));
    let sides: Vec<(Option<&CaseFigures>, Option<&CaseFigures>)> =
        known.chain(added.map(|one| (None, Some(one)))).collect();
    let mut changes: Vec<CaseChange> = sides.iter().map(|(old, new)| unjudged(*old, *new, paired)).collect();
    for control in [false, true] {
        judge(&mut changes, control, paired, looks);
    }
    changes
}

/// Every figure by what names it.
fn index(side: &[CaseFigures]) -> BTreeMap<(&BTreeMap<String, String>, DiffFigure), &CaseFigures> {
    side.iter().map(|one| (one.key(), one)).collect()
}

/// Whether there is no more to find out about a case by further pairs; see [`Shift::is_settled`].
pub fn is_settled(change: &CaseChange, fail_over_percent: Option<f64>) -> bool {
    let (Some(ratio), Some(p), Some(p_corrected)) = (change.ratio, change.p, change.p_corrected) else {
        return true;
    };
    let shift = Shift { ratio, interval: change.low.zip(change.high), p, p_corrected };
    change.control || shift.is_settled(fail_over_percent.map(|percent| percent / 100.0))
}

fn unjudged(old: Option<&CaseFigures>, new: Option<&CaseFigures>, paired: bool) -> CaseChange {
    let figures = |side: Option<&CaseFigures>, other: Option<&CaseFigures>| -> Vec<f64> {
        let (Some(side), Some(other)) = (side, other) else {
            return side.into_iter().flat_map(|side| &side.values).map(|(_, value)| *value).collect();
        };
        let rounds: std::collections::BTreeSet<u32> = other.values.iter().map(|(round, _)| *round).collect();
        let both = side.values.iter().filter(|(round, _)| !paired || rounds.contains(round));
        both.map(|(_, value)| *value).collect()
    };
    let (old_figures, new_figures) = (figures(old, new), figures(new, old));
    let (kind, remark) = what_is_missing(old, new);
    let one = old.or(new);
    CaseChange {
        case: one.map(|one| one.case.clone()).unwrap_or_default(),
        figure: one.map_or(DiffFigure::WallTime, |one| one.figure),
        control: one.is_some_and(|one| one.control),
        old_median: median(&old_figures),
        new_median: median(&new_figures),
        old: old_figures,
        new: new_figures,
        ratio: None,
        low: None,
        high: None,
        p: None,
        p_corrected: None,
        kind,
        remark,
    }
}

/// What a case is before its figures are judged, and what else has to be said of it.
fn what_is_missing(old: Option<&CaseFigures>, new: Option<&CaseFigures>) -> (ChangeKind, Option<String>) {
    let reason = |side: &CaseFigures| side.problem.clone().unwrap_or_else(|| "no trial was made".to_owned());
    let (kind, remark) = match (old, new) {
        (Some(_), None) => (ChangeKind::Incomparable, Some("only in the old record".to_owned())),
        (None, _) => (ChangeKind::Incomparable, Some("only in the new record".to_owned())),
        (Some(old), Some(new)) => match (old.values.is_empty(), new.values.is_empty()) {
            (false, true) => (ChangeKind::Failed, Some(format!("new: {}", reason(new)))),
            (true, false) => (ChangeKind::Incomparable, Some(format!("old: {}", reason(old)))),
            (true, true) => (ChangeKind::Incomparable, Some(reason(new))),
            (false, false) => (ChangeKind::NoChange, differences_found(old, new)),
        },
    };
    (kind, remark)
}

/// What is not the same although nobody asked for another one, and what one side had trouble with.
fn differences_found(old: &CaseFigures, new: &CaseFigures) -> Option<String> {
    let absent = String::new();
    let names = old.found.keys().chain(new.found.keys().filter(|name| !old.found.contains_key(*name)));
    let unlike = names.filter_map(|name| {
        let [before, after] = [old, new].map(|side| side.found.get(name).unwrap_or(&absent));
        (before != after).then(|| format!("{name}: {before}, then {after}"))
    });
    let trouble = [("old", old), ("new", new)];
    let trouble =
        trouble.into_iter().filter_map(|(side, one)| Some(format!("{side}: {}", one.problem.as_ref()?)));
    let said: Vec<String> = unlike.chain(trouble).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Judges the cases that have figures on both sides, as one family.
fn judge(changes: &mut [CaseChange], control: bool, paired: bool, looks: u32) {
    let mut family: Vec<&mut CaseChange> =
        changes.iter_mut().filter(|change| change.control == control).collect();
    let both: Vec<BothSides> =
        family.iter().map(|change| BothSides { old: &change.old, new: &change.new, paired }).collect();
    let found = shifts(&both, looks);
    for (change, shift) in family.iter_mut().zip(found) {
        let Some(shift) = shift.filter(|_| change.kind == ChangeKind::NoChange) else { continue };
        change.kind = kind(&shift, change.figure);
        change.ratio = Some(shift.ratio);
        (change.low, change.high) = shift.interval.unzip();
        (change.p, change.p_corrected) = (Some(shift.p), Some(shift.p_corrected));
    }
}

fn kind(shift: &Shift, figure: DiffFigure) -> ChangeKind {
    match shift.interval {
        None => ChangeKind::TooFew,
        Some(_) if !shift.is_found() => ChangeKind::NoChange,
        Some(_) if (shift.ratio > 1.0) == figure.larger_is_better() => ChangeKind::Faster,
        Some(_) => ChangeKind::Slower,
    }
}
