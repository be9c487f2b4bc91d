//! One timed run of a text, whose output is counted and hashed: by the shell alone, or by `hosepipe run` over a link. Both are timed in the
//! same way, from before the program is started until it has ended.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use model::{StageRecord, WhyAnswer};
use process::{Cleaner, Reach, Refused, Supervisor, Used, VARIABLE, shown_status, spawn_refusing};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;

use crate::align;
use crate::capture::{Capture, Output};
use crate::link::LinkSpec;
use crate::shell::Shell;
use crate::shell_run::{RunError, Summary, text_arguments};
use crate::stuck::StuckWatch;

/// Time at the start of a trial in which it is not looked whether it moves: most trials end before.
const UNWATCHED: Duration = Duration::from_secs(5);

/// How a text is run.
#[derive(Debug, Clone, Default)]
pub struct TrialOptions {
    /// The link of `hosepipe run`; `None`: the shell alone, with its own pipes.
    pub via: Option<LinkSpec>,
    /// System calls that are refused to its programs.
    pub without: Option<Refused>,
    /// Whether large buffers of its programs are aligned.
    pub align_buffers: bool,
    /// Whether the time of lines is measured; only over a link.
    pub latency: bool,
    /// Whether its stages are sampled; only over a link.
    pub stats: bool,
}

/// The programs that trials start.
pub struct Start<'a> {
    /// The file of this program, for runs over a link.
    pub hosepipe: &'a Path,
    /// The shell that runs the text.
    pub shell: &'a Shell,
}

/// The result of a run.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Trial {
    /// Time from before the start of the program until its end.
    pub wall: Duration,
    /// The exit status as a shell shows it.
    pub status: i32,
    /// Its standard output.
    pub output: Output,
    /// Bytes that links stored in a file system; `None` if they store none.
    pub stored_bytes: Option<u64>,
    /// The median time of lines, from the first link to the last, of the pipeline with the most known lines; `None` if it was not
    /// measured, or if fewer than two links had data.
    pub latency: Option<Duration>,
    /// What its processes used.
    pub used: Used,
    /// Its stages, if they were sampled.
    pub stages: Vec<StageRecord>,
    /// The first failure of a link.
    pub trouble: Option<String>,
    /// The signal to hosepipe, or to its terminal, that ended the run; hosepipe ends too.
    pub ended_by: Option<i32>,
    /// Why nothing moved before that signal.
    pub why: Option<WhyAnswer>,
}

/// The standard error of a trial.
#[derive(Debug, Clone, Copy)]
pub enum TrialStderr<'a> {
    /// The same as hosepipe's.
    Shown,
    /// /dev/null, because an earlier run has shown the messages.
    Hidden,
    /// This file.
    To(BorrowedFd<'a>),
}

/// Writes the summary of this run, or the reason why it could not be run, into the file that the comparison which started it reads.
///
/// # Errors
/// The file cannot be written.
pub fn write_outcome(file: &Path, outcome: &Result<&Summary, String>) -> io::Result<()> {
    std::fs::write(file, serde_json::to_vec(outcome)?)
}

/// Runs a text once, with empty input.
///
/// # Errors
/// The program or a link cannot be started.
pub fn trial(
    start: &Start<'_>,
    text: &str,
    trial_options: &TrialOptions,
    stderr: TrialStderr<'_>,
) -> Result<Trial, RunError> {
    let system = |call| start.shell.refused(call);
    let (writing, capture) = Capture::start().map_err(system("pipe"))?;
    let outcome = memfd_create("outcome", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let outcome = outcome.map_err(system("memfd_create"))?;
    let outcome_path = format!("/proc/{}/fd/{}", std::process::id(), outcome.as_raw_fd());
    let (program, words) = match &trial_options.via {
        Some(via) => (start.hosepipe, over_link(start, text, via, trial_options, &outcome_path)),
        None => (&*start.shell.path, in_the_shell(start.shell, text)),
    };
    let streams = streams(writing, stderr).map_err(system("/dev/null"))?;
    // Over a link, `hosepipe run` itself refuses calls and aligns buffers, by its options.
    let refused = trial_options.without.as_ref().filter(|_| trial_options.via.is_none());
    let variable =
        (trial_options.align_buffers && trial_options.via.is_none()).then(align::own_variable).flatten();
    let made = time(program, &words, start.shell, streams, (refused, variable));
    let output = capture.finish();
    let Timed { wall, ended, ended_by, why, used } = made?;
    let status = shown_status(ended);
    let mut trial = Trial { wall, status, output, used, ended_by, why, ..Trial::default() };
    if trial_options.via.is_some() && ended_by.is_none() {
        let reported = std::fs::read(outcome_path).map_err(system("/proc/self/fd"))?;
        let reported: Result<Summary, String> =
            model::from_json(reported).map_err(|_| RunError::Silent(status))?;
        let Summary { stages, links, latency, .. } = reported.map_err(RunError::Reported)?;
        let best_known = latency.into_iter().map(|known| known.whole).max_by_key(|whole| whole.count);
        trial.latency = best_known.map(|whole| Duration::from_nanos(whole.p50_ns));
        trial.stored_bytes =
            links.iter().filter_map(|link| link.stored_bytes).reduce(|sum, bytes| sum + bytes);
        trial.stages = stages;
        trial.trouble = links.into_iter().find_map(|link| link.trouble);
    }
    Ok(trial)
}

fn over_link(
    start: &Start<'_>,
    text: &str,
    via: &LinkSpec,
    trial_options: &TrialOptions,
    outcome: &str,
) -> Vec<OsString> {
    let mut shell = OsString::from("--shell=");
    shell.push(&start.shell.path);
    let options = [format!("--outcome={outcome}"), format!("--via={via}")];
    let without = trial_options.without.as_ref().map(|refused| format!("--without={refused}"));
    let flags = [
        (trial_options.latency, "--latency"),
        (trial_options.stats, "--stats"),
        (trial_options.align_buffers, "--align-buffers"),
    ];
    let flags = flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag.to_owned());
    let options = options.into_iter().chain(without).chain(flags).map(OsString::from);
    let before = ["hosepipe", "run"].map(OsString::from).into_iter().chain(options);
    before.chain([shell, "--".into(), text.into()]).collect()
}

fn in_the_shell(shell: &Shell, text: &str) -> Vec<OsString> {
    std::iter::once(shell.name.clone()).chain(text_arguments(shell, text.as_ref())).collect()
}

/// Runs a text in the shell, with empty input; its output is discarded. Returns its status, and the signal of [`Trial::ended_by`].
///
/// # Errors
/// The shell cannot be started.
pub(crate) fn run_text(shell: &Shell, text: &str) -> Result<(ExitStatus, Option<i32>), RunError> {
    let null = File::options().write(true).open("/dev/null").map(OwnedFd::from);
    let streams = null.and_then(|null| streams(null, TrialStderr::Shown));
    let streams = streams.map_err(shell.refused("/dev/null"))?;
    let timed = time(&shell.path, &in_the_shell(shell, text), shell, streams, (None, None))?;
    Ok((timed.ended, timed.ended_by))
}

/// The standard streams of a trial and their numbers. The descriptors themselves are above 2, so that installing one does not close another.
fn streams(writing: OwnedFd, stderr: TrialStderr<'_>) -> io::Result<Vec<(OwnedFd, RawFd)>> {
    let null = || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
    let mut streams = vec![(null()?, 0), (writing, 1)];
    match stderr {
        TrialStderr::Shown => {}
        TrialStderr::Hidden => streams.push((null()?, 2)),
        TrialStderr::To(file) => streams.push((file.try_clone_to_owned()?, 2)),
    }
    streams.into_iter().map(|(fd, number)| Ok((fcntl_dupfd_cloexec(&fd, 3)?, number))).collect()
}

/// A program that has ended.
struct Timed {
    wall: Duration,
    ended: ExitStatus,
    /// As [`Trial::ended_by`] and [`Trial::why`].
    ended_by: Option<i32>,
    why: Option<WhyAnswer>,
    /// What its processes used.
    used: Used,
}

/// Starts a program with refused calls and an additional variable, and waits for its end.
fn time(
    program: &Path,
    words: &[OsString],
    shell: &Shell,
    streams: Vec<(OwnedFd, RawFd)>,
    (refused, variable): (Option<&Refused>, Option<(OsString, OsString)>),
) -> Result<Timed, RunError> {
    let mut supervisor = Supervisor::new(Reach::Trial).map_err(shell.refused("signalfd"))?;
    // Kills the shell and its children if this process is killed. (`hosepipe run` does that itself.)
    let cleaner = (program == shell.path).then(Cleaner::start).transpose().map_err(shell.refused("fork"))?;
    let mark = cleaner.as_ref().map(|cleaner| (VARIABLE.into(), cleaner.mark().value().into()));
    let replaced = |name: &OsString| variable.as_ref().is_some_and(|(own, _)| own == name);
    let environment = std::env::vars_os().filter(|(name, _)| !replaced(name));
    let environment = environment.chain(mark).chain(variable.clone()).collect();
    let began = Instant::now();
    let started = spawn_refusing(program, words, &environment, &streams, refused);
    let pid = started.map_err(shell.refused("posix_spawn"))?;
    supervisor.watch(pid).map_err(shell.refused("pidfd_open"))?;
    drop(streams);
    let mut stuck = StuckWatch::new(Some(pid));
    let mut look = || Some(if began.elapsed() < UNWATCHED { UNWATCHED } else { stuck.look() });
    let (ended, ended_by) = supervisor.wait(None, &mut look).map_err(shell.refused("wait4"))?;
    let wall = began.elapsed();
    let why = ended_by.and_then(|_| stuck.finish());
    Ok(Timed { wall, ended, ended_by, why, used: supervisor.used() })
}
