//! The output of `hosepipe diff`: the changes between two sides, the worst first.

mod facts;
pub mod go;
pub mod sides;

use std::cmp::Ordering;
use std::collections::BTreeSet;

use model::{CaseChange, ChangeKind, DiffFigure, DiffRecord, DiffSide, DiffUnit, RUNS_MIN, TAIL_MARGINS};
use stats::figures_needed;

use crate::document::{Block, Context, Section};
use crate::layout::Tone;
use crate::lists::first_names;
use crate::numbers::{self, SEVERAL_TIMES, fixed, percent};
use crate::sheet::{Sheet, col, pairs};
use crate::show::Show;
use crate::table::{Fit, Table};
use crate::unit::Unit;
use crate::value::Value;
use crate::words::{INTERRUPTED, count, machine, only_finished};

/// The field of a case that names it.
const SPEC: &str = "spec";
/// The field of a case that follows from its figure.
const WORKLOAD: &str = "workload";
/// Most names of records in a heading.
const NAMES_MAX: usize = 4;

/// The summary, the changes, and the figures without a change.
fn section(record: &DiffRecord, context: &Context) -> Section {
    let judged: Vec<&CaseChange> = record.changes.iter().filter(|change| !change.control).collect();
    let mut section = context.section("diff", "What changed");
    let summary = summary(record, &judged);
    if context.is_page() {
        section.lead.extend(notices(record));
        section.lead.extend([heading(record).join(" · "), summary]);
    } else {
        section.blocks.push(Block::Heading(heading(record)));
        section.blocks.extend(notices(record).into_iter().map(Block::Notice));
        section.blocks.push(Block::Title(summary));
    }
    let [mut changed, mut steady] = tables(record, &judged);
    let steady_title = format!("{} without a change", count(steady.rows.len(), "figure"));
    if context.is_page() {
        changed.title = "Changes".to_owned();
        steady.title = steady_title.clone();
    }
    section.blocks.extend(Some(changed).filter(|table| !table.rows.is_empty()).map(Block::Table));
    if !is_of_one_run(record) {
        let limits =
            bounds(record.unit(), &judged).into_iter().chain(facts::between_runs(record, &judged)).collect();
        context.conclude(&mut section, limits, Block::Note);
    }
    if !steady.rows.is_empty() {
        section.blocks.push(Block::Folded(steady_title, vec![steady]));
    }
    section.blocks.push(Block::Remarks(remarks(record, &judged)));
    section
}

fn heading(record: &DiffRecord) -> Vec<String> {
    let side = |word: &str, side: &DiffSide| {
        let tool = if side.tool.is_empty() { String::new() } else { format!(" ({})", side.tool) };
        let names: Vec<String> = side.runs().map(|run| run.name.clone()).collect();
        format!("{word}: {}{tool}", first_names(&names, NAMES_MAX))
    };
    let trials = record.changes.iter().map(|change| change.old.len().max(change.new.len())).max();
    let trials = trials.unwrap_or_default();
    let how = match record.unit() {
        DiffUnit::Pair => format!("{} in turns", count(trials, "pair")),
        DiffUnit::Trial if facts::is_of_two_runs(record) => {
            format!("up to {} a side, in two runs", count(trials, "trial"))
        }
        _ => format!("{}, up to {} a side", facts::runs_of_each_side(record), count(trials, "trial")),
    };
    vec![machine(&record.head.host), side("old", &record.old), side("new", &record.new), how]
}

/// Notices above the tables.
fn notices(record: &DiffRecord) -> Vec<String> {
    let hosts = (!record.hosts_differ.is_empty())
        .then(|| format!("DIFFERENT HOSTS OR SETTINGS: {}.", record.hosts_differ.join("; ")));
    let early = record.interrupted.then(|| only_finished(INTERRUPTED, "trials"));
    hosts.into_iter().chain(early).collect()
}

/// The number of figures of each kind of change.
fn summary(record: &DiffRecord, judged: &[&CaseChange]) -> String {
    if judged.is_empty() {
        return "No figure was taken on both sides.".to_owned();
    }
    let (between_runs, changes): (Vec<&CaseChange>, Vec<&CaseChange>) =
        judged.iter().partition(|change| record.is_between_runs(change));
    let counted = |kind: &ChangeKind| {
        let count = changes.iter().filter(|change| change.kind == *kind).count();
        let words = match kind {
            ChangeKind::NoChange => "without a change".to_owned(),
            ChangeKind::TooFew if record.unit() == DiffUnit::Run => "with too few runs to say".to_owned(),
            ChangeKind::TooFew => "with too few trials to say".to_owned(),
            kind => kind.to_string(),
        };
        (count > 0).then(|| format!("{count} {words}"))
    };
    let mut counts: Vec<String> = ChangeKind::ALL.iter().filter_map(counted).collect();
    if !between_runs.is_empty() {
        let differ = if between_runs.len() == 1 { "differs" } else { "differ" };
        let runs = if facts::is_of_two_runs(record) { "the two runs" } else { "the runs" };
        counts.push(format!("{} that {differ} between {runs}", between_runs.len()));
    }
    let is_slower = judged.iter().any(|change| change.kind == ChangeKind::Slower);
    let is_found = is_slower || !between_runs.is_empty();
    let over_limit = record.fail_over_percent.filter(|limit| *limit > 0.0 && is_found).map(|limit| {
        if record.loads_differ() {
            return "; none counts as slower or faster, as the other load of the two sides differs"
                .to_owned();
        }
        let slower = match record.regressions().filter(|change| change.kind == ChangeKind::Slower).count() {
            0 => "none".to_owned(),
            some => some.to_string(),
        };
        let mut figures = judged.iter().map(|change| change.figure);
        let has_tails =
            record.unit() == DiffUnit::Trial && figures.any(|one| one == DiffFigure::RoundTripP99);
        let tails =
            has_tails.then(|| format!(" (99th percentiles {})", percent(limit * TAIL_MARGINS / 100.0)));
        let (limit, tails) = (percent(limit / 100.0), tails.unwrap_or_default());
        format!("; slower by more than {limit}{tails}, with the whole interval: {slower}")
    });
    let figures = count(judged.len(), "figure");
    format!("Of {figures}: {}{}.", counts.join(", "), over_limit.unwrap_or_default())
}

/// The figures that changed or could not be compared, the worst first; and those without a change.
fn tables(record: &DiffRecord, judged: &[&CaseChange]) -> [Table; 2] {
    let (mut steady, mut changed): (Vec<&CaseChange>, Vec<&CaseChange>) =
        judged.iter().partition(|change| change.kind == ChangeKind::NoChange);
    let rank = |change: &CaseChange| (record.is_between_runs(change), change.kind);
    model::sort_by(&mut changed, |one, other| {
        rank(one).cmp(&rank(other)).then_with(|| larger_first(one, other))
    });
    model::sort_by(&mut steady, |one, other| name(one).cmp(name(other)));
    let fields = distinguishing_fields(judged);
    [changed, steady].map(|rows| table(record, &rows, &fields))
}

/// The larger change first.
fn larger_first(one: &CaseChange, other: &CaseChange) -> Ordering {
    let size = |change: &CaseChange| change.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    size(other).total_cmp(&size(one)).then_with(|| name(one).cmp(name(other)))
}

fn name(change: &CaseChange) -> &str {
    change.case.get(SPEC).map_or("", String::as_str)
}

/// The fields of the cases, besides the spec, in which cases of one spec differ.
fn distinguishing_fields(judged: &[&CaseChange]) -> Vec<String> {
    let fields: BTreeSet<&String> = judged.iter().flat_map(|change| change.case.keys()).collect();
    let is_apart = |field: &str| {
        let values: BTreeSet<_> =
            judged.iter().map(|change| (name(change), change.case.get(field))).collect();
        values.len() > values.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len()
    };
    let others = fields.into_iter().filter(|field| !matches!(field.as_str(), SPEC | WORKLOAD));
    others.filter(|field| is_apart(field)).cloned().collect()
}

fn table(record: &DiffRecord, changes: &[&CaseChange], fields: &[String]) -> Table {
    let mut sheet = Sheet::new(changes);
    columns(&mut sheet, record, fields);
    let mut table = sheet.table();
    for (row, change) in table.rows.iter_mut().zip(changes) {
        let total = stats::total_change(change).map(|total| {
            format!("all trials together: {}, as some took much longer", numbers::change(total))
        });
        row.reasons = change.remark.iter().cloned().chain(total).collect();
        if record.is_regression(change) {
            row.tone = Tone::Bold;
        }
    }
    table
}

/// The columns of changes; `fields` names the fields in which cases of one spec differ.
fn columns(sheet: &mut Sheet<&CaseChange>, record: &DiffRecord, fields: &[String]) {
    sheet.add(col("case").csv(SPEC).fit(Fit::Spec), |change| Some(name(change).into()));
    for field in fields {
        sheet.add(col(field).left().fit(Fit::Cut), |change| {
            Some(change.case.get(field).map_or(Value::EMPTY, Value::from))
        });
    }
    sheet.data("case", |change| Some(pairs(change.case.iter().filter(|(name, _)| *name != SPEC)).into()));
    sheet.add(col("figure").drop(2), |change| Some(change.figure.to_string().into()));
    sheet.fields("figure", |change| *change);
    sheet.data("unit", |change| Some(change.figure.unit().into()));
    sheet.fields("control old_samples=old new_samples=new old_median new_median", |change| *change);
    sheet.add(col("old").drop(3), |change| figure(change, change.old_median?));
    sheet.add(col("new").drop(3), |change| figure(change, change.new_median?));
    sheet.add(col("change").csv("ratio"), |change| Some(Unit::Change.of(change.ratio?)));
    sheet.add(col("interval").drop(1), |change| {
        Some(Unit::Change.of(change.low?).and(" to ", Unit::Change.of(change.high?)))
    });
    sheet.fields("low high", |change| *change);
    sheet.data("p", |change| Some(Unit::Chance.of(change.p?)));
    sheet.add(col("p").csv("p_corrected").drop(4), |change| Some(Unit::Chance.of(change.p_corrected?)));
    sheet.add(col("verdict").left(), |change| {
        Some(format!("{}{}", verdict(record, change), against_limit(record, change)).into())
    });
    sheet.fields("verdict=kind", |change| *change);
    sheet.data("regressed", |change| Some(record.is_regression(change).to_string().into()));
    sheet.fields("remark", |change| *change);
    sheet.data("different_hosts", |_| Some(record.hosts_differ.join("; ").into()));
}

impl Show for DiffRecord {
    fn sections(&self, context: &Context) -> Vec<Section> {
        vec![section(self, context)]
    }

    /// One row for each figure of each case.
    fn data(&self) -> Table {
        let changes: Vec<&CaseChange> = self.changes.iter().collect();
        let mut sheet = Sheet::of_data(&changes);
        columns(&mut sheet, self, &[]);
        sheet.table()
    }
}

/// The verdict in words.
fn verdict(record: &DiffRecord, change: &CaseChange) -> String {
    if record.is_between_runs(change) { "runs differ".to_owned() } else { change.kind.to_string() }
}

/// How a slowdown compares with the limit; empty if it is certainly beyond it.
fn against_limit(record: &DiffRecord, change: &CaseChange) -> &'static str {
    let limit = record.fail_over_percent.unwrap_or_default() / 100.0;
    if change.kind != ChangeKind::Slower || limit == 0.0 || record.is_between_runs(change) {
        return "";
    }
    let is_inside = if change.figure.larger_is_better() {
        change.low.is_some_and(|low| low >= 1.0 - limit)
    } else {
        change.high.is_some_and(|high| high <= 1.0 + limit)
    };
    match change.is_regression(record.fail_over_percent) {
        _ if is_inside => ", within the limit",
        false => ", not surely beyond the limit",
        true => "",
    }
}

/// A raw figure with its unit.
fn figure(change: &CaseChange, value: f64) -> Option<Value> {
    match change.figure {
        DiffFigure::Throughput => Some(Unit::BytesPerS.of(value)),
        _ => time_ns(change, value).map(|ns| Unit::Ns.of(ns)),
    }
}

/// A figure as a time in nanoseconds, of streams that of a block; `None` if the block is unknown.
fn time_ns(change: &CaseChange, value: f64) -> Option<f64> {
    Some(match change.figure {
        DiffFigure::Throughput => model::parse_size(change.case.get("block")?).ok()?.0 as f64 / value * 1e9,
        DiffFigure::RoundTripP50 | DiffFigure::RoundTripP99 => value,
        DiffFigure::WallTime => value * 1e9,
    })
}

/// The largest change that may be undetected, and the figures that vary too much to say so.
fn bounds(unit: DiffUnit, judged: &[&CaseChange]) -> Vec<String> {
    let each = if unit == DiffUnit::Run { "run to run" } else { "trial to trial" };
    let steady = judged.iter().filter(|change| change.kind == ChangeKind::NoChange);
    let by_factor = steady.filter_map(|change| Some(((1.0 / change.low?).max(change.high?), *change)));
    let (wide, narrow): (Vec<_>, Vec<_>) = by_factor.partition(|(factor, _)| *factor >= SEVERAL_TIMES);
    let largest = |found: &[(f64, &CaseChange)]| {
        let widest = found.iter().max_by(|(one, _), (other, _)| one.total_cmp(other));
        widest.map(|(factor, change)| (*factor, format!("{} {}", name(change), change.figure)))
    };
    let narrow = largest(&narrow).map(|(factor, widest)| {
        format!(
            "Where no change was found there may still be one, by a factor of {} at the most, up or down ({widest}): the intervals hold \
             for all figures at once, with 95 %.",
            fixed(factor, if factor < 1.0995 { 3 } else { 2 }),
        )
    });
    let unknown = largest(&wide).map(|(_, widest)| {
        let figures = match wide.len() {
            1 => "One figure varies".to_owned(),
            several => format!("{several} figures vary"),
        };
        format!(
            "{figures} too much from {each} to tell no change from one by a factor of {SEVERAL_TIMES} or more ({widest})."
        )
    });
    narrow.into_iter().chain(unknown).collect()
}

/// The limits of what the figures show, the most important first.
fn remarks(record: &DiffRecord, judged: &[&CaseChange]) -> Vec<String> {
    let unit = record.unit();
    let comparable = judged.iter().filter(|change| change.p.is_some()).count();
    let figures = count(comparable, "figure");
    let (trials, changes) = if record.paired {
        ("pairs", "of the changes within the pairs")
    } else {
        ("trials on each side", "of all changes from an old trial to a new one")
    };
    let too_few = judged.iter().any(|change| change.kind == ChangeKind::TooFew).then(|| {
        if unit == DiffUnit::Run {
            return format!("Too few: a figure is compared if {RUNS_MIN} runs of each side or more have it.");
        }
        let needed = figures_needed(comparable, record.analyses, record.paired);
        format!(
            "Too few: among {figures} no change can be distinguished from chance with so few trials, however large it is. It takes \
             {needed} {trials} (`--trials {needed}`)."
        )
    });
    let opposite = judged.iter().find(|change| unit != DiffUnit::Run && is_opposite_of_medians(change));
    let contrary = opposite.map(|change| {
        format!(
            "A change is the middle {changes} (Hodges and Lehmann), and may differ from that between the two medians, as for {} {} here: \
             trials vary by more than this.",
            name(change),
            change.figure
        )
    });
    let same = is_of_one_run(record).then(|| {
        let (old, new) = (&record.old.name, &record.new.name);
        let files = if old == new {
            format!("{old} is given twice")
        } else {
            format!("{old} and {new} are the same")
        };
        format!("{files}: this compares a run with itself.")
    });
    let analyses =
        if record.analyses > 1 { format!(", tested {} times", record.analyses) } else { String::new() };
    let p = (comparable > 0).then(|| {
        format!("p: the chance of such a difference if nothing had changed, corrected for {figures}{analyses} (Holm).")
    });
    let moved = facts::moved_controls(record).filter(|_| record.paired);
    [same, too_few, moved, contrary, facts::assumption(record, judged), p].into_iter().flatten().collect()
}

/// Whether both sides are one run: the same file is given twice, or a copy of it.
fn is_of_one_run(record: &DiffRecord) -> bool {
    let run = |side: &DiffSide| (side.started.clone(), side.arguments.clone());
    let changes = &record.changes;
    !record.paired
        && facts::is_of_two_runs(record)
        && run(&record.old) == run(&record.new)
        && !changes.is_empty()
        && changes.iter().all(|change| change.old == change.new)
}

/// Whether a change has the opposite direction of that between the medians shown.
fn is_opposite_of_medians(change: &CaseChange) -> bool {
    let medians = change.new_median.zip(change.old_median).map(|(new, old)| new / old);
    change.ratio.zip(medians).is_some_and(|(ratio, medians)| {
        (ratio - 1.0) * (medians - 1.0) < 0.0 && numbers::change(ratio) != numbers::change(medians)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(figure: DiffFigure, kind: ChangeKind, low: f64, high: f64) -> CaseChange {
        let case = [(SPEC.to_owned(), "pipe".to_owned())].into();
        CaseChange { case, figure, kind, low: Some(low), high: Some(high), ..CaseChange::default() }
    }

    #[test]
    fn a_limit_is_kept_only_by_the_whole_interval() {
        for (figure, low, high, said) in [
            (DiffFigure::WallTime, 1.01, 1.04, ", within the limit"),
            (DiffFigure::WallTime, 1.01, 1.2, ", not surely beyond the limit"),
            (DiffFigure::WallTime, 1.1, 1.2, ""),
            (DiffFigure::Throughput, 0.97, 0.99, ", within the limit"),
            (DiffFigure::Throughput, 0.8, 0.99, ", not surely beyond the limit"),
            (DiffFigure::Throughput, 0.8, 0.9, ""),
        ] {
            let change = change(figure, ChangeKind::Slower, low, high);
            let record =
                |paired| DiffRecord { paired, fail_over_percent: Some(5.0), ..DiffRecord::default() };
            let in_words = |record: &DiffRecord| {
                format!("{}{}", verdict(record, &change), against_limit(record, &change))
            };
            assert_eq!(in_words(&record(true)), format!("slower{said}"));
            let of_two_runs = if said.is_empty() { "slower" } else { "runs differ" };
            assert_eq!(in_words(&record(false)), of_two_runs, "{low} to {high}");
        }
    }

    #[test]
    fn the_largest_undetected_change_is_the_same_up_and_down() {
        let said = |low, high| {
            bounds(DiffUnit::Trial, &[&change(DiffFigure::WallTime, ChangeKind::NoChange, low, high)])
        };
        assert_eq!(said(0.5, 1.25), said(0.8, 2.0));
        let text = said(0.5, 1.25).concat();
        assert!(text.contains("a factor of 2.00 at the most, up or down (pipe wall time)"), "{text}");
        // Expected: no bound that excludes nothing. Happened: "by a factor of 423 at the most".
        let text = said(1.0 / 423.0, 1.25).concat();
        assert!(text.contains("One figure varies too much") && !text.contains("423"), "{text}");
    }
}
