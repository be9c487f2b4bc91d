//! Opening a mechanism: the request, and the open channel.

use std::any::Any;

use model::{DataLevel, Tasks, Wait, Workload};

use crate::{Endpoint, Folder, Granted, Options};

/// The properties of the channel to be opened.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The mechanism's options.
    pub options: &'a Options,
    /// Stream or ping-pong.
    pub workload: Workload,
    /// The kind of tasks that will hold the ends.
    pub tasks: Tasks,
    /// How the ends wait.
    pub wait: Wait,
    /// What the ends do with the payload.
    pub data: DataLevel,
    /// Number of tasks between the ends that copy from one pipe or queue to the next.
    pub relays: u32,
    /// Number of tasks that share the sending end; `None`: one task has it, as usual.
    pub senders: Option<u32>,
    /// Number of tasks that share the receiving end; `None`: one task has it, as usual.
    pub receivers: Option<u32>,
    /// Bytes in a block.
    pub block_bytes: usize,
    /// Bytes that the trial will move in one direction.
    pub total_bytes: u64,
    /// The folder for names in a file system.
    pub folder: &'a Folder,
}

/// An open channel: its endpoints, the granted sizes, and values that must live as long as the endpoints.
pub struct Channel {
    /// One endpoint for each task: the sender first, the relays of a chain in their order, then the receiver; a
    /// single task has one endpoint. Many senders come one after the other, then their receiver; a sender comes before its
    /// many receivers.
    pub endpoints: Vec<Box<dyn Endpoint>>,
    /// Sizes that the system granted, in bytes, by name.
    pub granted: Granted,
    /// Values that must outlive the endpoints: names that are removed when the channel is dropped.
    pub keep: Vec<Box<dyn Any>>,
}
