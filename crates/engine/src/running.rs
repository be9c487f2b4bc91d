//! The ends of a trial while they run. Those on this host are tasks in processes or threads; one may be on another host.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use mechanism::{Channel, Endpoint, Granted, Meeting, MeetingMode, TrialKey};
use model::{CaseError, Direction, ErrorKind, NoSample, Tasks};
use process::{Child, wait_for_all};

use crate::channels::{granted_to_all, no_task, open_all, open_error, request};
use crate::control::TrialPage;
use crate::endpoint::EndpointReport;
use crate::failure::{cause, check_exits, no_report, system_failure};
use crate::peer_endpoint::{FAR_STALL_MAX, PEER_STALL_MAX, PeerConnection, PeerEndpoint};
use crate::prepare::{all_tasks, goal};
use crate::stall::{StallTimer, hung, stall_max};
use crate::task::{child_name, run_endpoints};
use crate::trial::TrialSetup;

/// The running ends of a trial. Dropping it ends those on this host.
pub(crate) struct Running<'t> {
    setup: &'t TrialSetup<'t>,
    /// The progress of this host's ends.
    pub(crate) page: TrialPage,
    children: Vec<Child<'static>>,
    /// The index of the first child's task.
    first_task: usize,
    /// The channels, if all ends are on this host: their names are removed with them.
    channels: Vec<Channel>,
    peer: Option<PeerEndpoint<'t>>,
    /// Longest time without progress.
    stall_max: Duration,
}

/// Why waiting for tasks ended early.
struct WaitError(NoSample);

impl From<std::io::Error> for WaitError {
    fn from(error: std::io::Error) -> Self {
        Self(system_failure("poll", &error).into())
    }
}

impl<'t> Running<'t> {
    /// Opens the channels, and starts all ends on this host.
    pub(crate) fn here(setup: &'t TrialSetup<'t>) -> Result<Self, CaseError> {
        let mut channels = open_all(setup)?;
        let page = shared_page(all_tasks(setup.case))?;
        let children = start_tasks(setup, &mut channels, &page)?;
        let stall_max = stall_max(setup.case);
        Ok(Self { setup, page, children, first_task: 0, channels, peer: None, stall_max })
    }

    /// Starts one end on the other host, and one here.
    pub(crate) fn with_peer(
        setup: &'t TrialSetup<'t>,
        far: &'t mut dyn PeerConnection,
    ) -> Result<Self, CaseError> {
        let (peer, address, key) = PeerEndpoint::start(setup, far)?;
        let near = Self::one_endpoint(setup, MeetingMode::Connect(address), key)?;
        Ok(Self { peer: Some(peer), stall_max: PEER_STALL_MAX, ..near })
    }

    /// Starts the end of this host, which meets the one of another host.
    pub(crate) fn one_endpoint(
        setup: &'t TrialSetup<'t>,
        mode: MeetingMode,
        key: TrialKey,
    ) -> Result<Self, CaseError> {
        let open_end = setup.ready.mechanism.open_end.ok_or_else(|| {
            let text = "cannot be measured between two hosts";
            CaseError::stated(ErrorKind::Unsupported, text).with_remedy("tcp".to_owned())
        })?;
        let is_initiator = setup.case.direction == Some(Direction::Peer);
        let meeting = Meeting { mode, key, is_initiator };
        let mut end = Some(open_end(&request(setup), &meeting).map_err(open_error)?);
        let page = shared_page(1)?;
        let first_task = usize::from(!is_initiator);
        let child = Child::fork(child_name(setup.case, first_task, 2), |report| {
            run_endpoints(setup, end.take().into_iter().collect(), 0, first_task, &page, report);
        });
        let children = vec![child.map_err(|error| system_failure("fork", &error))?];
        let (channels, stall_max) = (Vec::new(), FAR_STALL_MAX);
        Ok(Self { setup, page, children, first_task, channels, peer: None, stall_max })
    }

    /// Waits for all ends, and stops when `stop` is true. Calls `progress` with the part that is done, 0 to 1. Returns the reports, the
    /// sender's first.
    ///
    /// # Errors
    /// The cause of a failure; all ends of this host have ended then.
    pub(crate) fn finish(
        &mut self,
        progress: &mut dyn FnMut(f64),
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<EndpointReport>, NoSample> {
        let case = self.setup.case;
        let goal = goal(case, self.setup.blocks);
        let mut reports = self.wait(stop, &mut |moved| {
            progress(moved as f64 / goal.max(1) as f64);
            Ok(())
        })?;
        if let Some(peer) = &mut self.peer {
            let near = reports.first().ok_or_else(no_report)?;
            let remote = peer.report(near, stop)?;
            reports.insert(1 - self.first_task, remote);
        }
        match cause(&reports, case) {
            Some(error) => Err(error.into()),
            None if reports.len() < all_tasks(case) => Err(no_report().into()),
            None => Ok(reports),
        }
    }

    /// Waits for the ends of this host, and returns their reports. Calls `look` at least every [`process::POLL_INTERVAL`] with the progress of
    /// the slowest one, and ends them all if that fails.
    pub(crate) fn wait(
        &mut self,
        stop: &dyn Fn() -> bool,
        look: &mut dyn FnMut(u64) -> Result<(), CaseError>,
    ) -> Result<Vec<EndpointReport>, NoSample> {
        let Self { setup, page, children, peer, stall_max, .. } = self;
        let case = setup.case;
        let mut stall = StallTimer::from(Instant::now());
        let waited = wait_for_all(children, &|child| !succeeded(child), &mut || {
            if stop() {
                return Err(WaitError(NoSample::Stopped));
            }
            let failed = |error: CaseError| WaitError(error.into());
            let (slowest, sum_here) = page.slowest_and_sum();
            // With several receivers the part of each is unknown; the sender's progress counts.
            let moved = if case.load.receivers.is_some() { page.moved(0).load(Relaxed) } else { slowest };
            let moved_far = peer.as_mut().map_or(Ok(0), |peer| peer.look(case)).map_err(failed)?;
            look(moved).map_err(failed)?;
            let sum = sum_here.wrapping_add(moved_far);
            stall.update(Instant::now(), sum);
            if stall.lasted > *stall_max {
                return Err(failed(hung(case, *stall_max, sum)));
            }
            Ok(())
        });
        waited.map_err(|WaitError(why)| why)?;
        check_exits(&self.children, case, self.first_task)?;
        Ok(self.children.iter().flat_map(reports).collect())
    }

    /// Reports to the other host, if its end sent, what arrived here.
    pub(crate) fn confirm(&mut self, received: &EndpointReport) -> Result<(), CaseError> {
        match &mut self.peer {
            Some(peer) if self.setup.case.direction == Some(Direction::Here) => peer.confirm(received),
            _ => Ok(()),
        }
    }

    /// The sizes that were granted to the channels of this host.
    pub(crate) fn granted(&self) -> Granted {
        granted_to_all(&self.channels)
    }
}

fn shared_page(tasks: usize) -> Result<TrialPage, CaseError> {
    TrialPage::new(tasks).map_err(|error| system_failure("mmap of the shared page", &error))
}

fn succeeded(child: &Child<'_>) -> bool {
    child.ended().is_some_and(|ended| ended.status.success())
        && reports(child).iter().all(|end| end.failure.is_none())
}

fn reports(child: &Child<'_>) -> Vec<EndpointReport> {
    model::from_json(child.captured_output()).unwrap_or_default()
}

/// Starts one process for each endpoint, or for each pair one process with a thread for each endpoint.
fn start_tasks(
    setup: &TrialSetup<'_>,
    channels: &mut [Channel],
    page: &TrialPage,
) -> Result<Vec<Child<'static>>, CaseError> {
    let mut endpoints: Vec<Vec<Option<Box<dyn Endpoint>>>> =
        channels.iter_mut().map(|channel| channel.endpoints.drain(..).map(Some).collect()).collect();
    let mut children = Vec::new();
    for pair in 0..endpoints.len() {
        let count = endpoints[pair].len();
        let per_child = if setup.case.tasks == Tasks::Processes { 1 } else { count };
        for index in (0..count).step_by(per_child) {
            let child = Child::fork(child_name(setup.case, index, count), |report| {
                let held: Vec<_> =
                    endpoints[pair][index..index + per_child].iter_mut().filter_map(Option::take).collect();
                // A child closes the descriptors of all other ends.
                endpoints.clear();
                run_endpoints(setup, held, pair, index, page, report);
            });
            children.push(child.map_err(|error| no_task(setup.case.load, children.len(), &error))?);
        }
    }
    // The tasks have the ends now. If an end stayed open here, its peer would not see that the task has closed it.
    Ok(children)
}
