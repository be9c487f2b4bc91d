//! The channels of a trial on this host: opened, and the reasons why they cannot be.

use std::io;

use mechanism::{Channel, Granted, OpenError, Request};
use model::{CaseError, ErrorKind, Load};

use crate::failure::system_failure;
use crate::trial::TrialSetup;

/// Opens a channel for each pair.
pub(crate) fn open_all(setup: &TrialSetup<'_>) -> Result<Vec<Channel>, CaseError> {
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
pub(crate) fn granted_to_all(channels: &[Channel]) -> Granted {
    let mut granted = Granted::new();
    let mut most = Granted::new();
    for (name, size) in channels.iter().flat_map(|channel| channel.granted.clone()) {
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

/// The error of a task that cannot be started: with many tasks, a limit of this machine.
pub(crate) fn no_task(load: Load, started: usize, error: &io::Error) -> CaseError {
    let failure = system_failure("fork", error);
    if !load.is_requested() || started == 0 {
        return failure;
    }
    let message = format!("after {started} tasks: {}", failure.message);
    CaseError::stated(ErrorKind::Limit, message).with_remedy(FEWER_AT_ONCE.to_owned())
}
