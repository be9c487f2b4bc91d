//! The ranking of workers that started their own children: a row for each, the fastest first.

use model::{CaseRecord, Workload};
use stats::{Estimate, figure, trials_by_cpus};

use super::{PlacedCases, start_up_ns, title, worker};
use crate::case_figure::{figure_text, speed};
use crate::columns::group_text;
use crate::interval::SPREAD_FROM;
use crate::layout;
use crate::numbers;
use crate::table::{Column, Table};

/// The label of the row with which all others are compared, if it was measured.
const YARDSTICK: &str = "c:tuned";
/// Width of the longest bar.
const BAR_COLUMNS: usize = 12;

/// `None` if no worker started its own child.
pub(super) fn table(placed: &PlacedCases) -> Option<Table> {
    let ranked = placed.ranked();
    let best = ranked.first().and_then(|case| speed(case));
    let is_yardstick = |case: &&&CaseRecord| worker(case).is_some_and(|it| it.writer.label() == YARDSTICK);
    let yardstick = ranked.iter().find(is_yardstick).and_then(|case| speed(case));
    let mut table = Table::default();
    let mut add = |column: Column, cell: &dyn Fn(&CaseRecord) -> Option<String>| {
        table.add(column, ranked.iter().map(|case| cell(case)));
    };
    let by_cpus = |case: &CaseRecord| trials_by_cpus(case, figure::throughput_bytes_per_s);
    let text_of = |group| group_text(group, Workload::Stream);
    add(Column::left("worker"), &|case| worker(case).map(title));
    add(Column::right("throughput"), &figure_text);
    add(Column::picture().drop(7), &|case| {
        Some(layout::bar(speed(case)? / best?, BAR_COLUMNS)).filter(|_| ranked.len() > 1)
    });
    add(Column::right("on one CPU").drop(1), &|case| by_cpus(case)?.one_cpu.map(text_of));
    add(Column::right("on two").drop(1), &|case| by_cpus(case)?.two_cpus.map(text_of));
    add(Column::right("ms/GB, mean ± sd").drop(6), &mean_time);
    add(Column::right("× C").drop(1), &|case| Some(numbers::fixed(speed(case)? / yardstick?, 2)));
    add(Column::right("CPU s/GB").drop(5), &|case| Some(numbers::fixed(cpu_s_per_gb(case)?, 2)));
    add(Column::right("start-up").drop(4), &|case| start_up_ns(case).map(numbers::time));
    table.explain("CPU s/GB", "CPU s/GB is of whole processes, with start-up and warm-up.");
    table.embolden((ranked.len() > 1).then_some(0));
    (!ranked.is_empty()).then_some(table)
}

/// Mean and standard deviation of the trials' times, as in the published study. They are scaled to 10^9 bytes, because a slow worker
/// gets fewer bytes than a fast one.
fn mean_time(case: &CaseRecord) -> Option<String> {
    let rates = case.samples.iter().filter_map(figure::throughput_bytes_per_s);
    let times: Vec<f64> = rates.filter(|rate| *rate > 0.0).map(|rate| 1e12 / rate).collect();
    let found = Estimate::of(&times)?;
    let spread = (found.count >= SPREAD_FROM).then(|| format!(" ± {}", numbers::fixed(found.stddev, 0)));
    Some(numbers::fixed(found.mean, 0) + &spread.unwrap_or_default())
}

/// CPU seconds of both ends, start-up and warm-up included, for each 10^9 bytes.
fn cpu_s_per_gb(case: &CaseRecord) -> Option<f64> {
    let warmup = worker(case)?.warmup_bytes;
    figure::median_of(case, |sample| {
        let bytes = sample.bytes + warmup;
        (bytes > 0).then(|| (sample.user_ns + sample.system_ns) as f64 / bytes as f64)
    })
}
