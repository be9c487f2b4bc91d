//! Every writer against every reader over one pipe: a row for each writer, a column for each reader.

use std::collections::HashMap;

use model::{CaseRecord, WorkerEnd, WorkerStart};

use super::{PlacedCases, end, worker};
use crate::case_figure::{estimated, speed};
use crate::interval::plus_minus;
use crate::layout::shortened;
use crate::lists::distinct;
use crate::numbers;
use crate::table::{ABSENT, Column, Table};

/// Width of a heading on a narrow terminal: that of a figure.
const HEADING_COLUMNS: usize = 7;

pub(crate) struct Matrix<'a> {
    pub(crate) writers: Vec<&'a WorkerEnd>,
    pub(crate) readers: Vec<&'a WorkerEnd>,
    cases: HashMap<(&'a WorkerEnd, &'a WorkerEnd), &'a CaseRecord>,
}

impl<'a> Matrix<'a> {
    /// `None` if no two programs were measured together.
    pub(crate) fn new(placed: &PlacedCases<'a>) -> Option<Self> {
        let met = || placed.started_by(WorkerStart::Harness).filter_map(|case| Some((worker(case)?, case)));
        // Of several cases of one pair the first is shown: it is inserted last.
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

    /// Names short enough for a column: the language alone, if there is only one variant of it.
    fn names(ends: &[&WorkerEnd]) -> Vec<String> {
        let alone = |one: &WorkerEnd| ends.iter().filter(|other| other.language == one.language).count() == 1;
        ends.iter().map(|one| if alone(one) { one.language.clone() } else { end(one) }).collect()
    }
}

/// The matrix in GB/s, each cell with its interval; the fastest cell is bold.
pub(super) fn table(placed: &PlacedCases) -> Option<Table> {
    let matrix = Matrix::new(placed)?;
    let fastest = matrix.cases.values().filter_map(|case| speed(case)).fold(0.0, f64::max);
    let title = "GB/s by writer (rows) and reader (columns), each pair over one pipe";
    let mut table = Table { title: title.to_owned(), ..Table::default() };
    table.add(Column::left(""), Matrix::names(&matrix.writers).into_iter().map(Some));
    for (at, (reader, name)) in matrix.readers.iter().zip(Matrix::names(&matrix.readers)).enumerate() {
        let case = |writer: &&WorkerEnd| matrix.case(writer, reader);
        let gb_per_s = |value: f64| numbers::fixed(value / 1e9, 2);
        let text = |case: &CaseRecord| {
            let found = estimated(case)?;
            Some(gb_per_s(found[0]) + &plus_minus(found, case.samples.len(), gb_per_s))
        };
        let cell = |writer| Some(case(writer).and_then(text).unwrap_or_else(|| ABSENT.to_owned()));
        let short = shortened(&name, HEADING_COLUMNS);
        table.add(Column::right(name).short(short), matrix.writers.iter().map(cell));
        for (row, writer) in table.rows.iter_mut().zip(&matrix.writers) {
            let is_fastest = case(writer).and_then(speed) == Some(fastest);
            row.best = row.best.or(is_fastest.then_some(at + 1));
        }
    }
    Some(table)
}
