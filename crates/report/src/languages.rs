//! One workload in many languages: the ranked table of `hosepipe bench --workers`, and of `--matrix`.

pub(crate) mod matrix;
mod sentences;

use model::{BenchRecord, CaseRecord, SystemCalls, WorkerCase, WorkerEnd, WorkerStart};
use stats::{Ratio, estimate, figure, paired_ratio};

use crate::columns::{ABSENT, noise_mark};
use crate::grid::{Heading, lay_out};
use crate::layout::{self, Line, Tone};
use crate::lists::grouped;
use crate::reason::text;
use crate::table::Style;
use crate::{numbers, words};

/// Width of the longest bar.
const BAR_COLUMNS: usize = 12;
/// What every row is compared with, where it was measured.
const YARDSTICK: &str = "c:tuned";

const HEADINGS: &[Heading] = &[
    Heading::left("worker"),
    Heading::right("throughput"),
    Heading::left(""),
    Heading::right("±95 %"),
    Heading::right("ms/GB, mean ± sd"),
    Heading::right("× C"),
    Heading::right("calls/MiB"),
    Heading::right("CPU s/GB"),
    Heading::right("start-up"),
];
const BAR: usize = 2;
const SPREAD: usize = 3;
const MEAN: usize = 4;
const CPU: usize = 7;
const START_UP: usize = 8;
/// Which columns go first where room is short.
const DISPENSABLE: [usize; 5] = [BAR, CPU, MEAN, START_UP, SPREAD];

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
    let ranked = ranked(record);
    if !ranked.is_empty() {
        lines.push(Line::default());
        lines.extend(ranking(record, &ranked, style));
    }
    lines.extend(matrix::render(record, style));
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
    let ranked = ranked(record);
    if !ranked.is_empty() {
        text.push_str("\n| worker |");
        let titles = || (1..HEADINGS.len()).filter(|column| *column != BAR);
        titles().for_each(|column| text.push_str(&format!(" {} |", HEADINGS[column].title)));
        text.push_str("\n| --- |");
        titles().for_each(|_| text.push_str(" ---: |"));
        for case in &ranked {
            let cells = cells(record, case, 1.0);
            text.push_str(&format!("\n| {} |", cells[0]));
            titles().for_each(|column| text.push_str(&format!(" {} |", cells[column])));
        }
        text.push('\n');
    }
    text.push_str(&matrix::markdown(record));
    for (worker, reason) in failures(record) {
        text.push_str(&format!("\n- {worker}: {}", reason.replace('\n', " ")));
    }
    for sentence in sentences::all(record) {
        text.push_str(&format!("\n\n{sentence}"));
    }
    text.trim_end().to_owned() + "\n"
}

/// The ranking with all its columns but the bars: headings and rows; `None` where no worker was measured by itself.
pub(crate) fn table(record: &BenchRecord) -> Option<(Vec<&'static str>, Vec<Vec<String>>)> {
    let kept = |column: &usize| *column != BAR;
    let titles = (0..HEADINGS.len()).filter(kept).map(|column| HEADINGS[column].title).collect();
    let row = |case: &&CaseRecord| {
        let cells = cells(record, case, 1.0);
        (0..cells.len()).filter(kept).map(|column| cells[column].clone()).collect()
    };
    let rows: Vec<Vec<String>> = ranked(record).iter().map(row).collect();
    (!rows.is_empty()).then_some((titles, rows))
}

/// What the table says in words.
pub(crate) fn findings(record: &BenchRecord) -> Vec<String> {
    sentences::all(record)
}

/// The machine and what all rows have in common.
fn heading(record: &BenchRecord) -> String {
    let blocks = record.cases.iter().find(|case| case.worker.is_some()).map_or(0, |case| case.block_bytes);
    let warmup = record.cases.iter().filter_map(worker).map(|worker| worker.warmup_bytes).max().unwrap_or(0);
    let mut pieces = vec![
        words::machine(&record.host),
        format!(
            "bytes 0 to 255 in {} blocks through one pipe, the receiver's XOR checked",
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
    pieces.push("placed by the scheduler".to_owned());
    pieces.join(" · ")
}

/// The cases in which a worker started its own child, fastest first; those without figures are not among them.
fn ranked(record: &BenchRecord) -> Vec<&CaseRecord> {
    let mut cases: Vec<&CaseRecord> =
        cases(record, WorkerStart::Pair).filter(|case| speed(case) > 0.0).collect();
    cases.sort_by(|one, other| speed(other).total_cmp(&speed(one)));
    cases
}

fn cases(record: &BenchRecord, start: WorkerStart) -> impl Iterator<Item = &CaseRecord> {
    record.cases.iter().filter(move |case| worker(case).is_some_and(|worker| worker.start == start))
}

fn worker(case: &CaseRecord) -> Option<&WorkerCase> {
    case.worker.as_ref()
}

/// Median bytes per second; 0 where nothing was measured.
fn speed(case: &CaseRecord) -> f64 {
    case.throughput.as_ref().map_or(0.0, |throughput| throughput.median_bytes_per_s)
}

fn ranking(record: &BenchRecord, ranked: &[&CaseRecord], style: &Style) -> Vec<Line> {
    let best = speed(ranked[0]);
    let mut rows: Vec<(Tone, Vec<String>)> = ranked
        .iter()
        .enumerate()
        .map(|(place, case)| {
            let tone = if place == 0 && ranked.len() > 1 { Tone::Bold } else { Tone::Plain };
            (tone, cells(record, case, best))
        })
        .collect();
    if ranked.len() < 2 {
        rows.iter_mut().for_each(|(_, cells)| cells[BAR].clear());
    }
    let mut lines = lay_out(HEADINGS, &rows);
    for column in DISPENSABLE {
        if lines.iter().map(Line::width).max().unwrap_or(0) <= style.width {
            break;
        }
        rows.iter_mut().for_each(|(_, cells)| cells[column].clear());
        lines = lay_out(HEADINGS, &rows);
    }
    lines
}

fn cells(record: &BenchRecord, case: &CaseRecord, best: f64) -> Vec<String> {
    let throughput = case.throughput.as_ref();
    let share = throughput
        .filter(|_| case.samples.len() > 1)
        .and_then(|found| estimate::relative_half_width(found.median_bytes_per_s, found.low, found.high));
    let calls = worker(case).and_then(|worker| worker.system_calls.as_ref());
    vec![
        worker(case).map_or_else(String::new, title),
        throughput.map_or(ABSENT.to_owned(), |found| numbers::throughput(found.median_bytes_per_s)),
        layout::bar(speed(case) / best, BAR_COLUMNS),
        share.map(|share| format!("{}{}", numbers::percent(share), noise_mark(case))).unwrap_or_default(),
        mean_time(case),
        times_c(record, case).map(|ratio| format!("{:.2}", ratio.median)).unwrap_or_default(),
        calls.map(per_mib).unwrap_or_default(),
        cpu_s_per_gb(case).map(|seconds| format!("{seconds:.2}")).unwrap_or_default(),
        start_up_ns(case).map(numbers::time).unwrap_or_default(),
    ]
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

/// Mean and standard deviation of the trials' times, as the study gives them, for 10^9 bytes: a slow worker is
/// given fewer bytes than a fast one.
fn mean_time(case: &CaseRecord) -> String {
    let rates = case.samples.iter().filter_map(figure::throughput_bytes_per_s);
    let times: Vec<f64> = rates.filter(|rate| *rate > 0.0).map(|rate| 1e12 / rate).collect();
    estimate::Estimate::of(&times)
        .map(|found| format!("{:.0} ± {:.0}", found.mean, found.stddev))
        .unwrap_or_default()
}

/// As a multiple of tuned C, round by round.
fn times_c(record: &BenchRecord, case: &CaseRecord) -> Option<Ratio> {
    let start = worker(case)?.start;
    let c = cases(record, start)
        .find(|other| worker(other).is_some_and(|other| other.writer.label() == YARDSTICK))?;
    paired_ratio(&case.samples, &c.samples, figure::throughput_bytes_per_s)
}

fn per_mib(calls: &SystemCalls) -> String {
    match calls.per_mib {
        few if few < 99.95 => format!("{few:.1}"),
        many => format!("{many:.0}"),
    }
}

/// CPU seconds of both ends, start-up included, for each 10^9 bytes.
fn cpu_s_per_gb(case: &CaseRecord) -> Option<f64> {
    let warmup = worker(case)?.warmup_bytes;
    figure::median_of(case, |sample| {
        let bytes = sample.bytes + warmup;
        (bytes > 0).then(|| (sample.user_ns + sample.system_ns) as f64 / bytes as f64)
    })
}

fn start_up_ns(case: &CaseRecord) -> Option<f64> {
    figure::median_of(case, |sample| Some(sample.setup_ns as f64))
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
