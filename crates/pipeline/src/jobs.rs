//! Job control: pipelines that were stopped, or run behind the prompt, each in a process group of its own.

mod terminal;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::termios::Termios;

use crate::execute::{RunError, wait};
use crate::link::Link;
use crate::session::Notebook;
use crate::signals;
use crate::supervise::{Child, Ending, Supervisor};

pub(crate) use terminal::Lent;
pub use terminal::Terminal;

/// The pipelines of a prompt that have not ended.
pub struct Jobs {
    terminal: Option<Terminal>,
    jobs: Vec<Job>,
    groups: Groups,
}

/// A pipeline that has not ended, and nobody waits for.
pub(crate) struct Job {
    number: u32,
    text: String,
    group: i32,
    parked: Parked,
    state: State,
}

/// What a pipeline needs to live on.
#[derive(Default)]
pub(crate) struct Parked {
    pub(crate) children: Vec<Child>,
    /// Links, some with a relay at work, and the files that keep what flows.
    pub(crate) links: Vec<(Link, Option<PathBuf>)>,
    /// The modes it left the terminal with.
    pub(crate) modes: Option<Termios>,
    /// What its shell may still write to.
    pub(crate) notebook: Option<Notebook>,
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
        Self { terminal, jobs: Vec::new(), groups: Groups::default() }
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

    /// Keeps a pipeline that goes on, or is stopped, without being waited for; gives what there is to say of it.
    pub(crate) fn park(&mut self, text: &str, group: i32, parked: Parked, state: State) -> Event {
        let number = self.jobs.iter().map(|job| job.number).max().unwrap_or(0) + 1;
        let job = Job { number, text: text.to_owned(), group, parked, state };
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
        let (ended, living) =
            std::mem::take(&mut self.jobs).into_iter().partition(|job| matches!(job.state, State::Ended(_)));
        self.jobs = living;
        for job in ended {
            self.finish(job);
        }
        Ok(events)
    }

    /// The number of the job that `fg` means without an argument: the one stopped last, or else started last.
    pub fn current(&self) -> Option<u32> {
        let stopped = self.jobs.iter().rev().find(|job| job.state == State::Stopped);
        stopped.or(self.jobs.last()).map(|job| job.number)
    }

    /// Lets a job go on behind the prompt. `None` where there is none of this number.
    pub fn behind(&mut self, number: u32) -> Option<Event> {
        let job = self.jobs.iter_mut().find(|job| job.number == number)?;
        signals::send_group(job.group, libc::SIGCONT);
        for child in &mut job.parked.children {
            child.stopped_by = None;
        }
        job.state = State::Running;
        Some(job.event())
    }

    /// Lets a job go on with the terminal, and waits until it ends or is stopped again. `None` where there is none of
    /// this number.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn in_front(&mut self, number: u32) -> Result<Option<Event>, RunError> {
        let Some(place) = self.jobs.iter().position(|job| job.number == number) else { return Ok(None) };
        let mut job = self.jobs.remove(place);
        let mut supervisor =
            Supervisor::new(false).map_err(RunError::system("signalfd"))?.with_job_control(true);
        supervisor.take_up(std::mem::take(&mut job.parked.children));
        supervisor.look().map_err(RunError::system("wait4"))?;
        let lent = Lent::not_yet(self.terminal.as_ref());
        lent.hand_back_to(job.group, job.parked.modes.as_ref());
        supervisor.go_on();
        wait(&mut supervisor, &lent, None)?;
        job.parked.modes = lent.take_back();
        job.parked.children = supervisor.let_go();
        job.state = job.parked.state();
        let event = job.event();
        match job.state {
            State::Ended(_) => self.finish(job),
            _ => self.jobs.push(job),
        }
        Ok(Some(event))
    }

    fn finish(&self, job: Job) {
        self.groups.remove(job.group);
        for (link, _) in job.parked.links {
            link.finish();
        }
    }
}

impl Drop for Jobs {
    /// A prompt that goes takes its pipelines along, as a terminal that hangs up does.
    fn drop(&mut self) {
        self.groups.hang_up();
    }
}

impl Job {
    fn event(&self) -> Event {
        Event { number: self.number, text: self.text.clone(), state: self.state }
    }

    fn looks_changed(&mut self) -> Result<bool, RunError> {
        let mut supervisor =
            Supervisor::new(false).map_err(RunError::system("signalfd"))?.with_job_control(true);
        supervisor.take_up(std::mem::take(&mut self.parked.children));
        let looked = supervisor.look();
        self.parked.children = supervisor.let_go();
        looked.map_err(RunError::system("wait4"))?;
        let before = std::mem::replace(&mut self.state, self.parked.state());
        Ok(before != self.state)
    }
}

impl Parked {
    /// How its processes are, as far as is known.
    pub(crate) fn state(&self) -> State {
        let living: Vec<&Child> = self.children.iter().filter(|child| child.account.is_none()).collect();
        if living.is_empty() {
            let last = self.children.last().and_then(|child| child.account.as_ref());
            return State::Ended(last.map_or(Ending::Left(0), |account| account.ending));
        }
        let stopped = living.iter().all(|child| child.stopped_by.is_some());
        if stopped { State::Stopped } else { State::Running }
    }
}
