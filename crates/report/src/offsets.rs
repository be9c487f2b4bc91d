//! `--align sweep`: estimates over the offsets in a page at which the buffers of the ends begin, as tables and sentences.

use model::{Alignment, BenchRecord, CaseRecord};

use crate::conditions::Conditions;
use crate::estimate::{estimate_value, estimated, quantity, speed};
use crate::groups::{OF_ONE_BLOCK, groups, order};
use crate::lists::{distinct, first_lines, grouped};
use crate::numbers;
use crate::row_labels::RowLabels;
use crate::sheet::{Sheet, col};
use crate::table::Table;
use crate::unit::Unit;
use crate::view::{SWEEP_FROM, ranked};

/// An offset is slow below this share of the best figure, if the intervals of the two do not overlap.
const SLOW_BELOW: f64 = 0.8;
/// Most sentences; there is one for each column of the tables.
const SENTENCES_MAX: usize = 8;

/// Cases that differ only in the offsets of their buffers, and their label.
type OffsetSweep<'a> = (String, Vec<&'a CaseRecord>);

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

/// The ranked cases of a record, with their labels.
pub(crate) fn labelled_cases(record: &BenchRecord) -> impl Iterator<Item = (String, &CaseRecord)> {
    let labels = RowLabels::without(record, Some("align"));
    ranked(record).map(move |case| (labels.label(case), case))
}

/// The sweeps of each table. All cases of a table have the same workload, block, placement and so on.
fn sets<'a>(cases: impl Iterator<Item = (String, &'a CaseRecord)>) -> Vec<Vec<OffsetSweep<'a>>> {
    let mut sets = groups(cases, |(_, case)| *case, OF_ONE_BLOCK);
    model::sort_by_key(&mut sets, |cases| (order(cases[0].1), cases[0].1.block_bytes));
    sets.into_iter().map(grouped).collect()
}

/// A row for each offset, and for each mechanism a column with its figures and one with their shares of the best.
pub(crate) fn tables<'a>(cases: impl Iterator<Item = (String, &'a CaseRecord)> + Clone) -> Vec<Table> {
    let offsets = offsets(cases.clone().map(|(_, case)| case));
    let table = |columns: Vec<OffsetSweep>| {
        let first = columns[0].1[0];
        let Conditions { ends, data, .. } = Conditions::of_cases(columns[0].1.iter().copied());
        let title = format!(
            "{} of {} by buffer offset (sender,receiver) · {ends} · {data}",
            quantity(first.workload).name,
            numbers::size(first.block_bytes),
        );
        let mut sheet = Sheet::new(&offsets);
        sheet.add(col("").right(), |place| Some(place.to_string().into()));
        for (label, cases) in columns {
            let at = |place: &Alignment| cases.iter().copied().find(|case| case.align == *place);
            let best = cases.iter().filter_map(|case| speed(case)).fold(f64::MIN_POSITIVE, f64::max);
            sheet.add(format!("{label} "), |place| at(place).and_then(estimate_value));
            sheet.add("of best", |place| Some(Unit::Decimals(2).of(speed(at(place)?)? / best)));
        }
        Table { title, ..sheet.table() }
    };
    sets(cases).into_iter().map(table).collect()
}

/// For each mechanism, which offsets are slow.
pub(crate) fn sentences(record: &BenchRecord) -> Vec<String> {
    let sets = sets(labelled_cases(record));
    let several = distinct(sets.iter().map(|columns| columns[0].1[0].placement)).len() > 1;
    let sentences = sets.iter().flat_map(|columns| {
        let first = columns[0].1[0];
        let placed = if several { format!(" placed `{}`", first.placement) } else { String::new() };
        let size = numbers::size(first.block_bytes);
        let what = format!("{} of {size}{placed}", quantity(first.workload).name);
        let sentence =
            move |(label, cases): &OffsetSweep| Some(format!("`{label}`, {what}: {}.", slow_offsets(cases)?));
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
        let both = estimated(case).zip(estimated(best));
        both.is_some_and(|([_, low, high], [_, best_low, best_high])| high < best_low || best_high < low)
    };
    let slow = measured.iter().filter(|(speed, case)| *speed < SLOW_BELOW * best_speed && is_apart(case));
    let how_many = match slow.count() {
        0 => "no buffer offset has".to_owned(),
        slow => format!("{slow} of {} buffer offsets have", measured.len()),
    };
    let [slow_text, best_text] =
        [slowest, best].map(|case| estimate_value(case).map_or(String::new(), |found| found.to_string()));
    Some(format!(
        "{how_many} surely less than {SLOW_BELOW} of the best speed; the slowest is {} ({slow_text}), the best {} ({best_text})",
        slowest.align, best.align
    ))
}
