//! A run of many rows: first each is launched unmeasured, then rounds of new launches follow in a seeded random order.

use std::io;
use std::time::{Duration, Instant};

use model::{
    CaseError, CaseRecord, Check, ErrorKind, NoSample, Observer, PayloadKind, Placement, RunProgress, Spec,
    Tasks, WorkerCase, WorkerStart, Workload, file_on_path,
};

use crate::ceiling::Ceiling;
use crate::job::Job;
use crate::launcher::{Launch, Launcher, Run};
use crate::program::Worker;
use crate::registry::Receiver;
use crate::trial_size::TrialSize;

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
    fn case_record(&self) -> CaseRecord {
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
    fn launch(&self) -> Option<Launch<'_>> {
        let (writer, reader) = (self.writer.program.as_ref().ok()?, self.reader.program.as_ref().ok()?);
        Some(Launch { writer, reader, start: self.start, workload: self.workload, cpus: &self.cpus })
    }
}

/// The rows to run, and the number of trials.
#[derive(Debug, Clone)]
pub struct WorkerPlan {
    /// The rows; the cases of the result are in this order.
    pub rows: Vec<WorkerPair>,
    /// The bytes of each launch. Up to 255 more are added, so that the right XOR is not 0, and cannot be known in advance.
    pub amount: TrialSize,
    /// Measured launches of each row.
    pub trials: u32,
    /// Decides the order within each round.
    pub seed: u64,
    /// The time limit of the run, without builds. The first round is always made.
    pub budget: Option<Duration>,
}

/// The results of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// One for each row; raw samples without summaries.
    pub cases: Vec<CaseRecord>,
    /// The machine's memory copy, once in each round. A row that claims to be faster has failed.
    pub ceiling: CaseRecord,
    /// Whether the user or the budget ended the run before every trial was made.
    pub interrupted: bool,
}

/// Rows that another crate measures, with trials in the same rounds.
pub struct RowsBeside<'a> {
    /// Number of these rows.
    pub count: usize,
    /// Makes the trial of a row (counted from 0) in a round.
    pub trial: &'a mut dyn FnMut(usize, u32),
}

/// The user or the budget ended the run.
struct Interrupted;

struct Measurement<'a> {
    plan: &'a WorkerPlan,
    beside: RowsBeside<'a>,
    launcher: Launcher,
    ceiling: Ceiling,
    progress: RunProgress<'a>,
    stop: &'a dyn Fn() -> bool,
    cases: Vec<CaseRecord>,
    /// The job of each row's trials, known after [`Self::warm_up`].
    jobs: Vec<Job>,
    /// Decides how many additional bytes each launch moves.
    residues: fastrand::Rng,
}

/// Runs a plan. If a row fails, it has an error, and the other rows continue.
///
/// # Errors
/// No folder for results, or no process, can be made.
pub fn measure(
    plan: &WorkerPlan,
    observer: &mut dyn Observer,
    stop: &dyn Fn() -> bool,
) -> io::Result<Measured> {
    measure_beside(plan, RowsBeside { count: 0, trial: &mut |_, _| {} }, observer, stop)
}

/// The same together with rows that another crate measures.
///
/// # Errors
/// As [`measure`].
pub fn measure_beside<'a>(
    plan: &'a WorkerPlan,
    beside: RowsBeside<'a>,
    observer: &'a mut dyn Observer,
    stop: &'a dyn Fn() -> bool,
) -> io::Result<Measured> {
    let cases = plan.rows.iter().map(WorkerPair::case_record).collect();
    let job = |row: &WorkerPair| Job { bytes: 0, block_bytes: row.block_bytes, warmup_bytes: 0 };
    let jobs = plan.rows.iter().map(job).collect();
    let mut measurement = Measurement {
        plan,
        beside,
        launcher: Launcher::new()?,
        ceiling: Ceiling::new(),
        progress: RunProgress::new(observer),
        stop,
        cases,
        jobs,
        residues: fastrand::Rng::with_seed(plan.seed),
    };
    let began = Instant::now();
    let interrupted = measurement.warm_up().is_err() || measurement.run_rounds(began).is_err();
    Ok(Measured { cases: measurement.cases, ceiling: measurement.ceiling.into_record(), interrupted })
}

impl Measurement<'_> {
    /// Launches every row, to fill caches, to find rows that fail, and to size the trials.
    fn warm_up(&mut self) -> Result<(), Interrupted> {
        for index in self.alive() {
            self.progress.observer.progress(&format!("warming up {}", self.plan.rows[index].name()), None);
            self.size_trials(index)?;
        }
        Ok(())
    }

    /// Decides how much a row's trials move, by unmeasured launches.
    fn size_trials(&mut self, index: usize) -> Result<(), Interrupted> {
        let amount = self.plan.amount;
        let mut next = Some(amount.first_sizing_job(self.plan.rows[index].block_bytes));
        let mut before = None;
        while let Some(job) = next {
            let Some(run) = self.launch(index, &job)? else { return Ok(()) };
            if let Some(bytes) = run.pipe_bytes {
                self.cases[index].granted.insert("pipe_bytes".to_owned(), bytes);
            }
            let elapsed = Duration::from_nanos(run.sample.elapsed_ns);
            self.jobs[index] = amount.job(&job, elapsed);
            next = amount.next_sizing_job(&job, &self.jobs[index], before.as_ref());
            before = Some(self.jobs[index]);
        }
        if let Some(worker) = &mut self.cases[index].worker {
            worker.warmup_bytes = self.jobs[index].warmup_bytes;
        }
        Ok(())
    }

    fn run_rounds(&mut self, began: Instant) -> Result<(), Interrupted> {
        let mut order = fastrand::Rng::with_seed(self.plan.seed);
        let rows = self.alive().len() + self.beside.count;
        self.progress.planned(u64::from(self.plan.trials) * rows as u64, None);
        for round in 0..self.plan.trials {
            let mut indices = self.alive();
            indices.extend((0..self.beside.count).map(|row| self.plan.rows.len() + row));
            order.shuffle(&mut indices);
            if round > 0
                && !indices.is_empty()
                && self.plan.budget.is_some_and(|budget| began.elapsed() >= budget)
            {
                return Err(Interrupted);
            }
            self.ceiling.measure(round);
            for index in indices {
                if let Some(row) = index.checked_sub(self.plan.rows.len()) {
                    (self.beside.trial)(row, round);
                    continue;
                }
                self.progress.trial_started(index, &self.plan.rows[index].name());
                let job = self.jobs[index];
                if let Some(run) = self.launch(index, &job)? {
                    let sample = model::Sample { round, ..run.sample };
                    self.progress.trial_finished(index, &sample);
                    self.cases[index].samples.push(sample);
                }
            }
        }
        Ok(())
    }

    /// The indices of rows that have not failed.
    fn alive(&self) -> Vec<usize> {
        (0..self.cases.len()).filter(|index| self.cases[*index].error.is_none()).collect()
    }

    /// Launches a row. A failure becomes the error of its case, which is not run again.
    fn launch(&mut self, index: usize, job: &Job) -> Result<Option<Run>, Interrupted> {
        let row = &self.plan.rows[index];
        let Some(launch) = row.launch() else { return Ok(None) };
        let job = &job.with_residue(&mut self.residues);
        let run = self.launcher.run(&launch, job, job.limit(), self.stop);
        let name = row.name();
        let run = run.and_then(|run| {
            self.ceiling.check(&name, job, &run.sample)?;
            Ok(run)
        });
        match run {
            Ok(run) => {
                // Node connects its children by pairs of sockets.
                if run.through_socket == Some(true) {
                    self.cases[index].spec = Spec::plain("socketpair");
                    self.cases[index].mechanism = "socketpair".to_owned();
                }
                Ok(Some(run))
            }
            Err(NoSample::Stopped) => Err(Interrupted),
            Err(NoSample::Failed(failure)) => {
                self.progress.observer.progress(&format!("{name} failed"), None);
                self.cases[index].error = Some(failure);
                Ok(None)
            }
        }
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
