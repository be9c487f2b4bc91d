//! One job: what a pipeline that nobody waits for needs to live on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::termios::Termios;

use super::{Event, State};
use crate::execute::RunError;
use crate::link::Link;
use crate::session::Notebook;
use crate::signals;
use crate::supervise::{Child, Ending, Supervisor};
use crate::watch::Seen;

/// A pipeline that has not ended, and nobody waits for.
pub(crate) struct Job {
    pub(super) number: u32,
    pub(super) text: String,
    pub(super) group: i32,
    pub(super) parked: Parked,
    pub(super) state: State,
    /// Since when it stands still.
    stopped_since: Option<Instant>,
    /// How long it stood still before that.
    pub(super) stopped_for: Duration,
}

/// What a pipeline needs to live on, and what is known of it so far.
#[derive(Default)]
pub(crate) struct Parked {
    pub(crate) children: Vec<Child>,
    /// Links, some with a relay at work, and the files that keep what flows.
    pub(crate) links: Vec<(Link, Option<PathBuf>)>,
    /// The modes it left the terminal with.
    pub(crate) modes: Option<Termios>,
    /// What its shell may still write to.
    pub(crate) notebook: Option<Notebook>,
    /// Its stages as typed.
    pub(crate) commands: Vec<String>,
    /// What stands between them.
    pub(crate) via: String,
    /// What was seen of them.
    pub(crate) seen: Vec<Seen>,
}

impl Job {
    pub(super) fn new(number: u32, text: &str, group: i32, parked: Parked, state: State) -> Self {
        let stopped_since = (state == State::Stopped).then(Instant::now);
        let text = text.to_owned();
        Self { number, text, group, parked, state, stopped_since, stopped_for: Duration::ZERO }
    }

    pub(super) fn event(&self) -> Event {
        Event { number: self.number, text: self.text.clone(), state: self.state }
    }

    /// The number of its last process, for which `$!` stands.
    pub(super) fn last_pid(&self) -> Option<i32> {
        self.parked.children.last().map(|child| child.pid)
    }

    /// Whether one of its processes has this number.
    pub(super) fn has(&self, pid: i32) -> bool {
        self.parked.children.iter().any(|child| child.pid == pid)
    }

    /// Notes how its processes are.
    pub(super) fn note_state(&mut self) {
        self.state = self.parked.state();
        match self.state {
            State::Stopped => drop(self.stopped_since.get_or_insert_with(Instant::now)),
            _ => self.note_going_on(),
        }
    }

    /// Takes the time it stood still out of the time its processes have run.
    pub(super) fn note_going_on(&mut self) {
        let Some(since) = self.stopped_since.take() else { return };
        let stood = since.elapsed();
        self.stopped_for += stood;
        for child in self.parked.children.iter_mut().filter(|child| child.account.is_none()) {
            child.started += stood;
        }
    }

    /// Lets it go on where it is, without the terminal.
    pub(super) fn go_on(&mut self) {
        signals::send_group(self.group, libc::SIGCONT);
        for child in &mut self.parked.children {
            child.stopped_by = None;
        }
        self.note_going_on();
        self.state = State::Running;
    }

    /// Notes, without waiting, what has become of it; true where that is news.
    pub(super) fn looks_changed(&mut self) -> Result<bool, RunError> {
        let mut supervisor =
            Supervisor::new(false).map_err(RunError::system("signalfd"))?.with_job_control(true);
        supervisor.take_up(std::mem::take(&mut self.parked.children));
        let looked = supervisor.look();
        self.parked.children = supervisor.let_go();
        looked.map_err(RunError::system("wait4"))?;
        let before = self.state;
        self.note_state();
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
