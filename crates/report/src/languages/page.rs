//! One workload in many languages: the ranking, and every writer against every reader as a matrix.

use std::collections::BTreeSet;

use model::{BenchRecord, CaseRecord, WorkerEnd, WorkerStart, Workload};

use super::matrix::Matrix;
use super::{PlacedCases, findings, peers, ranking};
use crate::chart::{BarGroup, Bars, Chart, ChartData, Heat, Unit};
use crate::document::{Block, Section, labelled};
use crate::estimate::{estimate_bar, estimate_cell, quantity, speed};
use crate::table::Table;

/// The section of a record's workers; `None` if it has none.
pub(crate) fn section(record: &BenchRecord, label: &str, number: usize) -> Option<Section> {
    let is_of_peers = peers::is_of_peers(record);
    let tables = if is_of_peers { Vec::new() } else { PlacedCases::all(record) };
    let mut blocks: Vec<Block> = throughput(record, &tables, number).map(Block::Chart).into_iter().collect();
    if is_of_peers {
        blocks.extend(peers::tables(record).into_iter().map(|table| Block::Table(table.texts())));
    }
    for (place, table) in tables.iter().enumerate() {
        let apart = if tables.len() > 1 { format!("; {}", table.ends()) } else { String::new() };
        if let Some(ranking) = ranking::table(table) {
            let title = format!("By language: time, system calls, CPU time and start-up{apart}");
            blocks.push(Block::Table(Table { title, ..ranking.texts() }));
        }
        let id = if place == 0 { format!("matrix-{number}") } else { format!("matrix-{number}-{place}") };
        blocks.extend(matrix(record, table, id, &apart).map(Block::Chart));
    }
    let mut lead = vec![
        "The same bytes from one process to another, by programs in many languages; the idiomatic way and the fastest way of a \
         language are two rows. Each trial is a fresh launch, timed after its warm-up."
            .to_owned(),
    ];
    lead.extend(findings(record));
    let mut known = BTreeSet::new();
    lead.extend(blocks.iter().filter_map(|block| match block {
        Block::Table(table) => table.legend(&mut known, |_| true),
        _ => None,
    }));
    (!blocks.is_empty()).then(|| Section {
        id: format!("languages-{number}"),
        title: labelled("Languages", label),
        lead,
        code: None,
        blocks,
    })
}

fn throughput(record: &BenchRecord, tables: &[PlacedCases], number: usize) -> Option<Chart> {
    let group = |table: &PlacedCases| {
        let mut cases: Vec<&CaseRecord> = table.started_by(WorkerStart::Pair).collect();
        let rank = |case: &CaseRecord| speed(case).unwrap_or(f64::NEG_INFINITY);
        model::sort_by(&mut cases, |a, b| rank(b).total_cmp(&rank(a)));
        let bars = cases.into_iter().filter_map(|case| {
            let writer = &case.worker.as_ref()?.writer;
            let toolchain = writer.toolchain.clone().unwrap_or_default();
            Some(estimate_bar(writer.label(), case, record.settings.interrupted, toolchain))
        });
        let bars = bars.collect();
        BarGroup { name: if tables.len() > 1 { table.ends() } else { String::new() }, bars }
    };
    let groups: Vec<BarGroup> = tables.iter().map(group).filter(|group| !group.bars.is_empty()).collect();
    (!groups.is_empty()).then(|| Chart {
        id: format!("by-language-{number}"),
        title: "Throughput by language".to_owned(),
        caption: "Each program started its own child and sent to it. Longer is better; the mark across is the 95 % interval of \
                  the median, or the range of all launches if there are fewer than six; each dot below is one launch."
            .to_owned(),
        data: ChartData::Bars(Bars { axis: quantity(Workload::Stream).axis(), groups, references: Vec::new() }),
    })
}

fn matrix(record: &BenchRecord, table: &PlacedCases, id: String, apart: &str) -> Option<Chart> {
    let matrix = Matrix::new(table)?;
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
             writer shows as a row and a slow reader as a column{apart}."
        ),
        data: ChartData::Heat(Heat {
            rows_label: "writer".to_owned(),
            columns_label: "reader".to_owned(),
            unit: Unit::BytesPerS,
            rows: names(&matrix.writers),
            columns: names(&matrix.readers),
            cells: matrix.writers.iter().map(row).collect(),
        }),
    })
}
