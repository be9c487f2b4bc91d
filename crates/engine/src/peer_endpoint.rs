//! The end of a trial on another host, as this host sees it. Times of two hosts are never compared: the time of the trial is that of its
//! receiver, or its client, measured on its own host.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mechanism::TrialKey;
use model::{Case, CaseError, Direction, ErrorKind, NoSample, Workload};
use process::POLL_INTERVAL;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::endpoint::{EndpointFailure, EndpointReport};
use crate::failure::{cause, system_failure};
use crate::sample::corrupt;
use crate::stall::StallTimer;
use crate::trial::TrialSetup;

/// Time for which an end continues after the other one failed, to report its own error.
const GRACE: Duration = Duration::from_millis(500);

/// Longest time without progress, and longest time without a message from the other host.
pub(crate) const PEER_STALL_MAX: Duration = Duration::from_secs(4);

/// Longest time without progress of an end that runs for another host. The other host stops the trial earlier.
pub(crate) const FAR_STALL_MAX: Duration = Duration::from_secs(10);

/// Most messages that are handled before this host's end is looked at again.
const MESSAGES_MAX: usize = 100;

/// One end of one trial: the request of one host to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointRequest {
    /// The case, with the direction as seen from the requesting host.
    pub case: Case,
    /// Seed of a random payload.
    pub seed: u64,
    /// Blocks, or round trips.
    pub blocks: u64,
    /// Random bytes that the connecting end sends first, so that the other recognises it.
    pub key: TrialKey,
}

/// A message of the other host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerMessage {
    /// The progress of its end.
    Moved(u64),
    /// The report of its end.
    Report(Value),
}

/// The connection with the other host, which runs the far end. Every error is reported with the case in which it occurred.
pub trait PeerConnection {
    /// Requests one end of a trial from the other host; returns the address on which it listens. Aborts an earlier trial.
    ///
    /// # Errors
    /// The other host cannot be reached.
    fn request_endpoint(&mut self, endpoint_request: &EndpointRequest) -> Result<SocketAddr, CaseError>;

    /// The next message from the other host; waits for at most `wait`.
    ///
    /// # Errors
    /// An error of the other host, of the connection, or of the protocol.
    fn next_message(&mut self, wait: Duration) -> Result<Option<PeerMessage>, CaseError>;

    /// Reports to the other host, whose end sent, the number of bytes that arrived here, and their checksum.
    ///
    /// # Errors
    /// As [`PeerConnection::request_endpoint`].
    fn confirm(&mut self, bytes: u64, checksum: Option<&str>) -> Result<(), CaseError>;

    /// Closes the connection.
    fn abandon(&mut self, why: &CaseError);
}

/// The other host's end of a trial.
pub(crate) struct PeerEndpoint<'f> {
    far: &'f mut dyn PeerConnection,
    endpoint_request: EndpointRequest,
    silence: StallTimer,
    messages: u64,
    /// Its progress.
    moved: u64,
    /// Its report, and when that came.
    report: Option<(EndpointReport, Instant)>,
}

impl<'f> PeerEndpoint<'f> {
    /// Requests the end from the other host; also returns the address on which it listens, and the key of the trial.
    pub(crate) fn start(
        setup: &TrialSetup<'_>,
        far: &'f mut dyn PeerConnection,
    ) -> Result<(Self, SocketAddr, TrialKey), CaseError> {
        let endpoint_request =
            endpoint_request(setup).map_err(|error| system_failure("getrandom", &error))?;
        let (address, key) = (far.request_endpoint(&endpoint_request)?, endpoint_request.key);
        let silence = StallTimer::from(Instant::now());
        Ok((Self { far, endpoint_request, silence, messages: 0, moved: 0, report: None }, address, key))
    }

    /// Handles its messages; returns its progress.
    ///
    /// # Errors
    /// Those of the connection; its failure, if this host's end has not ended by itself within [`GRACE`].
    pub(crate) fn look(&mut self, case: &Case) -> Result<u64, CaseError> {
        self.handle_messages(Duration::ZERO)?;
        match &self.report {
            Some((report, came)) if came.elapsed() > GRACE => {
                cause(std::slice::from_ref(report), case).map_or(Ok(self.moved), Err)
            }
            _ => Ok(self.moved),
        }
    }

    /// Handles messages until its report has come; waits for at most `wait` if there are none.
    fn handle_messages(&mut self, wait: Duration) -> Result<(), CaseError> {
        for _ in 0..MESSAGES_MAX {
            match self.far.next_message(if self.report.is_some() { Duration::ZERO } else { wait })? {
                None => break,
                Some(PeerMessage::Moved(moved)) => self.moved = moved,
                Some(PeerMessage::Report(report)) => {
                    let report = serde_json::from_value(report);
                    let no_report = |error| corrupt(format!("the other host's report is invalid: {error}"));
                    self.report = Some((report.map_err(no_report)?, Instant::now()));
                }
            }
            self.messages += 1;
            if self.report.is_some() {
                break;
            }
        }
        self.silence.update(Instant::now(), self.messages);
        let is_silent = self.report.is_none() && self.silence.lasted > PEER_STALL_MAX;
        if is_silent { Err(self.silent()) } else { Ok(()) }
    }

    /// The error of a host that sends no useful message; closes the connection.
    fn silent(&mut self) -> CaseError {
        let text = format!("the other host says nothing for {} s", PEER_STALL_MAX.as_secs());
        let error = CaseError::new(ErrorKind::Hung, text);
        self.far.abandon(&error);
        error
    }

    /// Its report, after this host's end has ended with the report `near`.
    pub(crate) fn report(
        &mut self,
        near: &EndpointReport,
        stop: &dyn Fn() -> bool,
    ) -> Result<EndpointReport, NoSample> {
        let ended = Instant::now();
        loop {
            if stop() {
                return Err(NoSample::Stopped);
            }
            match self.report.take() {
                Some((report, _)) => return Ok(on_our_clock(report, &self.endpoint_request, near)?),
                // After a failure here, waits for the cause from the other host, for at most [`GRACE`]; without one, the failure here is the cause,
                // and the other end counts as one that did not fail.
                None if near.failure.is_some() && ended.elapsed() > GRACE => {
                    return Ok(EndpointReport { failure: None, ..near.clone() });
                }
                // Both ends are done at about the same time, so a report must arrive soon.
                None if ended.elapsed() > PEER_STALL_MAX => return Err(self.silent().into()),
                None => self.handle_messages(POLL_INTERVAL)?,
            }
        }
    }

    /// Reports to the other host what arrived here.
    pub(crate) fn confirm(&mut self, received: &EndpointReport) -> Result<(), CaseError> {
        self.far.confirm(received.received_bytes, received.checksum.as_deref())
    }
}

/// The request for the other host's end of a trial, with a random key.
fn endpoint_request(setup: &TrialSetup<'_>) -> std::io::Result<EndpointRequest> {
    let mut key = TrialKey::default();
    rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())?;
    Ok(EndpointRequest { case: setup.case.clone(), seed: setup.seed, blocks: setup.blocks, key })
}

/// The report of the other host's end, with its times moved so that it starts when this host's end did. Impossible figures are
/// refused or limited to the largest possible one.
fn on_our_clock(
    reported: EndpointReport,
    endpoint_request: &EndpointRequest,
    near: &EndpointReport,
) -> Result<EndpointReport, CaseError> {
    /// Larger than any figure of a trial, and small enough to be added up.
    const MOST: u64 = 1 << 60;
    let receives = endpoint_request.case.workload == Workload::PingPong
        || endpoint_request.case.direction == Some(Direction::Peer);
    let bytes = if receives { endpoint_request.blocks * endpoint_request.case.block_bytes } else { 0 };
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
    Ok(EndpointReport {
        start_ns: near.start_ns,
        end_ns: near.start_ns.saturating_add(took_ns),
        usage,
        // This host is the client of round trips and has their times.
        latency_histogram: None,
        service_histogram: None,
        torn_blocks: None,
        cpu_comparisons: (0, 0),
        failure: reported.failure.map(|failure| EndpointFailure {
            message: format!("on the other host: {}", failure.message),
            ..failure
        }),
        ..reported
    })
}
