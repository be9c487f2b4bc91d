//! Every writer against every reader over one pipe: a row for each writer, a column for each reader.

use std::collections::HashMap;

use model::{CaseRecord, WorkerEnd, WorkerStart};

use super::{Table, end, speed, worker};
use crate::columns::{ABSENT, noise_mark};
use crate::layout::{self, Line, Tone};
use crate::lists::distinct;
use crate::stages::shortened;
use crate::table::Style;

/// A label's columns at the most, where there is little room.
const LABEL_COLUMNS_MIN: usize = 7;

pub(crate) struct Matrix<'a> {
    pub(crate) writers: Vec<&'a WorkerEnd>,
    pub(crate) readers: Vec<&'a WorkerEnd>,
    cases: HashMap<(&'a WorkerEnd, &'a WorkerEnd), &'a CaseRecord>,
}

impl<'a> Matrix<'a> {
    /// `None` where no two programs met.
    pub(crate) fn of(table: &Table<'a>) -> Option<Self> {
        let met = || table.started_by(WorkerStart::Harness).filter_map(|case| Some((worker(case)?, case)));
        // Of several cases of one pair the first is shown.
        let pairs: Vec<_> = met().map(|(worker, case)| ((&worker.writer, &worker.reader), case)).collect();
        (!pairs.is_empty()).then(|| Self {
            writers: distinct(met().map(|(worker, _)| &worker.writer)),
            readers: distinct(met().map(|(worker, _)| &worker.reader)),
            cases: pairs.into_iter().rev().collect(),
        })
    }

    pub(crate) fn case(&self, writer: &WorkerEnd, reader: &WorkerEnd) -> Option<&'a CaseRecord> {
        self.cases.get(&(writer, reader)).copied()
    }

    /// Median GB/s of a cell, with the mark of what is noisy; figures stand below each other.
    fn cell(&self, writer: &WorkerEnd, reader: &WorkerEnd) -> String {
        let case = self.case(writer, reader).filter(|case| speed(case) > 0.0);
        let text = |case| format!("{}{:2}", crate::numbers::fixed(speed(case) / 1e9, 2), noise_mark(case));
        case.map_or(format!("{ABSENT}  "), text)
    }

    /// Names short enough for a column: the language alone where each has one variant only.
    fn names(ends: &[&WorkerEnd]) -> Vec<String> {
        let alone = |one: &WorkerEnd| ends.iter().filter(|other| other.language == one.language).count() == 1;
        ends.iter().map(|one| if alone(one) { one.language.clone() } else { end(one) }).collect()
    }
}

/// The matrix for a terminal, in GB/s; the fastest cell stands out.
pub(super) fn render(table: &Table, style: &Style) -> Vec<Line> {
    let Some(matrix) = Matrix::of(table) else { return Vec::new() };
    let rows = Matrix::names(&matrix.writers);
    let columns = Matrix::names(&matrix.readers);
    let label = rows.iter().map(|name| layout::width(name)).max().unwrap_or(0);
    // All columns are as wide as the widest name, or as the terminal lets them be.
    let widest = columns.iter().map(|name| layout::width(name)).max().unwrap_or(0);
    let room = style.width.saturating_sub(label + 2) / columns.len().max(1);
    let width = widest.min(room.saturating_sub(2)).max(LABEL_COLUMNS_MIN);
    let fastest = matrix.cases.values().map(|case| speed(case)).fold(0.0, f64::max);

    let mut lines = vec![
        Line::default(),
        Line::new(Tone::Bold, "GB/s by writer (rows) and reader (columns), each pair over a pipe of ours"),
    ];
    let heading: String =
        columns.iter().map(|name| format!("  {}", layout::right(&shortened(name, width), width))).collect();
    lines.push(Line::new(Tone::Dim, format!(" {}{heading}", layout::left("", label))));
    for (writer, name) in matrix.writers.iter().zip(&rows) {
        let mut line = Line::new(Tone::Plain, format!(" {}", layout::left(name, label)));
        for reader in &matrix.readers {
            let best = fastest > 0.0 && matrix.case(writer, reader).map(speed) == Some(fastest);
            let tone = if best { Tone::Bold } else { Tone::Plain };
            line = line.and(tone, format!("  {}", layout::right(&matrix.cell(writer, reader), width)));
        }
        lines.push(line);
    }
    lines
}

/// The matrix for an issue or a README.
pub(super) fn markdown(table: &Table) -> String {
    let Some(matrix) = Matrix::of(table) else { return String::new() };
    let columns = Matrix::names(&matrix.readers);
    let mut text = format!("\n| GB/s, writer ↓ reader → | {} |\n| --- |", columns.join(" | "));
    columns.iter().for_each(|_| text.push_str(" ---: |"));
    for (writer, name) in matrix.writers.iter().zip(Matrix::names(&matrix.writers)) {
        let cell = |reader: &&WorkerEnd| matrix.cell(writer, reader).trim_end().to_owned();
        let cells: Vec<String> = matrix.readers.iter().map(cell).collect();
        text.push_str(&format!("\n| {name} | {} |", cells.join(" | ")));
    }
    text + "\n"
}
