//! One workload in many languages: the tables of `hosepipe bench --workers` and of `--matrix`.

mod buffers;
mod matrix;
mod notes;
pub(crate) mod page;
mod peers;
mod ranking;

use model::{BenchRecord, CaseRecord, Tasks, WorkerCase, WorkerEnd, WorkerStart};

use stats::figure;

use crate::document::Block;
use crate::estimate::speed;
use crate::groups::{PLACED, groups};
use crate::lists::{distinct, grouped};
use crate::reason::text;
use crate::unit::Unit;
use crate::value::Value;
use crate::{numbers, remarks, words};

/// The cases whose ends were on the same CPUs: only they may be compared.
pub(crate) struct PlacedCases<'a>(Vec<&'a CaseRecord>);

impl<'a> PlacedCases<'a> {
    /// All placements of a record, in its order.
    pub(crate) fn all(record: &'a BenchRecord) -> Vec<Self> {
        let cases = record.cases.iter().filter(|case| case.worker.is_some());
        groups(cases, |case| *case, PLACED).into_iter().map(Self).collect()
    }

    /// The ends and their CPUs, in words.
    pub(crate) fn ends(&self) -> String {
        words::describe_tasks_and_cpus(Tasks::Processes, self.0[0].placement, &self.0[0].cpus)
    }

    /// The cases with figures in which a worker started its own child, the fastest first.
    fn ranked(&self) -> Vec<&'a CaseRecord> {
        let with_speed = self.started_by(WorkerStart::Pair).filter_map(|case| Some((speed(case)?, case)));
        let mut cases: Vec<(f64, &CaseRecord)> = with_speed.collect();
        model::sort_by(&mut cases, |(one, _), (other, _)| other.total_cmp(one));
        cases.into_iter().map(|(_, case)| case).collect()
    }

    /// The cases whose reader was started in one way.
    pub(crate) fn started_by(&self, start: WorkerStart) -> impl Iterator<Item = &'a CaseRecord> {
        let cases = self.0.iter().copied();
        cases.filter(move |case| worker(case).is_some_and(|worker| worker.start == start))
    }
}

/// Whether a record has cases of workers.
pub(crate) fn is_of_workers(record: &BenchRecord) -> bool {
    record.cases.iter().any(|case| case.worker.is_some())
}

/// The tables, and sentences on them.
pub(crate) fn blocks(record: &BenchRecord) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(heading(record))];
    if record.settings.interrupted {
        let stopped = words::stopped_early(record.settings.stopped_by);
        blocks.push(Block::Notice(words::only_finished(stopped, "trials")));
    }
    let places = if peers::is_of_peers(record) { Vec::new() } else { PlacedCases::all(record) };
    if places.is_empty() {
        blocks.extend(peers::tables(record).into_iter().map(Block::Table));
    }
    for placed in &places {
        if places.len() > 1 {
            blocks.push(Block::Title(placed.ends()));
        }
        blocks.extend(ranking::table(placed).into_iter().chain(matrix::table(placed)).map(Block::Table));
    }
    blocks.extend(failures(record).into_iter().map(Block::Note));
    blocks.extend(remarks::interval_legend(record).map(Block::Note));
    blocks.push(Block::Remarks(findings(record)));
    blocks
}

/// The sentences and remarks under the tables.
pub(crate) fn findings(record: &BenchRecord) -> Vec<String> {
    if peers::is_of_peers(record) {
        return peers::notes(record);
    }
    let sentences = notes::idiomatic_costs(record).into_iter();
    sentences.chain(buffers::slow(record)).chain(notes::remarks(record)).collect()
}

/// The machine and what all rows have in common.
fn heading(record: &BenchRecord) -> Vec<String> {
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
    if let ([placed], false) = (PlacedCases::all(record).as_slice(), peers::is_of_peers(record)) {
        pieces.push(placed.ends());
    }
    pieces
}

fn worker(case: &CaseRecord) -> Option<&WorkerCase> {
    case.worker.as_ref()
}

fn start_up(case: &CaseRecord) -> Option<Value> {
    figure::median_of(case, |sample| Some(sample.setup_ns as f64)).map(|ns| Unit::Ns.of(ns))
}

/// The name of a row: "C++ tuned", or for two programs "C tuned → Java tuned".
fn title(worker: &WorkerCase) -> String {
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
fn failures(record: &BenchRecord) -> Vec<String> {
    let failed = |case: &CaseRecord| Some((text(case.error.as_ref()?), title(worker(case)?)));
    let reasons = grouped(record.cases.iter().filter_map(failed));
    reasons.into_iter().map(|(reason, titles)| format!("{}: {reason}", titles[0])).collect()
}
