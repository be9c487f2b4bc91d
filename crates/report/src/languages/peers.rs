//! Transports of other projects and hosepipe's own in one ranking: a table for each workload and block size.

use model::{BenchRecord, CaseRecord, Placement, Role, Tasks, Workload};
use stats::{Estimate, figure};

use super::{start_up_ns, title, worker};
use crate::interval::plus_minus;
use crate::layout::{self, Tone};
use crate::lists::grouped;
use crate::table::{Column, Table};
use crate::{numbers, words};

/// Width of the longest bar.
const BAR_COLUMNS: usize = 12;

/// What cases must share to be ranked: what is moved, and where.
type Group<'a> = (Workload, u64, Placement, &'a [u32]);

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
    let of = |case: &CaseRecord| (case.workload, case.block_bytes, case.placement);
    let groups = grouped(rows(record).map(|case| ((of(case), case.cpus.as_slice()), case)));
    let groups = groups.into_iter().map(|(((workload, bytes, placement), cpus), cases)| {
        table((workload, bytes, placement, cpus), cases)
    });
    groups.filter(|table| !table.rows.is_empty()).collect()
}

/// What a reader must know of them.
pub(super) fn notes(record: &BenchRecord) -> Vec<String> {
    let mut notes = vec![
        "A row's time is that of a trial by its messages or round trips; CPU is of both ends, of workers of the whole processes \
         with start-up and warm-up."
            .to_owned(),
    ];
    if rows(record).any(|case| case.worker.is_none()) {
        notes.push(
            "hosepipe's rows (spec) were measured before the others, with the same bytes, check and CPUs."
                .to_owned(),
        );
    }
    if rows(record).any(|case| case.worker.is_some() && case.tasks == Tasks::Threads) {
        notes.push(
            "Threads share their memory, and `processes` do not: rank each kind by itself. Ends that a program starts by itself \
             are placed by the scheduler among the CPUs named."
                .to_owned(),
        );
    }
    notes
}

fn table((workload, block_bytes, placement, cpus): Group<'_>, mut cases: Vec<&CaseRecord>) -> Table {
    cases.retain(|case| each_ns(case).is_some());
    cases.sort_by(|one, other| median_ns(one).total_cmp(&median_ns(other)));
    let mut table = Table { title: heading(workload, block_bytes, placement, cpus), ..Table::default() };
    let best = cases.first().map_or(0.0, |case| median_ns(case));
    let own = cases.iter().find(|case| case.worker.is_none()).map(|case| median_ns(case));
    let mut add = |column: Column, cell: &dyn Fn(&CaseRecord) -> Option<String>| {
        table.add(column, cases.iter().map(|case| cell(case)));
    };
    add(Column::left("transport"), &|case| Some(worker(case).map_or(case.spec.to_string(), title)));
    add(Column::left("ends").drop(2), &|case| Some(case.tasks.to_string()));
    match workload {
        Workload::Stream => {
            add(Column::right("messages/s"), &|case| {
                let rate = each(case, |ns| 1e9 / ns)?;
                Some(format!("{} {}", numbers::amount(rate.median), spread(&rate)))
            });
            add(Column::right("throughput").drop(3), &|case| {
                Some(numbers::throughput(1e9 / median_ns(case) * block_bytes as f64))
            });
        }
        Workload::PingPong => add(Column::right("round trip"), &|case| {
            let trip = each(case, |ns| ns)?;
            Some(format!("{} {}", numbers::time(trip.median), spread(&trip)))
        }),
    }
    add(Column::picture().drop(5), &|case| Some(layout::bar(best / median_ns(case), BAR_COLUMNS)));
    add(Column::right("× hosepipe's best").short("× ours").drop(1), &|case| {
        Some(numbers::fixed(own? / median_ns(case), 2))
    });
    add(Column::right("CPU each").drop(1), &|case| cpu_each_ns(case).map(numbers::time));
    add(Column::right("start-up").drop(4), &|case| {
        start_up_ns(case).filter(|_| case.worker.is_some()).map(numbers::time)
    });
    if let Some(first) = table.rows.first_mut().filter(|_| cases.len() > 1) {
        first.tone = Tone::Bold;
    }
    table
}

fn heading(workload: Workload, block_bytes: u64, placement: Placement, cpus: &[u32]) -> String {
    let what = match workload {
        Workload::Stream => "streams of",
        Workload::PingPong => "round trips of",
    };
    let ends = words::ends(Tasks::Processes, placement, cpus);
    format!("{what} {} messages, {}", numbers::size(block_bytes), ends.replace("two processes", "two ends"))
}

/// The estimate of a figure of a trial's time for a message or a round trip.
fn each(case: &CaseRecord, of: fn(f64) -> f64) -> Option<Estimate> {
    let times: Vec<f64> = case.samples.iter().filter_map(figure::elapsed_per_block_ns).map(of).collect();
    Estimate::of(&times)
}

fn each_ns(case: &CaseRecord) -> Option<Estimate> {
    each(case, |ns| ns)
}

fn median_ns(case: &CaseRecord) -> f64 {
    each_ns(case).map_or(f64::INFINITY, |found| found.median)
}

fn spread(found: &Estimate) -> String {
    plus_minus([found.median, found.low, found.high], found.count)
}

/// CPU time of both ends for a message or a round trip.
fn cpu_each_ns(case: &CaseRecord) -> Option<f64> {
    let warmup = worker(case).map_or(0, |worker| worker.warmup_bytes).div_ceil(case.block_bytes.max(1));
    figure::median_of(case, |sample| {
        let messages = sample.messages + warmup;
        (messages > 0).then(|| (sample.user_ns + sample.system_ns) as f64 / messages as f64)
    })
}
