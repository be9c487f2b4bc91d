//! Job control: pipelines that were stopped, or run behind the prompt, each in a process group of its own.

mod front;
mod job;
mod last_pid;
mod terminal;
mod wait;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::execute::RunError;
use crate::session::Notebook;
use crate::signals;
use crate::supervise::Ending;
use job::Job;

pub use front::Front;
pub(crate) use job::Parked;
pub(crate) use last_pid::put_in;
pub(crate) use terminal::Lent;
pub use terminal::Terminal;
pub use wait::Waited;

/// How many jobs that have ended are remembered for `wait`.
const ENDED_MAX: usize = 100;

/// The pipelines of a prompt that have not ended.
pub struct Jobs {
    terminal: Option<Terminal>,
    jobs: Vec<Job>,
    /// Jobs that nobody is told of any more; they are reaped, and their relays work on.
    disowned: Vec<Job>,
    /// How jobs have ended, by the number of their last process.
    ended: VecDeque<(i32, Ending)>,
    /// The last process of the pipeline that was last left to run behind the prompt (`$!`).
    last_pid: Option<i32>,
    groups: Groups,
}

/// Whether a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It does.
    Running,
    /// A signal stopped it.
    Stopped,
    /// It ended with this.
    Ended(Ending),
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number, from 1.
    pub number: u32,
    /// Its text.
    pub text: String,
    /// How it is now.
    pub state: State,
}

/// The process groups of everything that a prompt has started and that may still run.
#[derive(Debug, Clone, Default)]
pub struct Groups(Arc<Mutex<BTreeSet<i32>>>);

impl Groups {
    /// Sends SIGHUP to all of them, and wakes those that are stopped so that they see it.
    pub fn hang_up(&self) {
        for group in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            signals::send_group(*group, libc::SIGHUP);
            signals::send_group(*group, libc::SIGCONT);
        }
    }

    pub(crate) fn add(&self, group: i32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(group);
    }

    pub(crate) fn remove(&self, group: i32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&group);
    }
}

impl Jobs {
    /// None yet; pipelines in front are handed `terminal`.
    pub fn new(terminal: Option<Terminal>) -> Self {
        Self {
            terminal,
            jobs: Vec::new(),
            disowned: Vec::new(),
            ended: VecDeque::new(),
            last_pid: None,
            groups: Groups::default(),
        }
    }

    /// The process groups, for who must end them all.
    pub fn groups(&self) -> Groups {
        self.groups.clone()
    }

    /// All jobs, oldest first.
    pub fn list(&self) -> Vec<Event> {
        self.jobs.iter().map(Job::event).collect()
    }

    /// Keeps what the shell of the job parked last may still write to: the descriptor must not come to be another
    /// file's.
    pub(crate) fn hold(&mut self, notebook: Notebook) {
        if let Some(job) = self.jobs.last_mut() {
            job.parked.notebook = Some(notebook);
        }
    }

    pub(crate) fn terminal(&self) -> Option<&Terminal> {
        self.terminal.as_ref()
    }

    /// The number that `$!` stands for.
    pub fn last_pid(&self) -> Option<i32> {
        self.last_pid
    }

    /// Keeps a pipeline that goes on, or is stopped, without being waited for; gives what there is to say of it.
    pub(crate) fn park(&mut self, text: &str, group: i32, parked: Parked, state: State) -> Event {
        let number = self.jobs.iter().map(|job| job.number).max().unwrap_or(0) + 1;
        let job = Job::new(number, text, group, parked, state);
        if state != State::Stopped {
            self.last_pid = job.last_pid();
        }
        let event = job.event();
        self.jobs.push(job);
        event
    }

    /// Notes, without waiting, which jobs have ended, stopped or gone on, and gives those.
    ///
    /// # Errors
    /// What wait4(2) answered.
    pub fn news(&mut self) -> Result<Vec<Event>, RunError> {
        let mut events = Vec::new();
        for job in &mut self.jobs {
            if job.looks_changed()? {
                events.push(job.event());
            }
        }
        for job in &mut self.disowned {
            job.looks_changed()?;
        }
        for job in take_ended(&mut self.jobs) {
            if let (Some(pid), State::Ended(ending)) = (job.last_pid(), job.state) {
                self.ended.push_back((pid, ending));
            }
            self.finish(job);
        }
        for job in take_ended(&mut self.disowned) {
            self.finish(job);
        }
        while self.ended.len() > ENDED_MAX {
            self.ended.pop_front();
        }
        Ok(events)
    }

    /// The number of the job that `fg` means without an argument: the one stopped last, or else started last.
    pub fn current(&self) -> Option<u32> {
        let stopped = self.jobs.iter().rev().find(|job| job.state == State::Stopped);
        stopped.or(self.jobs.last()).map(|job| job.number)
    }

    /// The job that a process belongs to.
    pub fn number_of(&self, pid: i32) -> Option<u32> {
        self.jobs.iter().find(|job| job.has(pid)).map(|job| job.number)
    }

    /// The process group of a job, for who sends it a signal.
    pub fn group_of(&self, number: u32) -> Option<i32> {
        self.jobs.iter().find(|job| job.number == number).map(|job| job.group)
    }

    /// Lets a job go on behind the prompt. `None` where there is none of this number.
    pub fn behind(&mut self, number: u32) -> Option<Event> {
        let job = self.jobs.iter_mut().find(|job| job.number == number)?;
        job.go_on();
        self.last_pid = job.last_pid();
        Some(job.event())
    }

    /// Whether a job's links are fed by this program, and so end with it.
    pub fn needs_us(&self, number: u32) -> bool {
        let job = self.jobs.iter().find(|job| job.number == number);
        job.is_some_and(|job| job.parked.links.iter().any(|(link, _)| link.has_relay()))
    }

    /// Lets a job live on without the prompt: it is no longer listed, and nobody hangs it up. False where there is
    /// none of this number.
    pub fn disown(&mut self, number: u32) -> bool {
        let Some(place) = self.jobs.iter().position(|job| job.number == number) else { return false };
        let job = self.jobs.remove(place);
        self.groups.remove(job.group);
        self.disowned.push(job);
        true
    }

    fn finish(&self, job: Job) {
        self.groups.remove(job.group);
        for (link, _) in job.parked.links {
            link.finish();
        }
    }
}

/// Takes those that have ended out of a list.
fn take_ended(jobs: &mut Vec<Job>) -> Vec<Job> {
    let (ended, living) =
        std::mem::take(jobs).into_iter().partition(|job| matches!(job.state, State::Ended(_)));
    *jobs = living;
    ended
}

impl Drop for Jobs {
    /// A prompt that goes takes its pipelines along, as a terminal that hangs up does.
    fn drop(&mut self) {
        self.groups.hang_up();
    }
}
