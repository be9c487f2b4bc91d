//! One trial: opens the channels, starts the tasks, checks and combines their reports.

use std::ffi::CStr;
use std::io::{self, Write};
use std::sync::Arc;

use mechanism::{
    Channel, Endpoint, EndpointRole, Folder, Job, OpenError, Pace, PacedClient, Progress, Request,
};
use model::{
    Case, CaseError, DataLevel, ErrorKind, Load, NoSample, Sample, Tasks, Workload, latency_histogram,
    monotonic_ns,
};
use payload::{Buffering, Consumer, Producer, TagChecker, Tagger, Tile};
use process::{Child, leave};
use serde::{Deserialize, Serialize};

use crate::control::TrialPage;
use crate::end::{EndReport, run_end};
use crate::prepare::{Ready, all_tasks, tasks};
use crate::sample::{Ends, check_arrival, check_content, make_sample};
use crate::watch::{collect_reports, goal, system_failure, wait_for_tasks};

/// The parameters of a trial.
pub(crate) struct TrialSetup<'a> {
    pub(crate) case: &'a Case,
    pub(crate) ready: &'a Ready,
    pub(crate) tile: &'a Arc<Tile>,
    pub(crate) folder: &'a Folder,
    /// Blocks of each pair and each sender.
    pub(crate) blocks: u64,
    pub(crate) round: u32,
    pub(crate) paced_client: PacedClient,
}

/// The granted sizes and the raw figures.
#[derive(Serialize, Deserialize)]
pub(crate) struct TrialOutcome {
    pub(crate) sample: Sample,
    pub(crate) granted: mechanism::Granted,
    /// The sender's congestion control, if the connection is with another host.
    pub(crate) congestion_control: Option<String>,
}

/// Runs one trial. `expected` gives the right checksum of a number of bytes; `None` if the user stops it.
pub(crate) fn run_trial(
    setup: &TrialSetup<'_>,
    expected: &mut dyn FnMut(u64) -> Option<String>,
    progress: &mut dyn FnMut(f64),
    stop: &dyn Fn() -> bool,
) -> Result<TrialOutcome, NoSample> {
    let began_ns = monotonic_ns();
    let mut channels = open_all(setup)?;
    let control = TrialPage::new(all_tasks(setup.case))
        .map_err(|error| system_failure("mmap of the shared page", &error))?;
    let mut children = start_tasks(setup, &mut channels, &control)?;
    // The tasks have the ends now. If an end stayed open here, its peer would not see that the task has closed it.
    channels.iter_mut().for_each(|channel| channel.endpoints.clear());
    wait_for_tasks(&mut children, setup.case, setup.blocks, &control, progress, stop)?;
    let ends =
        Ends { case: setup.case, blocks: setup.blocks, reports: &collect_reports(&children, setup.case)? };
    check_arrival(&ends)?;
    check_content(&ends, setup.ready.mechanism.atomic_bytes, expected)?;
    let sample = make_sample(&ends, setup.round, began_ns, &control)?;
    Ok(TrialOutcome { sample, granted: granted_to_all(channels), congestion_control: None })
}

/// Opens a channel for each pair.
fn open_all(setup: &TrialSetup<'_>) -> Result<Vec<Channel>, CaseError> {
    let pairs = setup.case.load.pairs();
    let open = |pair: u32| {
        let channel = setup.ready.mechanism.open(&request(setup));
        channel.map_err(|error| pair_error(open_error(error), pair, pairs))
    };
    (1..=pairs).map(open).collect()
}

/// The error for pair `pair`, counted from 1. If earlier pairs could be opened, the cause is a limit of this machine.
fn pair_error(error: CaseError, pair: u32, pairs: u32) -> CaseError {
    if pair == 1 {
        return error;
    }
    let message = format!("pair {pair} of {pairs}: {}", error.message);
    let remedy =
        error.remedy.map_or_else(|| FEWER_AT_ONCE.to_owned(), |remedy| format!("fewer --pairs, or {remedy}"));
    CaseError::stated(ErrorKind::Limit, message).with_remedy(remedy)
}

/// The remedy if this machine cannot open or start all pairs or tasks at the same time.
const FEWER_AT_ONCE: &str = "fewer pairs or tasks at once; or if no descriptors were left (EMFILE), ulimit -n 4096; if no processes were left (EAGAIN), ulimit -u 4096";

/// The granted sizes of all pairs: the smallest, and the largest if they differ.
fn granted_to_all(channels: Vec<Channel>) -> mechanism::Granted {
    let mut granted = mechanism::Granted::new();
    let mut most = mechanism::Granted::new();
    for (name, size) in channels.into_iter().flat_map(|channel| channel.granted) {
        most.entry(format!("{name}_most")).and_modify(|most| *most = size.max(*most)).or_insert(size);
        granted.entry(name).and_modify(|least| *least = size.min(*least)).or_insert(size);
    }
    most.retain(|name, size| name.strip_suffix("_most").and_then(|name| granted.get(name)) != Some(size));
    granted.into_iter().chain(most).collect()
}

/// The request to the mechanism.
pub(crate) fn request<'s>(setup: &'s TrialSetup<'_>) -> Request<'s> {
    let case = setup.case;
    Request {
        options: &setup.ready.options,
        workload: case.workload,
        tasks: case.tasks,
        wait: case.wait,
        data: case.data,
        relays: case.relays,
        senders: case.load.senders,
        receivers: case.load.receivers,
        block_bytes: setup.ready.block_bytes,
        total_bytes: setup.blocks.saturating_mul(case.block_bytes).saturating_mul(case.load.senders().into()),
        folder: setup.folder,
    }
}

/// Why a channel, or one end of it, cannot be opened.
pub(crate) fn open_error(error: OpenError) -> CaseError {
    let OpenError { kind, message, remedy, .. } = error;
    CaseError { kind, message, remedy, expected: kind != ErrorKind::Open }
}

/// Starts one process for each endpoint, or for each pair one process with a thread for each endpoint.
fn start_tasks(
    setup: &TrialSetup<'_>,
    channels: &mut [Channel],
    control: &TrialPage,
) -> Result<Vec<Child<'static>>, CaseError> {
    let mut endpoints: Vec<Vec<Option<Box<dyn Endpoint>>>> =
        channels.iter_mut().map(|channel| channel.endpoints.drain(..).map(Some).collect()).collect();
    let mut children = Vec::new();
    for pair in 0..endpoints.len() {
        let count = endpoints[pair].len();
        // One child for each endpoint, or one for all.
        let held = if setup.case.tasks == Tasks::Processes { 1 } else { count };
        for index in (0..count).step_by(held) {
            let child = Child::fork(child_name(setup.case, index, count), |report| {
                let held: Vec<_> =
                    endpoints[pair][index..index + held].iter_mut().filter_map(Option::take).collect();
                // A child closes the descriptors of all other ends.
                endpoints.clear();
                run_ends(setup, held, pair, index, control, report);
            });
            children.push(child.map_err(|error| no_task(setup.case.load, children.len(), &error))?);
        }
    }
    Ok(children)
}

/// The error of a task that cannot be started: with many tasks, a limit of this machine.
fn no_task(load: Load, started: usize, error: &io::Error) -> CaseError {
    let failure = system_failure("fork", error);
    if !load.is_requested() || started == 0 {
        return failure;
    }
    let message = format!("after {started} tasks: {}", failure.message);
    CaseError::stated(ErrorKind::Limit, message).with_remedy(FEWER_AT_ONCE.to_owned())
}

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
pub(crate) fn run_ends(
    setup: &TrialSetup<'_>,
    mut endpoints: Vec<Box<dyn Endpoint>>,
    pair: usize,
    first: usize,
    control: &TrialPage,
    report: &mut dyn Write,
) {
    if let [endpoint] = endpoints.as_mut_slice() {
        return write_report(report, &[work(setup, endpoint.as_mut(), pair, first, control)]);
    }
    let ends: Vec<EndReport> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, mut endpoint) in endpoints.into_iter().enumerate() {
            let work = move || work(setup, endpoint.as_mut(), pair, first + index, control);
            match std::thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    // The started threads wait at the barrier for ever: the process has to end.
                    write_report(report, &[EndReport::failed(&error)]);
                    leave(0);
                }
            }
        }
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    write_report(report, &ends);
}

/// Errors are ignored: the supervisor notices a missing report.
fn write_report(report: &mut dyn Write, ends: &[EndReport]) {
    let _ = serde_json::to_writer(&mut *report, ends);
}

/// Runs task `index` of its pair: moves to its CPU, makes its buffers, and runs its end.
fn work(
    setup: &TrialSetup<'_>,
    endpoint: &mut dyn Endpoint,
    pair: usize,
    index: usize,
    control: &TrialPage,
) -> EndReport {
    let (case, role) = (setup.case, endpoint.role());
    // The scheduler places the relays of a chain: few machines have CPUs for all.
    if let Some(cpu) = setup.ready.cpu_of(case, pair, index).filter(|_| role != EndpointRole::Relay) {
        // `prepare` has checked that this process may use the CPU.
        let _ = process::pin(cpu);
    }
    let block_bytes = setup.ready.block_bytes;
    let sends = if matches!(role, EndpointRole::Receiver | EndpointRole::Relay) { 0 } else { block_bytes };
    let receives = if role == EndpointRole::Sender { 0 } else { block_bytes };
    // Each of two hosts has one task.
    let task = if case.toward.is_some() { 0 } else { pair * tasks(case) + index };
    // With a chain or with many senders or receivers the CPUs are not compared: there is no single other end.
    let cpus = (tasks(case) == 2 && case.relays == 0 && case.toward.is_none())
        .then(|| (control.cpu(task), control.cpu(pair * tasks(case) + 1 - index)));
    let pings = case.workload == Workload::PingPong && index == 0;
    let pace = |rate| Pace::new(rate, setup.paced_client, if pings { latency_histogram() } else { None });
    let are_tagged = case.load.shares_an_end() && case.data == DataLevel::Verify;
    let senders = are_tagged.then(|| case.load.senders());
    let blocks = match role {
        EndpointRole::Receiver => setup.blocks * u64::from(case.load.senders()),
        _ => setup.blocks,
    };
    let tagger = |_| Tagger::new(setup.tile.clone(), index as u32, block_bytes);
    let tag_checker = |senders| TagChecker::new(setup.tile.clone(), senders, block_bytes);
    // A message of a round trip is made when it is sent, and checked before it is answered.
    let buffering =
        |offset: u16| Buffering { offset: offset.into(), batches: case.workload == Workload::Stream };
    let mut job = Job {
        blocks,
        block_bytes,
        producer: Producer::new(setup.tile.clone(), case.data, sends, buffering(case.align.sender)),
        consumer: Consumer::new(case.data, case.check, setup.tile, receives, buffering(case.align.receiver)),
        // To another host several blocks may take long; with several pairs or senders each one's share is counted in single blocks.
        blocks_between_reports: if case.toward.is_some() || case.load.is_requested() { 1 } else { 64 },
        progress: Progress::new(control.moved(task), cpus, goal(case, blocks)),
        latencies_ns: if pings { latency_histogram() } else { None },
        // The first task sends the stream, or asks.
        pace: case.load.rate_per_s.filter(|_| index == 0).map(pace),
        tagger: senders.filter(|_| role == EndpointRole::Sender).map(tagger),
        tag_checker: senders.filter(|_| role == EndpointRole::Receiver).map(tag_checker),
        receivers: case.load.receivers(),
        totals: None,
        received_bytes: 0,
    };
    // Whether this task reports how much it moved, and the amount if it is known in advance.
    let (reports_amount, moved) = match (case.load, case.workload) {
        (Load { senders: Some(_), .. }, _) => (role == EndpointRole::Sender, Some(blocks * case.block_bytes)),
        // A receiver knows its amount only at the end.
        (Load { receivers: Some(_), .. }, _) => (role == EndpointRole::Receiver, None),
        (_, Workload::Stream) => (index + 1 == tasks(case), Some(blocks * case.block_bytes)),
        (_, Workload::PingPong) => (index == 0, Some(blocks)),
    };
    let done = (reports_amount && case.load.is_requested()).then_some((task, moved));
    run_end(endpoint, &mut job, control, done, setup.blocks)
}
