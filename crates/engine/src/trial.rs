//! One trial: open, start the tasks, put what they report together, check it.

use std::ffi::CStr;
use std::io::{self, Write};
use std::sync::Arc;

use mechanism::{Channel, Endpoint, EndpointRole, Folder, Job, OpenError, Progress, Request};
use model::{
    Case, CaseError, DataLevel, ErrorKind, NoSample, Sample, Tasks, Workload, latency_histogram, monotonic_ns,
};
use payload::{Consumer, Producer, Tile};
use process::{Child, leave};

use crate::control::Control;
use crate::end::{EndReport, run_end};
use crate::prepare::{Ready, tasks};
use crate::watch::{judge, system_failure, wait_for_tasks};

/// What a trial is made of, beside its case.
pub(crate) struct TrialSetup<'a> {
    pub(crate) case: &'a Case,
    pub(crate) ready: &'a Ready,
    pub(crate) tile: &'a Arc<Tile>,
    pub(crate) folder: &'a Folder,
    pub(crate) blocks: u64,
    pub(crate) round: u32,
}

/// Sizes granted, and the raw figures.
pub(crate) struct TrialOutcome {
    pub(crate) sample: Sample,
    pub(crate) granted: mechanism::Granted,
}

/// Runs one trial. `expected` says what the checksum of a number of bytes must be, unless the user stops it.
pub(crate) fn run_trial(
    setup: &TrialSetup<'_>,
    expected: &mut dyn FnMut(u64) -> Option<String>,
    progress: &mut dyn FnMut(f64),
    stop: &dyn Fn() -> bool,
) -> Result<TrialOutcome, NoSample> {
    let began = monotonic_ns();
    let mut channel = open(setup)?;
    let control = Control::new().map_err(|error| system_failure("mmap of the control page", &error))?;
    let mut tasks = start_tasks(setup, &mut channel, &control)?;
    // The tasks hold the ends now. An end kept open here would hide that the other one closed.
    channel.endpoints.clear();
    wait_for_tasks(&mut tasks, setup.case, setup.blocks, &control, progress, stop)?;
    let ends = judge(&tasks, setup.case)?;
    all_arrived(setup.case, setup.blocks, &ends)?;
    if setup.case.data == DataLevel::Verify {
        for end in ends.iter().filter(|end| end.received_bytes > 0) {
            let expected = expected(end.received_bytes).ok_or(NoSample::Stopped)?;
            verify(setup.case, end, &expected)?;
        }
    }
    let sample = make_sample(setup, &ends, began);
    Ok(TrialOutcome { sample, granted: channel.granted })
}

fn open(setup: &TrialSetup<'_>) -> Result<Channel, CaseError> {
    let case = setup.case;
    let request = Request {
        options: &setup.ready.options,
        workload: case.workload,
        tasks: case.tasks,
        wait: case.wait,
        data: case.data,
        relays: case.relays,
        block_bytes: setup.ready.block_bytes,
        total_bytes: setup.blocks.saturating_mul(case.block_bytes),
        folder: setup.folder,
    };
    setup.ready.mechanism.open(&request).map_err(|error| {
        let (kind, expected) = match error {
            OpenError::Limit { .. } | OpenError::BlockTooLarge { .. } => (ErrorKind::Limit, true),
            OpenError::Unsupported { .. } => (ErrorKind::Unsupported, true),
            OpenError::System { .. } => (ErrorKind::Open, false),
        };
        CaseError { kind, message: error.to_string(), remedy: error.remedy().map(str::to_owned), expected }
    })
}

/// Starts one process for each endpoint, or one that holds all of them in threads.
fn start_tasks(
    setup: &TrialSetup<'_>,
    channel: &mut Channel,
    control: &Control,
) -> Result<Vec<Child<'static>>, CaseError> {
    let endpoints = std::mem::take(&mut channel.endpoints);
    let started = if setup.case.tasks == Tasks::Processes {
        start_processes(setup, endpoints, control)
    } else {
        start_host(setup, endpoints, control).map(|task| vec![task])
    };
    started.map_err(|error| system_failure("fork", &error))
}

/// What the process of each task is called: the first sends, the last receives.
fn process_name(index: usize, count: usize) -> &'static CStr {
    match index {
        0 => c"hosepipe-send",
        last if last + 1 == count => c"hosepipe-recv",
        _ => c"hosepipe-relay",
    }
}

fn start_processes(
    setup: &TrialSetup<'_>,
    endpoints: Vec<Box<dyn Endpoint>>,
    control: &Control,
) -> io::Result<Vec<Child<'static>>> {
    let count = endpoints.len() as u32;
    let mut endpoints: Vec<Option<Box<dyn Endpoint>>> = endpoints.into_iter().map(Some).collect();
    let mut tasks = Vec::new();
    for index in 0..endpoints.len() {
        let task = Child::fork(process_name(index, endpoints.len()), |report| {
            let endpoint = endpoints[index].take();
            // The other end's descriptors are the other process's alone.
            endpoints.clear();
            if let Some(mut endpoint) = endpoint {
                let ended = work(setup, endpoint.as_mut(), index, control, count);
                write_report(report, &[ended]);
            }
        })?;
        tasks.push(task);
    }
    Ok(tasks)
}

/// One child that is the only task, or that holds both in threads.
fn start_host(
    setup: &TrialSetup<'_>,
    endpoints: Vec<Box<dyn Endpoint>>,
    control: &Control,
) -> io::Result<Child<'static>> {
    let count = endpoints.len() as u32;
    Child::fork(c"hosepipe-tasks", |report| {
        let ends: Vec<EndReport> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (index, mut endpoint) in endpoints.into_iter().enumerate() {
                let work = move || work(setup, endpoint.as_mut(), index, control, count);
                match std::thread::Builder::new().spawn_scoped(scope, work) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        // Those already started wait at the barrier for ever: nothing but leaving ends them.
                        write_report(report, &[EndReport::failed(&error)]);
                        leave(0);
                    }
                }
            }
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        write_report(report, &ends);
    })
}

/// A report that cannot be written is one the supervisor does not get: it says so.
fn write_report(report: &mut dyn Write, ends: &[EndReport]) {
    let _ = serde_json::to_writer(&mut *report, ends);
}

/// What each task does: moves to its CPU, readies its buffers, and runs its end.
fn work(
    setup: &TrialSetup<'_>,
    endpoint: &mut dyn Endpoint,
    index: usize,
    control: &Control,
    tasks: u32,
) -> EndReport {
    let case = setup.case;
    // The relays of a chain run where the scheduler puts them: there are seldom CPUs enough for all.
    let cpu = match endpoint.role() {
        EndpointRole::Relay => None,
        _ if index == 0 => setup.ready.cpus.first(),
        _ => setup.ready.cpus.last(),
    };
    if let Some(cpu) = cpu {
        // Checked before the run against the CPUs this process may use.
        let _ = process::pin(*cpu);
    }
    let block_bytes = setup.ready.block_bytes;
    // An end that only sends needs no room to receive, and the other way round.
    let sends =
        if matches!(endpoint.role(), EndpointRole::Receiver | EndpointRole::Relay) { 0 } else { block_bytes };
    let receives = if endpoint.role() == EndpointRole::Sender { 0 } else { block_bytes };
    // Relays have no other end of their own: of a chain nobody looks.
    let cpus = (tasks == 2 && case.relays == 0).then(|| (control.cpu(index), control.cpu(1 - index)));
    let pings = case.workload == Workload::PingPong && index == 0;
    let mut job = Job {
        blocks: setup.blocks,
        block_bytes,
        producer: Producer::new(setup.tile.clone(), case.data, sends),
        consumer: Consumer::new(case.data, case.check, receives),
        progress: Progress::new(control.moved(index), cpus, setup.blocks),
        latencies_ns: if pings { latency_histogram() } else { None },
        received_bytes: 0,
    };
    run_end(endpoint, &mut job, control, tasks)
}

/// Puts the reports of the ends together.
fn make_sample(setup: &TrialSetup<'_>, ends: &[EndReport], began_ns: u64) -> Sample {
    let case = setup.case;
    let last = last_end(case, ends);
    let start_ns = ends.iter().map(|end| end.start_ns).min().unwrap_or(began_ns);
    let usage = ends.iter().map(|end| end.usage.clone()).collect();
    Sample {
        round: setup.round,
        elapsed_ns: last.map_or(0, |last| last.end_ns.saturating_sub(start_ns)).max(1),
        setup_ns: start_ns.saturating_sub(began_ns),
        bytes: setup.blocks * case.block_bytes,
        messages: setup.blocks,
        checksum: last.and_then(|last| last.checksum.clone()),
        latency_histogram: ends.first().and_then(|end| end.latency_histogram.clone()),
        same_cpu_share: same_cpu_share(ends),
        ..Sample::of_ends(usage)
    }
}

/// The share of all looks at which both ends were on one CPU; `None` where nobody looked.
fn same_cpu_share(ends: &[EndReport]) -> Option<f64> {
    let sum = |of: fn(&EndReport) -> u64| ends.iter().map(of).sum::<u64>();
    let (looks, together) = (sum(|end| end.looks.0), sum(|end| end.looks.1));
    (looks > 0).then(|| together as f64 / looks as f64)
}

/// The end that has the last byte, at which the clock stops: the receiver of a stream, the asker of a round trip.
fn last_end<'a>(case: &Case, ends: &'a [EndReport]) -> Option<&'a EndReport> {
    match case.workload {
        Workload::Stream => ends.last(),
        Workload::PingPong => ends.first(),
    }
}

/// Refuses a trial whose tasks did not all report, or whose last end says that it received less than was sent: nothing else
/// would be checked of it.
fn all_arrived(case: &Case, blocks: u64, ends: &[EndReport]) -> Result<(), CaseError> {
    let (reports, tasks) = (ends.len(), tasks(case));
    let sent = blocks.saturating_mul(case.block_bytes);
    let received = last_end(case, ends).map_or(0, |end| end.received_bytes);
    if reports == tasks && received >= sent {
        return Ok(());
    }
    Err(corrupt(format!("{reports} of {tasks} ends reported, and {received} of {sent} bytes arrived")))
}

fn corrupt(message: String) -> CaseError {
    let remedy = "a fault of the mechanism or of its code here: please tell us".to_owned();
    CaseError::new(ErrorKind::Corrupt, message).with_remedy(remedy)
}

fn verify(case: &Case, end: &EndReport, expected: &str) -> Result<(), CaseError> {
    if end.checksum.as_deref() == Some(expected) {
        return Ok(());
    }
    Err(corrupt(format!(
        "the {} of {} received bytes is {}, not {expected}: bytes were lost, repeated, swapped or changed",
        case.check,
        end.received_bytes,
        end.checksum.as_deref().unwrap_or("missing")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Spec;

    #[test]
    fn an_end_that_says_nothing_or_received_nothing_is_no_sample() {
        let case = Case { block_bytes: 10, ..Case::stream(Spec::plain("pipe")) };
        let end = |received_bytes| EndReport {
            received_bytes,
            ..EndReport::failed(&io::Error::from(io::ErrorKind::Other))
        };
        let said = |ends: &[EndReport]| all_arrived(&case, 2, ends).err().map(|error| error.message);
        assert_eq!(said(&[end(0), end(20)]), None);
        assert_eq!(said(&[end(20)]).as_deref(), Some("1 of 2 ends reported, and 20 of 20 bytes arrived"));
        assert_eq!(
            said(&[end(20), end(0)]).as_deref(),
            Some("2 of 2 ends reported, and 0 of 20 bytes arrived")
        );
    }
}
