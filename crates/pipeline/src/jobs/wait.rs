//! `wait`: until jobs behind the prompt have ended, without giving them the terminal.

use rustix::event::{PollFd, PollFlags, poll};

use super::{Event, Jobs, State};
use crate::execute::RunError;
use crate::signals::{HearInterrupt, Inbox};
use crate::supervise::Ending;

/// What waiting came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The job has ended with this.
    Ended(Ending),
    /// It is stopped, and will not end by itself.
    Stopped,
    /// No job runs, of those that were meant.
    NoneRuns,
    /// This signal came.
    Signal(i32),
}

impl Jobs {
    /// Waits until the job whose last process has this number has ended; without a number, until no job runs.
    /// `tell` is told what happens meanwhile.
    ///
    /// # Errors
    /// What poll(2) or wait4(2) answered.
    pub fn wait(&mut self, pid: Option<i32>, tell: &mut dyn FnMut(&Event)) -> Result<Waited, RunError> {
        let inbox = Inbox::open().map_err(RunError::system("signalfd"))?;
        let _heard = HearInterrupt::begin();
        loop {
            self.news()?.iter().for_each(&mut *tell);
            if let Some(waited) = self.waited_for(pid) {
                return Ok(waited);
            }
            let mut signals = [PollFd::new(&inbox, PollFlags::IN)];
            match poll(&mut signals, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(RunError::system("poll")(error.into())),
            }
            while let Some(came) = inbox.next() {
                if came.signal != libc::SIGCHLD {
                    return Ok(Waited::Signal(came.signal));
                }
            }
        }
    }

    /// The number of the last process of a job, or of one that has ended since.
    pub fn pid_of(&self, number: u32) -> Option<i32> {
        self.jobs.iter().find(|job| job.number == number)?.last_pid()
    }

    fn waited_for(&self, pid: Option<i32>) -> Option<Waited> {
        let Some(pid) = pid else {
            let runs = self.jobs.iter().any(|job| job.state == State::Running);
            return (!runs).then_some(Waited::NoneRuns);
        };
        match self.jobs.iter().find(|job| job.has(pid)) {
            Some(job) if job.state == State::Running => None,
            Some(_) => Some(Waited::Stopped),
            None => {
                let ended = self.ended.iter().rev().find(|(of, _)| *of == pid);
                Some(ended.map_or(Waited::NoneRuns, |(_, ending)| Waited::Ended(*ending)))
            }
        }
    }
}
