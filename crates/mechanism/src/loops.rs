//! The hot loops, written once and compiled for each mechanism: dynamic dispatch happens once per trial.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use model::{Tasks, Workload};

use crate::channel::{Granted, Request};
use crate::endpoint::{Endpoint, EndpointRole, Job};
use crate::{Channel, OpenError, Receiver, Sender};

/// One direction of a mechanism, open.
pub(crate) struct Direction<S, R> {
    pub(crate) sender: S,
    pub(crate) receiver: R,
    /// Sizes the system granted this direction.
    pub(crate) granted: Granted,
}

/// Makes a channel of a mechanism whose directions are independent: one for a stream, two for a ping-pong.
pub(crate) fn one_way<S, R>(
    request: &Request<'_>,
    mut open_direction: impl FnMut() -> Result<Direction<S, R>, OpenError>,
) -> Result<Channel, OpenError>
where
    S: Sender + 'static,
    R: Receiver + 'static,
{
    let forth = open_direction()?;
    if request.relays > 0 {
        return chain(request, forth, open_direction);
    }
    let back = if request.workload == Workload::PingPong { Some(open_direction()?) } else { None };
    Ok(assemble(request, forth, back))
}

/// A channel over connected pairs of descriptors that carry bytes both ways: a stream goes from the first to
/// the second, a ping-pong both ways over the one pair, a chain over a pair for each hop.
pub(crate) fn over_connected<S, R>(
    request: &Request<'_>,
    mut connect: impl FnMut() -> Result<(OwnedFd, OwnedFd), OpenError>,
    line: impl Fn(OwnedFd, OwnedFd) -> Result<Direction<S, R>, OpenError>,
) -> Result<Channel, OpenError>
where
    S: Sender + 'static,
    R: Receiver + 'static,
{
    if request.workload == Workload::PingPong && request.relays == 0 {
        let (near, far) = connect()?;
        let copy = |fd: &OwnedFd| fd.try_clone().map_err(OpenError::system("dup"));
        let forth = line(copy(&near)?, copy(&far)?)?;
        return Ok(assemble(request, forth, Some(line(far, near)?)));
    }
    one_way(request, || {
        let (near, far) = connect()?;
        line(near, far)
    })
}

/// Makes a channel with copying tasks between the ends: sender | relay | … | receiver.
fn chain<S, R>(
    request: &Request<'_>,
    first: Direction<S, R>,
    mut open_direction: impl FnMut() -> Result<Direction<S, R>, OpenError>,
) -> Result<Channel, OpenError>
where
    S: Sender + 'static,
    R: Receiver + 'static,
{
    if request.workload == Workload::PingPong || request.tasks == Tasks::Single {
        return Err(OpenError::Unsupported {
            message: "a chain carries a stream between two tasks".to_owned(),
            remedy: "--workload stream, and --tasks processes or threads".to_owned(),
        });
    }
    let mut endpoints: Vec<Box<dyn Endpoint>> = vec![Box::new(StreamSender(first.sender))];
    let mut receiver = first.receiver;
    for _ in 0..request.relays {
        let next = open_direction()?;
        endpoints.push(Box::new(Relay(Pair { sender: next.sender, receiver })));
        receiver = next.receiver;
    }
    endpoints.push(Box::new(StreamReceiver(receiver)));
    Ok(Channel { endpoints, granted: first.granted, keep: Vec::new() })
}

/// Makes a channel of its directions and the tasks that will hold them.
pub(crate) fn assemble<S, R>(
    request: &Request<'_>,
    forth: Direction<S, R>,
    back: Option<Direction<S, R>>,
) -> Channel
where
    S: Sender + 'static,
    R: Receiver + 'static,
{
    let Direction { sender, receiver, granted } = forth;
    let endpoints: Vec<Box<dyn Endpoint>> = match (request.tasks, back) {
        (Tasks::Single, None) => vec![Box::new(Alone(Pair { sender, receiver }))],
        (Tasks::Single, Some(back)) => vec![Box::new(AloneThereAndBack {
            forth: Pair { sender, receiver },
            back: Pair { sender: back.sender, receiver: back.receiver },
        })],
        (_, None) => vec![Box::new(StreamSender(sender)), Box::new(StreamReceiver(receiver))],
        (_, Some(back)) => vec![
            Box::new(Pinger(Pair { sender, receiver: back.receiver })),
            Box::new(Ponger(Pair { sender: back.sender, receiver })),
        ],
    };
    Channel { endpoints, granted, keep: Vec::new() }
}

/// The two ends that one task holds, whether of one direction or of two.
struct Pair<S, R> {
    sender: S,
    receiver: R,
}

impl<S: Sender, R: Receiver> Pair<S, R> {
    fn prepare(&mut self) -> io::Result<()> {
        self.sender.prepare()?;
        self.receiver.prepare()
    }

    /// Sends a block, then receives one.
    #[inline]
    fn pass(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        self.sender.send_next(&mut job.producer)?;
        receive_block(&mut self.receiver, job)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.sender.syscalls()? + self.receiver.syscalls()?)
    }
}

/// Sends every block, then says that no more comes.
struct StreamSender<S>(S);

impl<S: Sender> Endpoint for StreamSender<S> {
    fn role(&self) -> EndpointRole {
        EndpointRole::Sender
    }

    fn prepare(&mut self) -> io::Result<()> {
        self.0.prepare()
    }

    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        let mut sent: u64 = 0;
        for _ in 0..job.blocks {
            self.0.send_next(&mut job.producer)?;
            sent += job.block_bytes as u64;
            job.progress.tell(sent);
        }
        self.0.finish()
    }

    fn syscalls(&self) -> Option<u64> {
        self.0.syscalls()
    }
}

/// Receives every byte.
struct StreamReceiver<R>(R);

impl<R: Receiver> Endpoint for StreamReceiver<R> {
    fn role(&self) -> EndpointRole {
        EndpointRole::Receiver
    }

    fn prepare(&mut self) -> io::Result<()> {
        self.0.prepare()
    }

    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        let total = job.blocks * job.block_bytes as u64;
        let mut left = total;
        while left > 0 {
            let most = if left < job.block_bytes as u64 { left as usize } else { job.block_bytes };
            let received = self.0.recv_next(&mut job.consumer, most)?;
            if received == 0 {
                return Err(closed_early(total - left, total));
            }
            left -= received as u64;
            job.progress.tell(total - left);
        }
        job.received_bytes = total;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        self.0.syscalls()
    }
}

/// A task in a chain, as `cat` is in a pipeline: receives what is there and sends it on.
struct Relay<S, R>(Pair<S, R>);

impl<S: Sender, R: Receiver> Endpoint for Relay<S, R> {
    fn role(&self) -> EndpointRole {
        EndpointRole::Relay
    }

    fn prepare(&mut self) -> io::Result<()> {
        self.0.prepare()
    }

    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        let total = job.blocks * job.block_bytes as u64;
        let mut passed = 0;
        while passed < total {
            let received = self.0.receiver.recv(job.consumer.room())?;
            if received == 0 {
                return Err(closed_early(passed, total));
            }
            self.0.sender.send(&job.consumer.room()[..received])?;
            passed += received as u64;
            job.progress.tell(passed);
        }
        self.0.sender.finish()
    }

    fn syscalls(&self) -> Option<u64> {
        self.0.syscalls()
    }
}

/// One task that sends a block and takes it out again (Bradford's single-threaded program).
struct Alone<S, R>(Pair<S, R>);

impl<S: Sender, R: Receiver> Endpoint for Alone<S, R> {
    fn role(&self) -> EndpointRole {
        EndpointRole::Both
    }

    fn prepare(&mut self) -> io::Result<()> {
        self.0.prepare()
    }

    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        let mut moved: u64 = 0;
        for _ in 0..job.blocks {
            self.0.pass(job)?;
            moved += job.block_bytes as u64;
            job.progress.tell(moved);
        }
        job.received_bytes = moved;
        self.0.sender.finish()
    }

    fn syscalls(&self) -> Option<u64> {
        self.0.syscalls()
    }
}

/// One task that passes a block there and back: the round trip without a second task.
struct AloneThereAndBack<S, R> {
    forth: Pair<S, R>,
    back: Pair<S, R>,
}

impl<S: Sender, R: Receiver> Endpoint for AloneThereAndBack<S, R> {
    fn role(&self) -> EndpointRole {
        EndpointRole::Both
    }

    fn prepare(&mut self) -> io::Result<()> {
        self.forth.prepare()?;
        self.back.prepare()
    }

    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        time_round_trips(job, |job| {
            self.forth.pass(job)?;
            self.back.pass(job)
        })?;
        // Both directions went through the one consumer.
        job.received_bytes *= 2;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.forth.syscalls()? + self.back.syscalls()?)
    }
}

/// The side that asks, and times the answers.
struct Pinger<S, R>(Pair<S, R>);

impl<S: Sender, R: Receiver> Endpoint for Pinger<S, R> {
    fn role(&self) -> EndpointRole {
        EndpointRole::Both
    }

    fn prepare(&mut self) -> io::Result<()> {
        self.0.prepare()
    }

    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        time_round_trips(job, |job| self.0.pass(job))?;
        self.0.sender.finish()
    }

    fn syscalls(&self) -> Option<u64> {
        self.0.syscalls()
    }
}

/// The side that answers.
struct Ponger<S, R>(Pair<S, R>);

impl<S: Sender, R: Receiver> Endpoint for Ponger<S, R> {
    fn role(&self) -> EndpointRole {
        EndpointRole::Both
    }

    fn prepare(&mut self) -> io::Result<()> {
        self.0.prepare()
    }

    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        for round in 0..job.blocks {
            receive_block(&mut self.0.receiver, job)?;
            self.0.sender.send_next(&mut job.producer)?;
            tell_of_round(job, round);
        }
        job.received_bytes = job.blocks * job.block_bytes as u64;
        self.0.sender.finish()
    }

    fn syscalls(&self) -> Option<u64> {
        self.0.syscalls()
    }
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

/// Tells of progress after a round trip, counted from 0; where a block is small, of one in 64. After a sleep the counter's
/// page and line are cold, and a hundredth of a round trip went into telling of it.
#[inline]
fn tell_of_round(job: &mut Job<'_>, round: u64) {
    const SMALL_BYTES: usize = 4096;
    if job.block_bytes > SMALL_BYTES || round.is_multiple_of(64) {
        job.progress.tell(round + 1);
    } else {
        job.progress.block_done();
    }
}

/// Makes the job's round trips, one clock reading each: a trip ends where the next begins.
fn time_round_trips(
    job: &mut Job<'_>,
    mut round_trip: impl FnMut(&mut Job<'_>) -> io::Result<()>,
) -> io::Result<()> {
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

fn closed_early(received: u64, wanted: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("the other end closed after {received} of {wanted} bytes"),
    )
}
