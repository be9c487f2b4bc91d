//! The process that runs the trials of a round, executed anew for each round: the addresses of its code, stack, heap and mappings are
//! drawn again (`/proc/sys/kernel/randomize_va_space`), so that a layout which happens to be slow is not that of all trials of a run.
//!
//! Orders and answers are messages over its standard input and output. It ends at the end of its input.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mechanism::{Folder, PacedClient};
use model::{Case, CaseError, ErrorKind, NoSample};
use process::{Child, POLL_INTERVAL, Wire, WireError, describe_ending, finish_all, ready_within, signals};
use rustix::event::PollFlags;
use serde::{Deserialize, Serialize};

use crate::failure::system_failure;
use crate::prepare::Ready;
use crate::tiles::{Tiles, tile};
use crate::trial::{TrialOutcome, TrialSetup, run_trial};

/// The hidden command of hosepipe that calls [`serve_round`].
pub const ROUND_COMMAND: &str = "__round";

/// The program of this process (proc(5)), also if its file was removed or replaced meanwhile.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// Time in which the process ends once it has no more orders, before it is killed.
const END_WITHIN: Duration = Duration::from_secs(2);

/// The process waits for orders, and each side for room, as long as the other one runs.
const FOR_EVER: Duration = Duration::MAX;

/// Its name in messages.
const NAME: &str = "the process that runs the trials of a round";

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

/// A message of the process.
#[derive(Serialize, Deserialize)]
enum Answer {
    /// The part of the trial that is done, 0 to 1.
    Progress(f64),
    /// It needs the checksum of this number of bytes.
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
    /// `None` once it gets no more orders.
    wire: Option<Wire>,
}

impl RoundProcess {
    /// Executes `program` for this round; `None` for the warm-up.
    pub(crate) fn start(program: &Path, round: Option<u32>) -> Result<Self, CaseError> {
        let mut command = Command::new(program);
        command.arg(ROUND_COMMAND);
        let wire = Wire::to_program(&mut command, NAME);
        let started = wire.and_then(|wire| Ok((Child::start(command)?, wire)));
        let (child, wire) =
            started.map_err(|error| system_failure("starting the process of a round", &error))?;
        Ok(Self { round, child: [child], wire: Some(wire) })
    }

    /// Whether it can have another order.
    pub(crate) fn is_usable(&self) -> bool {
        self.wire.is_some()
    }

    /// As [`run_trial`], in the other process.
    pub(crate) fn run_trial(
        &mut self,
        setup: &TrialSetup<'_>,
        expected: &mut dyn FnMut(u64) -> Option<String>,
        progress: &mut dyn FnMut(f64),
        stop: &dyn Fn() -> bool,
    ) -> Result<TrialOutcome, NoSample> {
        let (case, cpus) = (setup.case.clone(), setup.ready.cpus.clone());
        let TrialSetup { blocks, round, seed, paced_client, .. } = *setup;
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
        let sent = self.wire.as_ref().map_or(Ok(()), |wire| wire.send(message, FOR_EVER));
        sent.map_err(|error| self.lost(&error))
    }

    /// Waits for its next message, and for `stop`.
    fn receive(&mut self, stop: &dyn Fn() -> bool) -> Result<Answer, NoSample> {
        while let Some(wire) = &mut self.wire {
            match wire.receive(POLL_INTERVAL) {
                Ok(Some(answer)) => return Ok(answer),
                _ if stop() => break,
                Ok(None) => {}
                Err(error) => return Err(self.lost(&error).into()),
            }
        }
        Err(NoSample::Stopped)
    }

    /// Why it gives no answer: how it ended, or else the error.
    fn lost(&mut self, error: &WireError) -> CaseError {
        self.end();
        let ended = self.child[0].ended().map(|ended| describe_ending(ended.status));
        let message = ended.map_or_else(|| error.to_string(), |ending| format!("{NAME}: {ending}"));
        CaseError::new(ErrorKind::Died, message)
    }

    /// Gives it no more orders, and waits for its end.
    fn end(&mut self) {
        self.wire = None;
        // It ignores the signal that asks it to end, and ends with its orders. Dropping a child kills it, if it still runs.
        let _ = finish_all(&mut self.child, END_WITHIN);
    }
}

impl Drop for RoundProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs the trials that the process of a run orders over standard input, until that ends.
///
/// Must be called from a process with one thread. The process of the run decides what a signal to their group means: this one ignores
/// those that request an end.
///
/// # Errors
/// Standard output fails, or standard input has a message that is no order. Where standard input cannot be read, it has ended.
pub fn serve_round() -> Result<(), WireError> {
    let cleaner = mechanism::start_cleaner();
    signals::ignore(&[libc::SIGHUP, libc::SIGINT, libc::SIGTERM]);
    let mut wire = Wire::over_stdio("the process of the run")?;
    let folder = Folder::private();
    let mut tiles = Tiles::new();
    // During a trial there is no order, and an answer to `ChecksumOf` is read where it is asked: what else can be read is the end of the input.
    let stop = || ready_within(&std::io::stdin(), PollFlags::IN, Some(Duration::ZERO)).unwrap_or(true);
    // Without a line it is the end of the input.
    while wire.has_line(FOR_EVER).is_ok() {
        let order = wire.expect(FOR_EVER)?;
        let can_clean = cleaner.as_ref().map_err(|error| system_failure("fork of the cleaner", error).into());
        let obeyed = can_clean.and_then(|_| obey(&order, &folder, &mut tiles, &mut wire, &stop));
        match obeyed {
            Ok(outcome) => wire.send(&Answer::Made(Box::new(outcome)), FOR_EVER)?,
            Err(NoSample::Failed(error)) => wire.send(&Answer::Failed(error), FOR_EVER)?,
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
    wire: &mut Wire,
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
        seed: *seed,
        paced_client: *paced_client,
    };
    let wire = RefCell::new(wire);
    // If the other process no longer reads, `stop` ends the trial.
    let mut progress = |part| drop(wire.borrow().send(&Answer::Progress(part), FOR_EVER));
    let mut expected = |bytes| {
        wire.borrow().send(&Answer::ChecksumOf(bytes), FOR_EVER).ok()?;
        wire.borrow_mut().receive(FOR_EVER).ok()?
    };
    run_trial(&setup, None, &mut expected, &mut progress, stop)
}
