//! The workload in each language: each worker starts its own child, as in the study.
//!
//! Languages differ by a factor of a hundred. A language that would need minutes for the study's amount moves a part of it. The
//! record says so, and bandwidths can still be compared.

use std::time::Duration;

use engine::Plan;
use model::{Amount, ByteSize, CaseRecord};
use worker::{BuildCache, Registry, WorkerAmount, WorkerPair, worker_rows};

use super::{KernelPipe, STUDY};
use crate::run::{PartRun, refused};
use crate::start::start_of;

/// A first trial moves the amount divided by this, to find the slow languages.
const FIRST_DIVISOR: u64 = 64;
/// Slow languages move the amount divided by this.
const SLOW_DIVISOR: u64 = 16;
/// A language is slow if a trial of the whole amount would take longer.
const SLOW: Duration = Duration::from_secs(60);

pub(super) fn run(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study: KernelPipe = STUDY.parameters();
    let block_bytes = study.workload.block.value;
    let trials = run.made.series;
    let bytes = run.request.scale.bytes(study.workload.bytes.value, block_bytes);
    run.set("bytes", ByteSize(bytes));
    run.set("block", ByteSize(block_bytes));
    run.set("clock", "from the first byte written to the last one received");
    let rows = rows(run, block_bytes)?;

    let divided = |divisor: u64| (bytes / divisor / block_bytes).max(1) * block_bytes;
    let (first_bytes, slow_bytes) = (divided(FIRST_DIVISOR), divided(SLOW_DIVISOR));
    let first_cases = launch(run, rows.clone(), first_bytes, 1)?;
    for case in &first_cases {
        let label = case.worker.as_ref().map_or_else(String::new, |worker| worker.writer.label());
        let times_s = case.samples.iter().map(|sample| sample.elapsed_ns as f64 / 1e9).collect();
        run.measured(&start_of(&label), "s", times_s);
    }
    let is_slow = |case: &CaseRecord| {
        let first_ns = case.samples.first().map_or(0, |sample| sample.elapsed_ns);
        first_ns as f64 / first_bytes as f64 * bytes as f64 > SLOW.as_nanos() as f64
    };
    let slow: Vec<bool> = first_cases.iter().map(is_slow).collect();
    let rows_by_speed = |wants_slow: bool| -> Vec<WorkerPair> {
        rows.iter().zip(&slow).filter(|(_, slow)| **slow == wants_slow).map(|(row, _)| row.clone()).collect()
    };
    let slow_rows = rows_by_speed(true);
    let names: Vec<String> = slow_rows.iter().map(|row| row.writer.end.label()).collect();
    // The slow rows first: they take less time, and the time limit may end the second launch early.
    let mut slow_cases = launch(run, slow_rows, slow_bytes, trials)?.into_iter();
    let mut fast_cases = launch(run, rows_by_speed(false), bytes, trials)?.into_iter();
    let cases = slow.iter().filter_map(|slow| if *slow { slow_cases.next() } else { fast_cases.next() });
    run.made.cases = cases.collect();

    if !names.is_empty() {
        let (names, slow_s) = (names.join(" and "), SLOW.as_secs());
        let (moved, all) = (ByteSize(slow_bytes), ByteSize(bytes));
        run.made.remarks.push(format!(
            "{names} moved {moved} in each run: all {all} would have taken more than {slow_s} s."
        ));
    }
    Ok(())
}

/// A row for every worker, which is built if necessary.
fn rows(run: &mut PartRun<'_>, block_bytes: u64) -> anyhow::Result<Vec<WorkerPair>> {
    let registry = Registry::open()?;
    let cache = BuildCache::open(&registry).map_err(refused("the folder of workers"))?;
    let choices = registry.select("all")?;
    let workers = cache.workers(&choices, run.observer, run.request.stop);
    Ok(workers.into_iter().map(|worker| WorkerPair::with_itself(worker, block_bytes)).collect())
}

/// Launches pairs in interleaved rounds, within the rest of the part's time limit.
fn launch(
    run: &mut PartRun<'_>,
    pairs: Vec<WorkerPair>,
    bytes: u64,
    trials: u32,
) -> anyhow::Result<Vec<CaseRecord>> {
    let amount = WorkerAmount { stream: Amount::Bytes(bytes), warmup_bytes_max: 0 };
    let rows = worker_rows(pairs, amount, run.request.seed).map_err(refused("the workers"))?;
    let plan = Plan {
        stops_late_trials: false,
        ..Plan::new(Vec::new(), trials, run.request.seed, Some(run.left()))
    };
    let mut outcome = engine::run(&plan, rows, run.request.cpus, None, run.observer, run.request.stop);
    // The last one is the memory copy.
    outcome.cases.pop();
    if outcome.interrupted {
        run.note_time_over("before every trial was made");
    }
    Ok(outcome.cases)
}
