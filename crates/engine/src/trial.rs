//! One trial: starts its ends, waits for them, checks and combines their reports.

use std::sync::Arc;

use mechanism::{Folder, Granted, PacedClient};
use model::{Case, NoSample, Sample, monotonic_ns};
use payload::Tile;
use serde::{Deserialize, Serialize};

use crate::peer_endpoint::PeerConnection;
use crate::prepare::Ready;
use crate::running::Running;
use crate::sample::{Ends, check_arrival, check_content, make_sample};

/// The parameters of a trial.
pub(crate) struct TrialSetup<'a> {
    pub(crate) case: &'a Case,
    pub(crate) ready: &'a Ready,
    pub(crate) tile: &'a Arc<Tile>,
    pub(crate) folder: &'a Folder,
    /// Blocks of each pair and each sender.
    pub(crate) blocks: u64,
    pub(crate) round: u32,
    /// Seed of a random payload.
    pub(crate) seed: u64,
    pub(crate) paced_client: PacedClient,
}

/// The granted sizes and the raw figures.
#[derive(Serialize, Deserialize)]
pub(crate) struct TrialOutcome {
    pub(crate) sample: Sample,
    pub(crate) granted: Granted,
    /// The sender's congestion control, if the connection is with another host.
    pub(crate) congestion_control: Option<String>,
}

/// Runs one trial, with one end on the other host if there is one. `expected` gives the right checksum of a number of bytes; `None` if the
/// user stops it.
pub(crate) fn run_trial(
    setup: &TrialSetup<'_>,
    far: Option<&mut dyn PeerConnection>,
    expected: &mut dyn FnMut(u64) -> Option<String>,
    progress: &mut dyn FnMut(f64),
    stop: &dyn Fn() -> bool,
) -> Result<TrialOutcome, NoSample> {
    let began_ns = monotonic_ns();
    let mut running = match far {
        Some(far) => Running::with_peer(setup, far)?,
        None => Running::here(setup)?,
    };
    let reports = running.finish(progress, stop)?;
    let ends = Ends { case: setup.case, blocks: setup.blocks, reports: &reports };
    check_arrival(&ends)?;
    check_content(&ends, setup.ready.mechanism.atomic_bytes, expected)?;
    reports.last().map_or(Ok(()), |received| running.confirm(received))?;
    let sample = make_sample(&ends, setup.round, began_ns, &running.page)?;
    // What is known of a connection with another host.
    let facts = || reports.iter().filter_map(|end| end.connection.as_ref());
    Ok(TrialOutcome {
        sample: Sample { retransmits: facts().find_map(|facts| facts.retransmits), ..sample },
        granted: facts().flat_map(|facts| facts.granted.clone()).chain(running.granted()).collect(),
        congestion_control: facts().find_map(|facts| facts.congestion_control.clone()),
    })
}
