//! One end of a trial: from the barrier to the last byte, with its resource usage.

use std::io;

use mechanism::{ConnectionFacts, Endpoint, Transfer};
use model::{EndUsage, describe_errno, encode_histogram, monotonic_ns, thread_cpu_ns};
use nix::sys::resource::{UsageWho, getrusage};
use payload::BlockTotals;
use process::end_usage;
use serde::{Deserialize, Serialize};

use crate::control::TrialPage;

/// What an end reports to the supervisor, as JSON.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct EndpointReport {
    /// CLOCK_MONOTONIC when it left the barrier; the same clock in every process of the machine.
    pub(crate) start_ns: u64,
    /// CLOCK_MONOTONIC when it was done.
    pub(crate) end_ns: u64,
    /// Bytes it received.
    pub(crate) received_bytes: u64,
    /// The checksum over them, at level `verify`.
    pub(crate) checksum: Option<String>,
    /// Its resource usage.
    pub(crate) usage: EndUsage,
    /// Round trip times, encoded as in records.
    pub(crate) latency_histogram: Option<String>,
    /// For paced round trips, the times since the actual request, encoded as in records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) service_histogram: Option<String>,
    /// Blocks of many senders that did not arrive in one piece; `None` if bytes are missing, or blocks were not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) torn_blocks: Option<u64>,
    /// With many receivers: what the sender sent, or one receiver received; `None` if blocks were not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pieces: Option<BlockTotals>,
    /// How often it compared the CPUs of both ends, and how often they were the same.
    pub(crate) cpu_comparisons: (u64, u64),
    /// When it had moved each sixteenth of the blocks, as [`start_ns`](Self::start_ns).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sixteenths_ns: Vec<u64>,
    /// The state of its connection with another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) connection: Option<ConnectionFacts>,
    /// Its error.
    pub(crate) failure: Option<EndpointFailure>,
}

impl EndpointReport {
    /// The report of an end that could not start.
    pub(crate) fn failed(error: &io::Error) -> Self {
        Self { failure: Some(EndpointFailure::from(error)), ..Self::default() }
    }
}

/// The error of an end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EndpointFailure {
    /// The error in words, errno by name.
    pub(crate) message: String,
    /// The errno, if there is one.
    pub(crate) errno: Option<i32>,
    /// Whether the other end closed before the last byte: then the report of that end has the cause.
    pub(crate) peer_closed: bool,
    /// Whether a single task would have waited for itself because the block does not fit into the channel.
    pub(crate) would_block: bool,
}

impl From<&io::Error> for EndpointFailure {
    fn from(error: &io::Error) -> Self {
        let errno = error.raw_os_error();
        let peer_errno = matches!(errno, Some(libc::EPIPE | libc::ECONNRESET));
        Self {
            message: describe_errno(error),
            errno,
            peer_closed: peer_errno || error.kind() == io::ErrorKind::UnexpectedEof,
            would_block: error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

/// The total progress of an end, which the trial page records when the end is done.
pub(crate) struct TotalProgress {
    /// The index of the end.
    pub(crate) task: usize,
    /// `None` if the reports of the transfer already contain it exactly.
    pub(crate) moved: Option<u64>,
}

/// Runs one end of a trial, from the barrier on. `total` is given if the trial page has to record the progress of all ends at the time
/// when the first is done. `blocks`: blocks of each sender.
pub(crate) fn run_endpoint(
    endpoint: &mut dyn Endpoint,
    transfer: &mut Transfer<'_>,
    page: &TrialPage,
    total: Option<TotalProgress>,
    blocks: u64,
) -> EndpointReport {
    // An end that could not be prepared also waits at the barrier, so that the others can continue.
    let prepared = endpoint.prepare();
    page.barrier();
    let before = ThreadUsage::now();
    let syscalls_before = endpoint.syscalls();
    let (start_ns, end_ns, result) = clock_endpoint(|| prepared.and_then(|()| endpoint.run(transfer)));
    if let Some(TotalProgress { task, moved }) = total.filter(|_| result.is_ok()) {
        page.record_done(task, moved, end_ns);
    }
    let polled_ns = transfer.pace.as_ref().map_or(0, |pace| pace.polled_cpu_ns);
    let usage = before.until_now(polled_ns);
    let syscalls = endpoint.syscalls().zip(syscalls_before).map(|(after, before)| after - before);
    let service_ns = transfer.pace.as_ref().and_then(|pace| pace.service_ns.as_ref());
    EndpointReport {
        start_ns,
        end_ns,
        received_bytes: transfer.received_bytes,
        checksum: transfer.consumer.checksum(),
        usage: EndUsage { syscalls, ..usage },
        latency_histogram: transfer.latencies_ns.as_ref().and_then(|times| encode_histogram(times).ok()),
        service_histogram: service_ns.and_then(|times| encode_histogram(times).ok()),
        pieces: transfer.producer.totals().or(transfer.consumer.totals()),
        torn_blocks: transfer.consumer.torn(blocks),
        cpu_comparisons: transfer.progress.cpu_comparisons(),
        sixteenths_ns: transfer.progress.sixteenths_ns(),
        connection: endpoint.connection(),
        failure: result.err().as_ref().map(EndpointFailure::from),
    }
}

/// The clock of one end (CLOCK_MONOTONIC): it starts after the barrier and stops when `moves_all` has moved the last byte, checked
/// at level `verify`. [`crate::sample::clock_trial`] computes the trial's times from those of every end.
fn clock_endpoint<T>(moves_all: impl FnOnce() -> T) -> (u64, u64, T) {
    let start_ns = monotonic_ns();
    let result = moves_all();
    (start_ns, monotonic_ns(), result)
}

/// What the calling thread has used so far. An end has only one thread, also if it is a process.
struct ThreadUsage {
    /// RUSAGE_THREAD of getrusage(2). For a thread that runs, its CPU times end at the last tick of the scheduler: of a trial of 10 ms
    /// up to half was missing.
    usage: EndUsage,
    /// CLOCK_THREAD_CPUTIME_ID, which has no such lag (clock_gettime(2)), in nanoseconds.
    cpu_ns: u64,
}

impl ThreadUsage {
    fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_THREAD);
        let usage = usage.map(|usage| end_usage(usage.as_ref())).unwrap_or_default();
        Self { usage, cpu_ns: thread_cpu_ns() }
    }

    /// What the thread has used since, without `polled_ns` of CPU time, in which it only waited until a round trip was due.
    fn until_now(&self, polled_ns: u64) -> EndUsage {
        let now = Self::now();
        let cpu_ns = now.cpu_ns.saturating_sub(self.cpu_ns).saturating_sub(polled_ns);
        now.usage.since(&self.usage).with_cpu_ns(cpu_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of trials that are shorter than a tick of the scheduler (10 ms at HZ=100), too: each one's CPU time is all that the clock says.
    #[test]
    fn the_cpu_time_of_a_short_trial_is_all_of_it() {
        for _ in 0..20 {
            let before = ThreadUsage::now();
            let began_ns = thread_cpu_ns();
            let mut sum = 0_u64;
            (0..1_000_000_u64).for_each(|at| sum = std::hint::black_box(sum ^ at));
            let least_ns = thread_cpu_ns() - began_ns;
            let usage = before.until_now(0);
            let most_ns = thread_cpu_ns() - before.cpu_ns;
            let used_ns = usage.user_ns + usage.system_ns;
            assert!((least_ns..=most_ns).contains(&used_ns), "{used_ns} of {least_ns} to {most_ns} ns");
        }
    }
}
