//! A trial with ends on two hosts: this host runs one end, and a [`FarEnd`] controls the other. Both hosts run the same code. Times
//! of two hosts are never compared: the time of the trial is that of its receiver, or its client, measured on its own host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mechanism::{Folder, Meeting, MeetingMode, PacedClient, TrialKey};
use model::{
    Case, CaseError, Check, Cpu, DataLevel, ErrorKind, NoSample, PayloadKind, Spec, Toward, Wait, Workload,
    monotonic_ns,
};
use payload::{Period, Tile, expected_checksum};
use process::{Child, POLL_INTERVAL, wait_for_all};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::control::TrialPage;
use crate::end::{EndFailure, EndReport};
use crate::prepare::prepare;
use crate::sample::{Ends, check_arrival, check_content, corrupt, make_sample};
use crate::trial::{TrialOutcome, TrialSetup, child_name, open_error, request, run_ends};
use crate::watch::{StallTimer, WaitError, cause, check_exits, goal, reports, succeeded, system_failure};

/// Time for which an end continues after the other one failed, to report its own error.
const GRACE: Duration = Duration::from_millis(500);

/// Longest time without progress, and longest time without a message from the other host.
const STALL_MAX: Duration = Duration::from_secs(4);

/// Longest time without progress of an end that runs for another host. The other host stops the trial earlier.
const FAR_STALL_MAX: Duration = Duration::from_secs(10);

/// Most bytes whose checksum is computed while the other host waits.
const CONFIRMED_BYTES_MAX: u64 = 4 << 30;

/// Limits of a trial for another host: its block, its bytes, and its time.
const FAR_BLOCK_BYTES_MAX: u64 = 64 << 20;
const FAR_TRIAL_BYTES_MAX: u64 = 1 << 60;
const FAR_TRIAL_MAX: Duration = Duration::from_secs(600);

/// One end of one trial: the request of one host to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndRequest {
    /// The mechanism and its options.
    pub spec: Spec,
    /// Stream or ping-pong.
    pub workload: Workload,
    /// How the end waits.
    pub wait: Wait,
    /// What the ends do with the payload.
    pub data: DataLevel,
    /// How the receiver checks.
    pub check: Check,
    /// The payload; never a file.
    pub payload: PayloadKind,
    /// Seed of a random payload.
    pub seed: u64,
    /// Bytes in a block.
    pub block_bytes: u64,
    /// Blocks, or round trips.
    pub blocks: u64,
    /// The direction, as seen from the requesting host.
    pub toward: Toward,
    /// Random bytes that the connecting end sends first, so that the other recognises it.
    #[serde(rename = "word")]
    pub key: TrialKey,
}

/// A message of the other host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FarMessage {
    /// The progress of its end.
    Moved(u64),
    /// The report of its end.
    Report(Value),
}

/// The connection with the other host, which runs the far end. Every error is reported with the case in which it occurred.
pub trait FarEnd {
    /// Requests one end of a trial from the other host; returns the address on which it listens. Aborts an earlier trial.
    ///
    /// # Errors
    /// The other host cannot be reached.
    fn request_end(&mut self, end_request: &EndRequest) -> Result<SocketAddr, CaseError>;

    /// The next message from the other host; waits for at most `wait`.
    ///
    /// # Errors
    /// An error of the other host, of the connection, or of the protocol.
    fn next_message(&mut self, wait: Duration) -> Result<Option<FarMessage>, CaseError>;

    /// Reports to the other host, whose end sent, the number of bytes that arrived here, and their checksum.
    ///
    /// # Errors
    /// As [`FarEnd::request_end`].
    fn confirm(&mut self, bytes: u64, checksum: Option<&str>) -> Result<(), CaseError>;

    /// Closes the connection.
    fn abandon(&mut self, why: &CaseError);
}

/// Runs one trial with the other end on the other host.
pub(crate) fn run_remote_trial(
    setup: &TrialSetup<'_>,
    far: &mut dyn FarEnd,
    seed: u64,
    expected: &mut dyn FnMut(u64) -> Option<String>,
    progress: &mut dyn FnMut(f64),
    stop: &dyn Fn() -> bool,
) -> Result<TrialOutcome, NoSample> {
    let (case, began_ns) = (setup.case, monotonic_ns());
    let end_request = end_request(setup, seed).map_err(|error| system_failure("getrandom", &error))?;
    let address = far.request_end(&end_request)?;
    let first = case.toward == Some(Toward::Peer);
    let (control, mut children) = start(setup, MeetingMode::Connect(address), end_request.key)?;
    let goal = goal(case, setup.blocks);
    let mut watch = RemoteWatch::new();
    let watched = wait_for_all(&mut children, &|child| !succeeded(child), &mut || {
        if stop() {
            return Err(WaitError(NoSample::Stopped));
        }
        let (moved, _) = control.slowest_and_sum();
        progress(moved as f64 / goal.max(1) as f64);
        watch.update(far, moved, Duration::ZERO).map_err(|error| WaitError(error.into()))?;
        match watch.failed_far().and_then(|failed| cause(std::slice::from_ref(failed), case)) {
            Some(failed) => Err(WaitError(failed.into())),
            None => Ok(()),
        }
    });
    watched.map_err(|WaitError(why)| why)?;
    let near = report_of(&children, case)?;
    let ended = Instant::now();
    let remote = loop {
        if stop() {
            return Err(NoSample::Stopped);
        }
        match watch.report.take() {
            Some(report) => break on_our_clock(report, &end_request, &near)?,
            // After a failure here, waits for the cause from the other host, for at most [`GRACE`].
            None if near.failure.is_some() && ended.elapsed() > GRACE => {
                break EndReport { failure: None, ..near.clone() };
            }
            // Both ends are done at about the same time, so a report must arrive soon.
            None if ended.elapsed() > STALL_MAX => return Err(watch.silent(far).into()),
            None => watch.update(far, control.slowest_and_sum().0, POLL_INTERVAL)?,
        }
    };
    let both = if first { [near, remote] } else { [remote, near] };
    if let Some(error) = cause(&both, case) {
        return Err(error.into());
    }
    let ends = Ends { case, blocks: setup.blocks, reports: &both };
    check_arrival(&ends)?;
    check_content(&ends, setup.ready.mechanism.atomic_bytes, expected)?;
    let received = &both[1];
    if !first {
        far.confirm(received.received_bytes, received.checksum.as_deref())?;
    }
    let sample = make_sample(&ends, setup.round, began_ns, &control)?;
    let facts = || both.iter().filter_map(|end| end.connection.as_ref());
    Ok(TrialOutcome {
        sample: model::Sample { retransmits: facts().find_map(|facts| facts.retransmits), ..sample },
        granted: facts().flat_map(|facts| facts.granted.clone()).collect(),
        congestion_control: facts().find_map(|facts| facts.congestion_control.clone()),
    })
}

/// Runs one end of a trial for another host, which connects to `listener`. Calls `report` twenty times per second with the progress;
/// an error of `report` ends the trial. Returns the report of the end.
///
/// # Errors
/// The end cannot run here, or failed; or the error of `report`.
pub fn run_far_end(
    end_request: &EndRequest,
    listener: &Arc<std::net::TcpListener>,
    cpus: &[Cpu],
    report: &mut dyn FnMut(u64) -> Result<(), CaseError>,
) -> Result<Value, CaseError> {
    let case = case(end_request)?;
    let ready = prepare(&case, cpus)?;
    let tile = Tile::make(&end_request.payload, end_request.seed, Period::of_check(end_request.check))
        .map_err(|error| CaseError::stated(ErrorKind::Open, error.to_string()))?;
    let folder = Folder::private();
    let blocks = end_request.blocks;
    let setup = TrialSetup {
        case: &case,
        ready: &ready,
        tile: &Arc::new(tile),
        folder: &folder,
        blocks,
        round: 0,
        paced_client: PacedClient::Polls,
    };
    let (control, mut children) = start(&setup, MeetingMode::Listen(listener.clone()), end_request.key)?;
    let began = Instant::now();
    let mut movement = StallTimer::from(began);
    wait_for_all(&mut children, &|child| !succeeded(child), &mut || {
        let (moved, _) = control.slowest_and_sum();
        report(moved).map_err(|error| WaitError(error.into()))?;
        movement.update(Instant::now(), moved);
        if movement.lasted > FAR_STALL_MAX {
            let text = format!("nothing moves between the hosts for {} s", FAR_STALL_MAX.as_secs());
            return Err(WaitError(CaseError::new(ErrorKind::Hung, text).into()));
        }
        if began.elapsed() < FAR_TRIAL_MAX {
            return Ok(());
        }
        let text = format!("a trial takes longer than {} s", FAR_TRIAL_MAX.as_secs());
        Err(WaitError(CaseError::new(ErrorKind::Limit, text).into()))
    })
    .map_err(|WaitError(why)| match why {
        NoSample::Failed(error) => error,
        NoSample::Stopped => CaseError::new(ErrorKind::Died, "stopped"),
    })?;
    let report = report_of(&children, &case)?;
    serde_json::to_value(report).map_err(|error| CaseError::new(ErrorKind::Died, error.to_string()))
}

/// Checks the number of bytes that the other host received from here, and the checksum of at most [`CONFIRMED_BYTES_MAX`].
///
/// # Errors
/// They are wrong; the message has the right ones.
pub fn check_confirmed(
    end_request: &EndRequest,
    bytes: u64,
    checksum: Option<&str>,
) -> Result<(), CaseError> {
    let sent = end_request.blocks.saturating_mul(end_request.block_bytes);
    if bytes != sent {
        return Err(corrupt(format!("the other host says that {bytes} of {sent} bytes arrived")));
    }
    // A request that was refused has no payload to compare with: a file that it names is not read.
    let payload = case(end_request).ok().map(|case| case.payload);
    let tile = payload
        .and_then(|payload| Tile::make(&payload, end_request.seed, Period::of_check(end_request.check)).ok());
    let checked = tile.filter(|_| end_request.data == DataLevel::Verify && bytes <= CONFIRMED_BYTES_MAX);
    match checked.and_then(|tile| expected_checksum(&tile, end_request.check, bytes, &|| false)) {
        Some(expected) if checksum != Some(&expected) => Err(corrupt(format!(
            "the other host reports the checksum {} of {bytes} bytes, but their {} is {expected}",
            checksum.unwrap_or("none"),
            end_request.check
        ))),
        _ => Ok(()),
    }
}

/// The request for the other host's end of a trial, with a random key.
fn end_request(setup: &TrialSetup<'_>, seed: u64) -> std::io::Result<EndRequest> {
    let case = setup.case;
    let mut key = TrialKey::default();
    rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())?;
    Ok(EndRequest {
        spec: case.spec.clone(),
        workload: case.workload,
        wait: case.wait,
        data: case.data,
        check: case.check,
        payload: case.payload.clone(),
        seed,
        block_bytes: case.block_bytes,
        blocks: setup.blocks,
        toward: case.toward.unwrap_or(Toward::Peer),
        key,
    })
}

/// The case of a request as seen from this host: the requesting host is its peer.
fn case(end_request: &EndRequest) -> Result<Case, CaseError> {
    let refuse = |text: &str| Err(CaseError::stated(ErrorKind::Unsupported, text));
    if !(1..=FAR_BLOCK_BYTES_MAX).contains(&end_request.block_bytes) {
        return refuse("blocks between two hosts have 1 byte to 64 MiB");
    }
    if end_request.blocks == 0 || end_request.blocks > FAR_TRIAL_BYTES_MAX / end_request.block_bytes {
        return refuse("a trial between two hosts has 1 block to 1 EiB");
    }
    if matches!(end_request.payload, PayloadKind::File(_)) {
        return refuse("no file is read for another host");
    }
    Ok(Case {
        workload: end_request.workload,
        wait: end_request.wait,
        data: end_request.data,
        check: end_request.check,
        payload: end_request.payload.clone(),
        block_bytes: end_request.block_bytes,
        toward: Some(if end_request.toward == Toward::Peer { Toward::Here } else { Toward::Peer }),
        ..Case::stream(end_request.spec.clone())
    })
}

/// Starts the task of this host's end.
fn start(
    setup: &TrialSetup<'_>,
    mode: MeetingMode,
    key: TrialKey,
) -> Result<(TrialPage, Vec<Child<'static>>), CaseError> {
    let open_end = setup.ready.mechanism.open_end.ok_or_else(|| {
        let text = "cannot be measured between two hosts";
        CaseError::stated(ErrorKind::Unsupported, text).with_remedy("tcp".to_owned())
    })?;
    let is_first = setup.case.toward == Some(Toward::Peer);
    let meeting = Meeting { mode, key, is_first };
    let mut end = Some(open_end(&request(setup), &meeting).map_err(open_error)?);
    let control = TrialPage::new(1).map_err(|error| system_failure("mmap of the shared page", &error))?;
    let index = usize::from(!is_first);
    let child = Child::fork(child_name(setup.case, index, 2), |report| {
        run_ends(setup, end.take().into_iter().collect(), 0, index, &control, report);
    });
    Ok((control, vec![child.map_err(|error| system_failure("fork", &error))?]))
}

/// The report of this host's end, or of its failure.
fn report_of(children: &[Child<'_>], case: &Case) -> Result<EndReport, CaseError> {
    check_exits(children, case, usize::from(case.toward != Some(Toward::Peer)))?;
    let report = children.iter().flat_map(reports).next();
    report.ok_or_else(|| CaseError::new(ErrorKind::Died, "an end exited without a report"))
}

/// The report of the other host's end, with its times moved so that it starts when this host's end did. Impossible figures are
/// refused or limited to the largest possible one.
fn on_our_clock(
    reported: EndReport,
    end_request: &EndRequest,
    near: &EndReport,
) -> Result<EndReport, CaseError> {
    /// Larger than any figure of a trial, and small enough to be added up.
    const MOST: u64 = 1 << 60;
    let receives = end_request.workload == Workload::PingPong || end_request.toward == Toward::Peer;
    let bytes = if receives { end_request.blocks * end_request.block_bytes } else { 0 };
    if reported.failure.is_none() && reported.received_bytes != bytes {
        let received = reported.received_bytes;
        return Err(corrupt(format!("the other host says that it received {received} of {bytes} bytes")));
    }
    let mut usage = reported.usage;
    for figure in [
        &mut usage.voluntary_switches,
        &mut usage.involuntary_switches,
        &mut usage.minor_faults,
        &mut usage.blocks_stored,
        &mut usage.user_ns,
        &mut usage.system_ns,
    ] {
        *figure = MOST.min(*figure);
    }
    usage.syscalls = usage.syscalls.map(|calls| calls.min(MOST));
    let took_ns = reported.end_ns.saturating_sub(reported.start_ns).min(MOST);
    Ok(EndReport {
        start_ns: near.start_ns,
        end_ns: near.start_ns.saturating_add(took_ns),
        usage,
        // This host is the client of round trips and has their times.
        latency_histogram: None,
        service_histogram: None,
        torn_blocks: None,
        cpu_comparisons: (0, 0),
        failure: reported.failure.map(|failure| EndFailure {
            message: format!("on the other host: {}", failure.message),
            ..failure
        }),
        ..reported
    })
}

/// The supervisor of a trial on two hosts: checks for progress and for messages of the other host.
struct RemoteWatch {
    movement: StallTimer,
    silence: StallTimer,
    far_moved: u64,
    messages: u64,
    report: Option<EndReport>,
    reported: Instant,
}

impl RemoteWatch {
    fn new() -> Self {
        let now = Instant::now();
        let (movement, silence) = (StallTimer::from(now), StallTimer::from(now));
        Self { movement, silence, far_moved: 0, messages: 0, report: None, reported: now }
    }

    /// The error of a host that sends no useful message; closes the connection.
    fn silent(&self, far: &mut dyn FarEnd) -> CaseError {
        let text = format!("the other host says nothing for {} s", STALL_MAX.as_secs());
        let error = CaseError::new(ErrorKind::Hung, text);
        far.abandon(&error);
        error
    }

    /// The other end's report of a failure, if it is older than [`GRACE`].
    fn failed_far(&self) -> Option<&EndReport> {
        self.report.as_ref().filter(|end| end.failure.is_some() && self.reported.elapsed() > GRACE)
    }

    /// Handles the messages of the other host; waits for at most `wait` if there are none.
    fn update(&mut self, far: &mut dyn FarEnd, moved: u64, wait: Duration) -> Result<(), CaseError> {
        const MESSAGES_MAX: usize = 100;
        for _ in 0..MESSAGES_MAX {
            match far.next_message(if self.report.is_some() { Duration::ZERO } else { wait })? {
                None => break,
                Some(FarMessage::Moved(moved)) => self.far_moved = moved,
                Some(FarMessage::Report(report)) => {
                    let report = serde_json::from_value(report);
                    let no_report = |error| corrupt(format!("the other host's report is invalid: {error}"));
                    self.report = Some(report.map_err(no_report)?);
                    self.reported = Instant::now();
                }
            }
            self.messages += 1;
            if self.report.is_some() {
                break;
            }
        }
        let now = Instant::now();
        self.movement.update(now, moved.wrapping_add(self.far_moved));
        self.silence.update(now, self.messages);
        if self.report.is_none() && self.silence.lasted > STALL_MAX {
            return Err(self.silent(far));
        }
        if self.movement.lasted > STALL_MAX {
            let text = format!("nothing moves between the hosts for {} s", STALL_MAX.as_secs());
            return Err(CaseError::new(ErrorKind::Hung, text));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: no file is read for another host. Happened: the file in a refused request was read for its confirmation.
    #[test]
    fn the_file_of_a_refused_request_is_not_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&file, b"secret").expect("written");
        let end_request = |payload| EndRequest {
            spec: "tcp".parse().expect("a spec"),
            workload: Workload::Stream,
            wait: Wait::Block,
            data: DataLevel::Verify,
            check: Check::Xor,
            payload,
            seed: 1,
            block_bytes: 6,
            blocks: 1,
            toward: Toward::Peer,
            key: TrialKey::default(),
        };
        let of_file = end_request(PayloadKind::File(file.path().into()));
        assert!(check_confirmed(&of_file, 6, Some("wrong")).is_ok(), "there is nothing to compare with");
        assert!(check_confirmed(&end_request(PayloadKind::Sequence), 6, Some("wrong")).is_err());
    }
}
