//! The ranking of workers that started their own children: a row for each, the fastest first.

use model::{CaseRecord, Workload};
use stats::{Estimate, figure, trials_by_cpus};

use super::{ranked, start_up, title, worker};
use crate::columns::group_value;
use crate::estimate::{estimate_value, speed};
use crate::interval::SPREAD_FROM;
use crate::limits::BAR_COLUMNS;
use crate::sheet::{Sheet, col};
use crate::table::Table;
use crate::unit::Unit;
use crate::value::Value;

/// The label of the row with which all others are compared, if it was measured.
const YARDSTICK: &str = "c:tuned";

/// `None` if no worker started its own child.
pub(super) fn table(placed: &[&CaseRecord]) -> Option<Table> {
    let ranked = ranked(placed);
    let best = ranked.first().and_then(|case| speed(case));
    let is_yardstick = |case: &&&CaseRecord| worker(case).is_some_and(|it| it.writer.label() == YARDSTICK);
    let yardstick = ranked.iter().find(is_yardstick).and_then(|case| speed(case));
    let by_cpus = |case: &CaseRecord| trials_by_cpus(case, figure::throughput_bytes_per_s);
    let value_of = |group| group_value(group, Workload::Stream);
    let mut sheet = Sheet::new(&ranked);
    sheet.add("worker", |case| Some(title(worker(case)?).into()));
    sheet.add("throughput", |case| estimate_value(case));
    sheet.bars(7, BAR_COLUMNS, |case| Some(speed(case)? / best?).filter(|_| ranked.len() > 1));
    sheet.add(col("on one CPU").drop(1), |case| by_cpus(case)?.one_cpu.map(value_of));
    sheet.add(col("on two").drop(1), |case| by_cpus(case)?.two_cpus.map(value_of));
    sheet.add(col("ms/GB, mean ± sd").drop(6), |case| mean_time(case));
    sheet.add(col("× C").drop(1), |case| Some(Unit::Decimals(2).of(speed(case)? / yardstick?)));
    let cpu = "CPU s/GB is of whole processes, with start-up and warm-up.";
    sheet.add(col("CPU s/GB").drop(5).legend(cpu), |case| Some(Unit::Decimals(2).of(cpu_s_per_gb(case)?)));
    sheet.add(col("start-up").drop(4), |case| start_up(case));
    let mut table = sheet.table();
    table.embolden((ranked.len() > 1).then_some(0));
    (!ranked.is_empty()).then_some(table)
}

/// Mean and standard deviation of the trials' times, as in the published study. They are scaled to 10^9 bytes, because a slow worker
/// gets fewer bytes than a fast one.
fn mean_time(case: &CaseRecord) -> Option<Value> {
    let rates = case.samples.iter().filter_map(figure::throughput_bytes_per_s);
    let times: Vec<f64> = rates.filter(|rate| *rate > 0.0).map(|rate| 1e12 / rate).collect();
    let found = Estimate::of(&times)?;
    let [mean, spread] = [found.mean, found.stddev].map(|ms| Unit::Decimals(0).of(ms));
    Some(if found.count >= SPREAD_FROM { mean.and(" ± ", spread) } else { mean })
}

/// CPU seconds of both ends, start-up and warm-up included, for each 10^9 bytes.
fn cpu_s_per_gb(case: &CaseRecord) -> Option<f64> {
    let warmup = worker(case)?.warmup_bytes;
    figure::median_of(case, |sample| {
        let bytes = sample.bytes + warmup;
        (bytes > 0).then(|| (sample.user_ns + sample.system_ns) as f64 / bytes as f64)
    })
}
