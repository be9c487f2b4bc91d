//! Many block sizes: the sizes go down, the mechanisms across, so that a column reads as a curve.

use model::Workload;

use crate::case_figure::FigureText;
use crate::lists::grouped;
use crate::table::{ABSENT, Column, Table};
use crate::view::{RankedRow, Ranking};
use crate::{numbers, reason};

/// One mechanism over all sizes: its label, its best figure, and a cell for each size.
struct Curve {
    label: String,
    best: f64,
    cells: Vec<Option<String>>,
}

/// The rankings of a sweep as tables: throughput, then round trips, where they were measured.
pub(crate) fn tables(rankings: &[&Ranking], interrupted: bool) -> Vec<Table> {
    let mut tables: Vec<Table> =
        Workload::ALL.iter().filter_map(|workload| table(*workload, rankings)).collect();
    let reasons = reasons(rankings, interrupted);
    match tables.last_mut() {
        Some(last) => last.notes = reasons,
        None => tables.push(Table { notes: reasons, ..Table::default() }),
    }
    tables
}

fn table(workload: Workload, rankings: &[&Ranking]) -> Option<Table> {
    let curves = curves(workload, rankings);
    let title = match workload {
        Workload::Stream => "throughput by block size (* the fastest of its row)",
        Workload::PingPong => "median round trip by size (* the lowest of its row)",
    };
    let mut table = Table { title: title.to_owned(), ..Table::default() };
    let size = |ranking: &&Ranking| match workload {
        Workload::Stream => ranking.axes.stream_bytes.map(numbers::size),
        Workload::PingPong => ranking.axes.round_trip_bytes.map(numbers::size),
    };
    table.add(Column::right(""), rankings.iter().map(size));
    let some = !curves.is_empty();
    for curve in curves {
        table.add(Column::right(format!("{} ", curve.label)), curve.cells);
    }
    some.then_some(table)
}

/// The block of a ranking of a sweep.
pub(crate) fn size_of(ranking: &Ranking) -> String {
    ranking.axes.stream_bytes.or(ranking.axes.round_trip_bytes).map(numbers::size).unwrap_or_default()
}

/// The rows that have the figure at any size, the best of all first.
fn curves(workload: Workload, rankings: &[&Ranking]) -> Vec<Curve> {
    let found = rankings.iter().enumerate().flat_map(|(at, ranking)| {
        cells(workload, ranking).map(move |(label, value, text)| (label, (at, value, text)))
    });
    let curve = |(label, found): (&str, Vec<(usize, f64, String)>)| {
        let best = found.iter().map(|(_, value, _)| *value).fold(f64::NEG_INFINITY, f64::max);
        let mut cells = vec![Some(format!("{ABSENT} ")); rankings.len()];
        // Of several rows of one name the first is shown.
        for (at, _, text) in found.into_iter().rev() {
            cells[at] = Some(text);
        }
        Curve { label: label.to_owned(), best, cells }
    };
    let mut curves: Vec<Curve> = grouped(found).into_iter().map(curve).collect();
    curves.sort_by(|one, other| other.best.total_cmp(&one.best));
    curves
}

/// The label, the figure and the cell of each row of a ranking that has the figure.
fn cells<'a>(workload: Workload, ranking: &'a Ranking) -> impl Iterator<Item = (&'a str, f64, String)> {
    let values = || ranking.rows.iter().filter_map(move |row| value(row, workload));
    // One mechanism alone is not the best of anything.
    let best = if values().count() > 1 { values().fold(f64::NEG_INFINITY, f64::max) } else { f64::INFINITY };
    let cell = move |row: &'a RankedRow| {
        let value = value(row, workload)?;
        let text = FigureText::new(row.case(workload, false)?, row.seats(workload))?.in_own_unit();
        // The last place of a cell is for its star.
        Some((row.label.as_str(), value, text + if value >= best { "*" } else { " " }))
    };
    ranking.rows.iter().filter_map(cell)
}

/// The figure such that more is better.
fn value(row: &RankedRow, workload: Workload) -> Option<f64> {
    match workload {
        Workload::Stream => row.throughput().map(|throughput| throughput.median_bytes_per_s),
        Workload::PingPong => row.latency().map(|latency| -(latency.p50 as f64)),
    }
}

/// One line for each mechanism that has no figure at some sizes: the first reason it gave.
fn reasons(rankings: &[&Ranking], interrupted: bool) -> Vec<String> {
    let of_section = |ranking: &'_ &Ranking| {
        let size = size_of(ranking);
        let reason = |row: &RankedRow| row.cases().find_map(|case| reason::reason(case, interrupted));
        let rows =
            ranking.rows.iter().filter_map(|row| Some((row.label.clone(), (reason(row)?, size.clone()))));
        rows.collect::<Vec<_>>()
    };
    let sentence = |(label, gaps): (String, Vec<(String, String)>)| match gaps.as_slice() {
        [(reason, first), .., (_, last)] => format!("{label} ({first} to {last}): {reason}"),
        [(reason, only)] => format!("{label} ({only}): {reason}"),
        [] => label,
    };
    grouped(rankings.iter().flat_map(of_section)).into_iter().map(sentence).collect()
}
