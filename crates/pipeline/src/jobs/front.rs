//! `fg`: a job has the terminal again, and is accounted for like any pipeline that was waited for from the beginning.

use std::time::Duration;

use super::{Event, Jobs, Lent, State};
use crate::accounts::{link_record, stage_record};
use crate::execute::{Plumbed, RunError, wait};
use crate::run::Finished;
use crate::supervise::{Account, Supervisor};
use crate::watch::Watch;

use super::job::Job;

/// What became of a job in front.
#[derive(Debug, Clone, PartialEq)]
pub struct Front {
    /// How it is now.
    pub event: Event,
    /// What it did, where it has ended.
    pub finished: Option<Finished>,
    /// How long it stood still; not part of any stage's time.
    pub stopped_for: Duration,
}

impl Jobs {
    /// Lets a job go on with the terminal, and waits until it ends or is stopped again; with `account`, what each stage
    /// reads, writes and waits for is looked at. `None` where there is no job of this number.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn in_front(&mut self, number: u32, account: bool) -> Result<Option<Front>, RunError> {
        let Some(place) = self.jobs.iter().position(|job| job.number == number) else { return Ok(None) };
        let mut job = self.jobs.remove(place);
        let mut supervisor =
            Supervisor::new(account).map_err(RunError::system("signalfd"))?.with_job_control(true);
        job.note_going_on();
        supervisor.take_up(std::mem::take(&mut job.parked.children));
        supervisor.look().map_err(RunError::system("wait4"))?;
        let mut watch = account.then(|| Watch::resumed(&job.parked.commands, job.parked.seen.clone()));
        let lent = Lent::not_yet(self.terminal.as_ref());
        lent.hand_back_to(job.group, job.parked.modes.as_ref());
        supervisor.go_on();
        wait(&mut supervisor, &lent, watch.as_mut())?;
        job.parked.modes = lent.take_back();
        job.parked.seen = watch.as_ref().map(Watch::all_seen).unwrap_or_default();
        let accounts = supervisor.accounts();
        job.parked.children = supervisor.let_go();
        job.note_state();
        let (event, stopped_for) = (job.event(), job.stopped_for);
        if !matches!(job.state, State::Ended(_)) {
            self.jobs.push(job);
            return Ok(Some(Front { event, finished: None, stopped_for }));
        }
        self.groups.remove(job.group);
        let finished = Some(finished(job, &accounts));
        Ok(Some(Front { event, finished, stopped_for }))
    }
}

/// The books of a job that has ended.
fn finished(job: Job, accounts: &[(Option<i32>, Account)]) -> Finished {
    let parked = job.parked;
    let stage = |(index, (pid, account)): (usize, &(Option<i32>, Account))| {
        let command = parked.commands.get(index).unwrap_or(&job.text);
        stage_record(0, command, *pid, account, parked.seen.get(index).copied())
    };
    let stages: Vec<_> = accounts.iter().enumerate().map(stage).collect();
    let links = parked.links.into_iter().map(|(link, kept)| {
        let plumbed = Plumbed { granted: link.granted().clone(), report: link.finish(), kept };
        link_record(0, parked.via.clone(), plumbed)
    });
    let pipestatus: Vec<i32> = accounts.iter().map(|(_, account)| account.ending.status()).collect();
    Finished {
        wall: accounts.iter().map(|(_, account)| account.wall).max().unwrap_or_default(),
        status: pipestatus.last().copied().unwrap_or(0),
        pipestatus,
        links: links.collect(),
        stages,
        ended_by: None,
        in_one_shell: None,
        parked: Vec::new(),
        left: false,
    }
}
