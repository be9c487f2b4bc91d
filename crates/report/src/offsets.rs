//! `--align sweep`: figures over the place where the ends' buffers begin, as a table and as a figure.

use model::{Alignment, BenchRecord, CaseRecord, Workload};

use crate::case_figure::{estimated, figure_text};
use crate::lists::{distinct, grouped};
use crate::table::{ABSENT, Column, Table};
use crate::view::{Axes, Labels, SWEEP_FROM, ranked};
use crate::{numbers, words};

/// Whether a record has so many places of buffers that a list of them would say nothing.
pub(crate) fn are_swept(record: &BenchRecord) -> bool {
    places(ranked(record)).len() >= SWEEP_FROM
}

/// The places of buffers among these cases, those before the start of a page first.
pub(crate) fn places<'a>(cases: impl Iterator<Item = &'a CaseRecord>) -> Vec<Alignment> {
    let mut places = distinct(cases.map(|case| case.align));
    places.sort_by_key(Alignment::place);
    places
}

/// A table for each way of holding the ends: the places go down, the mechanisms across, each with its share of its best figure.
pub(crate) fn tables(record: &BenchRecord) -> Vec<Table> {
    let (labels, places) = (Labels::but_for_align(record), places(ranked(record)));
    let key = |case: &CaseRecord| (Axes::of(case), case.block_bytes);
    let mut sets = grouped(ranked(record).map(|case| (key(case), case)));
    sets.sort_by_key(|((axes, bytes), _)| (axes.order(), *bytes));
    let table = |((axes, bytes), cases): ((Axes, u64), Vec<&CaseRecord>)| {
        let title = format!(
            "{} of {} by buffer offset (sender,receiver) · {} · {}",
            what(axes.workload),
            numbers::size(bytes),
            words::ends(axes.tasks, axes.placement, cases.first().map_or(&[], |case| &case.cpus)),
            words::data(axes.data, cases.first().and_then(|case| case.check)),
        );
        let mut table = Table { title, ..Table::default() };
        table.add(Column::right(""), places.iter().map(|place| Some(place.to_string())));
        for (label, cases) in grouped(cases.into_iter().map(|case| (labels.of_case(case), case))) {
            let at = |place: &Alignment| cases.iter().find(|case| case.align == *place);
            let speed = |case: &CaseRecord| estimated(case).map(|[figure, ..]| speed(case, figure));
            let best = cases.iter().filter_map(|case| speed(case)).fold(f64::MIN_POSITIVE, f64::max);
            let figure =
                |place| Some(at(place).and_then(|case| figure_text(case)).unwrap_or_else(|| ABSENT.into()));
            let share = |place| Some(format!("{:.2}", speed(at(place)?)? / best));
            table.add(Column::right(format!("{label} ")), places.iter().map(figure));
            table.add(Column::right("of best"), places.iter().map(share));
        }
        table
    };
    sets.into_iter().map(table).collect()
}

fn what(workload: Workload) -> &'static str {
    match workload {
        Workload::Stream => "throughput",
        Workload::PingPong => "median round trip",
    }
}

/// A figure such that more is better.
fn speed(case: &CaseRecord, figure: f64) -> f64 {
    match case.workload {
        Workload::Stream => figure,
        Workload::PingPong => 1.0 / figure.max(1.0),
    }
}
