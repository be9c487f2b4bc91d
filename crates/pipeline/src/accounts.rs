//! What is written into the record of a stage and of a link.

use std::time::Duration;

use model::{LinkRecord, StageRecord};

use crate::execute::Plumbed;
use crate::supervise::{Account, Ending};
use crate::watch::{Seen, peak_memory};

/// A stage's record.
pub(crate) fn stage_record(
    pipeline: u32,
    command: &str,
    pid: Option<i32>,
    account: &Account,
    seen: Option<Seen>,
) -> StageRecord {
    StageRecord {
        pipeline,
        command: command.to_owned(),
        pid,
        status: account.ending.status(),
        signal: match account.ending {
            Ending::Killed(signal) => Some(signal),
            Ending::Left(_) => None,
        },
        wall_ns: nanoseconds(account.wall),
        user_ns: nanoseconds(account.user),
        system_ns: nanoseconds(account.system),
        blocked_read_ns: seen.map(|seen| nanoseconds(seen.blocked_read)),
        blocked_write_ns: seen.map(|seen| nanoseconds(seen.blocked_write)),
        queued_ns: None,
        held_up_ns: None,
        max_rss_bytes: largest_memory(account, seen),
    }
}

/// A new program begins in our memory, so a figure no larger than our own says nothing of it (vfork(2)).
fn largest_memory(account: &Account, seen: Option<Seen>) -> Option<u64> {
    let seen = seen?.max_rss_bytes;
    let ours = peak_memory(std::process::id() as i32)?;
    let counted = Some(account.max_rss_bytes).filter(|bytes| *bytes > ours);
    counted.max(seen)
}

/// A link's record.
pub(crate) fn link_record(pipeline: u32, spec: String, link: Plumbed) -> LinkRecord {
    let Plumbed { granted, report, kept } = link;
    LinkRecord {
        pipeline,
        spec,
        granted,
        bytes: report.bytes,
        stored_bytes: report.stored_bytes,
        path: report.path.map(|path| path.to_string_lossy().into_owned()),
        relay: report.relay,
        kept: kept.map(|path| path.to_string_lossy().into_owned()),
        trouble: report.trouble,
        watched_ns: None,
        full_ns: None,
        empty_ns: None,
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
