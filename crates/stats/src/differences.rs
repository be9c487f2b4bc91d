//! Compares two lists of figures, case by case.

use std::collections::{BTreeMap, BTreeSet};

use model::{CaseChange, ChangeKind, DiffFigure, DiffUnit};

use crate::changes::{BothSides, Shift, shifts, usable};
use crate::estimate::median;
use crate::measured::CaseFigures;
use crate::race::SAME_TIMES;
use crate::runs::shifts_of_runs;

/// A case in one of the lists, if that has it.
type Side<'a> = Option<&'a CaseFigures>;

/// The change of each case of either side, in the order of the old side; cases of the new side alone come last. If `paired`, the
/// figures of one round are a pair. `analyses`: the number of analyses at which the run could end.
///
/// Floors and ceilings are corrected as a family of their own.
pub fn differences(old: &[CaseFigures], new: &[CaseFigures], paired: bool, analyses: u32) -> Vec<CaseChange> {
    compare(old, new, if paired { DiffUnit::Pair } else { DiffUnit::Trial }, analyses)
}

/// The same for figures of several runs of each side: compares the medians of runs.
pub fn differences_of_runs(old: &[CaseFigures], new: &[CaseFigures]) -> Vec<CaseChange> {
    compare(old, new, DiffUnit::Run, 1)
}

fn compare(old: &[CaseFigures], new: &[CaseFigures], unit: DiffUnit, analyses: u32) -> Vec<CaseChange> {
    let (of_old, of_new) = (index(old), index(new));
    let known = old.iter().map(|one| (Some(one), of_new.get(&one.key()).copied()));
    let added = new.iter().filter(|one| !of_old.contains_key(&one.key()));
    let sides = known.chain(added.map(|one| (None, Some(one)))).filter(|(old, new)| is_known(*old, *new));
    let mut changes: Vec<CaseChange> = sides.map(|(old, new)| unjudged(old, new, unit)).collect();
    for control in [false, true] {
        judge(&mut changes, control, unit, analyses);
    }
    changes
}

/// Whether a figure has a row: not a 99th percentile that neither side has, nor a figure that was expected to be impossible on both
/// sides.
fn is_known(old: Side<'_>, new: Side<'_>) -> bool {
    let impossible = |side: &CaseFigures| side.problem.is_some() && !side.failed;
    let mut sides = [old, new].into_iter().flatten();
    sides
        .any(|side| !side.values.is_empty() || (side.figure != DiffFigure::RoundTripP99 && !impossible(side)))
}

fn index(side: &[CaseFigures]) -> BTreeMap<(&BTreeMap<String, String>, DiffFigure), &CaseFigures> {
    side.iter().map(|one| (one.key(), one)).collect()
}

/// Whether further pairs cannot change the result of a case; see [`Shift::is_settled`].
pub fn is_settled(change: &CaseChange, fail_over_percent: Option<f64>) -> bool {
    let (Some(ratio), Some(p), Some(p_corrected)) = (change.ratio, change.p, change.p_corrected) else {
        return true;
    };
    let shift = Shift { ratio, interval: change.low.zip(change.high), p, p_corrected };
    let limit = fail_over_percent.filter(|percent| *percent > 0.0).map(|percent| percent / 100.0);
    change.control || shift.is_settled(limit)
}

/// New as a multiple of old by the times of all trials together, where that differs by more than a tenth from the factor of most of them:
/// then at least one side has several modes, or a few trials took much longer. Percentiles within a trial have no total.
pub fn total_change(change: &CaseChange) -> Option<f64> {
    let mean_time = |figures: &[f64]| -> Option<f64> {
        let times = figures.iter().map(|figure| match change.figure {
            DiffFigure::Throughput => Some(1.0 / figure),
            DiffFigure::WallTime => Some(*figure),
            DiffFigure::RoundTripP50 | DiffFigure::RoundTripP99 => None,
        });
        Some(times.sum::<Option<f64>>()? / figures.len() as f64).filter(|mean| usable(*mean))
    };
    let times = mean_time(&change.new)? / mean_time(&change.old)?;
    let total = if change.figure.larger_is_better() { 1.0 / times } else { times };
    ((total / change.ratio?).ln().abs() > SAME_TIMES.ln()).then_some(total)
}

/// The figures of a side; of pairs only those of rounds that the other side has, too, if it has the case.
fn figures_of(side: Side<'_>, other: Side<'_>, paired: bool) -> Vec<f64> {
    let rounds: Option<BTreeSet<u32>> =
        other.filter(|_| paired).map(|other| other.values.iter().map(|(round, _)| *round).collect());
    let all = side.into_iter().flat_map(|side| &side.values);
    let compared = all.filter(|(round, _)| rounds.as_ref().is_none_or(|rounds| rounds.contains(round)));
    compared.map(|(_, value)| *value).collect()
}

/// The change of a case before it is judged.
fn unjudged(old: Side<'_>, new: Side<'_>, unit: DiffUnit) -> CaseChange {
    let paired = unit == DiffUnit::Pair;
    let (old_figures, new_figures) = (figures_of(old, new, paired), figures_of(new, old, paired));
    let (kind, remark) = kind_by_presence(old, new, paired);
    let runs = |side: Side<'_>| side.filter(|_| unit == DiffUnit::Run).map(|side| side.run_medians.clone());
    let (old_runs, new_runs) = (runs(old).unwrap_or_default(), runs(new).unwrap_or_default());
    let middle = |runs: &[f64], trials: &[f64]| median(runs).or_else(|| median(trials));
    let one = old.or(new);
    CaseChange {
        figure: one.map_or(DiffFigure::WallTime, |one| one.figure),
        kind,
        case: one.map(|one| one.case.clone()).unwrap_or_default(),
        control: one.is_some_and(|one| one.control),
        old_median: middle(&old_runs, &old_figures),
        new_median: middle(&new_runs, &new_figures),
        old: old_figures,
        new: new_figures,
        old_runs,
        new_runs,
        remark,
        ..CaseChange::default()
    }
}

/// The kind of change without regard to the figures, and a remark.
fn kind_by_presence(old: Side<'_>, new: Side<'_>, paired: bool) -> (ChangeKind, Option<String>) {
    let reason = |side: &CaseFigures| side.problem.clone().unwrap_or_else(|| "no trial was made".to_owned());
    match (old, new) {
        (Some(_), None) => (ChangeKind::Incomparable, Some("only in the old record".to_owned())),
        (None, _) => (ChangeKind::Incomparable, Some("only in the new record".to_owned())),
        (Some(old), Some(new)) => match (old.values.is_empty(), new.values.is_empty()) {
            (false, true) if new.short && !new.failed => {
                (ChangeKind::Incomparable, Some(format!("new: {}", reason(new))))
            }
            (false, true) => (ChangeKind::Failed, Some(format!("new: {}", reason(new)))),
            (true, false) => (ChangeKind::Incomparable, Some(format!("old: {}", reason(old)))),
            (true, true) => (ChangeKind::Incomparable, Some(reason(new))),
            (false, false) if lost(old, new, paired) => (ChangeKind::Failed, differences_found(old, new)),
            (false, false) => (ChangeKind::NoChange, differences_found(old, new)),
        },
    }
}

/// Whether only the new side failed although it has figures; in pairs, also if some of its trials are missing.
fn lost(old: &CaseFigures, new: &CaseFigures, paired: bool) -> bool {
    let turns = paired && new.problem.is_some() && old.problem.is_none() && !new.short;
    !old.failed && (new.failed || turns)
}

/// Found properties that differ although the requested ones are equal, and the errors of either side.
fn differences_found(old: &CaseFigures, new: &CaseFigures) -> Option<String> {
    let absent = String::new();
    let names = old.found.keys().chain(new.found.keys().filter(|name| !old.found.contains_key(*name)));
    let unlike = names.filter_map(|name| {
        let [before, after] = [old, new].map(|side| side.found.get(name).unwrap_or(&absent));
        let word = |value: &String| if value.is_empty() { "none".to_owned() } else { value.clone() };
        (before != after).then(|| format!("{name}: {}, then {}", word(before), word(after)))
    });
    let trouble = [("old", old), ("new", new)];
    let problems =
        trouble.into_iter().filter_map(|(side, one)| Some(format!("{side}: {}", one.problem.as_ref()?)));
    let said: Vec<String> = unlike.chain(amounts_differ(old, new)).chain(problems).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Largest factor between the amounts of two sides that is not named: longer trials have other figures, as caches and queues fill.
const AMOUNTS_DIFFER_FROM: f64 = 1.3;

/// The blocks, or round trips, of a trial, where both sides had others.
fn amounts_differ(old: &CaseFigures, new: &CaseFigures) -> Option<String> {
    let (before, after) = median(&old.amounts).zip(median(&new.amounts))?;
    let is_unlike = before.min(after) * AMOUNTS_DIFFER_FROM < before.max(after);
    let what = if old.figure == DiffFigure::Throughput { "blocks" } else { "round trips" };
    is_unlike.then(|| {
        format!("{what} of a trial: {before:.0}, then {after:.0} (`bench --like` takes those of a record)")
    })
}

/// Tests the cases with figures on both sides, as one family.
fn judge(changes: &mut [CaseChange], control: bool, unit: DiffUnit, analyses: u32) {
    let mut family: Vec<&mut CaseChange> =
        changes.iter_mut().filter(|change| change.control == control).collect();
    let both = family.iter().map(|change| match unit {
        DiffUnit::Run => BothSides { old: &change.old_runs, new: &change.new_runs, paired: false },
        _ => BothSides { old: &change.old, new: &change.new, paired: unit == DiffUnit::Pair },
    });
    let both: Vec<BothSides> = both.collect();
    let found = if unit == DiffUnit::Run { shifts_of_runs(&both) } else { shifts(&both, analyses) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::of_bench;
    use crate::mock;
    use model::{BenchRecord, CaseRecord, RecordHead, Role, Settings, Spec, Workload};

    /// Expected: how much longer all trials together take where modes switch. Happened: the factor of most pairs alone, +4 %.
    #[test]
    fn modes_that_switch_have_a_change_of_all_trials_together() {
        let base = [1.0, 1.8, 1.0, 1.8, 1.0, 1.0, 1.8, 1.0, 1.0, 1.8, 1.0, 1.0];
        let slow = [1.04, 1.04, 1.87, 1.87, 1.04, 1.87, 1.87, 1.04, 1.87, 1.87, 1.87, 1.04];
        let change = |figure, old: [f64; 12], new: [f64; 12]| CaseChange {
            figure,
            old: old.to_vec(),
            new: new.to_vec(),
            ratio: Some(if figure == DiffFigure::Throughput { 1.0 / 1.04 } else { 1.04 }),
            ..CaseChange::default()
        };
        let total = slow.iter().sum::<f64>() / base.iter().sum::<f64>();
        let of_times = total_change(&change(DiffFigure::WallTime, base, slow));
        assert!(of_times.is_some_and(|found| (found - total).abs() < 1e-9), "{of_times:?}");
        let rates = |times: [f64; 12]| times.map(|time| 1e9 / time);
        let of_rates = total_change(&change(DiffFigure::Throughput, rates(base), rates(slow)));
        assert!(of_rates.is_some_and(|found| (found * total - 1.0).abs() < 1e-9), "{of_rates:?}");
        assert_eq!(
            total_change(&change(DiffFigure::RoundTripP99, base, slow)),
            None,
            "a percentile has no total"
        );
        assert_eq!(total_change(&change(DiffFigure::WallTime, base, base.map(|time| 1.04 * time))), None);
    }

    /// Nine trials of a stream, each so much faster than the one before.
    fn stream(spec: &str, bytes_per_s: u64) -> CaseRecord {
        let samples = (0..9).map(|round| mock::stream(round, bytes_per_s + 1_000_000 * u64::from(round)));
        CaseRecord { spec: Spec::plain(spec), ..mock::case(Workload::Stream, samples.collect()) }
    }

    fn floor(bytes_per_s: u64) -> CaseRecord {
        CaseRecord { role: Role::Floor, ..stream("null", bytes_per_s) }
    }

    fn figures(cases: Vec<CaseRecord>) -> Vec<CaseFigures> {
        let settings = Settings { seed: 1, trials: 9, ..Settings::default() };
        of_bench(&BenchRecord {
            head: RecordHead::default(),
            peer: None,
            recommendation: None,
            settings,
            cases,
        })
    }

    fn kinds(old: Vec<CaseRecord>, new: Vec<CaseRecord>) -> Vec<ChangeKind> {
        differences(&figures(old), &figures(new), false, 1).iter().map(|change| change.kind).collect()
    }

    #[test]
    fn more_bytes_a_second_are_faster_and_longer_trips_slower() {
        use ChangeKind::{Faster, Incomparable, NoChange, Slower};
        let old = || vec![stream("pipe", 1 << 30), stream("fifo", 1 << 30), stream("tcp", 1 << 30)];
        let new = vec![stream("fifo", 1 << 31), stream("pipe", 1 << 30), stream("udp", 1 << 30)];
        assert_eq!(kinds(old(), new), [NoChange, Faster, Incomparable, Incomparable]);
        let trips = |ns: u64| {
            let samples = (0..9).map(|round| mock::round_trips(round, &[ns + u64::from(round); 1000]));
            vec![mock::case(Workload::PingPong, samples.collect())]
        };
        assert_eq!(kinds(trips(1000), trips(1500)), [Slower, Slower], "the median, and the tail");
    }

    #[test]
    fn floors_are_controls_unless_they_are_what_was_asked_for() {
        let changes = differences(
            &figures(vec![stream("pipe", 1 << 30), floor(1 << 35)]),
            &figures(vec![stream("pipe", 1 << 30), floor(1 << 34)]),
            false,
            1,
        );
        assert_eq!([changes[0].control, changes[1].control], [false, true]);
        assert_eq!(changes[1].kind, ChangeKind::Slower);
        assert!(changes.iter().all(|change| !change.is_regression(None) && change.p.is_some()));
        let alone = differences(&figures(vec![floor(1 << 35)]), &figures(vec![floor(1 << 34)]), false, 1);
        assert!(alone[0].is_regression(None));
    }

    #[test]
    fn a_case_is_everything_that_was_asked_for() {
        let pipe = || stream("pipe", 1 << 30);
        let others = [
            CaseRecord { block_bytes: 1, ..pipe() },
            CaseRecord { relays: 1, ..pipe() },
            CaseRecord { pairs: Some(2), ..pipe() },
            CaseRecord { check: None, ..pipe() },
            CaseRecord { payload: model::PayloadKind::Zero, ..pipe() },
        ];
        for other in others {
            assert_eq!(kinds(vec![pipe()], vec![other.clone()]), [ChangeKind::Incomparable; 2], "{other:?}");
        }
        let granted = CaseRecord { granted: [("pipe_bytes".to_owned(), 4096)].into(), ..pipe() };
        let changes = differences(&figures(vec![pipe()]), &figures(vec![granted]), false, 1);
        assert_eq!(changes[0].remark.as_deref(), Some("granted: none, then pipe_bytes 4096"));
        let twice = || vec![pipe(), stream("pipe", 1 << 31)];
        assert_eq!(kinds(twice(), twice()), [ChangeKind::NoChange; 2], "the first with the first");
    }

    #[test]
    fn a_new_side_that_fails_in_part_failed() {
        use ChangeKind::{Failed, NoChange};
        let broken = |expected: bool| {
            let mut error = model::CaseError::new(model::ErrorKind::Died, "the reader was killed");
            error.expected = expected;
            vec![CaseRecord { error: Some(error), ..stream("pipe", 1 << 30) }]
        };
        let whole = || vec![stream("pipe", 1 << 30)];
        assert_eq!(kinds(whole(), broken(false)), [Failed]);
        for (old, new) in [(broken(false), whole()), (broken(false), broken(false)), (whole(), broken(true))]
        {
            assert_eq!(kinds(old, new), [NoChange]);
        }
        let in_turns = differences(&figures(whole()), &figures(broken(true)), true, 1);
        assert_eq!(in_turns[0].kind, Failed, "turns were lost");
    }

    /// Expected: no row for what neither side can have. Happened: rows of streams over an event counter, "incomparable".
    #[test]
    fn what_is_impossible_on_both_sides_is_no_row() {
        let none = |expected: bool| {
            let error = model::CaseError {
                expected,
                ..model::CaseError::new(model::ErrorKind::Unsupported, "no streams")
            };
            CaseRecord { error: Some(error), samples: Vec::new(), ..stream("eventfd", 1) }
        };
        let pipe = || stream("pipe", 1 << 30);
        assert_eq!(kinds(vec![pipe(), none(true)], vec![pipe(), none(true)]), [ChangeKind::NoChange]);
        assert_eq!(kinds(vec![pipe(), none(true)], vec![pipe()]), [ChangeKind::NoChange]);
        assert_eq!(kinds(vec![none(false)], vec![none(false)]), [ChangeKind::Incomparable]);
        assert_eq!(kinds(vec![none(true)], vec![stream("eventfd", 1 << 30)]), [ChangeKind::Incomparable]);
    }

    #[test]
    fn a_tail_of_short_trials_is_no_missing_case() {
        let trips = |count: usize| {
            let samples = (0..9).map(|round| mock::round_trips(round, &vec![1000; count]));
            vec![mock::case(Workload::PingPong, samples.collect())]
        };
        let changes = differences(&figures(trips(2000)), &figures(trips(999)), false, 1);
        assert_eq!(changes[1].kind, ChangeKind::Incomparable);
        assert_eq!(changes[1].remark.as_deref(), Some("new: fewer than 1000 round trips in a trial"));
        assert_eq!(kinds(trips(99), trips(99)), [ChangeKind::NoChange], "the median alone");
    }

    #[test]
    fn pairs_are_of_one_round() {
        let of = |values: &[(u32, f64)]| {
            let mut one = figures(vec![stream("pipe", 1 << 30)]).remove(0);
            one.values = values.to_vec();
            [one]
        };
        let changes =
            differences(&of(&[(0, 1.0), (1, 2.0), (3, 4.0)]), &of(&[(1, 4.0), (2, 9.0), (3, 8.0)]), true, 1);
        assert_eq!(
            (changes[0].old.as_slice(), changes[0].new.as_slice()),
            (&[2.0, 4.0][..], &[4.0, 8.0][..])
        );
        assert!((changes[0].ratio.expect("two pairs") - 2.0).abs() < 1e-9);
        let apart = differences(&of(&[(0, 1.0), (1, 2.0)]), &of(&[(2, 4.0)]), false, 1);
        assert_eq!((apart[0].old.as_slice(), apart[0].new.as_slice()), (&[1.0, 2.0][..], &[4.0][..]));
        assert_eq!((apart[0].old_median, apart[0].new_median), (Some(1.5), Some(4.0)));
    }

    /// A side with one figure, or none; `failed` and `short` as given.
    fn side(values: &[(u32, f64)], problem: Option<&str>, failed: bool, short: bool) -> CaseFigures {
        CaseFigures {
            case: BTreeMap::new(),
            figure: DiffFigure::Throughput,
            control: false,
            values: values.to_vec(),
            run_medians: Vec::new(),
            problem: problem.map(str::to_owned),
            failed,
            short,
            amounts: Vec::new(),
            found: BTreeMap::new(),
        }
    }

    #[test]
    fn a_case_fails_where_only_the_new_side_failed() {
        const ONE: &[(u32, f64)] = &[(0, 1.0)];
        let (whole, odd) = (side(ONE, None, false, false), side(ONE, Some("odd"), false, false));
        let (failed, short) = (side(ONE, Some("died"), true, false), side(ONE, Some("short"), false, true));
        for (old, new, paired, expected) in [
            (&whole, &whole, true, false),
            (&whole, &failed, false, true),
            (&failed, &failed, true, false),
            (&failed, &whole, true, false),
            (&whole, &odd, true, true),
            (&whole, &odd, false, false),
            (&odd, &odd, true, false),
            (&whole, &short, true, false),
            (&failed, &odd, true, false),
        ] {
            assert_eq!(lost(old, new, paired), expected, "{:?}, then {:?}", old.problem, new.problem);
        }
    }

    #[test]
    fn a_case_without_figures_on_both_sides_has_a_remark() {
        use ChangeKind::{Failed, Incomparable, NoChange};
        const ONE: &[(u32, f64)] = &[(0, 1.0)];
        let (whole, none) = (side(ONE, None, false, false), side(&[], None, false, false));
        let (failed, short) = (side(&[], Some("died"), true, false), side(&[], Some("short"), false, true));
        let both = side(&[], Some("died"), true, true);
        let odd = side(ONE, Some("odd"), false, false);
        for (old, new, expected, remark) in [
            (Some(&whole), None, Incomparable, Some("only in the old record")),
            (None, Some(&whole), Incomparable, Some("only in the new record")),
            (Some(&whole), Some(&none), Failed, Some("new: no trial was made")),
            (Some(&whole), Some(&failed), Failed, Some("new: died")),
            (Some(&whole), Some(&short), Incomparable, Some("new: short")),
            (Some(&whole), Some(&both), Failed, Some("new: died")),
            (Some(&failed), Some(&whole), Incomparable, Some("old: died")),
            (Some(&failed), Some(&short), Incomparable, Some("short")),
            (Some(&whole), Some(&odd), NoChange, Some("new: odd")),
            (Some(&odd), Some(&odd), NoChange, Some("old: odd; new: odd")),
            (Some(&whole), Some(&whole), NoChange, None),
        ] {
            let found = kind_by_presence(old, new, false);
            assert_eq!((found.0, found.1.as_deref()), (expected, remark));
        }
    }

    #[test]
    fn found_properties_that_differ_are_named() {
        let with = |found: &[(&'static str, &str)]| CaseFigures {
            found: found.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
            ..side(&[], None, false, false)
        };
        for (old, new, expected) in [
            (&[("a", "1")][..], &[("a", "1")][..], None),
            (&[("a", "1"), ("b", "2")], &[("a", "3"), ("b", "2")], Some("a: 1, then 3")),
            (&[("a", "1")], &[("b", "2")], Some("a: 1, then none; b: none, then 2")),
            (&[("a", "")], &[], None),
        ] {
            assert_eq!(differences_found(&with(old), &with(new)).as_deref(), expected);
        }
    }

    #[test]
    fn the_kind_of_a_change_depends_on_what_is_better() {
        use ChangeKind::{Faster, NoChange, Slower, TooFew};
        use DiffFigure::{Throughput, WallTime};
        let bounds = Some((0.1, 9.0));
        for (interval, p_corrected, ratio, figure, expected) in [
            (None, 0.01, 2.0, WallTime, TooFew),
            (bounds, 0.06, 2.0, WallTime, NoChange),
            (bounds, 0.05, 2.0, WallTime, Slower),
            (bounds, 0.05, 0.5, WallTime, Faster),
            (bounds, 0.05, 2.0, Throughput, Faster),
            (bounds, 0.05, 0.5, Throughput, Slower),
        ] {
            assert_eq!(kind(&Shift { ratio, interval, p: p_corrected, p_corrected }, figure), expected);
        }
    }

    #[test]
    fn a_case_is_settled_if_it_was_judged_and_the_limit_is_decided() {
        let same = || figures(vec![stream("pipe", 1 << 30)]);
        let change = differences(&same(), &same(), false, 1).remove(0);
        let with = |low, high| CaseChange { low: Some(low), high: Some(high), ..change.clone() };
        assert!(is_settled(&with(0.95, 1.05), None) && !is_settled(&with(0.5, 1.05), None));
        assert!(is_settled(&with(0.95, 1.05), Some(6.0)) && !is_settled(&with(0.95, 1.05), Some(4.0)));
        let wide = with(0.5, 2.0);
        assert!(!is_settled(&wide, Some(5.0)));
        assert!(is_settled(&CaseChange { control: true, ..wide.clone() }, Some(5.0)), "a control");
        assert!(is_settled(&CaseChange { ratio: None, ..wide.clone() }, Some(5.0)), "without a ratio");
        assert!(!is_settled(&CaseChange { low: None, ..wide }, Some(5.0)), "without bounds");
    }
}
