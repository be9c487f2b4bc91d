//! Checks a case before anything is measured: whether the mechanism supports it, whether this machine has the mechanism, and the
//! CPUs of the ends.

use host::PlacementError;
use mechanism::{Capabilities, Mechanism, Options};
use model::{ByteSize, Case, CaseError, Cpu, DataLevel, ErrorKind, Tasks, Workload};
use payload::TAG_BYTES;

use crate::control::TASKS_MAX;

/// A case that can be run.
pub(crate) struct Ready {
    pub(crate) mechanism: &'static Mechanism,
    pub(crate) options: Options,
    /// The CPUs of the ends, pair after pair: those of the senders, then those of the receivers. Empty if the scheduler
    /// chooses.
    pub(crate) cpus: Vec<u32>,
    pub(crate) block_bytes: usize,
}

impl Ready {
    /// As [`prepare`] has made it in another process, which has checked the case and found these CPUs.
    pub(crate) fn again(case: &Case, cpus: Vec<u32>) -> Result<Self, CaseError> {
        let (mechanism, options) = resolve(case)?;
        Ok(Self { mechanism, options, cpus, block_bytes: block_that_fits(case)? })
    }

    /// Whether what is sent stays stored until the trial ends.
    pub(crate) fn stores_data(&self) -> bool {
        self.mechanism.capabilities.contains(Capabilities::STORES_DATA)
    }

    /// The CPU of task `index` of a pair, which is not a relay; `None` if the scheduler chooses.
    pub(crate) fn cpu_of(&self, case: &Case, pair: usize, index: usize) -> Option<u32> {
        let last = index + 1 == tasks(case);
        let (cpus_per_pair, position) = match (case.load.senders.or(case.load.receivers), case.tasks) {
            (Some(_), _) => (tasks(case), index),
            (_, Tasks::Single) => (1, 0),
            _ => (2, usize::from(last)),
        };
        self.cpus.get(pair * cpus_per_pair + position).copied()
    }
}

/// Number of tasks of each pair of a case.
pub(crate) fn tasks(case: &Case) -> usize {
    if case.tasks == Tasks::Single { 1 } else { (case.load.ends() + case.relays) as usize }
}

/// Number of tasks of a case.
pub(crate) fn all_tasks(case: &Case) -> usize {
    tasks(case) * case.load.pairs() as usize
}

/// The progress of a task that has moved all of this number of blocks.
pub(crate) fn goal(case: &Case, blocks: u64) -> u64 {
    match case.workload {
        Workload::Stream => blocks.saturating_mul(case.block_bytes),
        Workload::PingPong => blocks,
    }
}

/// Finds a case's mechanism, and checks whether the mechanism and the machine support the case.
pub(crate) fn prepare(case: &Case, cpus: &[Cpu]) -> Result<Ready, CaseError> {
    let (mechanism, options) = resolve(case)?;
    check_combination(mechanism, &options, case)?;
    // The probe tests the mechanism on this machine only, not between two hosts.
    let probed = if case.direction.is_some() { Ok(()) } else { mechanism.probe() };
    probed.map_err(|missing| {
        let message = format!("not available here: {}", missing.message);
        CaseError::stated(ErrorKind::Unavailable, message).with_remedy(missing.remedy)
    })?;
    let chosen = cpus_of_ends(case, cpus)
        .map_err(|problem| CaseError::stated(ErrorKind::Unavailable, problem.to_string()))?;
    let block_bytes = block_that_fits(case)?;
    if all_tasks(case) > TASKS_MAX {
        let message = format!("{} tasks at once (limit {TASKS_MAX})", all_tasks(case));
        let remedy = "fewer --pairs, --senders, --receivers or --chain".to_owned();
        return Err(CaseError::stated(ErrorKind::Limit, message).with_remedy(remedy));
    }
    Ok(Ready { mechanism, options, cpus: chosen, block_bytes })
}

fn resolve(case: &Case) -> Result<(&'static Mechanism, Options), CaseError> {
    mechanism::resolve(&case.spec)
        .map_err(|problem| CaseError::stated(ErrorKind::Unsupported, problem.to_string()))
}

/// The CPUs of all ends, as in [`Ready::cpus`].
fn cpus_of_ends(case: &Case, cpus: &[Cpu]) -> Result<Vec<u32>, PlacementError> {
    if let Some(senders) = case.load.senders {
        return host::resolve_senders(case.placement, cpus, senders);
    }
    if let Some(receivers) = case.load.receivers {
        return host::resolve_receivers(case.placement, cpus, receivers);
    }
    let cpus = host::resolve_pairs(case.placement, cpus, case.load.pairs())?;
    // A single task has both ends, and runs on the sender's CPU.
    let step = if case.tasks == Tasks::Single { 2 } else { 1 };
    Ok(cpus.into_iter().step_by(step).collect())
}

/// Blocks that must fit into memory: one or two for each end, and some for the mechanism.
const BLOCKS_IN_MEMORY: u64 = 8;

fn block_that_fits(case: &Case) -> Result<usize, CaseError> {
    let block_bytes = case.block_bytes;
    // Without /proc the allocation fails, or the kernel ends the run.
    let memory_bytes = host::memory().map_or(u64::MAX, |memory| memory.total_bytes);
    let most = memory_bytes / BLOCKS_IN_MEMORY / u64::from(case.load.pairs() + case.load.ends() - 2).max(1);
    usize::try_from(block_bytes).ok().filter(|_| block_bytes <= most).ok_or_else(|| {
        let message =
            format!("{} blocks, {} of memory", ByteSize(block_bytes), ByteSize(memory_bytes >> 20 << 20));
        let remedy = format!("--block {} or less", ByteSize(most >> 20 << 20));
        CaseError::stated(ErrorKind::Limit, message).with_remedy(remedy)
    })
}

fn check_combination(mechanism: &Mechanism, options: &Options, case: &Case) -> Result<(), CaseError> {
    let (load, levels) = (case.load, mechanism.data(options));
    let are_tagged = load.shares_an_end() && case.data == DataLevel::Verify;
    let (what, remedy) = if !mechanism.workloads.contains(&case.workload) {
        let what = match case.workload {
            Workload::Stream => "carries no stream, only round trips",
            Workload::PingPong => "carries a stream one way, no round trips",
        };
        (what.to_owned(), "another --workload".to_owned())
    } else if !mechanism.tasks.contains(&case.tasks) {
        (format!("cannot run with tasks `{}`", case.tasks), format!("--tasks {}", any_of(mechanism.tasks)))
    } else if !mechanism.waits.contains(&case.wait) {
        (format!("its ends cannot wait by `{}`", case.wait), format!("--wait {}", any_of(mechanism.waits)))
    } else if load.senders.is_some() && !mechanism.capabilities.contains(Capabilities::MANY_SENDERS) {
        let remedy = "without --senders, or a mechanism that can have many (`hosepipe list`)";
        ("only one task can have its sending end".to_owned(), remedy.to_owned())
    } else if are_tagged && case.block_bytes < TAG_BYTES as u64 {
        let what = "blocks of many senders or receivers begin with a tag of";
        (
            format!("{what} {TAG_BYTES} bytes: sender and number"),
            format!("--block {TAG_BYTES} or more, or --data write"),
        )
    } else if !levels.contains(&case.data) {
        (format!("has no data level `{}`", case.data), format!("--data {}", any_of(levels)))
    } else if !case.align.are_usual() && (mechanism.in_place)(options) {
        let what = "its ends make and check blocks in its own memory: there are no buffers to align";
        (what.to_owned(), "without --align, or a mechanism that copies (`hosepipe list`)".to_owned())
    } else {
        return Ok(());
    };
    Err(CaseError::stated(ErrorKind::Unsupported, what).with_remedy(remedy))
}

/// The values, as in "threads or processes".
fn any_of(values: &[impl ToString]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}
