//! One run: the programs started, watched, and their word checked.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use model::{ErrorKind, Sample, describe_errno};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

use crate::captured::Captured;
use crate::failure::{Failure, NoRun};
use crate::guard::{Guard, Leftover, no_guard};
use crate::job::Job;
use crate::judge::{Span, Witness, judge};
use crate::process::{Capture, Process};
use crate::program::Program;
use crate::result_line::ResultLines;
use crate::supervise::{Cut, wait_for_all};

/// As much of what a worker writes to standard error is kept: the end of it.
const SAID_MAX: usize = 2048;

/// Two short lines are expected; a worker that writes without end is not read to the end.
const RESULT_MAX: u64 = 16 << 10;

/// A sample, and the pipe it was taken on.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The figures; its round is 0.
    pub sample: Sample,
    /// What the pipe held, in bytes, where we made it.
    pub pipe_bytes: Option<u64>,
}

/// Starts workers, one run at a time. Dropping it leaves nothing behind, and neither does SIGKILL.
#[derive(Debug)]
pub struct Launcher {
    result: PathBuf,
    // In this order: the guard goes home before the folder is removed.
    guard: Guard,
    _folder: TempDir,
}

/// A process to be started.
struct Part {
    name: String,
    sends: bool,
    receives: bool,
    command: Command,
}

impl Launcher {
    /// Makes a folder for results and starts the guard.
    ///
    /// # Errors
    /// The system refused one of them; the message says which.
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("hosepipe-").tempdir()?;
        let result = folder.path().join("result");
        let leftover = Leftover::new(&result, folder.path())?;
        let guard = Guard::start_over(Some(leftover)).map_err(|error| io::Error::other(no_guard(&error)))?;
        Ok(Self { result, guard, _folder: folder })
    }

    /// Runs `pair` of one program, which starts the receiver of another, or of the same, by its own means.
    ///
    /// # Errors
    /// See [`NoRun`].
    pub fn run_pair(
        &mut self,
        writer: &Program,
        reader: &Program,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, NoRun> {
        let mut command = writer.pair_command(reader, job, &self.result);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let name = writer.end.label();
        let part = Part { name, sends: true, receives: true, command };
        let sample = self.run(vec![part], job, limit, stop)?;
        Ok(Run { sample, pipe_bytes: None })
    }

    /// Runs the sender of one program and the receiver of another, or of the same, over a pipe of ours of the default size.
    ///
    /// # Errors
    /// See [`NoRun`].
    pub fn run_between(
        &mut self,
        writer: &Program,
        reader: &Program,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, NoRun> {
        let (read_end, write_end) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| refused("a pipe", &error.into()))?;
        let pipe_bytes = fcntl_getpipe_size(&read_end).ok().map(|bytes| bytes as u64);
        let mut sends = writer.end_command("send", job, &self.result);
        sends.stdin(Stdio::null()).stdout(write_end);
        let mut receives = reader.end_command("recv", job, &self.result);
        receives.stdin(read_end).stdout(Stdio::null());
        let parts = vec![
            Part {
                name: format!("the writer {}", writer.end.label()),
                sends: true,
                receives: false,
                command: sends,
            },
            Part {
                name: format!("the reader {}", reader.end.label()),
                sends: false,
                receives: true,
                command: receives,
            },
        ];
        let sample = self.run(parts, job, limit, stop)?;
        Ok(Run { sample, pipe_bytes })
    }

    /// Runs processes, the sender's first.
    fn run(
        &mut self,
        parts: Vec<Part>,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Sample, NoRun> {
        File::create(&self.result).map_err(|error| refused("a file for the results", &error))?;
        let started_ns = now_ns();
        let mut processes = Vec::new();
        let mut names = Vec::new();
        for part in parts {
            let said = Captured::keeping(0, SAID_MAX);
            let process =
                Process::start(part.command, Capture::Errors, said, &self.guard).map_err(|error| {
                    let message = format!("{} cannot be started: {}", part.name, describe_errno(&error));
                    NoRun::Failed(Failure::new(ErrorKind::Failed, message))
                })?;
            processes.push(process);
            names.push((part.name, part.sends, part.receives));
        }
        let waited = wait_for_all(&mut processes, limit, stop);
        let over_ns = now_ns();
        let named = || names.iter().zip(&processes);
        match waited {
            Ok(()) => {}
            Err(Cut::Stopped) => return Err(NoRun::Stopped),
            Err(Cut::System(error)) => return Err(refused("to wait", &error)),
            Err(Cut::Late) => {
                let said = named().map(|(_, process)| process.said()).collect::<Vec<_>>().join("\n");
                let names: Vec<&str> = names.iter().map(|(name, ..)| name.as_str()).collect();
                let message = format!("{} took longer than {:.0?}", names.join(" and "), limit);
                return Err(NoRun::Failed(Failure::new(ErrorKind::Hung, message).saying(said)));
            }
        }
        let witnesses: Vec<Witness> = named()
            .filter_map(|((name, sends, receives), process)| {
                let ended = process.ended()?.clone();
                let said = process.said();
                Some(Witness { name: name.clone(), sends: *sends, receives: *receives, ended, said })
            })
            .collect();
        let usages: Vec<_> = witnesses.iter().map(|witness| witness.ended.usage.clone()).collect();
        let lines = ResultLines::parse(&self.result_text());
        let (send, recv) =
            judge(witnesses, &lines, job, &Span { started_ns, over_ns }).map_err(NoRun::Failed)?;
        Ok(Sample {
            round: 0,
            elapsed_ns: recv.ended_ns - send.began_ns,
            setup_ns: send.ready_ns.max(recv.ready_ns) - started_ns,
            bytes: job.bytes,
            messages: job.bytes.div_ceil(job.block_bytes),
            checksum: Some(format!("{:02x}", recv.xor)),
            syscalls: None,
            voluntary_switches: usages.iter().map(|usage| usage.voluntary_switches).sum(),
            involuntary_switches: usages.iter().map(|usage| usage.involuntary_switches).sum(),
            user_ns: usages.iter().map(|usage| usage.user_ns).sum(),
            system_ns: usages.iter().map(|usage| usage.system_ns).sum(),
            ends: usages,
            latency_histogram: None,
            same_cpu_share: None,
        })
    }

    /// Where the results of a run stand.
    pub(crate) fn result(&self) -> &Path {
        &self.result
    }

    /// Who ends what is started here.
    pub(crate) fn guard(&self) -> &Guard {
        &self.guard
    }

    fn result_text(&self) -> String {
        let mut bytes = Vec::new();
        if let Ok(file) = File::open(&self.result) {
            // What cannot be read is judged as what was not written.
            let _ = file.take(RESULT_MAX).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn refused(what: &str, error: &io::Error) -> NoRun {
    NoRun::Failed(Failure::new(
        ErrorKind::Open,
        format!("the system refused {what}: {}", describe_errno(error)),
    ))
}

/// CLOCK_MONOTONIC, which the workers' times are of.
fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
