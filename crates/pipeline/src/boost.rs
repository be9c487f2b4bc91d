//! Enlarges pipes while they are in use: those of a command or of a running process, and of its descendants. A pipe that is full
//! at two samples in a row becomes four times as large, up to 1 MiB, so that its ends no longer wake each other for each 64 KiB. Nothing else
//! is changed: no library is preloaded, and the environment and the descriptors stay the same.

mod growth;
mod larger;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use model::{BoostRecord, RecordHead, describe_errno, file_on_path, to_see_other_users};
use observe::endpoint::are_hidden;
use observe::pace::Pace;
use process::{Reach, Supervisor, ready_within, shown_status, spawn};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use thiserror::Error;

use crate::align;
use crate::run::release_descriptors;
use crate::shell;
use growth::PipeGrowth;

/// Shortest and longest time between two samples. The longest lets the CPU sleep while the pipeline is idle.
const PAUSE_MIN: Duration = Duration::from_millis(4);
const PAUSE_MAX: Duration = Duration::from_millis(32);
/// The interpreter of a script that names none (execvp(3)).
const SHELL: &str = "/bin/sh";

/// Why nothing was boosted.
#[derive(Debug, Error)]
pub enum BoostError {
    /// There is no such program.
    #[error("there is no program `{name}`{hint}", name = .0.display(), hint = shell_hint(.0))]
    Missing(OsString),
    /// It cannot be executed.
    #[error("cannot execute {name}: {answer}", name = .0.display(), answer = describe_errno(.1))]
    NotExecutable(OsString, io::Error),
    /// There is no such process.
    #[error("there is no process {0}: `ps -e` lists the processes")]
    NoProcess(i32),
    /// Its descriptors may not be read.
    #[error("process {pid} belongs to another user, or has more rights: {remedy}", pid = .0, remedy = to_see_other_users(&format!("hosepipe boost --pid {}", .0)))]
    NotOurs(i32),
    /// /proc belongs to another PID namespace.
    #[error("/proc is not of this PID namespace: mount one (mount -t proc proc /proc)")]
    OtherProc,
    /// The system refused something.
    #[error("{call}: {answer}", call = .0, answer = describe_errno(.1))]
    System(&'static str, io::Error),
}

/// A hint for a name that looks like a shell command.
fn shell_hint(name: &OsStr) -> &'static str {
    let is_line = name.as_bytes().iter().any(|byte| b" |;<>&".contains(byte));
    if is_line { "; run a shell command like this: hosepipe boost bash -c 'cat BIG | wc -l'" } else { "" }
}

/// Runs a command in the environment and with the standard streams of this process, except those in `streams` (see [`spawn`]), and boosts its
/// pipes until it ends. If there are such streams, the caller writes to standard output afterwards. `copies_slowly`: this machine
/// copies slowly into some addresses, so a variable keeps the command's buffers away from them. Returns the record, and how the command ended.
///
/// # Errors
/// It could not be started or waited for.
pub fn run(
    head: RecordHead,
    words: &[OsString],
    streams: &[(OwnedFd, RawFd)],
    copies_slowly: bool,
) -> Result<(BoostRecord, ExitStatus), BoostError> {
    let began = Instant::now();
    let variable = copies_slowly.then(align::own_variable).flatten();
    let mut pace = pace();
    let (mut command, mut sampler) = (0, None);
    let ended = run_command(words, streams, variable.as_ref(), &mut |pid| {
        if command == 0 {
            (command, sampler) = (pid, proc_is_of_this_namespace().then(|| PipeGrowth::new(pid, false)));
        }
        sampler.as_mut().map(|sampler| pace.sample(|| sampler.sample()))
    })?;
    let mut record = record(head, command, began, &pace);
    record.status = Some(shown_status(ended));
    record.tunables = variable.map(|(_, value)| value.to_string_lossy().into_owned());
    match sampler {
        Some(sampler) => sampler.finish(&mut record),
        None => record.refused = Some(BoostError::OtherProc.to_string()),
    }
    Ok((record, ended))
}

/// Runs a command as [`run`] does. Until it ends `look` is called repeatedly with its PID, the first time before this process closes its copy of
/// its standard input, and returns the longest time until its next call. Returns how the command ended.
///
/// # Errors
/// It could not be started or waited for.
pub fn run_command(
    words: &[OsString],
    streams: &[(OwnedFd, RawFd)],
    variable: Option<&(OsString, OsString)>,
    look: &mut dyn FnMut(i32) -> Option<Duration>,
) -> Result<ExitStatus, BoostError> {
    let system = |call| move |error| BoostError::System(call, error);
    let mut supervisor = Supervisor::new(Reach::AllBelow).map_err(system("signalfd"))?;
    let pid = start(words, streams, variable)?;
    supervisor.watch(pid).map_err(system("pidfd_open"))?;
    look(pid);
    release_descriptors(!streams.is_empty());
    let (ended, _) = supervisor.wait(None, &mut || look(pid)).map_err(system("wait4"))?;
    Ok(ended)
}

/// Boosts the pipes of a running process until it ends or `stopped` returns true. `copies_slowly`: this machine copies slowly into some
/// addresses, so the processes with buffers there are reported.
///
/// # Errors
/// There is no such process, or it is another user's.
pub fn attach(
    head: RecordHead,
    pid: i32,
    copies_slowly: bool,
    stopped: &dyn Fn() -> bool,
) -> Result<BoostRecord, BoostError> {
    if !proc_is_of_this_namespace() {
        return Err(BoostError::OtherProc);
    }
    let began = Instant::now();
    let number = Pid::from_raw(pid).ok_or(BoostError::NoProcess(pid))?;
    // The number of a thread that is not its process's first thread is refused, too.
    let opened = pidfd_open(number, PidfdFlags::empty()).map_err(|_| BoostError::NoProcess(pid))?;
    if are_hidden(pid) {
        return Err(BoostError::NotOurs(pid));
    }
    let (mut pace, mut sampler) = (pace(), PipeGrowth::new(pid, copies_slowly));
    while !stopped() {
        let left = pace.sample(|| sampler.sample());
        let ended = ready_within(&opened, PollFlags::IN, Some(left));
        if ended.map_err(|error| BoostError::System("poll", error))? {
            break;
        }
    }
    let mut record = record(head, pid, began, &pace);
    sampler.finish(&mut record);
    Ok(record)
}

fn pace() -> Pace {
    Pace::new(PAUSE_MIN, PAUSE_MIN, PAUSE_MAX)
}

/// A record without pipes, of processes that were sampled from `began` until now.
fn record(head: RecordHead, pid: i32, began: Instant, pace: &Pace) -> BoostRecord {
    BoostRecord {
        head,
        pid,
        wall_ns: began.elapsed().as_nanos() as u64,
        status: None,
        samples: 0,
        cpu_ns: pace.cost().as_nanos() as u64,
        boosted: Vec::new(),
        refused: None,
        pipe_quota: None,
        unseen: 0,
        tunables: None,
        slow_buffers: Vec::new(),
    }
}

/// Starts a command as execvp(3) would.
fn start(
    words: &[OsString],
    streams: &[(OwnedFd, RawFd)],
    variable: Option<&(OsString, OsString)>,
) -> Result<i32, BoostError> {
    let name = words.first().cloned().unwrap_or_default();
    let Some(path) = shell::program(&name) else {
        let is_path = name.as_bytes().contains(&b'/');
        let on_path = || file_on_path(&name).filter(|_| !name.is_empty());
        let at_path = || Some(PathBuf::from(&name)).filter(|path| path.exists());
        return Err(match if is_path { at_path() } else { on_path() } {
            Some(path) => BoostError::NotExecutable(path.into(), Errno::ACCESS.into()),
            None => BoostError::Missing(name),
        });
    };
    let kept = std::env::vars_os().filter(|(name, _)| variable.is_none_or(|(own, _)| own != name));
    let environment = kept.chain(variable.cloned()).collect();
    let started = match spawn(&path, words, &environment, streams) {
        Err(error) if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
            let script = [SHELL.into(), path.clone().into()];
            let words: Vec<OsString> = script.into_iter().chain(words.iter().skip(1).cloned()).collect();
            spawn(Path::new(SHELL), &words, &environment, streams)
        }
        started => started,
    };
    started.map_err(|error| BoostError::NotExecutable(path.into(), error))
}

/// Whether /proc belongs to this PID namespace: otherwise its numbers are those of other processes.
fn proc_is_of_this_namespace() -> bool {
    let own = std::fs::read_link("/proc/self");
    own.is_ok_and(|own| own.to_str() == Some(&std::process::id().to_string()))
}
