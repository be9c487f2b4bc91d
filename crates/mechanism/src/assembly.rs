//! Channels put together from directions: which task holds which ends, and which loop it runs.

use std::any::Any;
use std::os::fd::OwnedFd;

use model::{Tasks, Workload, describe_errno};

use crate::loops::{
    answer, ask, endpoint, pass_blocks, pass_there_and_back, receive_among_others, receive_from_many,
    receive_stream, relay, send_among_others, send_stream, send_to_many,
};
use crate::system::granted;
use crate::{Channel, Endpoint, EndpointRole, Granted, Meeting, OpenError, Receiver, Request, Sender};

/// One direction of a mechanism, open: a sender and its receiver.
pub(crate) struct Direction<S, R> {
    pub(crate) sender: S,
    pub(crate) receiver: R,
    /// Sizes that the system granted this direction.
    pub(crate) granted: Granted,
    /// A value that must outlive both ends: a name, which is removed by the process that made it.
    pub(crate) keep: Option<Box<dyn Any>>,
}

impl<S, R> Direction<S, R> {
    pub(crate) fn new(sender: S, receiver: R) -> Self {
        Self { sender, receiver, granted: Granted::new(), keep: None }
    }

    /// The same with sizes that the system granted, in bytes.
    pub(crate) fn granted<const N: usize>(mut self, sizes: [(&str, u64); N]) -> Self {
        self.granted.append(&mut granted(sizes));
        self
    }
}

/// Makes a channel of a mechanism whose directions are independent: one for a stream, two for a ping-pong, one for
/// each hop of a chain.
pub(crate) fn one_way<S: Sender + 'static, R: Receiver + 'static>(
    request: &Request<'_>,
    mut open_direction: impl FnMut() -> Result<Direction<S, R>, OpenError>,
) -> Result<Channel, OpenError> {
    let forth = open_direction()?;
    if let Some(senders) = request.senders {
        return many_senders(request, senders, forth);
    }
    if let Some(receivers) = request.receivers {
        return many_receivers(request, receivers, forth);
    }
    if request.relays > 0 {
        return chain(request, forth, open_direction);
    }
    let back = if request.workload == Workload::PingPong { Some(open_direction()?) } else { None };
    Ok(assemble(request, forth, back))
}

/// A channel over connected pairs of descriptors that carry bytes both ways: a stream goes from the first to
/// the second, a ping-pong both ways over the one pair, a chain over a pair for each hop.
pub(crate) fn over_connected<S: Sender + 'static, R: Receiver + 'static>(
    request: &Request<'_>,
    mut connect: impl FnMut() -> Result<(OwnedFd, OwnedFd), OpenError>,
    direction: impl Fn(OwnedFd, OwnedFd) -> Result<Direction<S, R>, OpenError>,
) -> Result<Channel, OpenError> {
    if request.workload == Workload::PingPong && request.relays == 0 {
        let (near, far) = connect()?;
        let copy = |fd: &OwnedFd| fd.try_clone().map_err(OpenError::system("dup"));
        let forth = direction(copy(&near)?, copy(&far)?)?;
        return Ok(assemble(request, forth, Some(direction(far, near)?)));
    }
    one_way(request, || connect().and_then(|(near, far)| direction(near, far)))
}

/// Makes a channel with relays, tasks that copy, between the ends: sender | relay | … | receiver.
fn chain<S: Sender + 'static, R: Receiver + 'static>(
    request: &Request<'_>,
    first: Direction<S, R>,
    mut open_direction: impl FnMut() -> Result<Direction<S, R>, OpenError>,
) -> Result<Channel, OpenError> {
    if request.workload == Workload::PingPong || request.tasks == Tasks::Single {
        return Err(no_chain());
    }
    let mut endpoints = vec![endpoint(EndpointRole::Sender, first.sender, send_stream)];
    let mut keep = Vec::from_iter(first.keep);
    let mut receiver = first.receiver;
    for _ in 0..request.relays {
        let next = open_direction()?;
        endpoints.push(endpoint(EndpointRole::Relay, (next.sender, receiver), relay));
        keep.extend(next.keep);
        receiver = next.receiver;
    }
    endpoints.push(endpoint(EndpointRole::Receiver, receiver, receive_stream));
    Ok(Channel { endpoints, granted: first.granted, keep })
}

/// The error of a request for relays in a round trip, or with a single task.
pub(crate) fn no_chain() -> OpenError {
    OpenError::unsupported(
        "a chain carries a stream between two tasks",
        "--workload stream, and --tasks processes or threads",
    )
}

/// Makes a channel from its directions: an endpoint for each task, with the ends and the loop of that task.
pub(crate) fn assemble<S: Sender + 'static, R: Receiver + 'static>(
    request: &Request<'_>,
    forth: Direction<S, R>,
    mut back: Option<Direction<S, R>>,
) -> Channel {
    let Direction { sender, receiver, granted, keep } = forth;
    let keep = keep.into_iter().chain(back.as_mut().and_then(|back| back.keep.take())).collect();
    let both = EndpointRole::Both;
    let endpoints = match (request.tasks, back) {
        (Tasks::Single, None) => vec![endpoint(both, (sender, receiver), pass_blocks)],
        (Tasks::Single, Some(back)) => {
            vec![endpoint(both, ((sender, receiver), (back.sender, back.receiver)), pass_there_and_back)]
        }
        (_, None) => vec![
            endpoint(EndpointRole::Sender, sender, send_stream),
            endpoint(EndpointRole::Receiver, receiver, receive_stream),
        ],
        (_, Some(back)) => vec![
            endpoint(both, (sender, back.receiver), ask),
            endpoint(both, (back.sender, receiver), answer),
        ],
    };
    Channel { endpoints, granted, keep }
}

/// One end of a channel whose other end is on another host, over a connection that carries bytes both ways.
pub(crate) fn lone_end<C: Sender + Receiver + 'static>(
    workload: Workload,
    meeting: &Meeting,
    connection: C,
) -> Box<dyn Endpoint> {
    match (workload, meeting.is_first) {
        (Workload::Stream, true) => endpoint(EndpointRole::Sender, connection, send_stream),
        (Workload::Stream, false) => endpoint(EndpointRole::Receiver, connection, receive_stream),
        (Workload::PingPong, true) => endpoint(EndpointRole::Both, connection, ask),
        (Workload::PingPong, false) => endpoint(EndpointRole::Both, connection, answer),
    }
}

/// A channel of one direction whose sending end several tasks share.
pub(crate) fn many_senders<S: Sender + 'static, R: Receiver + 'static>(
    request: &Request<'_>,
    count: u32,
    direction: Direction<S, R>,
) -> Result<Channel, OpenError> {
    if request.workload != Workload::Stream || request.tasks == Tasks::Single || request.relays > 0 {
        return Err(OpenError::unsupported(
            "many senders send a stream to one receiver",
            "--workload stream, --tasks processes or threads, and no --chain",
        ));
    }
    let Direction { sender, receiver, granted, keep } = direction;
    let mut senders = vec![sender];
    while senders.len() < count as usize {
        let another = senders[0].another().ok_or_else(no_second_sender)?;
        senders.push(another.map_err(|error| OpenError::Limit {
            message: format!("sender {} of {count}: {}", senders.len() + 1, describe_errno(&error)),
            remedy: "fewer --senders, or where descriptors ran out (EMFILE), ulimit -n 4096".to_owned(),
        })?);
    }
    let senders = senders.into_iter().map(|sender| endpoint(EndpointRole::Sender, sender, send_among_others));
    let receiver = endpoint(EndpointRole::Receiver, receiver, receive_from_many);
    Ok(Channel { endpoints: senders.chain([receiver]).collect(), granted, keep: Vec::from_iter(keep) })
}

/// A channel of one direction whose receiving end several tasks share.
fn many_receivers<S: Sender + 'static, R: Receiver + 'static>(
    request: &Request<'_>,
    count: u32,
    direction: Direction<S, R>,
) -> Result<Channel, OpenError> {
    if request.workload != Workload::Stream || request.tasks == Tasks::Single || request.relays > 0 {
        return Err(OpenError::unsupported(
            "many receivers take a stream from one sender",
            "--workload stream, --tasks processes or threads, and no --chain",
        ));
    }
    let Direction { sender, receiver, granted, keep } = direction;
    let mut receivers = vec![receiver];
    while receivers.len() < count as usize {
        let another = receivers[0].another_receiver().ok_or_else(no_second_receiver)?;
        receivers.push(another.map_err(|error| OpenError::Limit {
            message: format!("receiver {} of {count}: {}", receivers.len() + 1, describe_errno(&error)),
            remedy: "fewer --receivers, or where descriptors ran out (EMFILE), ulimit -n 4096".to_owned(),
        })?);
    }
    let receivers = receivers
        .into_iter()
        .map(|receiver| endpoint(EndpointRole::Receiver, receiver, receive_among_others));
    let sender = endpoint(EndpointRole::Sender, sender, send_to_many);
    Ok(Channel {
        endpoints: [sender].into_iter().chain(receivers).collect(),
        granted,
        keep: Vec::from_iter(keep),
    })
}

/// The error of a request for many receivers.
pub(crate) fn no_second_receiver() -> OpenError {
    OpenError::unsupported(
        "only one task can have its receiving end",
        "without --receivers, or a pipe, FIFO, socket or message queue",
    )
}

/// The error of a request for many senders.
pub(crate) fn no_second_sender() -> OpenError {
    OpenError::unsupported(
        "only one task can have its sending end",
        "without --senders, or a mechanism that can have many (`hosepipe list`)",
    )
}
