//! This machine as the engine: so many partitions at a time, each by a program of its own.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use process::{LOOK_UP, describe_ending};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::work::Work;

/// How long programs that were asked to end may take.
const GRACE: Duration = Duration::from_secs(2);

/// How partitions are run here.
pub struct Local<'a> {
    /// The folder.
    pub work: &'a Work,
    /// This program's own file.
    pub hosepipe: &'a Path,
    /// How many at a time.
    pub jobs: usize,
    /// How often one that failed is tried again.
    pub retries: u32,
    /// Whether others are begun after one has failed for good.
    pub keep_going: bool,
}

/// A partition that has failed, each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its number, from 0.
    pub partition: usize,
    /// How its last run ended, as the rest of a sentence.
    pub how: String,
    /// With which status, where no signal ended it.
    pub status: Option<i32>,
}

/// Is told how far it is, and says when to stop.
pub trait Progress {
    /// Asked before each run, and every moment.
    fn stops(&self) -> bool;
    /// So many have succeeded, and so many run.
    fn show(&mut self, finished: usize, running: usize);
}

struct Running {
    partition: usize,
    attempts_left: u32,
    child: Child,
    ended: OwnedFd,
}

impl Local<'_> {
    /// Runs those of so many partitions that have not succeeded yet. Gives those that failed; where it was stopped, what ran has
    /// been ended, and there may be others that never ran.
    ///
    /// # Errors
    /// A program could not be started or waited for; none runs any more then.
    pub fn run(&self, partitions: usize, progress: &mut dyn Progress) -> io::Result<Vec<Failure>> {
        let mut waiting: VecDeque<(usize, u32)> = (0..partitions)
            .filter(|number| !self.work.is_finished(*number))
            .map(|number| (number, self.retries))
            .collect();
        let mut finished = partitions - waiting.len();
        let (mut running, mut failures) = (Vec::new(), Vec::new());
        let done = loop {
            if progress.stops() {
                break Ok(());
            }
            let goes_on = failures.is_empty() || self.keep_going;
            while running.len() < self.jobs && goes_on {
                let Some((partition, attempts_left)) = waiting.pop_front() else { break };
                match self.start(partition, attempts_left) {
                    Ok(started) => running.push(started),
                    Err(error) => return self.end_all(running).and(Err(error)),
                }
            }
            progress.show(finished, running.len());
            if running.is_empty() {
                break Ok(());
            }
            match next_ended(&mut running) {
                Err(error) => break Err(error),
                Ok(None) => {}
                Ok(Some((one, status))) if status.success() && self.work.is_finished(one.partition) => {
                    finished += 1
                }
                Ok(Some((one, _))) if one.attempts_left > 0 => {
                    waiting.push_back((one.partition, one.attempts_left - 1));
                }
                Ok(Some((one, status))) => {
                    failures.push(Failure {
                        partition: one.partition,
                        how: describe_ending(status),
                        status: status.code(),
                    });
                }
            }
        };
        self.end_all(running)?;
        done.map(|()| failures)
    }

    fn start(&self, partition: usize, attempts_left: u32) -> io::Result<Running> {
        let mut command = Command::new(self.hosepipe);
        command.arg("__part").arg(self.work.folder()).arg(partition.to_string()).stdin(Stdio::null());
        let mut child = command.spawn()?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(ended) => Ok(Running { partition, attempts_left, child, ended }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }

    /// Asks all to end, and ends them if they do not.
    fn end_all(&self, mut running: Vec<Running>) -> io::Result<()> {
        let ask = |one: &Running, signal| process::signals::send(one.child.id().cast_signed(), signal);
        running.iter().for_each(|one| ask(one, Signal::SIGTERM));
        let deadline = Instant::now() + GRACE;
        while !running.is_empty() && Instant::now() < deadline {
            next_ended(&mut running)?;
        }
        running.iter().for_each(|one| ask(one, Signal::SIGKILL));
        running.iter_mut().try_for_each(|one| one.child.wait().map(|_| ()))
    }
}

/// Waits for a moment for one of them to end, and takes it out.
fn next_ended(running: &mut Vec<Running>) -> io::Result<Option<(Running, ExitStatus)>> {
    let mut fds: Vec<PollFd<'_>> = running.iter().map(|one| PollFd::new(&one.ended, PollFlags::IN)).collect();
    let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK_UP.subsec_nanos().into() };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let Some(at) = fds.iter().position(|fd| !fd.revents().is_empty()) else { return Ok(None) };
    let mut one = running.swap_remove(at);
    let status = one.child.wait()?;
    Ok(Some((one, status)))
}
