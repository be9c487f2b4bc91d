//! An endpoint: one task's side of a channel, and what it transfers in a trial.

use std::io;

use hdrhistogram::Histogram;
use payload::{Consumer, Producer};

use crate::{ConnectionFacts, Pace, Progress};

/// One task's side of an open channel. Called once per trial: the hot loop is inside.
pub trait Endpoint: Send {
    /// Which side this is.
    fn role(&self) -> EndpointRole;

    /// See `End::prepare`. Called once, in the task that runs the endpoint, before the barrier.
    fn prepare(&mut self) -> io::Result<()>;

    /// Moves all blocks. Returns when the last byte was handed over (sender) or was received and given to the consumer (receiver).
    ///
    /// # Errors
    /// The first failure of a system call, or an end of file before the last byte.
    fn run(&mut self, transfer: &mut Transfer<'_>) -> io::Result<()>;

    /// System calls made so far, where they are counted.
    fn syscalls(&self) -> Option<u64>;

    /// Facts about its connection with another host, known after `run`; `None` where both ends are on this host.
    fn connection(&self) -> Option<ConnectionFacts>;
}

/// Which side of a channel an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointRole {
    /// Sends a stream.
    Sender,
    /// Receives a stream.
    Receiver,
    /// Passes a stream on unchanged.
    Relay,
    /// Sends and receives: either side of a ping-pong, or the only task.
    Both,
}

/// What one endpoint transfers in one trial.
pub struct Transfer<'a> {
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
    /// Round trip times in nanoseconds, measured by the side that asks; `None`: not measured.
    pub latencies_ns: Option<Histogram<u64>>,
    /// When each block is sent, or each round trip begins, if a rate was asked for; `None`: when the last one was sent, or ended.
    pub pace: Option<Pace>,
    /// Number of receivers that compete for the blocks.
    pub receivers: u32,
    /// Bytes that the consumer has received; set after the last byte.
    pub received_bytes: u64,
}
