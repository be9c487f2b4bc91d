//! One timed run of a text as a program of its own, its output counted and hashed: bash, or hosepipe over a link.
//!
//! Both are started, and waited for, in the same way, so that the time of both is of the whole: from before the
//! program is started until it has ended, with all it needs for itself.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;
use serde::{Deserialize, Serialize};

use crate::capture::{Capture, Output};
use crate::front::{Cannot, Ran, text_arguments};
use crate::link::LinkSpec;
use crate::shell::Shell;
use crate::spawn::spawn;
use crate::supervise::{Reach, Supervisor, shown_status};

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
    /// The shell that runs the text.
    pub shell: &'a Shell,
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
    pub fn of(result: &Result<Ran, Cannot>) -> Self {
        match result {
            Err(error) => Self { error: Some(error.to_string()), ..Self::default() },
            Ok(ran) => {
                let links = &ran.summary.links;
                let stored: Vec<u64> = links.iter().filter_map(|link| link.stored_bytes).collect();
                Self {
                    stored_bytes: (!stored.is_empty()).then(|| stored.iter().sum()),
                    trouble: links.iter().find_map(|link| link.trouble.clone()),
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
) -> Result<Trial, Cannot> {
    let system = |call| start.shell.refused(call);
    let (writing, capture) = Capture::start().map_err(system("pipe"))?;
    let outcome = memfd_create("outcome", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let mut outcome = File::from(outcome.map_err(system("memfd_create"))?);
    let (program, arguments) = match carrier {
        Carrier::Link(via) => over_link(start, text, via, &outcome),
        Carrier::Shell => in_the_shell(start, text),
    };
    let streams = Streams::open(writing, complaints).map_err(system("/dev/null"))?;
    let made = time(&program, &arguments, start.shell, streams);
    let output = capture.finish();
    let (wall, ended, ended_by) = made?;
    let status = shown_status(ended);
    let mut trial = Trial { wall, status, output, stored_bytes: None, trouble: None, ended_by };
    if matches!(carrier, Carrier::Link(_)) && ended_by.is_none() {
        let told = read(&mut outcome).map_err(|_| Cannot::Silent(trial.status))?;
        if let Some(error) = told.error {
            return Err(Cannot::Told(error));
        }
        (trial.stored_bytes, trial.trouble) = (told.stored_bytes, told.trouble);
    }
    Ok(trial)
}

fn over_link(start: &Start<'_>, text: &str, via: &LinkSpec, outcome: &File) -> (PathBuf, Vec<OsString>) {
    let outcome = format!("--outcome=/proc/{}/fd/{}", std::process::id(), outcome.as_raw_fd());
    let mut shell = OsString::from("--shell=");
    shell.push(&start.shell.path);
    let via = format!("--via={via}");
    let words =
        ["hosepipe".into(), "run".into(), outcome.into(), via.into(), shell, "--".into(), text.into()];
    (start.hosepipe.to_owned(), words.into())
}

fn in_the_shell(start: &Start<'_>, text: &str) -> (PathBuf, Vec<OsString>) {
    let words = std::iter::once(start.shell.name.clone()).chain(text_arguments(start.shell, text.as_ref()));
    (start.shell.path.clone(), words.collect())
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

    fn copies(&self) -> Vec<(RawFd, RawFd)> {
        self.0.iter().map(|(number, fd)| (fd.as_raw_fd(), *number)).collect()
    }
}

/// Starts a program and waits for its end; says how long it took, how it ended, and the signal that asked us to end.
fn time(
    program: &Path,
    words: &[OsString],
    shell: &Shell,
    streams: Streams,
) -> Result<(Duration, ExitStatus, Option<i32>), Cannot> {
    let mut supervisor = Supervisor::new(Reach::AllBelow).map_err(shell.refused("signalfd"))?;
    let environment = std::env::vars_os().collect();
    let began = Instant::now();
    let started = spawn(program, words, &environment, &streams.copies());
    supervisor.watch(started.map_err(shell.refused("posix_spawn"))?).map_err(shell.refused("pidfd_open"))?;
    drop(streams);
    let (ended, asked_to_end) = supervisor.wait(None).map_err(shell.refused("wait4"))?;
    Ok((began.elapsed(), ended, asked_to_end))
}

fn read(outcome: &mut File) -> io::Result<Outcome> {
    let mut text = Vec::new();
    outcome.rewind()?;
    outcome.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
