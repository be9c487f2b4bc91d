//! The ranked list of workers that started their own children: a row for each, the fastest first.

use model::{CaseRecord, SystemCalls};
use stats::{Estimate, figure, seats};

use super::{Table, is_yardstick, speed, title, worker};
use crate::columns::{group, marked_speed, spread_of_stream};
use crate::grid::{Heading, lay_out};
use crate::layout::{self, Line, Tone};
use crate::table::Style;
use crate::{noise, numbers};

/// Width of the longest bar.
const BAR_COLUMNS: usize = 12;

const HEADINGS: &[Heading] = &[
    Heading::left("worker"),
    Heading::right("throughput"),
    Heading::left(""),
    Heading::right("±95 %"),
    Heading::right("± range"),
    Heading::right("on one CPU"),
    Heading::right("on two"),
    Heading::right("ms/GB, mean ± sd"),
    Heading::right("× C"),
    Heading::right("calls/MiB"),
    Heading::right("CPU s/GB"),
    Heading::right("start-up"),
];
const BAR: usize = 2;
/// Which columns go first where room is short: the bar, the mean, CPU time, start-up, the spread.
const DISPENSABLE: [usize; 6] = [BAR, 7, 10, 11, 3, 4];

/// The list for a terminal.
pub(super) fn render(table: &Table, style: &Style) -> Vec<Line> {
    let ranked = table.ranked();
    let (best, c) = (ranked.first().map_or(0.0, |case| speed(case)), yardstick(&ranked));
    let mut rows: Vec<(Tone, Vec<String>)> = ranked
        .iter()
        .enumerate()
        .map(|(place, case)| {
            let tone = if place == 0 && ranked.len() > 1 { Tone::Bold } else { Tone::Plain };
            (tone, cells(case, best, c))
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

/// The titles and the rows of every column that says something, the bars apart.
pub(super) fn texts(table: &Table) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let ranked = table.ranked();
    let c = yardstick(&ranked);
    let rows: Vec<Vec<String>> = ranked.iter().map(|case| cells(case, 1.0, c)).collect();
    let speaks = |column: &usize| *column != BAR && rows.iter().any(|cells| !cells[*column].is_empty());
    let columns: Vec<usize> = (0..HEADINGS.len()).filter(speaks).collect();
    let kept = |cells: &Vec<String>| columns.iter().map(|column| cells[*column].clone()).collect();
    (columns.iter().map(|column| HEADINGS[*column].title).collect(), rows.iter().map(kept).collect())
}

fn cells(case: &CaseRecord, best: f64, c: Option<&CaseRecord>) -> Vec<String> {
    let calls = worker(case).and_then(|worker| worker.system_calls.as_ref());
    let few = noise::is_range(case.samples.len());
    let spread = |wanted: bool| spread_of_stream(case).filter(|_| few == wanted).unwrap_or_default();
    let seats = seats(case, figure::throughput_bytes_per_s);
    let seated = |found| group(found, numbers::throughput);
    vec![
        worker(case).map_or_else(String::new, title),
        marked_speed(case).unwrap_or_default(),
        layout::bar(speed(case) / best, BAR_COLUMNS),
        spread(false),
        spread(true),
        seats.and_then(|seats| seats.one_cpu).map(seated).unwrap_or_default(),
        seats.and_then(|seats| seats.two_cpus).map(seated).unwrap_or_default(),
        mean_time(case),
        c.map(|c| numbers::fixed(speed(case) / speed(c), 2)).unwrap_or_default(),
        calls.map(per_mib).unwrap_or_default(),
        cpu_s_per_gb(case).map(|seconds| numbers::fixed(seconds, 2)).unwrap_or_default(),
        start_up_ns(case).map(numbers::time).unwrap_or_default(),
    ]
}

/// Mean and standard deviation of the trials' times, as the study gives them, for 10^9 bytes: a slow worker is
/// given fewer bytes than a fast one.
fn mean_time(case: &CaseRecord) -> String {
    let rates = case.samples.iter().filter_map(figure::throughput_bytes_per_s);
    let times: Vec<f64> = rates.filter(|rate| *rate > 0.0).map(|rate| 1e12 / rate).collect();
    Estimate::of(&times)
        .map(|found| format!("{} ± {}", numbers::fixed(found.mean, 0), numbers::fixed(found.stddev, 0)))
        .unwrap_or_default()
}

/// What the rows are a multiple of: tuned C in the same seats.
fn yardstick<'a>(ranked: &[&'a CaseRecord]) -> Option<&'a CaseRecord> {
    ranked.iter().copied().find(|case| is_yardstick(case))
}

pub(super) fn per_mib(calls: &SystemCalls) -> String {
    match calls.per_mib {
        few if few < 99.95 => numbers::fixed(few, 1),
        many => numbers::fixed(many, 0),
    }
}

/// CPU seconds of both ends, start-up and warm-up included, for each 10^9 bytes.
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
