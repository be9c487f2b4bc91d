//! `--align sweep`: figures over the offsets in a page at which the buffers of the ends begin, as tables and sentences.

use model::{Alignment, BenchRecord, CaseRecord};

use crate::case_figure::{estimated, figure_text, quantity, speed};
use crate::lists::{distinct, first_lines, grouped};
use crate::table::{ABSENT, Column, Table};
use crate::view::{Axes, Labels, SWEEP_FROM, ranked};
use crate::{numbers, words};

/// An offset is slow below this share of the best figure, if the intervals of the two do not overlap.
const SLOW_BELOW: f64 = 0.8;
/// Most sentences; there is one for each column of the tables.
const SENTENCES_MAX: usize = 8;

/// Cases that differ only in the offsets of their buffers, and their label.
type Swept<'a> = (String, Vec<&'a CaseRecord>);

/// Whether a record has enough offsets to be shown in separate tables.
pub(crate) fn are_swept(record: &BenchRecord) -> bool {
    offsets(ranked(record)).len() >= SWEEP_FROM
}

/// The distinct offsets of these cases, in the order of a sweep ([`Alignment::place`]).
pub(crate) fn offsets<'a>(cases: impl Iterator<Item = &'a CaseRecord>) -> Vec<Alignment> {
    let mut offsets = distinct(cases.map(|case| case.align));
    model::sort_by_key(&mut offsets, Alignment::place);
    offsets
}

/// The sweeps of each table. All cases of a table have the same workload, block, placement and so on.
fn sets(record: &BenchRecord) -> Vec<((Axes, u64), Vec<Swept<'_>>)> {
    let labels = Labels::without(record, Some("align"));
    let key = |case: &CaseRecord| (Axes::from_case(case), case.block_bytes);
    let mut sets = grouped(ranked(record).map(|case| (key(case), (labels.label(case), case))));
    model::sort_by_key(&mut sets, |((axes, bytes), _)| (axes.order(), *bytes));
    sets.into_iter().map(|(key, cases)| (key, grouped(cases))).collect()
}

/// A row for each offset, and for each mechanism a column with its figures and one with their shares of the best.
pub(crate) fn tables(record: &BenchRecord) -> Vec<Table> {
    let offsets = offsets(ranked(record));
    let table = |((axes, bytes), columns): ((Axes, u64), Vec<Swept>)| {
        let first = columns[0].1[0];
        let title = format!(
            "{} of {} by buffer offset (sender,receiver) · {} · {}",
            quantity(axes.workload).name,
            numbers::size(bytes),
            words::ends(axes.tasks, axes.placement, &first.cpus),
            words::data(axes.data, first.check),
        );
        let mut table = Table { title, ..Table::default() };
        table.add(Column::right(""), offsets.iter().map(|place| Some(place.to_string())));
        for (label, cases) in columns {
            let at = |place: &Alignment| cases.iter().copied().find(|case| case.align == *place);
            let best = cases.iter().filter_map(|case| speed(case)).fold(f64::MIN_POSITIVE, f64::max);
            let figure = |place| Some(at(place).and_then(figure_text).unwrap_or_else(|| ABSENT.into()));
            let share = |place| Some(format!("{:.2}", speed(at(place)?)? / best));
            table.add(Column::right(format!("{label} ")), offsets.iter().map(figure));
            table.add(Column::right("of best"), offsets.iter().map(share));
        }
        table
    };
    sets(record).into_iter().map(table).collect()
}

/// For each mechanism, which offsets are slow.
pub(crate) fn sentences(record: &BenchRecord) -> Vec<String> {
    let sets = sets(record);
    let several = distinct(sets.iter().map(|((axes, _), _)| axes.placement)).len() > 1;
    let sentences = sets.iter().flat_map(|((axes, bytes), columns)| {
        let placed = if several { format!(" placed `{}`", axes.placement) } else { String::new() };
        let what = format!("{} of {}{placed}", quantity(axes.workload).name, numbers::size(*bytes));
        let sentence =
            move |(label, cases): &Swept| Some(format!("`{label}`, {what}: {}.", slow_offsets(cases)?));
        columns.iter().filter_map(sentence)
    });
    first_lines(sentences.collect(), SENTENCES_MAX)
}

/// "12 of 32 buffer offsets have surely less than 0.8 of the best speed; the slowest is 0,16 (1.20 GB/s), the best 0,0 (4.00 GB/s)".
fn slow_offsets(cases: &[&CaseRecord]) -> Option<String> {
    let mut measured: Vec<(f64, &CaseRecord)> =
        cases.iter().filter_map(|case| Some((speed(case)?, *case))).collect();
    model::sort_by(&mut measured, |(one, _), (other, _)| one.total_cmp(other));
    let [(_, slowest), .., (best_speed, best)] = measured[..] else { return None };
    let is_apart = |case| {
        let overlap = estimated(case).zip(estimated(best));
        overlap.is_some_and(|([_, low, high], [_, best_low, best_high])| high < best_low || best_high < low)
    };
    let slow = measured.iter().filter(|(speed, case)| *speed < SLOW_BELOW * best_speed && is_apart(case));
    let how_many = match slow.count() {
        0 => "no buffer offset has".to_owned(),
        slow => format!("{slow} of {} buffer offsets have", measured.len()),
    };
    let [slow_text, best_text] = [slowest, best].map(|case| figure_text(case).unwrap_or_default());
    Some(format!(
        "{how_many} surely less than {SLOW_BELOW} of the best speed; the slowest is {} ({slow_text}), the best {} ({best_text})",
        slowest.align, best.align
    ))
}
