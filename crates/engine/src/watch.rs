//! The supervisor of a trial: waits for every task, kills those that do not end, and finds the cause of a failure.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use model::{Case, CaseError, ErrorKind, NoSample, Tasks, Workload, describe_errno};
use process::{Child, POLL_INTERVAL, describe_ending, wait_for_all};

use crate::control::TrialPage;
use crate::end::{EndFailure, EndReport};
use crate::prepare::tasks;

/// A trial hangs if its ends move no byte for this time plus the time to make and to check one block.
const STALL_MAX: Duration = Duration::from_secs(10);

/// Bytes per second that the slowest machine makes and checks.
const SLOWEST_BYTES_PER_S: u64 = 50 << 20;

/// Longest pause of a trial that does not hang.
fn stall_max(case: &Case) -> Duration {
    STALL_MAX + Duration::from_secs(case.block_bytes / SLOWEST_BYTES_PER_S)
}

pub(crate) fn system_failure(what: &str, error: &io::Error) -> CaseError {
    CaseError::new(ErrorKind::Open, format!("{what}: {}", describe_errno(error)))
}

/// Why waiting for tasks ended early.
pub(crate) struct WaitError(pub(crate) NoSample);

impl From<io::Error> for WaitError {
    fn from(error: io::Error) -> Self {
        Self(system_failure("poll", &error).into())
    }
}

/// Waits for every task of a trial of `blocks` blocks, kills those that do not end, and stops when `stop` is true. Calls `progress`
/// with the part that is done, 0 to 1.
pub(crate) fn wait_for_tasks(
    children: &mut [Child<'_>],
    case: &Case,
    blocks: u64,
    control: &TrialPage,
    progress: &mut dyn FnMut(f64),
    stop: &dyn Fn() -> bool,
) -> Result<(), NoSample> {
    let goal = goal(case, blocks);
    let mut stall = StallTimer::from(Instant::now());
    wait_for_all(children, &|child| !succeeded(child), &mut || {
        if stop() {
            return Err(WaitError(NoSample::Stopped));
        }
        let (slowest, sum) = control.slowest_and_sum();
        stall.update(Instant::now(), sum);
        // With several receivers the part of each is unknown; the sender's progress counts.
        let done = if case.load.receivers.is_some() { control.moved(0).load(Relaxed) } else { slowest };
        progress(done as f64 / goal.max(1) as f64);
        if stall.lasted > stall_max(case) { Err(WaitError(hung(case, sum).into())) } else { Ok(()) }
    })
    .map_err(|WaitError(why)| why)
}

/// The progress of a task that has moved all of this number of blocks.
pub(crate) fn goal(case: &Case, blocks: u64) -> u64 {
    match case.workload {
        Workload::Stream => blocks.saturating_mul(case.block_bytes),
        Workload::PingPong => blocks,
    }
}

pub(crate) fn succeeded(child: &Child<'_>) -> bool {
    child.ended().is_some_and(|ended| ended.status.success())
        && reports(child).iter().all(|end| end.failure.is_none())
}

fn hung(case: &Case, progress: u64) -> CaseError {
    let unit = if case.workload == Workload::Stream { "bytes" } else { "round trips" };
    let limit = stall_max(case);
    let message =
        format!("nothing moved for {} s (progress of all ends: {progress} {unit})", limit.as_secs());
    let smaller = if limit > STALL_MAX { "a smaller --block, or " } else { "" };
    let remedy = format!("{smaller}look for a stopped process (SIGSTOP) or a full or very slow disk");
    CaseError::new(ErrorKind::Hung, message).with_remedy(remedy)
}

/// The reports of all ends, the sender's first; or the cause of the failure.
pub(crate) fn collect_reports(children: &[Child<'_>], case: &Case) -> Result<Vec<EndReport>, CaseError> {
    check_exits(children, case, 0)?;
    let ends: Vec<EndReport> = children.iter().flat_map(reports).collect();
    if let Some(error) = cause(&ends, case) {
        return Err(error);
    }
    let silent = children.iter().any(|child| !succeeded(child) || reports(child).is_empty());
    if silent || ends.is_empty() {
        let message = "an end exited without a report (a bug in hosepipe: please report it)";
        return Err(CaseError::new(ErrorKind::Died, message));
    }
    Ok(ends)
}

/// Checks that every task exited; `first` is the index of the first child's task.
///
/// # Errors
/// The task that was killed, and the signal.
pub(crate) fn check_exits(children: &[Child<'_>], case: &Case, first: usize) -> Result<(), CaseError> {
    for (index, child) in children.iter().enumerate() {
        let Some(ended) = child.ended() else { continue };
        // A task that this process killed is not the cause. A failed task's messages are on standard error.
        let killed_by_us = ended.by_us && ended.status.signal().is_some();
        if !ended.status.success() && !killed_by_us {
            let message = format!(
                "the {} (process {}) {} during a {} trial",
                task_name(first + index, case),
                child.pid(),
                describe_ending(ended.status),
                case.workload
            );
            return Err(CaseError::new(ErrorKind::Died, message));
        }
    }
    Ok(())
}

/// The cause of a failed trial, from the reports of its ends.
pub(crate) fn cause(ends: &[EndReport], case: &Case) -> Option<CaseError> {
    let failures = || ends.iter().filter_map(|end| end.failure.as_ref());
    // "The other end closed" is a consequence; the other end's failure is the cause.
    let cause = failures().find(|failure| !failure.peer_closed).or_else(|| failures().next());
    cause.map(|failure| failed(failure, case))
}

/// Time without progress while the supervisor was running. Ctrl-Z stops it together with the ends, so that the time between two polls
/// counts only up to twice the usual interval.
pub(crate) struct StallTimer {
    seen_at: Instant,
    sum: u64,
    pub(crate) lasted: Duration,
}

impl StallTimer {
    pub(crate) fn from(now: Instant) -> Self {
        Self { seen_at: now, sum: 0, lasted: Duration::ZERO }
    }

    /// Updates with the sum of the progress of all ends.
    pub(crate) fn update(&mut self, now: Instant, sum: u64) {
        let since = now - self.seen_at;
        self.lasted =
            if sum == self.sum { self.lasted + since.min(2 * POLL_INTERVAL) } else { Duration::ZERO };
        (self.seen_at, self.sum) = (now, sum);
    }
}

pub(crate) fn reports(child: &Child<'_>) -> Vec<EndReport> {
    model::from_json(child.captured_output()).unwrap_or_default()
}

fn failed(failure: &EndFailure, case: &Case) -> CaseError {
    if failure.would_block {
        let remedy = "--tasks processes, or a smaller --block".to_owned();
        return CaseError::stated(ErrorKind::Limit, failure.message.clone()).with_remedy(remedy);
    }
    let remedy = match failure.errno {
        Some(libc::ENOSPC) => Some("free some space, a smaller --bytes, or dir= on a larger file system"),
        Some(libc::EFBIG) => Some("raise the file size limit (ulimit -f), or a smaller --bytes"),
        Some(libc::EDQUOT) => Some("your disk quota is spent: a smaller --bytes, or dir= elsewhere"),
        _ => None,
    };
    let blocks = model::ByteSize(case.block_bytes);
    let message = format!("{} of {blocks} blocks: {}", case.workload, failure.message);
    CaseError::new(ErrorKind::Failed, message).with_remedy(remedy.map(str::to_owned))
}

/// The name of a child's task in messages.
fn task_name(child: usize, case: &Case) -> String {
    let children_per_pair = if case.tasks == Tasks::Processes { tasks(case) } else { 1 };
    let (pair, index) = (child / children_per_pair, child % children_per_pair);
    let name = match (index, case.load.senders) {
        _ if case.tasks != Tasks::Processes => "process of both ends".to_owned(),
        (receiver @ 1.., _) if case.load.receivers.is_some() => {
            format!("receiver {receiver} of {}", case.load.receivers())
        }
        (last, _) if last + 1 == tasks(case) => "receiver".to_owned(),
        (sender, Some(senders)) => format!("sender {} of {senders}", sender + 1),
        (0, None) => "sender".to_owned(),
        (relay, None) => format!("relay {relay}"),
    };
    match case.load.pairs {
        Some(pairs) => format!("{name} of pair {} of {pairs}", pair + 1),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Spec;

    /// Expected: the limit allows the time to make, move and check a block of 2 GB.
    /// Happened: "nothing moved for 10 s: look for a stopped process", on a busy machine.
    #[test]
    fn large_blocks_have_a_longer_limit() {
        let case = |block_bytes| Case { block_bytes, ..Case::stream(Spec::plain("pipe")) };
        assert_eq!(stall_max(&case(64 << 10)), STALL_MAX);
        assert!(stall_max(&case(2_000_000_000)) > Duration::from_secs(40));
        assert!(!hung(&case(1), 0).remedy.unwrap_or_default().contains("--block"));
        assert!(hung(&case(2_000_000_000), 0).remedy.unwrap_or_default().contains("a smaller --block"));
    }

    /// Expected: a run that was stopped by Ctrl-Z continues.
    /// Happened: after 10 s of it "nothing moved for 10 s".
    #[test]
    fn time_for_which_the_supervisor_is_stopped_does_not_count() {
        let mut now = Instant::now();
        let mut stall = StallTimer::from(now);
        now += 100 * STALL_MAX;
        stall.update(now, 0);
        assert!(stall.lasted <= 2 * POLL_INTERVAL);
        let polls = STALL_MAX.as_millis() / POLL_INTERVAL.as_millis();
        for _ in 0..polls {
            now += POLL_INTERVAL;
            stall.update(now, 0);
        }
        assert!(stall.lasted >= STALL_MAX, "it counts with polls at the usual interval");
        stall.update(now, 1);
        assert_eq!(stall.lasted, Duration::ZERO, "something moved");
    }
}
