//! What one task does in one trial.

use std::io;

use hdrhistogram::Histogram;
use payload::{Consumer, Pieces, Producer, Sorter, Tagger};

use crate::{ConnectionFacts, Pace, Progress};

/// One task's side of an open channel. Called once per trial: the hot loop is inside.
pub trait Endpoint: Send {
    /// Which side this is.
    fn role(&self) -> EndpointRole;

    /// See `End::prepare`. Called once, in the task that runs the endpoint, before the barrier.
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Moves the job's blocks. Returns when the last byte was handed over (sender) or was received and
    /// given to the job's consumer (receiver).
    ///
    /// # Errors
    /// The first failure of a system call, or an end of file before the last byte.
    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()>;

    /// System calls made so far, where they are counted.
    fn syscalls(&self) -> Option<u64>;

    /// Facts about its connection with another host, known after `run`; `None` where both ends are on this host.
    fn connection(&self) -> Option<ConnectionFacts> {
        None
    }
}

/// Which side of a channel an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointRole {
    /// Sends a stream.
    Sender,
    /// Receives a stream.
    Receiver,
    /// Passes a stream on, untouched.
    Relay,
    /// Sends and receives: either side of a ping-pong, or the only task.
    Both,
}

/// The work of one endpoint in one trial.
pub struct Job<'a> {
    /// Blocks to move, or round trips to make.
    pub blocks: u64,
    /// Bytes in a block.
    pub block_bytes: usize,
    /// Where blocks to send come from.
    pub producer: Producer,
    /// Where received bytes go.
    pub consumer: Consumer,
    /// Bytes moved so far (round trips for a ping-pong), for the supervisor.
    pub progress: Progress<'a>,
    /// Small blocks, or small round trips, between two updates of `progress`.
    pub blocks_between_reports: u64,
    /// Round trip times in nanoseconds; taken by the pinging side where present.
    pub latencies_ns: Option<Histogram<u64>>,
    /// When each round trip begins, if a rate was asked for; `None`: each begins when the last one ends.
    pub pace: Option<Pace>,
    /// Receivers that compete for the blocks.
    pub receivers: u32,
    /// What the sender to many receivers sent, or one of them received; set at the end, if a tagger or a sorter was there.
    pub pieces: Option<Pieces>,
    /// Makes the blocks of one of many senders, or for many receivers, instead of the producer.
    pub tagger: Option<Tagger>,
    /// Looks at the blocks of many senders, or at those of one of many receivers, instead of the consumer.
    pub sorter: Option<Sorter>,
    /// Bytes that the consumer has received; set when the last one was.
    pub received_bytes: u64,
}
