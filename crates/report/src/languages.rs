//! One workload in many languages: the ranked tables of `hosepipe bench --workers`, and of `--matrix`.

pub(crate) mod matrix;
mod notes;
mod ranking;
mod sentences;

use model::{BenchRecord, CaseRecord, Placement, Tasks, WorkerCase, WorkerEnd, WorkerStart};

use crate::layout::{self, Line, Tone};
use crate::lists::grouped;
use crate::reason::text;
use crate::table::Style;
use crate::{numbers, words};

/// What every row is compared with, where it was measured.
const YARDSTICK: &str = "c:tuned";

/// The cases whose ends sat in the same seats: only they may be compared.
pub(crate) struct Table<'a> {
    placement: Placement,
    cpus: &'a [u32],
    cases: Vec<&'a CaseRecord>,
}

impl<'a> Table<'a> {
    /// All tables of a record, in its order.
    pub(crate) fn all(record: &'a BenchRecord) -> Vec<Self> {
        let mut tables: Vec<Self> = Vec::new();
        for case in record.cases.iter().filter(|case| case.worker.is_some()) {
            let (placement, cpus) = (case.placement, case.cpus.as_slice());
            match tables.iter_mut().find(|table| (table.placement, table.cpus) == (placement, cpus)) {
                Some(table) => table.cases.push(case),
                None => tables.push(Self { placement, cpus, cases: vec![case] }),
            }
        }
        tables
    }

    /// Who held the ends, and where.
    pub(crate) fn ends(&self) -> String {
        words::ends(Tasks::Processes, self.placement, self.cpus)
    }

    /// The cases in which a worker started its own child, fastest first; those without figures are not among them.
    fn ranked(&self) -> Vec<&'a CaseRecord> {
        let mut cases: Vec<&CaseRecord> =
            self.started_by(WorkerStart::Pair).filter(|case| speed(case) > 0.0).collect();
        cases.sort_by(|one, other| speed(other).total_cmp(&speed(one)));
        cases
    }

    /// The cases whose reader was started in one way.
    pub(crate) fn started_by(&self, start: WorkerStart) -> impl Iterator<Item = &'a CaseRecord> {
        let cases = self.cases.iter().copied();
        cases.filter(move |case| worker(case).is_some_and(|worker| worker.start == start))
    }

    /// The ranking with all its columns but the bars: headings and rows; `None` where no worker was measured by itself.
    pub(crate) fn texts(&self) -> Option<(Vec<&'static str>, Vec<Vec<String>>)> {
        Some(ranking::texts(self)).filter(|(_, rows)| !rows.is_empty())
    }
}

/// Whether a record is one of workers.
pub(crate) fn is_of_workers(record: &BenchRecord) -> bool {
    record.cases.iter().any(|case| case.worker.is_some())
}

/// Renders the tables and what they say.
pub(crate) fn render(record: &BenchRecord, style: &Style) -> String {
    let mut lines: Vec<Line> = layout::wrap(&heading(record), style.width)
        .into_iter()
        .map(|line| Line::new(Tone::Dim, line))
        .collect();
    if record.settings.interrupted {
        lines.push(Line::new(Tone::Bold, "Stopped early: what stands here is what was finished."));
    }
    let tables = Table::all(record);
    for table in &tables {
        if tables.len() > 1 {
            lines.extend([Line::default(), Line::new(Tone::Bold, table.ends())]);
        }
        if !table.ranked().is_empty() {
            lines.push(Line::default());
            lines.extend(ranking::render(table, style));
        }
        lines.extend(matrix::render(table, style));
    }
    for note in notes::all(record) {
        lines.extend(hanging(&note, style));
    }
    let failures = failures(record);
    if !failures.is_empty() {
        lines.push(Line::default());
    }
    for (worker, reason) in failures {
        lines.extend(hanging(&format!("{worker}: {reason}"), style));
    }
    for sentence in sentences::all(record) {
        lines.push(Line::default());
        lines.extend(
            layout::wrap(&sentence, style.width).into_iter().map(|line| Line::new(Tone::Plain, line)),
        );
    }
    layout::print(&lines, style.color, style.unicode)
}

/// The tables for an issue or a README.
pub(crate) fn markdown(record: &BenchRecord) -> String {
    let mut text = format!("{}\n", heading(record));
    let tables = Table::all(record);
    for table in &tables {
        if tables.len() > 1 {
            text.push_str(&format!("\n{}\n", table.ends()));
        }
        if let Some((titles, rows)) = table.texts() {
            text.push_str(&format!("\n| {} |\n| --- |", titles.join(" | ")));
            titles[1..].iter().for_each(|_| text.push_str(" ---: |"));
            rows.iter().for_each(|row| text.push_str(&format!("\n| {} |", row.join(" | "))));
            text.push('\n');
        }
        text.push_str(&matrix::markdown(table));
    }
    for note in notes::all(record) {
        text.push_str(&format!("\n- {note}"));
    }
    for (worker, reason) in failures(record) {
        text.push_str(&format!("\n- {worker}: {}", reason.replace('\n', " ")));
    }
    for sentence in sentences::all(record) {
        text.push_str(&format!("\n\n{sentence}"));
    }
    text.trim_end().to_owned() + "\n"
}

/// What the tables say in words, and what a reader must know of them.
pub(crate) fn findings(record: &BenchRecord) -> Vec<String> {
    sentences::all(record).into_iter().chain(notes::all(record)).collect()
}

/// The machine and what all rows have in common.
fn heading(record: &BenchRecord) -> String {
    let blocks = record.cases.iter().find(|case| case.worker.is_some()).map_or(0, |case| case.block_bytes);
    let warmup = record.cases.iter().filter_map(worker).map(|worker| worker.warmup_bytes).max().unwrap_or(0);
    let mut pieces = vec![
        words::machine(&record.host),
        format!(
            "bytes 0 to 255 in {} blocks from writer to reader, the receiver's XOR checked",
            numbers::size(blocks)
        ),
        format!(
            "{}, fresh processes each, interleaved",
            words::count(record.settings.trials as usize, "trial")
        ),
    ];
    if warmup > 0 {
        pieces.push(format!("after up to {} of warm-up", numbers::size(warmup)));
    }
    if let [table] = Table::all(record).as_slice() {
        pieces.push(table.ends());
    }
    pieces.join(" · ")
}

fn worker(case: &CaseRecord) -> Option<&WorkerCase> {
    case.worker.as_ref()
}

/// Median bytes per second; 0 where nothing was measured.
fn speed(case: &CaseRecord) -> f64 {
    case.throughput.as_ref().map_or(0.0, |throughput| throughput.median_bytes_per_s)
}

/// Whether the worker started its own child.
fn is_pair(case: &CaseRecord) -> bool {
    worker(case).is_some_and(|worker| worker.start == WorkerStart::Pair)
}

fn is_yardstick(case: &CaseRecord) -> bool {
    worker(case).is_some_and(|worker| worker.writer.label() == YARDSTICK)
}

/// What a row is called: "C++ tuned", and "C tuned → Java tuned" where two programs met.
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

/// Every row without figures, with its reason; what several cells of a matrix share is said once.
fn failures(record: &BenchRecord) -> Vec<(String, String)> {
    let failed = |case: &CaseRecord| Some((text(case.error.as_ref()?), title(worker(case)?)));
    let said = grouped(record.cases.iter().filter_map(failed));
    said.into_iter().filter_map(|(reason, workers)| Some((workers.into_iter().next()?, reason))).collect()
}

/// Lines of which all but the first are indented.
fn hanging(text: &str, style: &Style) -> Vec<Line> {
    text.lines()
        .flat_map(|line| layout::wrap(line, style.width.saturating_sub(3)))
        .enumerate()
        .map(|(number, line)| {
            Line::new(Tone::Dim, format!("{}{line}", if number == 0 { " " } else { "   " }))
        })
        .collect()
}
