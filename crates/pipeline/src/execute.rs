//! One pipeline: links made, stages started, all of it waited for.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::keep::{Keep, KeepProblem};
use crate::launch::{Ends, at_once, launch};
use crate::link::{Link, LinkReport, LinkSpec, Order};
use crate::session::Session;
use crate::spawn::Group;
use crate::supervise::{Account, Supervisor};
use crate::syntax::Pipeline;
use crate::watch::Watch;

/// What stands between stages, and where it may keep names.
pub(crate) struct Plumbing<'a> {
    pub(crate) via: &'a LinkSpec,
    /// A folder for what a link stores or names.
    pub(crate) folder: &'a Path,
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
    #[error("cannot put `{via}` between stage {stage} and the next: {source}")]
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

/// Runs a pipeline and waits until every stage has ended.
///
/// # Errors
/// A link or a stage could not be made; what had been started has been ended.
pub(crate) fn execute(
    pipeline: &Pipeline,
    session: &Session,
    plumbing: &Plumbing<'_>,
    group: Group,
    mut watch: Option<&mut Watch<'_>>,
) -> Result<Execution, RunError> {
    let supervisor = Supervisor::new(watch.is_some()).map_err(RunError::system("signalfd"))?;
    let supervisor = RefCell::new(supervisor);
    let mut links: Vec<Link> = Vec::new();
    let mut kept = Vec::new();
    let mut stdin: Option<OwnedFd> = None;
    let mut group = group;
    for (index, stage) in pipeline.stages.iter().enumerate() {
        if index > 0 && plumbing.via.order() == Order::Sequential {
            wait_for_writer(&links[index - 1], &supervisor)?;
        }
        if supervisor.borrow().asked_to_end().is_some() {
            break;
        }
        let mut ends = Ends { stdin: stdin.take(), stdout: None };
        if index + 1 < pipeline.stages.len() {
            let (mut link, path) = make_link(plumbing, index)?;
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
        }
        supervisor.borrow_mut().adopt(pid);
    }
    drop(stdin);
    let mut supervisor = supervisor.into_inner();
    while !supervisor.all_ended() {
        let interval = watch.as_ref().map(|watch| watch.interval());
        supervisor.attend(interval).map_err(RunError::system("wait4"))?;
        if let Some(watch) = &mut watch {
            watch.look(supervisor.children());
        }
    }
    let links = links
        .into_iter()
        .zip(kept)
        .map(|(link, kept)| Plumbed { granted: link.granted().clone(), report: link.finish(), kept })
        .collect();
    Ok(Execution { stages: supervisor.accounts(), links, asked_to_end: supervisor.asked_to_end() })
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

/// Waits until everything has been written into a link whose reader comes after its writer; signals and deaths are
/// attended to meanwhile.
fn wait_for_writer(link: &Link, supervisor: &RefCell<Supervisor>) -> Result<(), RunError> {
    let stop = || {
        let mut supervisor = supervisor.borrow_mut();
        supervisor.attend(Some(Duration::ZERO)).is_err() || supervisor.asked_to_end().is_some()
    };
    match link.wait_written(&stop) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(RunError::system("inotify")(error)),
        _ => Ok(()),
    }
}
