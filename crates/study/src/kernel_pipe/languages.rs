//! The workload language by language: each worker starts its own child, as in the study.
//!
//! Languages differ a hundredfold. One for which the study's amount would take minutes moves a part of it, which the
//! record tells; a bandwidth is a bandwidth.

use std::time::Duration;

use super::kernel_pipe;
use model::{ByteSize, CaseRecord, StudyPart};
use worker::{BuildCache, Plan, Registry, Row, TrialSize, measure};

use crate::part::{ReproduceError, Stage};

/// The part of the amount by which a language is judged beforehand.
const LOOK_PART: u64 = 64;
/// The part of the amount that slow languages move.
const SLOW_PART: u64 = 16;
/// A trial that would take longer makes a language a slow one.
const SLOW: Duration = Duration::from_secs(60);

pub(super) fn run(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let study = kernel_pipe();
    let (scale, block_bytes) = (stage.job.scale, study.block_bytes());
    let mut part = stage.blank(scale.trials(study.trials()));
    let bytes = scale.bytes(study.bytes(), block_bytes);
    let rows = rows(stage)?;

    let whole_blocks = |bytes: u64| (bytes / block_bytes).max(1) * block_bytes;
    let look = whole_blocks(bytes / LOOK_PART);
    let looked = launch(stage, &rows, look, 1, &mut part)?;
    let is_slow = |case: &CaseRecord| {
        let elapsed = case.samples.first().map_or(0, |sample| sample.elapsed_ns);
        elapsed as f64 / look as f64 * bytes as f64 > SLOW.as_nanos() as f64
    };
    let slow: Vec<bool> = looked.iter().map(is_slow).collect();
    let of = |wanted: bool| -> Vec<Row> {
        rows.iter().zip(&slow).filter(|(_, slow)| **slow == wanted).map(|(row, _)| row.clone()).collect()
    };
    let less = whole_blocks(bytes / SLOW_PART);
    let trials = part.series;
    // The slow ones first: they are the shorter part, and the other ends with the time.
    let mut slow_cases = launch(stage, &of(true), less, trials, &mut part)?.into_iter();
    let mut fast_cases = launch(stage, &of(false), bytes, trials, &mut part)?.into_iter();
    part.cases =
        slow.iter().filter_map(|slow| if *slow { slow_cases.next() } else { fast_cases.next() }).collect();
    part.complete = !(stage.job.stop)();

    let named: Vec<String> = of(true).iter().map(|row| row.writer.end.label()).collect();
    if !named.is_empty() {
        part.remarks.push(format!(
            "{} moved {} in each run: the whole of {} would have taken more than {} s.",
            named.join(" and "),
            ByteSize(less),
            ByteSize(bytes),
            SLOW.as_secs()
        ));
    }
    part.settings.insert("bytes".to_owned(), ByteSize(bytes).to_string());
    part.settings.insert("block".to_owned(), ByteSize(block_bytes).to_string());
    part.settings
        .insert("clock".to_owned(), "from the first byte written to the last one received".to_owned());
    Ok(part)
}

/// A row for every worker there is, built where it was not.
fn rows(stage: &mut Stage<'_>) -> Result<Vec<Row>, ReproduceError> {
    let refused = |error: &dyn std::fmt::Display| ReproduceError::Workers(error.to_string());
    let registry = Registry::open().map_err(|error| refused(&error))?;
    let cache = BuildCache::open(registry).map_err(ReproduceError::system("the folder of workers"))?;
    let choices = cache.registry().select("all").map_err(|error| refused(&error))?;
    let workers = cache.workers(&choices, stage.watcher, stage.job.stop);
    Ok(workers.into_iter().map(Row::pair).collect())
}

/// Launches rows in turns, in what is left of the part's time.
fn launch(
    stage: &mut Stage<'_>,
    rows: &[Row],
    bytes: u64,
    trials: u32,
    part: &mut StudyPart,
) -> Result<Vec<CaseRecord>, ReproduceError> {
    let plan = Plan {
        rows: rows.to_vec(),
        block_bytes: kernel_pipe().block_bytes(),
        amount: TrialSize::Fixed { bytes, warmup_bytes: 0 },
        trials,
        seed: stage.job.seed,
        budget: Some(stage.budget().saturating_sub(stage.began.elapsed())),
        counts_calls: false,
    };
    let outcome =
        measure(&plan, stage.watcher, stage.job.stop).map_err(ReproduceError::system("the workers"))?;
    if outcome.interrupted && !(stage.job.stop)() {
        let minutes = stage.part.minutes;
        part.remarks.push(format!("The part's time of {minutes} min was over before every trial was made."));
    }
    Ok(outcome.cases)
}
