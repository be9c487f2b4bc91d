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
    /// A row for each writer, in it a cell for each reader.
    rows: Vec<Vec<Option<&'a CaseRecord>>>,
}

impl<'a> Matrix<'a> {
    /// `None` if no two programs were measured together.
    fn new(placed: &[&'a CaseRecord]) -> Option<Self> {
        let placed = placed.iter().copied().filter(|case| is_of_matrix(case));
        let pairs: Vec<_> = placed.filter_map(|case| Some((worker(case)?, case))).collect();
        let writers = distinct(pairs.iter().map(|(pair, _)| &pair.writer));
        let readers = distinct(pairs.iter().map(|(pair, _)| &pair.reader));
        // Of several cases of one pair the first is shown: it is inserted last.
        let cases: HashMap<_, _> =
            pairs.iter().rev().map(|(pair, case)| ((&pair.writer, &pair.reader), *case)).collect();
        let row = |writer: &&'a WorkerEnd| {
            readers.iter().map(|reader| cases.get(&(*writer, *reader)).copied()).collect()
        };
        let rows = writers.iter().map(row).collect();
        (!pairs.is_empty()).then_some(Self { writers, readers, rows })
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
    let fastest = matrix.rows.iter().flatten().flatten().filter_map(|case| speed(case)).fold(0.0, f64::max);
    let rows: Vec<_> = Matrix::names(&matrix.writers).into_iter().zip(&matrix.rows).collect();
    let mut sheet = Sheet::new(&rows);
    sheet.add("", |(name, _)| Some(name.into()));
    for (at, name) in Matrix::names(&matrix.readers).into_iter().enumerate() {
        let short = shortened(&name, HEADING_COLUMNS);
        sheet.add(col(name).short(short), |(_, cases)| {
            let case = cases[at]?;
            let gb_per_s = estimated(case)?.map(|bytes_per_s| bytes_per_s / 1e9);
            Some(Value::Estimate(Estimated::new(Unit::Decimals(2), gb_per_s, case.samples.len())))
        });
    }
    let mut table = sheet.table();
    table.title = "GB/s by writer (rows) and reader (columns), each pair over one pipe".to_owned();
    for (row, cases) in table.rows.iter_mut().zip(&matrix.rows) {
        row.best = cases.iter().position(|case| case.and_then(speed) == Some(fastest)).map(|at| at + 1);
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
    let cell = |case: &CaseRecord| estimate_cell(case, record.settings.interrupted);
    let row = |cases: &Vec<Option<&CaseRecord>>| {
        cases.iter().map(|case| case.map(cell).unwrap_or_default()).collect()
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
            cells: matrix.rows.iter().map(row).collect(),
        }),
    })
}
