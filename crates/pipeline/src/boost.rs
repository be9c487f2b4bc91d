//! Pipes made larger while they are in use: of a command that is run, or of a process that runs already, and of whatever these have
//! started. A pipe that is found full at two looks in a row becomes four times as large, up to 1 MiB, so that its ends stop waking
//! each other for each 64 KiB. Nothing else is changed for anybody: no library, no environment, no descriptor.

mod larger;
mod process_tree;
mod tree_sampler;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use model::{BoostedPipe, PipeQuota, SlowBuffer, describe_errno, file_on_path, sudo};
use process::{Reach, Supervisor, ready_within, spawn};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use thiserror::Error;

use crate::align;
use crate::boost::tree_sampler::TreeSampler;
use crate::run::release_descriptors;
use crate::shell;

/// What takes the place of an interpreter where a script names none (execvp(3)).
const SHELL: &str = "/bin/sh";

/// Why nothing could be boosted.
#[derive(Debug, Error)]
pub enum BoostError {
    /// There is no such program.
    #[error("there is no program `{name}`{hint}", name = .0.display(), hint = shell_hint(.0))]
    Missing(OsString),
    /// It cannot be executed.
    #[error("cannot execute {name}: {answer}", name = .0.display(), answer = describe_errno(.1))]
    NotExecutable(OsString, io::Error),
    /// There is no such process.
    #[error("there is no process {0}: `ps -e` names those there are")]
    NoProcess(i32),
    /// Its descriptors may not be looked at.
    #[error("process {pid} is not yours to look at: {sudo}hosepipe boost --pid {pid}", pid = .0, sudo = sudo())]
    NotOurs(i32),
    /// The /proc here tells of other processes.
    #[error("/proc here is not that of this PID namespace: mount one (mount -t proc proc /proc)")]
    OtherProc,
    /// The system refused something.
    #[error("{call}: {answer}", call = .0, answer = describe_errno(.1))]
    System(&'static str, io::Error),
}

/// Where a name looks like a line for a shell.
fn shell_hint(name: &OsStr) -> &'static str {
    let is_line = name.as_bytes().iter().any(|byte| b" |;<>&".contains(byte));
    if is_line { "; a line for a shell is given as in: hosepipe boost bash -c 'cat BIG | wc -l'" } else { "" }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Boosted {
    /// The command, or the process that was watched.
    pub pid: i32,
    /// How the command ended; `None` for a process that is not ours to wait for.
    pub ended: Option<ExitStatus>,
    /// For how long was watched.
    pub wall: Duration,
    /// How often was looked.
    pub looks: u64,
    /// CPU time that it took.
    pub cpu: Duration,
    /// Every pipe that was enlarged.
    pub pipes: Vec<BoostedPipe>,
    /// Why others that were full were not.
    pub refused: Option<String>,
    /// How much of the quota was spent when the first of these was refused.
    pub pipe_quota: Option<PipeQuota>,
    /// Processes that could not be looked at.
    pub unseen: u64,
    /// What `GLIBC_TUNABLES` of the command was set to.
    pub tunables: Option<OsString>,
    /// Processes that keep a buffer where this machine copies slowly.
    pub slow_buffers: Vec<SlowBuffer>,
}

/// Runs a command, whose environment is ours, and whose standard streams are, but for those in `streams` (see [`spawn`]), and boosts its
/// pipes until it ends. Where there are such streams, the caller writes to standard output afterwards. On a machine that `copies_slowly` into some
/// addresses the environment keeps buffers from these.
///
/// # Errors
/// It could not be started, or not be waited for.
pub fn run(
    words: &[OsString],
    streams: &[(OwnedFd, RawFd)],
    copies_slowly: bool,
) -> Result<Boosted, BoostError> {
    let system = |call| move |error| BoostError::System(call, error);
    let mut supervisor = Supervisor::new(Reach::AllBelow).map_err(system("signalfd"))?;
    let began = Instant::now();
    let variable = copies_slowly.then(align::own_variable).flatten();
    let pid = start(words, streams, variable.as_ref())?;
    supervisor.watch(pid).map_err(system("pidfd_open"))?;
    // Before our copy of its standard input goes.
    let mut sampler = proc_is_ours().then(|| TreeSampler::new(pid, false));
    release_descriptors(!streams.is_empty());
    let mut sample = || sampler.as_mut().map(TreeSampler::sample);
    let (ended, _) = supervisor.wait(None, &mut sample).map_err(system("wait4"))?;
    let tunables = variable.map(|(_, value)| value);
    let boosted = Boosted { ended: Some(ended), tunables, ..Boosted::nothing(pid, began.elapsed()) };
    Ok(match sampler {
        Some(sampler) => sampler.end(boosted),
        None => Boosted { refused: Some(BoostError::OtherProc.to_string()), ..boosted },
    })
}

/// Boosts the pipes of a process that runs already, until it ends or `stopped` says so. On a machine that `copies_slowly` into some addresses it is
/// noted who does so.
///
/// # Errors
/// There is no such process, or it is another user's.
pub fn attach(pid: i32, copies_slowly: bool, stopped: &dyn Fn() -> bool) -> Result<Boosted, BoostError> {
    if !proc_is_ours() {
        return Err(BoostError::OtherProc);
    }
    let began = Instant::now();
    let number = Pid::from_raw(pid).ok_or(BoostError::NoProcess(pid))?;
    // A thread that leads no group is no process, either.
    let opened = pidfd_open(number, PidfdFlags::empty()).map_err(|_| BoostError::NoProcess(pid))?;
    match std::fs::read_dir(format!("/proc/{pid}/fd")) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(BoostError::NotOurs(pid));
        }
        _ => {}
    }
    let mut sampler = TreeSampler::new(pid, copies_slowly);
    while !stopped() {
        let ended = ready_within(&opened, PollFlags::IN, Some(sampler.sample()));
        if ended.map_err(|error| BoostError::System("poll", error))? {
            break;
        }
    }
    Ok(sampler.end(Boosted::nothing(pid, began.elapsed())))
}

impl Boosted {
    fn nothing(pid: i32, wall: Duration) -> Self {
        let (looks, cpu, unseen) = (0, Duration::ZERO, 0);
        Self {
            pid,
            ended: None,
            wall,
            looks,
            cpu,
            pipes: Vec::new(),
            refused: None,
            pipe_quota: None,
            unseen,
            tunables: None,
            slow_buffers: Vec::new(),
        }
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
        let found = if is_path { Some(PathBuf::from(&name)).filter(|path| path.exists()) } else { None };
        return Err(match found.or_else(|| file_on_path(&name).filter(|_| !is_path && !name.is_empty())) {
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

/// Whether the numbers in /proc are those that this process has of others: elsewhere they are other processes'.
fn proc_is_ours() -> bool {
    let own = std::fs::read_link("/proc/self");
    own.is_ok_and(|own| own.to_str() == Some(&std::process::id().to_string()))
}
