//! The workload language by language: each worker starts its own child, as in the study.
//!
//! Languages differ a hundredfold. One for which the study's amount would take minutes moves a part of it, which the
//! record tells; a bandwidth is a bandwidth.

use std::time::Duration;

use model::{ByteSize, CaseRecord};
use worker::{BuildCache, Registry, TrialSize, WorkerPair, WorkerPlan, measure};

use super::{KernelPipe, STUDY};
use crate::run::{PartRun, refused};

/// The part of the amount by which a language is judged beforehand.
const LOOK_PART: u64 = 64;
/// The part of the amount that slow languages move.
const SLOW_PART: u64 = 16;
/// A trial that would take longer makes a language a slow one.
const SLOW: Duration = Duration::from_secs(60);

pub(super) fn run(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study: KernelPipe = STUDY.parameters();
    let block_bytes = study.workload.block.value;
    let trials = run.made.series;
    let bytes = run.job.scale.bytes(study.workload.bytes.value, block_bytes);
    run.set("bytes", ByteSize(bytes));
    run.set("block", ByteSize(block_bytes));
    run.set("clock", "from the first byte written to the last one received");
    let rows = rows(run, block_bytes)?;

    let share = |part: u64| (bytes / part / block_bytes).max(1) * block_bytes;
    let (look, less) = (share(LOOK_PART), share(SLOW_PART));
    let looked = launch(run, rows.clone(), look, 1)?;
    let is_slow = |case: &CaseRecord| {
        let elapsed = case.samples.first().map_or(0, |sample| sample.elapsed_ns);
        elapsed as f64 / look as f64 * bytes as f64 > SLOW.as_nanos() as f64
    };
    let slow: Vec<bool> = looked.iter().map(is_slow).collect();
    let of = |wanted: bool| -> Vec<WorkerPair> {
        rows.iter().zip(&slow).filter(|(_, slow)| **slow == wanted).map(|(row, _)| row.clone()).collect()
    };
    // The slow ones first: they are the shorter part, and the other ends with the time.
    let mut slow_cases = launch(run, of(true), less, trials)?.into_iter();
    let mut fast_cases = launch(run, of(false), bytes, trials)?.into_iter();
    let cases = slow.iter().filter_map(|slow| if *slow { slow_cases.next() } else { fast_cases.next() });
    run.made.cases = cases.collect();

    let named: Vec<String> = of(true).iter().map(|row| row.writer.end.label()).collect();
    if !named.is_empty() {
        run.made.remarks.push(format!(
            "{} moved {} in each run: the whole of {} would have taken more than {} s.",
            named.join(" and "),
            ByteSize(less),
            ByteSize(bytes),
            SLOW.as_secs()
        ));
    }
    Ok(())
}

/// A row for every worker there is, built where it was not.
fn rows(run: &mut PartRun<'_>, block_bytes: u64) -> anyhow::Result<Vec<WorkerPair>> {
    let cache = BuildCache::open(Registry::open()?).map_err(refused("the folder of workers"))?;
    let choices = cache.registry().select("all")?;
    let workers = cache.workers(&choices, run.observer, run.job.stop);
    Ok(workers.into_iter().map(|worker| WorkerPair::with_itself(worker, block_bytes)).collect())
}

/// Launches rows in turns, in what is left of the part's time.
fn launch(
    run: &mut PartRun<'_>,
    rows: Vec<WorkerPair>,
    bytes: u64,
    trials: u32,
) -> anyhow::Result<Vec<CaseRecord>> {
    let plan = WorkerPlan {
        rows,
        amount: TrialSize::Fixed { bytes, warmup_bytes: 0 },
        trials,
        seed: run.job.seed,
        budget: Some(run.left()),
    };
    let outcome = measure(&plan, run.observer, run.job.stop).map_err(refused("the workers"))?;
    if outcome.interrupted {
        run.note_time_over("before every trial was made");
    }
    Ok(outcome.cases)
}
