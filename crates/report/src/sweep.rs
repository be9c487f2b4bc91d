//! Many block sizes: the sizes go down, the mechanisms across, so that a column reads as a curve.

use model::Workload;

use crate::layout;
use crate::lists::grouped;
use crate::table::{ABSENT, Column, Table};
use crate::view::{Row, Section};
use crate::{noise, numbers, reason};

/// One mechanism over all sizes: its label, its best figure, and a cell for each size.
struct Curve {
    label: String,
    best: f64,
    cells: Vec<Option<String>>,
}

/// The sections of a sweep as tables: throughput, then round trips, where they were measured.
pub(crate) fn tables(sections: &[&Section], interrupted: bool) -> Vec<Table> {
    let mut tables: Vec<Table> =
        Workload::ALL.iter().filter_map(|workload| table(*workload, sections)).collect();
    let reasons = reasons(sections, interrupted);
    match tables.last_mut() {
        Some(last) => last.notes = reasons,
        None => tables.push(Table { notes: reasons, ..Table::default() }),
    }
    tables
}

fn table(workload: Workload, sections: &[&Section]) -> Option<Table> {
    let curves = curves(workload, sections);
    let title = match workload {
        Workload::Stream => "throughput by block size (* the fastest of its row)",
        Workload::PingPong => "median round trip by size (* the lowest of its row)",
    };
    let mut table = Table { title: title.to_owned(), ..Table::default() };
    let size = |section: &&Section| match workload {
        Workload::Stream => section.axes.stream_bytes.map(numbers::size),
        Workload::PingPong => section.axes.round_trip_bytes.map(numbers::size),
    };
    table.add(Column::right(""), sections.iter().map(size));
    let some = !curves.is_empty();
    for curve in curves {
        table.add(Column::right(format!("{}  ", curve.label)), curve.cells);
    }
    some.then_some(table)
}

/// The block of a section of a sweep.
pub(crate) fn size_of(section: &Section) -> String {
    section.axes.stream_bytes.or(section.axes.round_trip_bytes).map(numbers::size).unwrap_or_default()
}

/// The rows that have the figure at any size, the best of all first.
fn curves(workload: Workload, sections: &[&Section]) -> Vec<Curve> {
    let found = sections.iter().enumerate().flat_map(|(at, section)| {
        cells(workload, section).map(move |(label, value, text)| (label, (at, value, text)))
    });
    let curve = |(label, found): (&str, Vec<(usize, f64, String)>)| {
        let best = found.iter().map(|(_, value, _)| *value).fold(f64::NEG_INFINITY, f64::max);
        let mut cells = vec![Some(format!("{ABSENT}  ")); sections.len()];
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

/// The label, the figure and the cell of each row of a section that has the figure.
fn cells<'a>(workload: Workload, section: &'a Section) -> impl Iterator<Item = (&'a str, f64, String)> {
    let values = || section.rows.iter().filter_map(move |row| value(row, workload));
    // One mechanism alone is not the best of anything.
    let best = if values().count() > 1 { values().fold(f64::NEG_INFINITY, f64::max) } else { f64::INFINITY };
    let cell = move |row: &'a Row| {
        let value = value(row, workload)?;
        let text = match workload {
            Workload::Stream => numbers::throughput(value),
            Workload::PingPong => numbers::time(-value),
        };
        // The last two places of a cell are for its marks.
        let noise = noise::mark(row.case(workload, false)?.noise).trim_start();
        let star = if value >= best { "*" } else { "" };
        Some((row.label.as_str(), value, format!("{text}{}", layout::left(&format!("{noise}{star}"), 2))))
    };
    section.rows.iter().filter_map(cell)
}

/// The figure such that more is better.
fn value(row: &Row, workload: Workload) -> Option<f64> {
    match workload {
        Workload::Stream => row.throughput().map(|throughput| throughput.median_bytes_per_s),
        Workload::PingPong => row.latency().map(|latency| -(latency.p50 as f64)),
    }
}

/// One line for each mechanism that has no figure at some sizes: the first reason it gave.
fn reasons(sections: &[&Section], interrupted: bool) -> Vec<String> {
    let of_section = |section: &'_ &Section| {
        let size = size_of(section);
        let reason = |row: &Row| row.cases().find_map(|case| reason::reason(case, interrupted));
        let rows =
            section.rows.iter().filter_map(|row| Some((row.label.clone(), (reason(row)?, size.clone()))));
        rows.collect::<Vec<_>>()
    };
    let sentence = |(label, gaps): (String, Vec<(String, String)>)| match gaps.as_slice() {
        [(reason, first), .., (_, last)] => format!("{label} ({first} to {last}): {reason}"),
        [(reason, only)] => format!("{label} ({only}): {reason}"),
        [] => label,
    };
    grouped(sections.iter().flat_map(of_section)).into_iter().map(sentence).collect()
}
