//! Why a trial gave no sample: its cause, found from what became of its ends.

use std::io;
use std::os::unix::process::ExitStatusExt;

use model::{Case, CaseError, ErrorKind, Tasks, describe_errno};
use process::{Child, describe_ending};

use crate::endpoint::{EndpointFailure, EndpointReport};
use crate::prepare::tasks;

pub(crate) fn system_failure(what: &str, error: &io::Error) -> CaseError {
    CaseError::new(ErrorKind::Open, format!("{what}: {}", describe_errno(error)))
}

/// The error of an end that ended as it should, but gave no report.
pub(crate) fn no_report() -> CaseError {
    let message = "an end exited without a report (a bug in hosepipe: please report it)";
    CaseError::new(ErrorKind::Died, message)
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
pub(crate) fn cause(ends: &[EndpointReport], case: &Case) -> Option<CaseError> {
    let failures = || ends.iter().filter_map(|end| end.failure.as_ref());
    // "The other end closed" is a consequence; the other end's failure is the cause.
    let cause = failures().find(|failure| !failure.peer_closed).or_else(|| failures().next());
    cause.map(|failure| failed(failure, case))
}

fn failed(failure: &EndpointFailure, case: &Case) -> CaseError {
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
