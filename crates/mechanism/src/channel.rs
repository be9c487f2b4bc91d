//! Opening a mechanism: what is asked, and what comes back.

use std::any::Any;

use model::{DataLevel, Tasks, Wait, Workload};

use crate::{Endpoint, Folder, Granted, Options};

/// What a channel is opened for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The mechanism's options.
    pub options: &'a Options,
    /// Stream or ping-pong.
    pub workload: Workload,
    /// Who will hold the ends.
    pub tasks: Tasks,
    /// How the ends wait.
    pub wait: Wait,
    /// What the ends do with the payload.
    pub data: DataLevel,
    /// Copying tasks between the ends.
    pub relays: u32,
    /// Tasks that share the sending end; `None` where it is one task's as usual.
    pub senders: Option<u32>,
    /// Tasks that share the receiving end; `None` where it is one task's as usual.
    pub receivers: Option<u32>,
    /// Bytes in a block.
    pub block_bytes: usize,
    /// Bytes the trial will move one way.
    pub total_bytes: u64,
    /// For names that must live in a file system.
    pub folder: &'a Folder,
}

/// An open channel: what each task does, what the system granted, and what must be kept meanwhile.
pub struct Channel {
    /// One endpoint for each task: the sender first, the relays of a chain in their order, then the receiver; a
    /// single task has one endpoint. Many senders come one after the other, then their receiver; a sender comes before its
    /// many receivers.
    pub endpoints: Vec<Box<dyn Endpoint>>,
    /// Sizes the system really gave, in bytes, by name.
    pub granted: Granted,
    /// What must outlive the endpoints: names to be removed when the channel is dropped.
    pub keep: Vec<Box<dyn Any>>,
}
