//! Streams through the engine: cases as the studies have them, and what came of them as records have it.

use engine::Plan;
use model::{Amount, Case, Check, DataLevel, PayloadKind, Placement, Spec, StudyPart, Tasks};

use crate::part::{ReproduceError, Stage};

/// A stream, to be bent to what its mechanism has.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) spec: &'static str,
    pub(crate) tasks: Tasks,
    pub(crate) placement: Placement,
    pub(crate) data: DataLevel,
    pub(crate) check: Check,
    pub(crate) payload: PayloadKind,
    pub(crate) block_bytes: u64,
    pub(crate) amount: Amount,
}

impl Stream {
    /// Two threads, wherever the scheduler puts them; nothing is checked.
    pub(crate) fn threads(spec: &'static str, block_bytes: u64, blocks: u64) -> Self {
        Self {
            spec,
            tasks: Tasks::Threads,
            placement: Placement::Any,
            data: DataLevel::None,
            check: Check::Xxh3,
            payload: PayloadKind::Sequence,
            block_bytes,
            amount: Amount::Blocks(blocks),
        }
    }

    /// One thread, wherever the scheduler puts it; nothing is checked.
    pub(crate) fn single(spec: &'static str, block_bytes: u64, blocks: u64) -> Self {
        Self { tasks: Tasks::Single, ..Self::threads(spec, block_bytes, blocks) }
    }

    /// The case. A data level or tasks that the mechanism does not have become the nearest that it has.
    pub(crate) fn case(&self) -> Result<Case, ReproduceError> {
        case_of(self, self.spec)
    }
}

/// The case of a stream over another mechanism than its own.
pub(crate) fn case_of(stream: &Stream, spec: &str) -> Result<Case, ReproduceError> {
    let spec: Spec = spec.parse()?;
    let (mechanism, options) = mechanism::resolve(&spec)?;
    let has = mechanism.descriptor();
    let levels = mechanism.data(&options).iter().copied().filter(|level| *level <= stream.data);
    let tasks = if has.tasks.contains(&stream.tasks) { Some(&stream.tasks) } else { has.tasks.first() };
    Ok(Case {
        role: has.role,
        tasks: tasks.copied().unwrap_or(stream.tasks),
        placement: stream.placement,
        wait: mechanism.wait(&options),
        data: levels.max().unwrap_or(DataLevel::None),
        check: stream.check,
        payload: stream.payload.clone(),
        block_bytes: stream.block_bytes,
        amount: stream.amount,
        ..Case::stream(spec)
    })
}

/// Runs cases in turns, within what the part may take, and puts them into the part.
pub(crate) fn measure(
    stage: &mut Stage<'_>,
    part: &mut StudyPart,
    cases: Vec<Case>,
) -> Result<(), ReproduceError> {
    let left = stage.budget().saturating_sub(stage.began.elapsed());
    let plan = Plan { cases, trials: part.series, seed: stage.job.seed, budget: Some(left) };
    let outcome = engine::run(&plan, stage.job.cpus, stage.watcher, stage.job.stop);
    part.complete = !(stage.job.stop)();
    if outcome.interrupted && part.complete {
        part.remarks.push(format!(
            "The part's time of {} min was over before every trial was made.",
            stage.part.minutes
        ));
    }
    part.cases.extend(outcome.cases);
    Ok(())
}
