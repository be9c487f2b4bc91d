//! Programs in other languages: the tables of `hosepipe bench --workers` and of `--matrix`, and what is said below them. In charts they are rows as
//! all others.

mod buffers;
mod matrix;
mod notes;
mod peers;
mod ranking;

use std::collections::BTreeSet;

use model::{BenchRecord, CaseRecord, Tasks, WorkerCase, WorkerEnd, WorkerStart};
pub(crate) use notes::{remarks, sentences};

use crate::document::{Block, Section, labelled};
use crate::estimate::{median_value, speed};
use crate::groups::{PLACED, groups};
use crate::lists::{distinct, grouped, joined};
use crate::reason::text;
use crate::table::Table;
use crate::unit::Unit;
use crate::value::Value;
use crate::{numbers, words};

/// Whether a record has cases of workers.
pub(crate) fn is_of_workers(record: &BenchRecord) -> bool {
    record.cases.iter().any(|case| case.worker.is_some())
}

/// Whether a case is one of a matrix: its two ends are two programs.
pub(crate) fn is_of_matrix(case: &CaseRecord) -> bool {
    worker(case).is_some_and(|worker| worker.start == WorkerStart::Harness)
}

/// The cases of workers whose ends were on the same CPUs: only they may be compared.
fn places(record: &BenchRecord) -> Vec<Vec<&CaseRecord>> {
    groups(record.cases.iter().filter(|case| case.worker.is_some()), |case| *case, PLACED)
}

/// The ends and their CPUs, in words.
fn ends(placed: &[&CaseRecord]) -> String {
    words::describe_tasks_and_cpus(Tasks::Processes, placed[0].placement, &placed[0].cpus)
}

/// The cases with figures in which a worker started its own child, the fastest first.
fn ranked<'a>(placed: &[&'a CaseRecord]) -> Vec<&'a CaseRecord> {
    let own = placed.iter().filter(|case| !is_of_matrix(case));
    let mut cases: Vec<(f64, &CaseRecord)> = own.filter_map(|case| Some((speed(case)?, *case))).collect();
    model::sort_by(&mut cases, |(one, _), (other, _)| other.total_cmp(one));
    cases.into_iter().map(|(_, case)| case).collect()
}

/// The tables of one placement after the other.
pub(crate) fn tables(record: &BenchRecord) -> Vec<Table> {
    if peers::is_of_peers(record) {
        return peers::tables(record);
    }
    let places = places(record);
    let of_place = |placed: &Vec<&CaseRecord>| {
        let mut tables: Vec<Table> =
            ranking::table(placed).into_iter().chain(matrix::table(placed)).collect();
        if let Some(first) = tables.first_mut().filter(|_| places.len() > 1) {
            first.title = joined([ends(placed).as_str(), &first.title]);
        }
        tables
    };
    places.iter().flat_map(of_place).collect()
}

/// The section of a page on a record's workers; `None` if it has none.
pub(crate) fn section(record: &BenchRecord, label: &str, number: usize) -> Option<Section> {
    let mut blocks = Vec::new();
    if peers::is_of_peers(record) {
        blocks.extend(peers::tables(record).into_iter().map(|table| Block::Table(table.texts())));
    } else {
        let places = places(record);
        for (place, placed) in places.iter().enumerate() {
            let placement = if places.len() > 1 { format!("; {}", ends(placed)) } else { String::new() };
            let title = format!("By language: time, CPU time and start-up{placement}");
            let ranking = ranking::table(placed).map(|table| Table { title, ..table.texts() });
            blocks.extend(ranking.map(Block::Table));
            let id = format!("matrix-{number}-{place}");
            blocks.extend(matrix::chart(record, placed, id, &placement).map(Block::Chart));
        }
    }
    let mut known = BTreeSet::new();
    let legends = blocks.iter().filter_map(|block| match block {
        Block::Table(table) => table.legend(&mut known, |_| true),
        _ => None,
    });
    let lead = "The same bytes from one process to another, by programs in many languages; the idiomatic way and the fastest way of a language \
                are two rows. Each trial is a fresh launch, timed after its warm-up.";
    let lead = [lead.to_owned()].into_iter().chain(sentences(record)).chain(remarks(record)).chain(legends);
    let (title, lead) = (labelled("Languages", label), lead.collect());
    (!blocks.is_empty()).then(|| Section {
        id: format!("languages-{number}"),
        title,
        lead,
        code: None,
        blocks,
    })
}

/// The machine and what all rows have in common.
pub(crate) fn heading(record: &BenchRecord) -> Vec<String> {
    let sizes =
        distinct(record.cases.iter().filter(|case| case.worker.is_some()).map(|case| case.block_bytes));
    let blocks = match sizes.as_slice() {
        [one] => format!(" in {} blocks", numbers::size(*one)),
        _ => String::new(),
    };
    let warmup = record.cases.iter().filter_map(worker).map(|worker| worker.warmup_bytes).max().unwrap_or(0);
    let trials = words::count(record.settings.trials as usize, "trial");
    let mut pieces = vec![
        words::machine(&record.head.host),
        format!("bytes 0 to 255{blocks}, checked by XOR"),
        format!("{trials}, fresh processes each, interleaved"),
    ];
    if warmup > 0 {
        pieces.push(format!("after up to {} of warm-up", numbers::size(warmup)));
    }
    if let ([placed], false) = (places(record).as_slice(), peers::is_of_peers(record)) {
        pieces.push(ends(placed));
    }
    pieces
}

fn worker(case: &CaseRecord) -> Option<&WorkerCase> {
    case.worker.as_ref()
}

fn start_up(case: &CaseRecord) -> Option<Value> {
    median_value(case, |sample| Some(sample.setup_ns as f64), Unit::Ns)
}

/// The name of a row: "C++ tuned", or for two programs "C tuned → Java tuned".
pub(crate) fn title(worker: &WorkerCase) -> String {
    match worker.start {
        WorkerStart::Pair => end(&worker.writer),
        WorkerStart::Harness => format!("{} → {}", end(&worker.writer), end(&worker.reader)),
    }
}

fn end(end: &WorkerEnd) -> String {
    match end.variant.as_str() {
        "program" => end.language.clone(),
        variant => format!("{} {variant}", end.language),
    }
}

/// The reasons why cases have no figures, each behind the first case that it applies to.
pub(crate) fn failures(record: &BenchRecord) -> Vec<String> {
    let failed = |case: &CaseRecord| Some((text(case.error.as_ref()?), title(worker(case)?)));
    let reasons = grouped(record.cases.iter().filter_map(failed));
    reasons.into_iter().map(|(reason, titles)| format!("{}: {reason}", titles[0])).collect()
}
