//! Many block sizes: the sizes go down, the mechanisms across, so that a column reads as a curve.

use crate::columns::{ABSENT, noise_mark};
use crate::layout::{self, Line, Tone};
use crate::lists::grouped;
use crate::numbers;
use crate::reason;
use crate::table::MARGIN;
use crate::view::{Row, Section};

/// What a grid shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    Throughput,
    RoundTrip,
}

/// One mechanism over all sizes: its label, then a cell for each size. The last two places of a cell are for its marks.
struct Curve {
    cells: Vec<String>,
    width: usize,
}

/// The sections of a sweep as grids: throughput, then round trips, where they were measured.
pub(crate) fn grid(sections: &[&Section], width: usize, interrupted: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    for figure in [Figure::Throughput, Figure::RoundTrip] {
        let curves = curves(figure, sections);
        if !curves.is_empty() {
            lines.extend(grids_of(figure, sections, &curves, width));
        }
    }
    lines.extend(reasons(sections, width, interrupted));
    lines
}

/// As many grids below each other as the width makes necessary.
fn grids_of(figure: Figure, sections: &[&Section], curves: &[Curve], width: usize) -> Vec<Line> {
    let head = match figure {
        Figure::Throughput => "throughput by block size (* the fastest of its row)",
        Figure::RoundTrip => "median round trip by size (* the lowest of its row)",
    };
    let mut lines = vec![Line::new(Tone::Dim, format!("{MARGIN}{head}"))];
    let sizes: Vec<String> = sections.iter().map(|section| size(section, figure)).collect();
    let first = sizes.iter().map(|size| size.len()).max().unwrap_or(0);
    let mut rest = curves;
    while !rest.is_empty() {
        let fits = how_many_fit(rest, width.saturating_sub(MARGIN.len() + first));
        let (now, later) = rest.split_at(fits);
        for at in 0..=sizes.len() {
            let size = at.checked_sub(1).map_or("", |row| sizes[row].as_str());
            let mut line = format!("{MARGIN}{}", layout::right(size, first));
            for curve in now {
                line.push_str(&format!("  {}", layout::right(&curve.cells[at], curve.width)));
            }
            lines.push(Line::new(if at == 0 { Tone::Dim } else { Tone::Plain }, line));
        }
        rest = later;
        if !rest.is_empty() {
            lines.push(Line::default());
        }
    }
    lines
}

fn size(section: &Section, figure: Figure) -> String {
    let bytes = match figure {
        Figure::Throughput => section.axes.stream_bytes,
        Figure::RoundTrip => section.axes.round_trip_bytes,
    };
    bytes.map(numbers::size).unwrap_or_default()
}

/// The block of a section of a sweep.
pub(crate) fn size_of(section: &Section) -> String {
    section.axes.stream_bytes.or(section.axes.round_trip_bytes).map(numbers::size).unwrap_or_default()
}

/// The rows that have the figure at any size, the best of all first.
fn curves(figure: Figure, sections: &[&Section]) -> Vec<Curve> {
    let found = sections.iter().enumerate().flat_map(|(at, section)| {
        cells(figure, section).map(move |(label, value, text)| (label, (at, value, text)))
    });
    let mut curves: Vec<(f64, Curve)> = Vec::new();
    for (label, found) in grouped(found) {
        let best = found.iter().map(|(_, value, _)| *value).fold(f64::NEG_INFINITY, f64::max);
        let mut cells = vec![format!("{label}  ")];
        cells.resize(sections.len() + 1, format!("{ABSENT}  "));
        // Of several rows of one name the first is shown.
        for (at, _, text) in found.into_iter().rev() {
            cells[at + 1] = text;
        }
        let width = cells.iter().map(|cell| layout::width(cell)).max().unwrap_or(0);
        curves.push((best, Curve { cells, width }));
    }
    curves.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    curves.into_iter().map(|(_, curve)| curve).collect()
}

/// The label, the figure and the cell of each row of a section that has the figure.
fn cells<'a>(figure: Figure, section: &'a Section) -> impl Iterator<Item = (&'a str, f64, String)> {
    let values = || section.rows.iter().filter_map(move |row| value(row, figure));
    // One mechanism alone is not the best of anything.
    let best = if values().count() > 1 { values().fold(f64::NEG_INFINITY, f64::max) } else { f64::INFINITY };
    let cell = move |row: &'a Row| Some((row.label.as_str(), value(row, figure)?, cell(figure, row, best)?));
    section.rows.iter().filter_map(cell)
}

/// The figure such that more is better.
fn value(row: &Row, figure: Figure) -> Option<f64> {
    match figure {
        Figure::Throughput => row.throughput().map(|throughput| throughput.median_bytes_per_s),
        Figure::RoundTrip => row.latency().map(|latency| -(latency.p50 as f64)),
    }
}

fn cell(figure: Figure, row: &Row, best: f64) -> Option<String> {
    let value = value(row, figure)?;
    let (text, case) = match figure {
        Figure::Throughput => (numbers::throughput(value), row.stream?),
        Figure::RoundTrip => (numbers::time(-value), row.round_trip?),
    };
    let noise = noise_mark(case).trim_start();
    let star = if value >= best { "*" } else { "" };
    Some(format!("{text}{}", layout::left(&format!("{noise}{star}"), 2)))
}

/// How many columns go into a width; one at least.
fn how_many_fit(curves: &[Curve], width: usize) -> usize {
    let mut used = 0;
    let fits = |curve: &&Curve| {
        used += 2 + curve.width;
        used <= width + 2 // the marks of the last column may be blank
    };
    curves.iter().take_while(fits).count().max(1)
}

/// One line for each mechanism that has no figure at some sizes: the first reason it gave.
fn reasons(sections: &[&Section], width: usize, interrupted: bool) -> Vec<Line> {
    let of_section = |section: &'_ &Section| {
        let size = size_of(section);
        let reason = |row: &Row| row.cases().find_map(|case| reason::reason(case, interrupted));
        let rows =
            section.rows.iter().filter_map(|row| Some((row.label.clone(), (reason(row)?, size.clone()))));
        rows.collect::<Vec<_>>()
    };
    let seen = grouped(sections.iter().flat_map(of_section));
    let sentence = |(label, gaps): &(String, Vec<(String, String)>)| {
        let (reason, at) = match gaps.as_slice() {
            [(reason, first), .., (_, last)] => (reason, format!("{first} to {last}")),
            [(reason, only)] => (reason, only.clone()),
            [] => return Vec::new(),
        };
        layout::wrap(&format!("{label} ({at}): {reason}"), width.saturating_sub(MARGIN.len()))
    };
    let lines = seen.iter().flat_map(sentence);
    lines.map(|line| Line::new(Tone::Dim, format!("{MARGIN}{line}"))).collect()
}
