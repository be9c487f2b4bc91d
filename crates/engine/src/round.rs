//! The process that runs the trials of a round, executed anew for each round: the addresses of its code, stack, heap and mappings are
//! drawn again (`/proc/sys/kernel/randomize_va_space`), so that a layout which happens to be slow is not that of all trials of a run.
//!
//! Orders and answers are lines of JSON over its standard input and output. It ends at the end of its input.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mechanism::{Folder, PacedClient};
use model::{Case, CaseError, ErrorKind, NoSample, describe_errno};
use process::{Child, POLL_INTERVAL, describe_ending, end_all, ready_within, signals};
use rustix::event::PollFlags;
use rustix::io::retry_on_intr;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::prepare::Ready;
use crate::tiles::{Tiles, tile};
use crate::trial::{TrialOutcome, TrialSetup, run_trial};
use crate::watch::system_failure;

/// The hidden command of hosepipe that calls [`serve_round`].
pub const ROUND_COMMAND: &str = "__round";

/// The program of this process (proc(5)), also if its file was removed or replaced meanwhile.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// Time in which the process ends once it has no more orders, before it is killed.
const END_WITHIN: Duration = Duration::from_secs(2);

/// One trial, with what [`crate::prepare`] has decided.
#[derive(Serialize, Deserialize)]
struct Order {
    case: Case,
    cpus: Vec<u32>,
    seed: u64,
    blocks: u64,
    round: u32,
    paced_client: PacedClient,
}

/// A line of the process.
#[derive(Serialize, Deserialize)]
enum Answer {
    /// The part of the trial that is done, 0 to 1.
    Progress(f64),
    /// It needs the checksum of this number of bytes, or `null` if the user stops it.
    ChecksumOf(u64),
    /// The trial is over.
    Made(Box<TrialOutcome>),
    /// There is no sample.
    Failed(CaseError),
}

/// The process of a round. Dropping it ends the process.
pub(crate) struct RoundProcess {
    pub(crate) round: Option<u32>,
    child: [Child<'static>; 1],
    orders: Option<File>,
    answers: OwnedFd,
    received: Vec<u8>,
}

impl RoundProcess {
    /// Executes `program` for this round; `None` for the warm-up.
    pub(crate) fn start(program: &Path, round: Option<u32>) -> Result<Self, CaseError> {
        let started = || {
            let ((answers, its_output), (its_input, orders)) = (io::pipe()?, io::pipe()?);
            let mut command = Command::new(program);
            command.arg(ROUND_COMMAND).stdin(its_input).stdout(its_output);
            Ok((Child::start(command)?, OwnedFd::from(answers), OwnedFd::from(orders)))
        };
        let (child, answers, orders) = started()
            .map_err(|error: io::Error| system_failure("starting the process of a round", &error))?;
        Ok(Self { round, child: [child], orders: Some(File::from(orders)), answers, received: Vec::new() })
    }

    /// Whether it can have another order.
    pub(crate) fn is_usable(&self) -> bool {
        self.orders.is_some()
    }

    /// As [`run_trial`], in the other process.
    pub(crate) fn run_trial(
        &mut self,
        setup: &TrialSetup<'_>,
        seed: u64,
        expected: &mut dyn FnMut(u64) -> Option<String>,
        progress: &mut dyn FnMut(f64),
        stop: &dyn Fn() -> bool,
    ) -> Result<TrialOutcome, NoSample> {
        let (case, cpus) = (setup.case.clone(), setup.ready.cpus.clone());
        let TrialSetup { blocks, round, paced_client, .. } = *setup;
        self.send(&Order { case, cpus, seed, blocks, round, paced_client })?;
        loop {
            match self.receive(stop)? {
                Answer::Progress(part) => progress(part),
                Answer::ChecksumOf(bytes) => self.send(&expected(bytes).ok_or(NoSample::Stopped)?)?,
                Answer::Made(outcome) => return Ok(*outcome),
                // Ctrl-C ends the tasks of the trial, too.
                Answer::Failed(_) if stop() => return Err(NoSample::Stopped),
                Answer::Failed(error) => return Err(error.into()),
            }
        }
    }

    fn send(&mut self, message: &impl Serialize) -> Result<(), CaseError> {
        let sent = self.orders.as_mut().map_or(Ok(()), |orders| write_line(orders, message));
        sent.map_err(|error| self.lost(&error))
    }

    /// Waits for its next line, and for `stop`.
    fn receive(&mut self, stop: &dyn Fn() -> bool) -> Result<Answer, NoSample> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return serde_json::from_slice(&line).map_err(|error| self.lost(&error.into()).into());
            }
            let is_ready = ready_within(&self.answers, PollFlags::IN, Some(POLL_INTERVAL));
            if stop() {
                return Err(NoSample::Stopped);
            }
            if is_ready.map_err(|error| self.lost(&error))? {
                let mut part = [0; 16 << 10];
                match retry_on_intr(|| rustix::io::read(&self.answers, &mut part)) {
                    Ok(0) => return Err(self.lost(&io::ErrorKind::UnexpectedEof.into()).into()),
                    Ok(len) => self.received.extend_from_slice(&part[..len]),
                    Err(error) => return Err(self.lost(&error.into()).into()),
                }
            }
        }
    }

    /// Why it gives no answer: how it ended, or else the error.
    fn lost(&mut self, error: &io::Error) -> CaseError {
        self.end();
        let ending = self.child[0].ended().map(|ended| describe_ending(ended.status));
        let what = ending.unwrap_or_else(|| describe_errno(error));
        CaseError::new(ErrorKind::Died, format!("the process that runs the trials of a round: {what}"))
    }

    /// Gives it no more orders, and waits for its end.
    fn end(&mut self) {
        self.orders = None;
        // It ignores the signal that asks it to end, and ends with its orders. Dropping a child kills it, if it still runs.
        let _ = end_all(&mut self.child, END_WITHIN);
    }
}

impl Drop for RoundProcess {
    fn drop(&mut self) {
        self.end();
    }
}

fn write_line(output: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    output.write_all(&line)
}

/// Runs the trials that the process of a run orders over standard input, until that ends.
///
/// Must be called from a process with one thread. The process of the run decides what a signal to their group means: this one ignores
/// those that request an end.
///
/// # Errors
/// Standard input or output fails, or has a line that is no order.
pub fn serve_round() -> io::Result<()> {
    let cleaner = mechanism::start_cleaner();
    signals::ignore(&[libc::SIGHUP, libc::SIGINT, libc::SIGTERM]);
    let mut orders = io::stdin().lock();
    let folder = Folder::private();
    let mut tiles = Tiles::new();
    // During a trial there is no order: what can be read is the end of the input.
    let stop = || ready_within(&io::stdin(), PollFlags::IN, Some(Duration::ZERO)).unwrap_or(true);
    while let Some(order) = read_line(&mut orders)? {
        // If the other process no longer reads, `stop` ends the trial.
        let mut progress = |part| drop(answer(&Answer::Progress(part)));
        let mut expected = |bytes| {
            answer(&Answer::ChecksumOf(bytes)).ok()?;
            read_line(&mut orders).ok()?
        };
        let can_clean = cleaner.as_ref().map_err(|error| system_failure("fork of the cleaner", error).into());
        let obeyed =
            can_clean.and_then(|_| obey(&order, &folder, &mut tiles, &mut expected, &mut progress, &stop));
        match obeyed {
            Ok(outcome) => answer(&Answer::Made(Box::new(outcome)))?,
            Err(NoSample::Failed(error)) => answer(&Answer::Failed(error))?,
            Err(NoSample::Stopped) => return Ok(()),
        }
    }
    Ok(())
}

/// Runs the trial of an order.
fn obey(
    order: &Order,
    folder: &Folder,
    tiles: &mut Tiles,
    expected: &mut dyn FnMut(u64) -> Option<String>,
    progress: &mut dyn FnMut(f64),
    stop: &dyn Fn() -> bool,
) -> Result<TrialOutcome, NoSample> {
    let Order { case, cpus, seed, blocks, round, paced_client } = order;
    let tile = tile(tiles, case, *seed)?;
    let ready = Ready::again(case, cpus.clone())?;
    let setup = TrialSetup {
        case,
        ready: &ready,
        tile: &tile,
        folder,
        blocks: *blocks,
        round: *round,
        paced_client: *paced_client,
    };
    run_trial(&setup, expected, progress, stop)
}

fn answer(answer: &Answer) -> io::Result<()> {
    write_line(&mut io::stdout(), answer)
}

fn read_line<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}
