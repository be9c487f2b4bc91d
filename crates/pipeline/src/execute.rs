//! One pipeline: links made, stages started, all of it waited for.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mechanism::Folder;
use thiserror::Error;

use crate::jobs::{Jobs, Lent, Parked};
use crate::keep::{Keep, KeepProblem};
use crate::launch::{Ends, at_once, launch, launch_text};
use crate::link::{Link, LinkReport, LinkSpec, Order};
use crate::session::Session;
use crate::spawn::Group;
use crate::supervise::{Account, Supervisor};
use crate::syntax::Pipeline;
use crate::watch::Watch;

/// What the pipes of one pipeline hold together: a quarter of what an ordinary user may have by default.
const ALL_PIPES_BYTES: u64 = 16 << 20;

/// How long a program may live on after its output has ended, and be waited for.
const MOMENT: Duration = Duration::from_millis(20);

/// What stands between stages, and where it may keep names.
pub(crate) struct Plumbing<'a> {
    pub(crate) via: &'a LinkSpec,
    /// For what a link stores or names.
    pub(crate) folder: &'a Folder,
    /// Where what flows is kept, and under which item's names.
    pub(crate) keep: Option<(&'a Keep, usize)>,
}

/// A pipeline that has run.
pub(crate) struct Execution {
    /// The stages that were started; fewer than the pipeline has where a signal ended it before.
    pub(crate) stages: Vec<(Option<i32>, Account)>,
    /// The links, with what each was granted.
    pub(crate) links: Vec<Plumbed>,
    /// The first signal that asked the whole to end.
    pub(crate) asked_to_end: Option<i32>,
    /// What was stopped, or left to run behind the prompt: then there are no accounts yet.
    pub(crate) parked: Option<(i32, Parked)>,
}

/// Whether a pipeline is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is, and has the terminal if there is one to hand over.
    Front,
    /// It goes on by itself.
    Behind,
}

/// A link that has done its work.
pub(crate) struct Plumbed {
    pub(crate) granted: mechanism::Granted,
    pub(crate) report: LinkReport,
    /// The file that keeps what flowed.
    pub(crate) kept: Option<PathBuf>,
}

/// Why a pipeline could not run.
#[derive(Debug, Error)]
pub enum RunError {
    /// A link could not be made.
    #[error(
        "cannot put `{via}` between stage {stage} and the next: {source}{}",
        source.remedy().map(|remedy| format!(": {remedy}")).unwrap_or_default()
    )]
    Link {
        /// What was asked for.
        via: String,
        /// The stage that writes into it, from 1.
        stage: usize,
        /// Why not.
        source: mechanism::OpenError,
    },
    /// What flows cannot be kept.
    #[error(transparent)]
    Keep(#[from] KeepProblem),
    /// A stage could not be started, not even by a shell.
    #[error("cannot start stage {stage} `{command}`: {}", model::describe_errno(.source))]
    Start {
        /// The stage, from 1.
        stage: usize,
        /// Its text.
        command: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A run of its own could not be made, as it says itself.
    #[error("{0}")]
    Told(String),
    /// A run of its own said nothing of itself.
    #[error("`hosepipe run` ended with status {0} before it could say what it did")]
    Silent(i32),
    /// The system refused what running needs.
    #[error("{what}: {}", model::describe_errno(.source))]
    System {
        /// What was tried.
        what: &'static str,
        /// The answer.
        source: io::Error,
    },
}

impl RunError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

/// Runs a pipeline and waits until every stage has ended, or under job control has been stopped.
///
/// # Errors
/// A link or a stage could not be made; what had been started has been ended.
pub(crate) fn execute(
    pipeline: &Pipeline,
    session: &Session,
    plumbing: &Plumbing<'_>,
    (group, place): (Group, Place),
    watch: Option<&mut Watch<'_>>,
) -> Result<Execution, RunError> {
    let supervisor = Supervisor::new(watch.is_some()).map_err(RunError::system("signalfd"))?;
    let supervisor = RefCell::new(supervisor.with_job_control(session.jobs.is_some()));
    let lent = lend(session, place);
    let mut links: Vec<Link> = Vec::new();
    let mut kept = Vec::new();
    let mut stdin: Option<OwnedFd> = None;
    let asked_group = group;
    let mut group = group;
    for (index, stage) in pipeline.stages.iter().enumerate() {
        if index > 0 && plumbing.via.order() == Order::Sequential {
            wait_for_writer(&links[index - 1], &supervisor)?;
            if session.jobs.is_some() {
                see_it_end(&supervisor)?;
            }
        }
        if supervisor.borrow().asked_to_end().is_some() {
            break;
        }
        if supervisor.borrow().all_ended() {
            // A process group goes with its last process (in a sequential order the stages before have ended).
            forget(session, group);
            group = asked_group;
        }
        let mut ends = Ends { stdin: stdin.take(), stdout: None };
        if index + 1 < pipeline.stages.len() {
            let (mut link, path) = make_link(plumbing, index)?;
            link.hold_at_most(ALL_PIPES_BYTES / (pipeline.stages.len() as u64 - 1));
            kept.push(path);
            ends.stdout = link.take_write();
            stdin = link.take_read();
            links.push(link);
        }
        if let Some(status) = at_once(stage, &ends, session).map_err(RunError::system("write"))? {
            supervisor.borrow_mut().note(status);
            continue;
        }
        let pid = launch(stage, ends, session, group).map_err(|source| RunError::Start {
            stage: index + 1,
            command: stage.text.clone(),
            source,
        })?;
        if group == Group::New {
            group = Group::Existing(pid);
            enter(session, pid, &lent);
        }
        supervisor.borrow_mut().adopt(pid);
    }
    drop(stdin);
    let mut supervisor = supervisor.into_inner();
    if place == Place::Front {
        wait(&mut supervisor, &lent, watch)?;
    }
    Ok(settle(supervisor, lent, links.into_iter().zip(kept).collect(), (session, group)))
}

/// Runs a text in the session's shell, in one piece.
///
/// # Errors
/// The shell cannot be started.
pub(crate) fn execute_text(
    text: &str,
    command: &str,
    session: &Session,
    (group, place): (Group, Place),
    mut watch: Option<&mut Watch<'_>>,
) -> Result<Execution, RunError> {
    let supervisor = Supervisor::new(watch.is_some()).map_err(RunError::system("signalfd"))?;
    let mut supervisor = supervisor.with_job_control(session.jobs.is_some());
    let lent = lend(session, place);
    let started = launch_text(text, session, group);
    let pid = started.map_err(|source| RunError::Start { stage: 1, command: command.to_owned(), source })?;
    let mut group = group;
    if group == Group::New {
        group = Group::Existing(pid);
        enter(session, pid, &lent);
    }
    supervisor.adopt(pid);
    if let Some(watch) = &mut watch {
        watch.begin(&[command]);
    }
    if place == Place::Front {
        wait(&mut supervisor, &lent, watch)?;
    }
    Ok(settle(supervisor, lent, Vec::new(), (session, group)))
}

/// The terminal, if there is one and the pipeline shall have it.
fn lend(session: &Session, place: Place) -> Lent<'_> {
    let terminal = session.jobs.as_ref().and_then(Jobs::terminal);
    Lent::not_yet(terminal.filter(|_| place == Place::Front))
}

/// A new process group has begun.
fn enter(session: &Session, group: i32, lent: &Lent<'_>) {
    lent.hand_to(group);
    if let Some(jobs) = &session.jobs {
        jobs.groups().add(group);
    }
}

/// A process group has ended.
fn forget(session: &Session, group: Group) {
    if let (Some(jobs), Group::Existing(group)) = (&session.jobs, group) {
        jobs.groups().remove(group);
    }
}

/// Waits until every stage has ended, or under job control has been stopped.
///
/// # Errors
/// What poll(2) or wait4(2) answered.
pub(crate) fn wait(
    supervisor: &mut Supervisor,
    lent: &Lent<'_>,
    mut watch: Option<&mut Watch<'_>>,
) -> Result<(), RunError> {
    while !supervisor.all_ended() {
        let interval = watch.as_ref().map(|watch| watch.interval());
        supervisor.attend(interval).map_err(RunError::system("wait4"))?;
        if let Some(watch) = &mut watch {
            watch.look(supervisor.children());
        }
        let stopped_by = supervisor.all_stopped_by();
        if lent.was_early(&stopped_by) {
            supervisor.go_on();
        } else if !stopped_by.is_empty() {
            break;
        }
    }
    Ok(())
}

/// What a pipeline has come to: its accounts, or what it needs to live on.
fn settle(
    supervisor: Supervisor,
    lent: Lent<'_>,
    links: Vec<(Link, Option<PathBuf>)>,
    (session, group): (&Session, Group),
) -> Execution {
    let modes = lent.take_back();
    let asked_to_end = supervisor.asked_to_end();
    if !supervisor.all_ended() {
        let group = if let Group::Existing(number) = group { number } else { 0 };
        let children = supervisor.let_go();
        let parked = Parked { children, links, modes, ..Parked::default() };
        return Execution {
            stages: Vec::new(),
            links: Vec::new(),
            asked_to_end,
            parked: Some((group, parked)),
        };
    }
    forget(session, group);
    let links = links
        .into_iter()
        .map(|(link, kept)| Plumbed { granted: link.granted().clone(), report: link.finish(), kept })
        .collect();
    Execution { stages: supervisor.accounts(), links, asked_to_end, parked: None }
}

/// Makes the link behind a stage, and the file that keeps what flows through it.
fn make_link(plumbing: &Plumbing<'_>, index: usize) -> Result<(Link, Option<PathBuf>), RunError> {
    let refused = |source| RunError::Link { via: plumbing.via.to_string(), stage: index + 1, source };
    let mut link = plumbing.via.connect(plumbing.folder).map_err(refused)?;
    let Some((keep, item)) = plumbing.keep else { return Ok((link, None)) };
    let (file, path) = keep.file(item, index)?;
    link.keep(file).map_err(refused)?;
    Ok((link, Some(path)))
}

/// Waits a moment for the end of the stages so far, which mostly comes together with the end of their output: a key
/// that ended them is to end the stages behind them, too.
fn see_it_end(supervisor: &RefCell<Supervisor>) -> Result<(), RunError> {
    let mut supervisor = supervisor.borrow_mut();
    let began = Instant::now();
    while !supervisor.all_ended() && began.elapsed() < MOMENT {
        supervisor.attend(Some(MOMENT)).map_err(RunError::system("wait4"))?;
    }
    Ok(())
}

/// Waits until everything has been written into a link whose reader comes after its writer; signals and deaths are
/// attended to meanwhile.
fn wait_for_writer(link: &Link, supervisor: &RefCell<Supervisor>) -> Result<(), RunError> {
    let stop = || {
        let mut supervisor = supervisor.borrow_mut();
        let attended = supervisor.attend(Some(Duration::ZERO));
        // The stages behind could not be started while this one waits to go on: it is not let stop.
        if !supervisor.all_stopped_by().is_empty() {
            supervisor.go_on();
        }
        attended.is_err() || supervisor.asked_to_end().is_some()
    };
    match link.wait_written(&stop) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(RunError::system("inotify")(error)),
        _ => Ok(()),
    }
}
