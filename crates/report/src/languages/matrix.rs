//! Every writer against every reader over one pipe: a row for each writer, a column for each reader.

use std::collections::HashMap;

use model::{BenchRecord, CaseRecord, WorkerEnd};

use super::{end, is_of_matrix, worker};
use crate::chart::{Chart, ChartData, Heat, Unit as ChartUnit};
use crate::estimate::{estimate_cell, estimated, speed};
use crate::interval::Estimated;
use crate::layout::shortened;
use crate::lists::distinct;
use crate::sheet::{Sheet, col};
use crate::table::Table;
use crate::unit::Unit;
use crate::value::Value;

/// Width of a heading on a narrow terminal: that of a figure.
const HEADING_COLUMNS: usize = 7;

struct Matrix<'a> {
    writers: Vec<&'a WorkerEnd>,
    readers: Vec<&'a WorkerEnd>,
    cases: HashMap<(&'a WorkerEnd, &'a WorkerEnd), &'a CaseRecord>,
}

impl<'a> Matrix<'a> {
    /// `None` if no two programs were measured together.
    fn new(placed: &[&'a CaseRecord]) -> Option<Self> {
        let pairs = || placed.iter().copied().filter(|case| is_of_matrix(case));
        let met = || pairs().filter_map(|case| Some((worker(case)?, case)));
        // Of several cases of one pair the first is shown: it is inserted last.
        let pairs: Vec<_> = met().map(|(worker, case)| ((&worker.writer, &worker.reader), case)).collect();
        (!pairs.is_empty()).then(|| Self {
            writers: distinct(met().map(|(worker, _)| &worker.writer)),
            readers: distinct(met().map(|(worker, _)| &worker.reader)),
            cases: pairs.into_iter().rev().collect(),
        })
    }

    fn case(&self, writer: &WorkerEnd, reader: &WorkerEnd) -> Option<&'a CaseRecord> {
        self.cases.get(&(writer, reader)).copied()
    }

    /// Names short enough for a column: the language alone, if there is only one variant of it.
    fn names(ends: &[&WorkerEnd]) -> Vec<String> {
        let alone = |one: &WorkerEnd| ends.iter().filter(|other| other.language == one.language).count() == 1;
        ends.iter().map(|one| if alone(one) { one.language.clone() } else { end(one) }).collect()
    }
}

/// The matrix in GB/s, each cell with its interval; the fastest cell is bold.
pub(super) fn table(placed: &[&CaseRecord]) -> Option<Table> {
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

/// The matrix on a page; `placement` is what distinguishes it from others.
pub(super) fn chart(
    record: &BenchRecord,
    placed: &[&CaseRecord],
    id: String,
    placement: &str,
) -> Option<Chart> {
    let matrix = Matrix::new(placed)?;
    let row = |writer: &&WorkerEnd| {
        let cases = matrix.readers.iter().map(|reader| matrix.case(writer, reader));
        let cell = |case: &CaseRecord| estimate_cell(case, record.settings.interrupted);
        cases.map(|case| case.map(cell).unwrap_or_default()).collect()
    };
    let names = |ends: &[&WorkerEnd]| ends.iter().map(|end| end.label()).collect();
    Some(Chart {
        id,
        title: "Every writer against every reader".to_owned(),
        caption: format!(
            "Hosepipe started both programs over a pipe of its own. A pair is as fast as the slower of the two, so that a slow \
             writer shows as a row and a slow reader as a column{placement}."
        ),
        data: ChartData::Heat(Heat {
            rows_label: "writer".to_owned(),
            columns_label: "reader".to_owned(),
            unit: ChartUnit::BytesPerS,
            rows: names(&matrix.writers),
            columns: names(&matrix.readers),
            cells: matrix.writers.iter().map(row).collect(),
        }),
    })
}
