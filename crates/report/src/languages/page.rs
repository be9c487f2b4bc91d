//! One workload in many languages: the ranking, and every writer against every reader as a matrix.

use model::{BenchRecord, CaseRecord, WorkerCase, WorkerEnd, WorkerStart};
use stats::figure;

use super::matrix::Matrix;
use super::{PlacedCases, findings, peers};
use crate::case_figure::figure_cell;
use crate::document::{Block, Section, labelled};
use crate::figure::{Axis, Bar, BarGroup, Bars, Chart, Figure, Heat, Scale, SeriesStyle, Unit};
use crate::table::Table;

/// The section of a record's workers; `None` where it has none.
pub(crate) fn section(record: &BenchRecord, label: &str, number: usize) -> Option<Section> {
    let is_of_peers = peers::is_of_peers(record);
    let tables = if is_of_peers { Vec::new() } else { PlacedCases::all(record) };
    let mut blocks: Vec<Block> = ranking(record, &tables, number).map(Block::Figure).into_iter().collect();
    if is_of_peers {
        blocks.extend(peers::tables(record).into_iter().map(|table| Block::Table(table.texts())));
    }
    for (place, table) in tables.iter().enumerate() {
        // What sets it apart, where there are several.
        let apart = if tables.len() > 1 { format!("; {}", table.ends()) } else { String::new() };
        if let Some(ranking) = table.ranking() {
            let title = format!("By language: time, system calls, CPU time and start-up{apart}");
            blocks.push(Block::Table(Table { title, ..ranking.texts() }));
        }
        let id = if place == 0 { format!("matrix-{number}") } else { format!("matrix-{number}-{place}") };
        blocks.extend(matrix(record, table, id, &apart).map(Block::Figure));
    }
    let mut lead = vec![
        "The same bytes from one process to another, by programs in many languages; the idiomatic way and the fastest way of a \
         language are two rows. Each trial is a fresh launch, timed after its warm-up."
            .to_owned(),
    ];
    lead.extend(findings(record));
    (!blocks.is_empty()).then(|| Section {
        id: format!("languages-{number}"),
        title: labelled("Languages", label),
        lead,
        code: None,
        blocks,
    })
}

/// The cases of workers that were started in one way, with what is known of the workers.
fn cases<'a>(table: &PlacedCases<'a>, start: WorkerStart) -> Vec<(&'a CaseRecord, &'a WorkerCase)> {
    table.started_by(start).filter_map(|case| Some((case, case.worker.as_ref()?))).collect()
}

fn ranking(record: &BenchRecord, tables: &[PlacedCases], number: usize) -> Option<Figure> {
    let speed = |case: &CaseRecord| case.throughput.as_ref().map_or(-1.0, |found| found.median_bytes_per_s);
    let group = |table: &PlacedCases| {
        let mut cases = cases(table, WorkerStart::Pair);
        cases.sort_by(|(a, _), (b, _)| speed(b).total_cmp(&speed(a)));
        let bars = cases.iter().map(|(case, worker)| bar(record, case, worker)).collect();
        BarGroup { name: if tables.len() > 1 { table.ends() } else { String::new() }, bars }
    };
    let groups: Vec<BarGroup> = tables.iter().map(group).filter(|group| !group.bars.is_empty()).collect();
    (!groups.is_empty()).then(|| Figure {
        id: format!("by-language-{number}"),
        title: "Throughput by language".to_owned(),
        caption: "Each program started its own child and sent to it. Longer is better; the mark across is the 95 % interval of \
                  the median, of fewer than six launches their whole range, each speck below one launch."
            .to_owned(),
        chart: Chart::Bars(Bars {
            axis: Axis { label: "throughput".to_owned(), unit: Unit::BytesPerS, scale: Scale::Linear },
            groups,
            references: Vec::new(),
        }),
    })
}

fn bar(record: &BenchRecord, case: &CaseRecord, worker: &WorkerCase) -> Bar {
    let samples = case.samples.iter().filter_map(figure::throughput_bytes_per_s).collect();
    let mut cell = figure_cell(case, record.settings.interrupted);
    if cell.value.is_some() {
        cell.note = worker.writer.toolchain.clone().unwrap_or_default();
    }
    Bar { name: worker.writer.label(), style: SeriesStyle::Measured, cell, samples }
}

fn matrix(record: &BenchRecord, table: &PlacedCases, id: String, apart: &str) -> Option<Figure> {
    let matrix = Matrix::new(table)?;
    let row = |writer: &&WorkerEnd| {
        let met = matrix.readers.iter().map(|reader| matrix.case(writer, reader));
        met.map(|case| case.map(|case| figure_cell(case, record.settings.interrupted)).unwrap_or_default())
            .collect()
    };
    let names = |ends: &[&WorkerEnd]| ends.iter().map(|end| end.label()).collect();
    Some(Figure {
        id,
        title: "Every writer against every reader".to_owned(),
        caption: format!(
            "Hosepipe started both programs over a pipe of its own. A pair is as fast as the slower of the two, so that a slow \
             writer shows as a row and a slow reader as a column{apart}."
        ),
        chart: Chart::Heat(Heat {
            rows_label: "writer".to_owned(),
            columns_label: "reader".to_owned(),
            unit: Unit::BytesPerS,
            rows: names(&matrix.writers),
            columns: names(&matrix.readers),
            cells: matrix.writers.iter().map(row).collect(),
        }),
    })
}
