//! Transports of other projects and hosepipe's own in one ranking: a table for each workload and block size.

use model::{BenchRecord, CaseRecord, Role, Tasks, Workload};
use stats::{Estimate, figure};

use super::{start_up, worker};
use crate::estimate::quantity;
use crate::groups::groups;
use crate::interval::Estimated;
use crate::limits::BAR_COLUMNS;
use crate::sheet::{Sheet, col};
use crate::table::Table;
use crate::unit::Unit;
use crate::value::Value;
use crate::{numbers, words};

/// Whether a record has round trips of workers, or rows of hosepipe's beside them.
pub(super) fn is_of_peers(record: &BenchRecord) -> bool {
    let (workers, own): (Vec<_>, Vec<_>) = rows(record).partition(|case| case.worker.is_some());
    !workers.is_empty() && (!own.is_empty() || workers.iter().any(|case| case.workload == Workload::PingPong))
}

fn rows(record: &BenchRecord) -> impl Iterator<Item = &CaseRecord> {
    record.cases.iter().filter(|case| case.role == Role::Ranked)
}

/// The tables, in the record's order.
pub(super) fn tables(record: &BenchRecord) -> Vec<Table> {
    let all = groups(rows(record), |case| *case, &["workload", "block_bytes", "placement", "cpus"]);
    all.into_iter().map(table).filter(|table| !table.rows.is_empty()).collect()
}

/// What the columns of the tables contain, and which rows are comparable.
pub(super) fn notes(record: &BenchRecord) -> Vec<String> {
    let own = rows(record).any(|case| case.worker.is_none());
    let threads = rows(record).any(|case| case.worker.is_some() && case.tasks == Tasks::Threads);
    let notes = [
        Some("A row's time is the time of a trial divided by its messages or round trips."),
        own.then_some(
            "hosepipe's rows (spec) were measured before the others, with the same bytes, check and CPUs.",
        ),
        threads.then_some(
            "Threads share their memory, and `processes` do not: rank each kind by itself. Ends that a program starts by itself \
             are placed by the scheduler among the CPUs named.",
        ),
    ];
    notes.into_iter().flatten().map(str::to_owned).collect()
}

fn table(mut cases: Vec<&CaseRecord>) -> Table {
    let Some(title) = cases.first().map(|case| heading(case)) else { return Table::default() };
    cases.retain(|case| each(case, |ns| ns).is_some());
    model::sort_by(&mut cases, |one, other| median_ns(one).total_cmp(&median_ns(other)));
    let best = cases.first().map_or(0.0, |case| median_ns(case));
    let own = cases.iter().find(|case| case.worker.is_none()).map(|case| median_ns(case));
    let mut sheet = Sheet::new(&cases);
    sheet.add("transport", |case| {
        Some(worker(case).map_or_else(|| case.spec.to_string(), super::title).into())
    });
    sheet.add(col("ends").drop(2), |case| Some(case.tasks.to_string().into()));
    if cases.first().is_some_and(|case| case.workload == Workload::Stream) {
        sheet.add("messages/s", |case| each_value(case, |ns| 1e9 / ns, Unit::Many));
        sheet.add(col("throughput").drop(3), |case| {
            Some(Unit::BytesPerS.of(1e9 / median_ns(case) * case.block_bytes as f64))
        });
    } else {
        sheet.add("round trip", |case| each_value(case, |ns| ns, Unit::Ns));
    }
    sheet.bars(5, BAR_COLUMNS, |case| Some(best / median_ns(case)));
    sheet.add(col("× hosepipe's best").short("× ours").drop(1), |case| {
        Some(Unit::Decimals(2).of(own? / median_ns(case)))
    });
    let cpu =
        "CPU each is that of both ends; for workers, of the whole processes, with start-up and warm-up.";
    sheet.add(col("CPU each").drop(1).legend(cpu), |case| cpu_each_ns(case).map(|ns| Unit::Ns.of(ns)));
    sheet.add(col("start-up").drop(4), |case| start_up(case).filter(|_| case.worker.is_some()));
    let mut table = Table { title, ..sheet.table() };
    table.embolden((cases.len() > 1).then_some(0));
    table
}

fn heading(case: &CaseRecord) -> String {
    let what = quantity(case.workload).name_of_several();
    let ends = words::describe_tasks_and_cpus(Tasks::Processes, case.placement, &case.cpus);
    let ends = ends.replace("two processes", "two ends");
    format!("{what} of {} messages, {ends}", numbers::size(case.block_bytes))
}

/// The estimate of a figure that is computed from the time of a message or a round trip in each trial.
fn each(case: &CaseRecord, of: fn(f64) -> f64) -> Option<Estimate> {
    let times: Vec<f64> = case.samples.iter().filter_map(figure::elapsed_per_block_ns).map(of).collect();
    Estimate::of(&times)
}

fn each_value(case: &CaseRecord, of: fn(f64) -> f64, unit: Unit) -> Option<Value> {
    let found = each(case, of)?;
    Some(Value::Estimate(Estimated::new(unit, [found.median, found.low, found.high], found.count)))
}

fn median_ns(case: &CaseRecord) -> f64 {
    each(case, |ns| ns).map_or(f64::INFINITY, |found| found.median)
}

/// CPU time of both ends for a message or a round trip.
fn cpu_each_ns(case: &CaseRecord) -> Option<f64> {
    let warmup = worker(case).map_or(0, |worker| worker.warmup_bytes).div_ceil(case.block_bytes.max(1));
    figure::median_of(case, |sample| {
        let messages = sample.messages + warmup;
        (messages > 0).then(|| (sample.user_ns + sample.system_ns) as f64 / messages as f64)
    })
}
