//! The tasks of a trial: each runs one end, in a process or a thread of its own.

use std::ffi::CStr;
use std::io::Write;

use mechanism::{Endpoint, EndpointRole, Pace, Progress, ReportUnit, Transfer};
use model::{Case, DataLevel, Load, Tasks, Workload, latency_histogram};
use payload::{Buffering, Consumer, Producer, TagChecker, Tagger};
use process::leave;

use crate::control::TrialPage;
use crate::endpoint::{EndpointReport, TotalProgress, run_endpoint};
use crate::prepare::{goal, tasks};
use crate::trial::TrialSetup;

/// The process name of each task: the first sends, the last receives.
pub(crate) fn child_name(case: &Case, index: usize, count: usize) -> &'static CStr {
    match index {
        _ if case.tasks != Tasks::Processes => c"hosepipe-tasks",
        0 => c"hosepipe-send",
        _ if case.load.receivers.is_some() => c"hosepipe-recv",
        last if last + 1 == count => c"hosepipe-recv",
        _ if case.load.senders.is_some() => c"hosepipe-send",
        _ => c"hosepipe-relay",
    }
}

/// Runs the endpoints of a child: one, or several in threads. The first one has index `first` in its pair.
pub(crate) fn run_endpoints(
    setup: &TrialSetup<'_>,
    mut endpoints: Vec<Box<dyn Endpoint>>,
    pair: usize,
    first: usize,
    page: &TrialPage,
    report: &mut dyn Write,
) {
    if let [endpoint] = endpoints.as_mut_slice() {
        return write_report(report, &[run_task(setup, endpoint.as_mut(), pair, first, page)]);
    }
    let ends: Vec<EndpointReport> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, mut endpoint) in endpoints.into_iter().enumerate() {
            let run = move || run_task(setup, endpoint.as_mut(), pair, first + index, page);
            match std::thread::Builder::new().spawn_scoped(scope, run) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    // The started threads wait at the barrier for ever: the process has to end.
                    write_report(report, &[EndpointReport::failed(&error)]);
                    leave(0);
                }
            }
        }
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    write_report(report, &ends);
}

/// Errors are ignored: the supervisor notices a missing report.
fn write_report(report: &mut dyn Write, ends: &[EndpointReport]) {
    let _ = serde_json::to_writer(&mut *report, ends);
}

/// Runs task `index` of its pair: moves to its CPU, makes its buffers, and runs its end.
fn run_task(
    setup: &TrialSetup<'_>,
    endpoint: &mut dyn Endpoint,
    pair: usize,
    index: usize,
    page: &TrialPage,
) -> EndpointReport {
    let (case, role) = (setup.case, endpoint.role());
    // The scheduler places the relays of a chain: few machines have CPUs for all.
    if let Some(cpu) = setup.ready.cpu_of(case, pair, index).filter(|_| role != EndpointRole::Relay) {
        // `prepare` has checked that this process may use the CPU.
        let _ = process::pin(cpu);
    }
    // Each of two hosts has one task.
    let task = if case.direction.is_some() { 0 } else { pair * tasks(case) + index };
    // With a chain or with many senders or receivers the CPUs are not compared: there is no single other end.
    let cpus = (tasks(case) == 2 && case.relays == 0 && case.direction.is_none())
        .then(|| (page.cpu(task), page.cpu(pair * tasks(case) + 1 - index)));
    let pings = case.workload == Workload::PingPong && index == 0;
    let pace = |rate| Pace::new(rate, setup.paced_client, if pings { latency_histogram() } else { None });
    let blocks = match role {
        EndpointRole::Receiver => setup.blocks * u64::from(case.load.senders()),
        _ => setup.blocks,
    };
    // To another host several blocks may take long; with several pairs or senders each one's share is counted in single blocks.
    let counts_each = case.direction.is_some() || case.load.is_requested();
    let unit = if counts_each { ReportUnit::Each } else { ReportUnit::ManyIfSmall };
    let mut transfer = Transfer {
        blocks,
        block_bytes: setup.ready.block_bytes,
        producer: producer(setup, role, index),
        consumer: consumer(setup, role),
        progress: Progress::new(page.moved(task), cpus, goal(case, blocks), unit),
        latencies_ns: if pings { latency_histogram() } else { None },
        // The first task sends the stream, or asks.
        pace: case.load.rate_per_s.filter(|_| index == 0).map(pace),
        receivers: case.load.receivers(),
        received_bytes: 0,
    };
    let (counts, moved) = counted_amount(case, role, index, blocks);
    let total = (counts && case.load.is_requested()).then_some(TotalProgress { task, moved });
    run_endpoint(endpoint, &mut transfer, page, total, setup.blocks)
}

/// Makes the blocks that an end sends.
fn producer(setup: &TrialSetup<'_>, role: EndpointRole, index: usize) -> Producer {
    let (case, tile, block_bytes) = (setup.case, setup.tile.clone(), setup.ready.block_bytes);
    if are_tagged(case) && role == EndpointRole::Sender {
        let tagger = Tagger::new(tile.clone(), index as u32, block_bytes);
        let tagger = if case.load.receivers.is_some() { tagger.adding_up() } else { tagger };
        return Producer::tagged(tagger, tile, block_bytes);
    }
    let sends = if matches!(role, EndpointRole::Receiver | EndpointRole::Relay) { 0 } else { block_bytes };
    Producer::new(tile, case.data, sends, buffering(case, case.align.sender))
}

/// Checks the blocks that an end receives.
fn consumer(setup: &TrialSetup<'_>, role: EndpointRole) -> Consumer {
    let (case, block_bytes) = (setup.case, setup.ready.block_bytes);
    let buffering = buffering(case, case.align.receiver);
    if are_tagged(case) && role == EndpointRole::Receiver {
        let tag_checker = TagChecker::new(setup.tile.clone(), case.load.senders(), block_bytes);
        return Consumer::tagged(tag_checker, block_bytes, buffering);
    }
    let receives = if role == EndpointRole::Sender { 0 } else { block_bytes };
    Consumer::new(case.data, case.check, setup.tile, receives, buffering)
}

fn are_tagged(case: &Case) -> bool {
    case.load.shares_an_end() && case.data == DataLevel::Verify
}

/// A message of a round trip is made when it is sent, and checked before it is answered: only blocks of streams are batched.
fn buffering(case: &Case, offset: u16) -> Buffering {
    Buffering { offset: offset.into(), batches: case.workload == Workload::Stream }
}

/// Whether what task `index` moved counts, and the amount if it is known in advance.
fn counted_amount(case: &Case, role: EndpointRole, index: usize, blocks: u64) -> (bool, Option<u64>) {
    match (case.load, case.workload) {
        (Load { senders: Some(_), .. }, _) => (role == EndpointRole::Sender, Some(blocks * case.block_bytes)),
        // A receiver knows its amount only at the end.
        (Load { receivers: Some(_), .. }, _) => (role == EndpointRole::Receiver, None),
        (_, Workload::Stream) => (index + 1 == tasks(case), Some(blocks * case.block_bytes)),
        (_, Workload::PingPong) => (index == 0, Some(blocks)),
    }
}
