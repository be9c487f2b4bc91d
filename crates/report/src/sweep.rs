//! Many block sizes: the sizes go down, the mechanisms across, so that a column reads as a curve.

use crate::columns::{ABSENT, noise_mark};
use crate::layout::{self, Line, Tone};
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

/// The sections of a sweep as grids: throughput, then round trips, where they were measured.
pub(crate) fn grid(sections: &[&Section], width: usize, interrupted: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    for figure in [Figure::Throughput, Figure::RoundTrip] {
        let labels = labels(sections, figure);
        if !labels.is_empty() {
            lines.extend(grids_of(figure, sections, &labels, width));
        }
    }
    lines.extend(reasons(sections, width, interrupted));
    lines
}

/// As many grids below each other as the width makes necessary.
fn grids_of(figure: Figure, sections: &[&Section], labels: &[String], width: usize) -> Vec<Line> {
    let head = match figure {
        Figure::Throughput => "throughput by block size (* the fastest of its row)",
        Figure::RoundTrip => "median round trip by size (* the lowest of its row)",
    };
    let mut lines = vec![Line::new(Tone::Dim, format!("{MARGIN}{head}"))];
    let sizes: Vec<String> = sections.iter().map(|section| size(section, figure)).collect();
    let first = sizes.iter().map(|size| size.len()).max().unwrap_or(0);
    let columns: Vec<Vec<String>> = labels.iter().map(|label| column(figure, sections, label)).collect();
    let mut rest = &columns[..];
    while !rest.is_empty() {
        let fits = how_many_fit(rest, width.saturating_sub(MARGIN.len() + first));
        let (now, later) = rest.split_at(fits);
        for at in 0..=sizes.len() {
            let size = at.checked_sub(1).map_or("", |row| sizes[row].as_str());
            let mut line = format!("{MARGIN}{}", layout::right(size, first));
            for column in now {
                line.push_str(&format!("  {}", layout::right(&column[at], column_width(column))));
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
fn labels(sections: &[&Section], figure: Figure) -> Vec<String> {
    let mut best: Vec<(String, f64)> = Vec::new();
    for row in sections.iter().flat_map(|section| &section.rows) {
        let Some(value) = value(row, figure) else { continue };
        match best.iter_mut().find(|(label, _)| *label == row.label) {
            Some((_, known)) => *known = known.max(value),
            None => best.push((row.label.clone(), value)),
        }
    }
    best.sort_by(|a, b| b.1.total_cmp(&a.1));
    best.into_iter().map(|(label, _)| label).collect()
}

/// The figure such that more is better.
fn value(row: &Row, figure: Figure) -> Option<f64> {
    match figure {
        Figure::Throughput => row.throughput().map(|throughput| throughput.median_bytes_per_s),
        Figure::RoundTrip => row.latency().map(|latency| -(latency.p50 as f64)),
    }
}

/// The label, then one cell for each size. The last two places of a cell are for its marks.
fn column(figure: Figure, sections: &[&Section], label: &str) -> Vec<String> {
    let mut cells = vec![format!("{label}  ")];
    for section in sections {
        let row = section.rows.iter().find(|row| row.label == label);
        let values = || section.rows.iter().filter_map(|row| value(row, figure));
        // One mechanism alone is not the best of anything.
        let best =
            if values().count() > 1 { values().fold(f64::NEG_INFINITY, f64::max) } else { f64::INFINITY };
        cells.push(row.and_then(|row| cell(figure, row, best)).unwrap_or_else(|| format!("{ABSENT}  ")));
    }
    cells
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

fn column_width(column: &[String]) -> usize {
    column.iter().map(|cell| layout::width(cell)).max().unwrap_or(0)
}

/// How many columns go into a width; one at least.
fn how_many_fit(columns: &[Vec<String>], width: usize) -> usize {
    let mut used = 0;
    let fits = |column: &&Vec<String>| {
        used += 2 + column_width(column);
        used <= width + 2 // the marks of the last column may be blank
    };
    columns.iter().take_while(fits).count().max(1)
}

/// One line for each mechanism that has no figure at some sizes: the first reason it gave.
fn reasons(sections: &[&Section], width: usize, interrupted: bool) -> Vec<Line> {
    let mut seen: Vec<(String, String, Vec<String>)> = Vec::new();
    for section in sections {
        for row in &section.rows {
            let Some(reason) = row.cases().find_map(|case| reason::reason(case, interrupted)) else {
                continue;
            };
            let size = size_of(section);
            match seen.iter_mut().find(|(label, ..)| *label == row.label) {
                Some((.., sizes)) => sizes.push(size),
                None => seen.push((row.label.clone(), reason, vec![size])),
            }
        }
    }
    let sentence = |(label, reason, sizes): &(String, String, Vec<String>)| {
        let at = match sizes.as_slice() {
            [first, .., last] => format!("{first} to {last}"),
            one => one.concat(),
        };
        layout::wrap(&format!("{label} ({at}): {reason}"), width.saturating_sub(MARGIN.len()))
    };
    let lines = seen.iter().flat_map(sentence);
    lines.map(|line| Line::new(Tone::Dim, format!("{MARGIN}{line}"))).collect()
}
