//! Channels put together from directions: which task holds which ends, and which loop it runs.
//!
//! ```text
//!                task         direction        task           loops
//!  a stream      [sender] ═══════════════▶ [receiver]         send_stream, receive_stream
//!  round trips   [sender, ═══════════════▶ [receiver,         ask,
//!                 receiver] ◀═════════════  sender]           answer
//!  one task      [sender ════════════════▶  receiver]         pass_blocks; with a second direction pass_there_and_back
//!  a chain       [sender] ═▶ [receiver, sender] ═▶ [receiver]  send_stream, relay, receive_stream: a direction for each hop
//!  many senders  [sender] ═╗
//!                [sender] ═╩═════════════▶ [receiver]         send_among_others, receive_from_many: one direction
//! ```

use std::any::Any;
use std::io;
use std::os::fd::OwnedFd;

use model::{Tasks, Workload, describe_errno};

use crate::loops::{
    answer, ask, endpoint, pass_blocks, pass_there_and_back, receive_among_others, receive_from_many,
    receive_stream, relay, send_among_others, send_stream, send_to_many,
};
use crate::system::{InCall, granted};
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
    if request.senders.or(request.receivers).is_some() {
        return with_shared_end(request, forth);
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
        let copy = |fd: &OwnedFd| fd.try_clone().in_call("dup");
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
    match (workload, meeting.is_initiator) {
        (Workload::Stream, true) => endpoint(EndpointRole::Sender, connection, send_stream),
        (Workload::Stream, false) => endpoint(EndpointRole::Receiver, connection, receive_stream),
        (Workload::PingPong, true) => endpoint(EndpointRole::Both, connection, ask),
        (Workload::PingPong, false) => endpoint(EndpointRole::Both, connection, answer),
    }
}

/// A channel of one direction. Several tasks share its sending end, or else its receiving end.
fn with_shared_end<S: Sender + 'static, R: Receiver + 'static>(
    request: &Request<'_>,
    direction: Direction<S, R>,
) -> Result<Channel, OpenError> {
    if request.workload != Workload::Stream || request.tasks == Tasks::Single || request.relays > 0 {
        return Err(OpenError::unsupported(
            match request.senders {
                Some(_) => "many senders send a stream to one receiver",
                None => "many receivers take a stream from one sender",
            },
            "--workload stream, --tasks processes or threads, and no --chain",
        ));
    }
    let Direction { sender, receiver, granted, keep } = direction;
    let endpoints = if let Some(count) = request.senders {
        let senders = handles("sender", count, sender, S::another, no_second_sender)?.into_iter();
        let senders = senders.map(|sender| endpoint(EndpointRole::Sender, sender, send_among_others));
        senders.chain([endpoint(EndpointRole::Receiver, receiver, receive_from_many)]).collect()
    } else {
        let count = request.receivers.unwrap_or(1);
        let receivers = handles("receiver", count, receiver, R::another_receiver, no_second_receiver)?;
        let receivers = receivers.into_iter();
        let receivers = receivers.map(|one| endpoint(EndpointRole::Receiver, one, receive_among_others));
        [endpoint(EndpointRole::Sender, sender, send_to_many)].into_iter().chain(receivers).collect()
    };
    Ok(Channel { endpoints, granted, keep: Vec::from_iter(keep) })
}

/// `count` handles to one end, for as many tasks: the given one, and others that `another` makes of it.
fn handles<E>(
    name: &str,
    count: u32,
    end: E,
    another: impl Fn(&E) -> Option<io::Result<E>>,
    refusal: fn() -> OpenError,
) -> Result<Vec<E>, OpenError> {
    let mut handles = vec![end];
    while handles.len() < count as usize {
        let another = another(&handles[0]).ok_or_else(refusal)?;
        handles.push(another.map_err(|error| {
            let message = format!("{name} {} of {count}: {}", handles.len() + 1, describe_errno(&error));
            let remedy = format!("fewer --{name}s, or where descriptors ran out (EMFILE), ulimit -n 4096");
            OpenError::limit(message, remedy)
        })?);
    }
    Ok(handles)
}

/// The error of a request for many receivers.
pub(crate) fn no_second_receiver() -> OpenError {
    OpenError::unsupported(
        "only one task can have its receiving end",
        "without --receivers, or a pipe, FIFO, socket or message queue",
    )
}

/// The error of a request for many senders.
fn no_second_sender() -> OpenError {
    OpenError::unsupported(
        "only one task can have its sending end",
        "without --senders, or a mechanism that can have many (`hosepipe list`)",
    )
}
