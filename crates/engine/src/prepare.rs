//! What can be said of a case before anything is measured: whether it has a meaning, whether the machine has
//! the mechanism, and which CPUs its ends get.

use mechanism::{Mechanism, Options};
use model::{ByteSize, Case, CaseError, Cpu, ErrorKind, Tasks, Workload, ZeroCopy};

use crate::control::TASKS_MAX;

/// A case that can be run.
pub(crate) struct Ready {
    pub(crate) mechanism: &'static dyn Mechanism,
    pub(crate) options: Options,
    /// The ends' CPUs, the sender's first; empty where the scheduler chooses.
    pub(crate) cpus: Vec<u32>,
    pub(crate) block_bytes: usize,
    /// What shows that bytes pass by reference, where they are said to.
    pub(crate) zero_copy: Option<ZeroCopy>,
}

/// How many tasks a case has.
pub(crate) fn tasks(case: &Case) -> usize {
    if case.tasks == Tasks::Single { 1 } else { 2 + case.relays as usize }
}

/// Looks a case up and checks it against what the mechanism and the machine have.
pub(crate) fn prepare(case: &Case, cpus: &[Cpu]) -> Result<Ready, CaseError> {
    let (mechanism, options) = mechanism::resolve(&case.spec)
        .map_err(|problem| CaseError::stated(ErrorKind::Unsupported, problem.to_string()))?;
    check_combination(mechanism, &options, case)?;
    mechanism.probe().map_err(|missing| {
        let message = format!("not available here: {}", missing.reason);
        CaseError::stated(ErrorKind::Unavailable, message).with_remedy(missing.remedy)
    })?;
    let mut chosen = host::resolve(case.placement, cpus)
        .map_err(|problem| CaseError::stated(ErrorKind::Unavailable, problem.to_string()))?;
    if case.tasks == Tasks::Single {
        chosen.truncate(1);
    }
    let block_bytes = block_that_fits(case.block_bytes)?;
    if tasks(case) > TASKS_MAX {
        let message = format!("a chain of {} (limit {})", case.relays, TASKS_MAX - 2);
        return Err(CaseError::stated(ErrorKind::Limit, message));
    }
    let zero_copy = mechanism.zero_copy(&options);
    Ok(Ready { mechanism, options, cpus: chosen, block_bytes, zero_copy })
}

/// Each end holds a block or two, and the mechanism may hold more.
const BLOCKS_IN_MEMORY: u64 = 8;

fn block_that_fits(block_bytes: u64) -> Result<usize, CaseError> {
    let memory = rustix::system::sysinfo();
    let memory_bytes = memory.totalram.saturating_mul(u64::from(memory.mem_unit.max(1)));
    let most = memory_bytes / BLOCKS_IN_MEMORY;
    usize::try_from(block_bytes).ok().filter(|_| block_bytes <= most).ok_or_else(|| {
        let message =
            format!("{} blocks, {} of memory", ByteSize(block_bytes), ByteSize(memory_bytes >> 20 << 20));
        let remedy = format!("--block {} or less", ByteSize(most >> 20 << 20));
        CaseError::stated(ErrorKind::Limit, message).with_remedy(remedy)
    })
}

fn check_combination(mechanism: &dyn Mechanism, options: &Options, case: &Case) -> Result<(), CaseError> {
    let has = mechanism.descriptor();
    let refuse = |what: String, remedy: String| {
        Err(CaseError::stated(ErrorKind::Unsupported, what).with_remedy(remedy))
    };
    let words = |words: Vec<&str>| words.join(" or ");
    if !has.workloads.contains(&case.workload) {
        let what = match case.workload {
            Workload::Stream => "carries no stream, only round trips",
            Workload::PingPong => "carries a stream one way, no round trips",
        };
        return refuse(what.to_owned(), "another --workload".to_owned());
    }
    if !has.tasks.contains(&case.tasks) {
        let known = words(has.tasks.iter().map(|tasks| tasks.word()).collect());
        return refuse(format!("cannot be held by tasks `{}`", case.tasks), format!("--tasks {known}"));
    }
    if !has.waits.contains(&case.wait) {
        let known = words(has.waits.iter().map(|wait| wait.word()).collect());
        return refuse(format!("its ends cannot wait by `{}`", case.wait), format!("--wait {known}"));
    }
    let levels = mechanism.data(options);
    if !levels.contains(&case.data) {
        let known = words(levels.iter().map(|data| data.word()).collect());
        return refuse(format!("has no data level `{}`", case.data), format!("--data {known}"));
    }
    Ok(())
}
