//! The hot loops, written once and compiled for each mechanism: dynamic dispatch happens once per trial.

use std::any::Any;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use model::{Tasks, Workload};

use crate::channel::granted;
use crate::endpoint::{Endpoint, EndpointRole, Job};
use crate::ends::End;
use crate::senders::many_senders;
use crate::{Channel, ConnectionFacts, Granted, Meeting, OpenError, Pace, Receiver, Request, Sender};

/// One direction of a mechanism, open: a sender and its receiver.
pub(crate) struct Direction<S, R> {
    pub(crate) sender: S,
    pub(crate) receiver: R,
    /// Sizes the system granted this direction.
    pub(crate) granted: Granted,
    /// What must outlive both ends: a name, to be removed by the process that made it.
    pub(crate) keep: Option<Box<dyn Any>>,
}

impl<S, R> Direction<S, R> {
    pub(crate) fn new(sender: S, receiver: R) -> Self {
        Self { sender, receiver, granted: Granted::new(), keep: None }
    }

    /// With sizes that the system granted, in bytes.
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

/// Makes a channel with copying tasks between the ends: sender | relay | … | receiver.
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

/// Why there are no relays in a round trip, or beside a single task.
pub(crate) fn no_chain() -> OpenError {
    OpenError::unsupported(
        "a chain carries a stream between two tasks",
        "--workload stream, and --tasks processes or threads",
    )
}

/// Makes a channel of its directions and the tasks that will hold them.
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

/// The ends that one task holds, and what it does with them in a trial. The loop is a function compiled for these
/// ends: it is called through a pointer, once.
struct Task<E> {
    role: EndpointRole,
    ends: E,
    run: fn(&mut E, &mut Job<'_>) -> io::Result<()>,
}

/// Makes a task's side of a channel.
pub(crate) fn endpoint<E: End + 'static>(
    role: EndpointRole,
    ends: E,
    run: fn(&mut E, &mut Job<'_>) -> io::Result<()>,
) -> Box<dyn Endpoint> {
    Box::new(Task { role, ends, run })
}

impl<E: End> Endpoint for Task<E> {
    fn role(&self) -> EndpointRole {
        self.role
    }

    fn prepare(&mut self) -> io::Result<()> {
        self.ends.prepare()
    }

    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        (self.run)(&mut self.ends, job)
    }

    fn syscalls(&self) -> Option<u64> {
        self.ends.syscalls()
    }

    fn connection(&self) -> Option<ConnectionFacts> {
        self.ends.connection()
    }
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

/// Sends every block, then says that no more comes.
fn send_stream<S: Sender>(sender: &mut S, job: &mut Job<'_>) -> io::Result<()> {
    each_block(job, |job| sender.send_next(&mut job.producer))?;
    sender.finish()
}

/// Receives every byte.
fn receive_stream<R: Receiver>(receiver: &mut R, job: &mut Job<'_>) -> io::Result<()> {
    each_piece(job, |job, most| receiver.recv_next(&mut job.consumer, most))?;
    job.received_bytes = job.blocks * job.block_bytes as u64;
    Ok(())
}

/// A task in a chain, as `cat` is in a pipeline: receives what is there and sends it on.
fn relay<S: Sender, R: Receiver>((sender, receiver): &mut (S, R), job: &mut Job<'_>) -> io::Result<()> {
    each_piece(job, |job, _| {
        let received = receiver.recv(job.consumer.room())?;
        if received > 0 {
            sender.send(&job.consumer.room()[..received])?;
        }
        Ok(received)
    })?;
    sender.finish()
}

/// One task that sends a block and takes it out again (Bradford's single-threaded program).
fn pass_blocks<S: Sender, R: Receiver>(ends: &mut (S, R), job: &mut Job<'_>) -> io::Result<()> {
    each_block(job, |job| pass(ends, job))?;
    job.received_bytes = job.blocks * job.block_bytes as u64;
    ends.0.finish()
}

/// One task that passes a block there and back: the round trip without a second task.
fn pass_there_and_back<S: Sender, R: Receiver>(
    (forth, back): &mut ((S, R), (S, R)),
    job: &mut Job<'_>,
) -> io::Result<()> {
    time_round_trips(job, |job| {
        pass(forth, job)?;
        pass(back, job)
    })?;
    // Both directions went through the one consumer.
    job.received_bytes *= 2;
    Ok(())
}

/// The side that asks, and times the answers.
fn ask<C: Sender + Receiver>(ends: &mut C, job: &mut Job<'_>) -> io::Result<()> {
    time_round_trips(job, |job| pass(ends, job))?;
    ends.finish()
}

/// The side that answers.
fn answer<C: Sender + Receiver>(ends: &mut C, job: &mut Job<'_>) -> io::Result<()> {
    for round in 0..job.blocks {
        receive_block(ends, job)?;
        ends.send_next(&mut job.producer)?;
        tell_of_round(job, round);
    }
    job.received_bytes = job.blocks * job.block_bytes as u64;
    ends.finish()
}

/// Does something with each block of a stream, and tells of it.
#[inline(always)]
pub(crate) fn each_block(
    job: &mut Job<'_>,
    mut step: impl FnMut(&mut Job<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut moved: u64 = 0;
    for _ in 0..job.blocks {
        step(job)?;
        moved += job.block_bytes as u64;
        job.progress.tell(moved);
    }
    Ok(())
}

/// Moves a stream in pieces as they come, at most a block each, and tells of them. `step` says how many bytes there
/// were; 0 is an end before the last byte.
#[inline(always)]
pub(crate) fn each_piece(
    job: &mut Job<'_>,
    mut step: impl FnMut(&mut Job<'_>, usize) -> io::Result<usize>,
) -> io::Result<()> {
    let total = job.blocks * job.block_bytes as u64;
    let mut left = total;
    while left > 0 {
        let most = if left < job.block_bytes as u64 { left as usize } else { job.block_bytes };
        let moved = step(job, most)?;
        if moved == 0 {
            return Err(closed_early(total - left, total));
        }
        left -= moved as u64;
        job.progress.tell(total - left);
    }
    Ok(())
}

/// Sends a block, then receives one.
#[inline]
fn pass<C: Sender + Receiver>(ends: &mut C, job: &mut Job<'_>) -> io::Result<()> {
    ends.send_next(&mut job.producer)?;
    receive_block(ends, job)
}

/// Receives exactly one block, in however many pieces it comes.
#[inline]
fn receive_block<R: Receiver>(receiver: &mut R, job: &mut Job<'_>) -> io::Result<()> {
    let mut left = job.block_bytes;
    while left > 0 {
        let received = receiver.recv_next(&mut job.consumer, left)?;
        if received == 0 {
            return Err(closed_early((job.block_bytes - left) as u64, job.block_bytes as u64));
        }
        left -= received;
    }
    Ok(())
}

/// Tells of progress after a round trip, counted from 0; where a block is small, of one in many. After a sleep the counter's
/// page and line are cold, and a hundredth of a round trip went into telling of it.
#[inline]
fn tell_of_round(job: &mut Job<'_>, round: u64) {
    const SMALL_BYTES: usize = 4096;
    if job.block_bytes > SMALL_BYTES || round.is_multiple_of(job.rounds_between_tells) {
        job.progress.tell(round + 1);
    } else {
        job.progress.block_done();
    }
}

/// Makes the job's round trips, one clock reading each: a trip ends where the next begins. Paced ones begin when they are due.
fn time_round_trips(
    job: &mut Job<'_>,
    mut round_trip: impl FnMut(&mut Job<'_>) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(pace) = job.pace.take() {
        return time_paced_trips(job, pace, round_trip);
    }
    let mut latencies = job.latencies_ns.take();
    let mut began = Instant::now();
    for round in 0..job.blocks {
        round_trip(job)?;
        let ended = Instant::now();
        if let Some(latencies) = &mut latencies {
            latencies.saturating_record(ended.duration_since(began).as_nanos() as u64);
        }
        began = ended;
        tell_of_round(job, round);
    }
    job.latencies_ns = latencies;
    job.received_bytes = job.blocks * job.block_bytes as u64;
    Ok(())
}

/// The time of a trip counts from the instant at which its question was due, also where the one before had not come back by then: who
/// asks only when nothing is under way does not see how many a stall would have held up (coordinated omission).
fn time_paced_trips(
    job: &mut Job<'_>,
    mut pace: Pace,
    mut round_trip: impl FnMut(&mut Job<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut latencies = job.latencies_ns.take();
    let began = Instant::now();
    for round in 0..job.blocks {
        let due = pace.due(began, round);
        let asked = pace.wait_until(due);
        round_trip(job)?;
        let answered = Instant::now();
        pace.service_ns.saturating_record(answered.duration_since(asked).as_nanos() as u64);
        if let Some(latencies) = &mut latencies {
            latencies.saturating_record(answered.duration_since(due).as_nanos() as u64);
        }
        // Of every one: 64 may be far apart, and the supervisor takes long silence for the end of everything.
        job.progress.tell(round + 1);
    }
    job.latencies_ns = latencies;
    job.pace = Some(pace);
    job.received_bytes = job.blocks * job.block_bytes as u64;
    Ok(())
}

fn closed_early(received: u64, wanted: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("the other end closed after {received} of {wanted} bytes"),
    )
}
