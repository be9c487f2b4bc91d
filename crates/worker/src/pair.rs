//! Two programs at the ends of a pipe: one row of a run.

use model::{
    CaseError, CaseRecord, Check, ErrorKind, PayloadKind, Placement, Spec, Tasks, WorkerCase, WorkerStart,
    Workload, file_on_path,
};

use crate::launcher::Launch;
use crate::program::Worker;
use crate::registry::Receiver;

/// One row: the sender, the receiver, and which process starts the receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerPair {
    /// The sending end.
    pub writer: Worker,
    /// The receiving end.
    pub reader: Worker,
    /// Which process starts the receiving end.
    pub start: WorkerStart,
    /// A stream; round trips only if the ends use another transport than a pipe.
    pub workload: Workload,
    /// Bytes handed over in one call.
    pub block_bytes: u64,
    /// The placement of the ends, as requested.
    pub placement: Placement,
    /// The writer's CPU and the reader's; empty if the scheduler chooses.
    pub cpus: Vec<u32>,
}

impl WorkerPair {
    /// A worker that starts its own receiver, placed by the scheduler.
    pub fn with_itself(worker: Worker, block_bytes: u64) -> Self {
        Self::new(worker.clone(), worker, WorkerStart::Pair, block_bytes)
    }

    /// One worker's sender and another's receiver over a pipe that hosepipe makes, placed by the scheduler.
    pub fn between(writer: Worker, reader: Worker, block_bytes: u64) -> Self {
        Self::new(writer, reader, WorkerStart::Harness, block_bytes)
    }

    fn new(writer: Worker, reader: Worker, start: WorkerStart, block_bytes: u64) -> Self {
        let (placement, workload) = (Placement::Any, Workload::Stream);
        Self { writer, reader, start, workload, block_bytes, placement, cpus: Vec::new() }
    }

    fn receiver(&self) -> Receiver {
        self.writer.program.as_ref().map_or(Receiver::Child, |program| program.receiver)
    }

    /// "c:tuned", or "c:tuned to java:tuned".
    pub fn name(&self) -> String {
        let (writer, reader) = (self.writer.end.label(), self.reader.end.label());
        if writer == reader { writer } else { format!("{writer} to {reader}") }
    }

    /// The row's case, without figures.
    pub(crate) fn case_record(&self) -> CaseRecord {
        let needs_taskset = self.start == WorkerStart::Pair
            && self.receiver() == Receiver::Child
            && self.cpus.first() != self.cpus.last();
        let missing = self.writer.program.as_ref().err().or(self.reader.program.as_ref().err());
        let worker = WorkerCase {
            writer: self.writer.end.clone(),
            reader: self.reader.end.clone(),
            start: self.start,
            warmup_bytes: 0,
        };
        CaseRecord {
            cpus: self.cpus.clone(),
            worker: Some(worker),
            error: missing.cloned().or_else(|| no_taskset().filter(|_| needs_taskset)),
            check: Some(Check::Xor),
            payload: PayloadKind::Sequence,
            placement: self.placement,
            workload: self.workload,
            tasks: if self.receiver() == Receiver::Thread { Tasks::Threads } else { Tasks::Processes },
            block_bytes: self.block_bytes,
            ..CaseRecord::new(Spec::plain(self.writer.transport.as_deref().unwrap_or("pipe")))
        }
    }

    /// The programs to be started; `None` if one is missing.
    pub(crate) fn launch(&self) -> Option<Launch<'_>> {
        let (writer, reader) = (self.writer.program.as_ref().ok()?, self.reader.program.as_ref().ok()?);
        Some(Launch { writer, reader, start: self.start, workload: self.workload, cpus: &self.cpus })
    }
}

/// The error if a writer's child cannot be started on another CPU; `None` if it can.
fn no_taskset() -> Option<CaseError> {
    file_on_path("taskset").is_none().then(|| {
        let message = "no `taskset` here, which puts the writer's child on another CPU";
        let remedy = "apt-get install util-linux".to_owned();
        CaseError::stated(ErrorKind::Unavailable, message).with_remedy(remedy)
    })
}
