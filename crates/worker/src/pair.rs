//! Two programs at the ends of a pipe: one row of a run.

use model::{
    Case, CaseError, CaseRecord, Check, ErrorKind, PayloadKind, Spec, Tasks, WorkerCase, WorkerStart,
    file_on_path,
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
    /// What they exchange, and their placement. Round trips only if the ends use another transport than a pipe.
    pub case: Case,
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
        let mut case = Self::over_a_pipe(block_bytes);
        case.spec.mechanism = writer.transport.clone().unwrap_or(case.spec.mechanism);
        Self { writer, reader, start, case, cpus: Vec::new() }
    }

    /// A stream over a pipe with the payload and the check of workers.
    pub fn over_a_pipe(block_bytes: u64) -> Case {
        let pipe = Case::stream(Spec::plain("pipe"));
        Case { check: Check::Xor, payload: PayloadKind::Sequence, block_bytes, ..pipe }
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
            tasks: if self.receiver() == Receiver::Thread { Tasks::Threads } else { Tasks::Processes },
            ..CaseRecord::from(self.case.clone())
        }
    }

    /// The programs to be started; `None` if one is missing.
    pub(crate) fn launch(&self) -> Option<Launch<'_>> {
        let (writer, reader) = (self.writer.program.as_ref().ok()?, self.reader.program.as_ref().ok()?);
        Some(Launch { writer, reader, start: self.start, workload: self.case.workload, cpus: &self.cpus })
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
