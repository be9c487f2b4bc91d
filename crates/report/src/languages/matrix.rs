//! Every writer against every reader over one pipe: a row for each writer, a column for each reader.

use std::collections::HashMap;

use model::{CaseRecord, WorkerEnd, WorkerStart};

use super::{PlacedCases, end, worker};
use crate::estimate::{estimated, speed};
use crate::interval::Estimated;
use crate::layout::shortened;
use crate::lists::distinct;
use crate::sheet::{Sheet, col};
use crate::table::Table;
use crate::unit::Unit;
use crate::value::Value;

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
    let rows: Vec<_> = matrix.writers.iter().zip(Matrix::names(&matrix.writers)).collect();
    let mut sheet = Sheet::new(&rows);
    sheet.add("", |(_, name)| Some(name.into()));
    for (reader, name) in matrix.readers.iter().zip(Matrix::names(&matrix.readers)) {
        let short = shortened(&name, HEADING_COLUMNS);
        sheet.add(col(name).short(short), |(writer, _)| {
            let case = matrix.case(writer, reader)?;
            let gb_per_s = estimated(case)?.map(|bytes_per_s| bytes_per_s / 1e9);
            Some(Value::Estimate(Estimated::new(Unit::Decimals(2), gb_per_s, case.samples.len())))
        });
    }
    let mut table = sheet.table();
    table.title = "GB/s by writer (rows) and reader (columns), each pair over one pipe".to_owned();
    for (row, writer) in table.rows.iter_mut().zip(&matrix.writers) {
        let is_fastest = |reader| matrix.case(writer, reader).and_then(speed) == Some(fastest);
        row.best = matrix.readers.iter().position(|reader| is_fastest(reader)).map(|at| at + 1);
    }
    Some(table)
}
