//! One timed run of a text as a program of its own, its output counted and hashed: bash, or hosepipe over a link.
//!
//! Both are started, and waited for, in the same way, so that the time of both is of the whole: from before the
//! program is started until it has ended, with all it needs for itself.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;
use serde::{Deserialize, Serialize};

use crate::capture::{Capture, Output};
use crate::execute::RunError;
use crate::link::LinkSpec;
use crate::run::Finished;
use crate::session::Session;
use crate::spawn::{FdAction, Group, spawn};
use crate::supervise::{Ending, Supervisor};

/// What carries a text.
#[derive(Debug, Clone)]
pub enum Carrier {
    /// Ourselves, over a link.
    Link(LinkSpec),
    /// The shell itself, over its own pipes: the reference.
    Shell,
}

/// How every trial of a comparison begins.
pub struct Start<'a> {
    /// This program's own file, for a run over a link.
    pub hosepipe: &'a Path,
    /// The shell, the environment, and what was defined before.
    pub session: &'a Session,
}

/// A trial that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// From before the program was started until it had ended.
    pub wall: Duration,
    /// The status of the whole.
    pub status: i32,
    /// What came out.
    pub output: Output,
    /// Bytes that links stored in a file system; `None` where they store none.
    pub stored_bytes: Option<u64>,
    /// What went wrong in a link.
    pub trouble: Option<String>,
    /// The signal that ended it, and asks us to end.
    pub ended_by: Option<i32>,
}

/// Whether a trial may complain where the user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complaints {
    /// On standard error.
    Shown,
    /// Nowhere: they were shown before.
    Hidden,
}

/// What `hosepipe run` tells a comparison that started it, beside its output and its status.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    stored_bytes: Option<u64>,
    trouble: Option<String>,
    /// Why it could not be run.
    error: Option<String>,
}

impl Outcome {
    /// What came of a run.
    pub fn of(result: &Result<Finished, RunError>) -> Self {
        match result {
            Err(error) => Self { error: Some(error.to_string()), ..Self::default() },
            Ok(finished) => {
                let stored: Vec<u64> = finished.links.iter().filter_map(|link| link.stored_bytes).collect();
                Self {
                    stored_bytes: (!stored.is_empty()).then(|| stored.iter().sum()),
                    trouble: finished.links.iter().find_map(|link| link.trouble.clone()),
                    error: None,
                }
            }
        }
    }

    /// Tells it.
    ///
    /// # Errors
    /// What writing the file answers.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        std::fs::write(path, serde_json::to_vec(self)?)
    }
}

/// Runs a text once, with empty input.
///
/// # Errors
/// A link or the program could not be made.
pub fn trial(
    start: &Start<'_>,
    text: &str,
    carrier: &Carrier,
    complaints: Complaints,
) -> Result<Trial, RunError> {
    let system = RunError::system;
    let (writing, capture) = Capture::start().map_err(system("pipe"))?;
    let outcome = memfd_create("outcome", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let mut outcome = File::from(outcome.map_err(system("memfd_create"))?);
    let (program, arguments) = match carrier {
        Carrier::Link(via) => over_link(start, text, via, &outcome),
        Carrier::Shell => in_the_shell(start, text),
    };
    let streams = Streams::open(writing, complaints).map_err(system("/dev/null"))?;
    let made = time(&program, &arguments, start.session, streams);
    let output = capture.finish();
    let (wall, ending, ended_by) = made?;
    let mut trial =
        Trial { wall, status: ending.status(), output, stored_bytes: None, trouble: None, ended_by };
    if matches!(carrier, Carrier::Link(_)) && ended_by.is_none() {
        let told = read(&mut outcome).map_err(|_| RunError::Silent(trial.status))?;
        if let Some(error) = told.error {
            return Err(RunError::Told(error));
        }
        (trial.stored_bytes, trial.trouble) = (told.stored_bytes, told.trouble);
    }
    Ok(trial)
}

fn over_link(start: &Start<'_>, text: &str, via: &LinkSpec, outcome: &File) -> (PathBuf, Vec<CString>) {
    let outcome = format!("--outcome=/proc/{}/fd/{}", std::process::id(), outcome.as_raw_fd());
    let mut words = vec![c_string("hosepipe"), c_string("run"), c_string(outcome)];
    words.push(c_string(format!("--via={via}")));
    words.push(c_string([b"--shell=", start.session.shell.path.as_os_str().as_bytes()].concat()));
    words.extend(start.session.state().map(|state| c_string(format!("--definitions={}", state.display()))));
    words.extend([c_string("--"), c_string(text)]);
    (start.hosepipe.to_owned(), words)
}

fn in_the_shell(start: &Start<'_>, text: &str) -> (PathBuf, Vec<CString>) {
    let path = &start.session.shell.path;
    let name = path.file_name().unwrap_or(path.as_os_str());
    let text = start.session.text_for_shell(text, 1);
    let words = [name.as_bytes(), b"-c", b"--", text.as_bytes()];
    (path.clone(), words.into_iter().map(c_string).collect())
}

/// What comes from a command line has no NUL in it.
fn c_string(text: impl AsRef<[u8]>) -> CString {
    CString::new(text.as_ref()).unwrap_or_default()
}

/// The standard streams of a trial, above the numbers that they will have.
struct Streams(Vec<(i32, OwnedFd)>);

impl Streams {
    fn open(writing: OwnedFd, complaints: Complaints) -> io::Result<Self> {
        let null = || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
        let mut streams = vec![(0, null()?), (1, writing)];
        if complaints == Complaints::Hidden {
            streams.push((2, null()?));
        }
        let above = |(number, fd): (i32, OwnedFd)| Ok((number, fcntl_dupfd_cloexec(&fd, 3)?));
        streams.into_iter().map(above).collect::<io::Result<_>>().map(Self)
    }

    fn actions(&self) -> Vec<FdAction> {
        let copy = |(number, fd): &(i32, OwnedFd)| FdAction::Copy { source: fd.as_raw_fd(), number: *number };
        self.0.iter().map(copy).collect()
    }
}

/// Starts a program and waits for its end; says how long it took, how it ended, and the signal that asked us to end.
fn time(
    program: &Path,
    arguments: &[CString],
    session: &Session,
    streams: Streams,
) -> Result<(Duration, Ending, Option<i32>), RunError> {
    let mut supervisor = Supervisor::new(false).map_err(RunError::system("signalfd"))?;
    let mut environment = session.environment.clone();
    // The program counts itself in again.
    environment.set("SHLVL", environment.depth().saturating_sub(1).to_string());
    let environment = environment.entries_for(program.as_os_str());
    let path = c_string(program.as_os_str().as_bytes());
    let began = Instant::now();
    let pid = spawn(&path, arguments, &environment, &streams.actions(), Group::Ours)
        .map_err(RunError::system("posix_spawn"))?;
    supervisor.adopt(pid);
    drop(streams);
    while !supervisor.all_ended() {
        supervisor.attend(None).map_err(RunError::system("wait4"))?;
    }
    let wall = began.elapsed();
    let ending = supervisor.accounts().first().map_or(Ending::Left(0), |(_, account)| account.ending);
    Ok((wall, ending, supervisor.asked_to_end()))
}

fn read(outcome: &mut File) -> io::Result<Outcome> {
    let mut text = Vec::new();
    outcome.rewind()?;
    outcome.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
