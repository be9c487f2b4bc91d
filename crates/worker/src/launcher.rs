//! One run: starts the programs, waits for them, and checks their results.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use model::{CaseError, ErrorKind, NoSample, Sample, WorkerStart, Workload, describe_errno, monotonic_ns};
use process::{Capture, Captured, Child, Cleaner, Mark, Pinned, TemporaryPath};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};

use crate::command::{NotFinished, wait};
use crate::end_sampler::EndSampler;
use crate::program::{Program, roles};
use crate::registry::Receiver;
use crate::result_line::ResultLines;
use crate::run_check::{Finished, Role, Span, check_run, with_stderr};
use crate::trial_size::TrialSize;

/// Number of last bytes of a worker's standard error that are kept.
const STDERR_MAX: usize = 2048;

/// Largest part of a result file that is read. Two short lines are expected; a faulty worker may write without end.
const RESULT_MAX: u64 = 16 << 10;

/// A sample, and the pipe between the ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The figures; its round is 0.
    pub sample: Sample,
    /// The pipe's capacity, if hosepipe created it.
    pub pipe_bytes: Option<u64>,
    /// Whether the writer connected its reader by a socket instead; `None` if unknown.
    pub through_socket: Option<bool>,
}

/// The programs to be launched. The writer starts the reader, or hosepipe creates the pipe and starts both.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The program that sends.
    pub writer: &'a Program,
    /// The program that receives.
    pub reader: &'a Program,
    /// Which process starts the reader.
    pub start: WorkerStart,
    /// A stream, or round trips, for which the writer starts its reader.
    pub workload: Workload,
    /// The writer's CPU and the reader's; empty if the scheduler chooses.
    pub cpus: &'a [u32],
}

/// Starts workers, one run at a time. Dropping it ends their processes and removes their files; if this process is killed, the cleaner
/// process does that.
#[derive(Debug)]
pub struct Launcher {
    result: PathBuf,
    scratch: PathBuf,
    cleaner: Cleaner,
    /// The folder of the result file, whose path is on every worker's command line.
    pub folder: TemporaryPath,
}

/// A process to be started.
struct EndCommand {
    role: Role,
    /// Empty if the scheduler chooses.
    cpus: Vec<u32>,
    command: Command,
}

impl<'a> Launch<'a> {
    /// A `pair` of the writer, with the reader's `recv` as its child.
    pub fn pair(writer: &'a Program, reader: &'a Program) -> Self {
        Self { writer, reader, start: WorkerStart::Pair, workload: Workload::Stream, cpus: &[] }
    }

    /// The processes to be started, the sender first, and the pipe's capacity in bytes if hosepipe created it.
    fn parts(&self, size: &TrialSize, result: &Path) -> Result<(Vec<EndCommand>, Option<u64>), NoSample> {
        let (writer, reader) = (self.writer.end.label(), self.reader.end.label());
        let (writers_cpu, readers_cpu) = (self.cpus.first().copied(), self.cpus.last().copied());
        if self.start == WorkerStart::Pair {
            let (mut command, cpus) = if self.writer.receiver == Receiver::Child {
                let apart = readers_cpu.filter(|_| readers_cpu != writers_cpu);
                let reader = apart.map_or_else(|| self.reader.clone(), |cpu| self.reader.on_cpu(cpu));
                let command = self.writer.pair_command(self.workload, &reader, size, result);
                (command, writers_cpu.into_iter().collect())
            } else {
                // Both ends may run on either CPU.
                (self.writer.end_command(roles(self.workload).0, size, result), self.cpus.to_vec())
            };
            command.stdin(Stdio::null()).stdout(Stdio::null());
            let role = Role { name: writer, sends: true, receives: true };
            return Ok((vec![EndCommand { role, cpus, command }], None));
        }
        let (read_end, write_end) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| refused("a pipe", &error.into()))?;
        let pipe_bytes = fcntl_getpipe_size(&read_end).ok().map(|bytes| bytes as u64);
        let mut sends = self.writer.end_command("send", size, result);
        sends.stdin(Stdio::null()).stdout(write_end);
        let mut receives = self.reader.end_command("recv", size, result);
        receives.stdin(read_end).stdout(Stdio::null());
        let writer = Role { name: format!("the writer {writer}"), sends: true, receives: false };
        let reader = Role { name: format!("the reader {reader}"), sends: false, receives: true };
        let cpus = |cpu: Option<u32>| cpu.into_iter().collect();
        let writer = EndCommand { role: writer, cpus: cpus(writers_cpu), command: sends };
        let reader = EndCommand { role: reader, cpus: cpus(readers_cpu), command: receives };
        Ok((vec![writer, reader], pipe_bytes))
    }
}

impl Launcher {
    /// Starts the cleaner and makes a folder for results.
    ///
    /// # Errors
    /// The system refused one of them; the message says which.
    pub fn new() -> io::Result<Self> {
        let cleaner = start_cleaner()?;
        let folder = cleaner.make_folder()?;
        let (result, scratch) = (folder.path().join("result"), folder.path().join("tmp"));
        Ok(Self { result, scratch, cleaner, folder })
    }

    /// Runs programs to their end, and kills processes that they leave running.
    ///
    /// # Errors
    /// See [`NoSample`].
    pub fn run(
        &mut self,
        launch: &Launch<'_>,
        size: &TrialSize,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, NoSample> {
        // The folder for temporary files is emptied, because a killed worker cannot remove its files.
        let fresh = clear_away(&self.scratch).and_then(|()| fs::create_dir(&self.scratch));
        fresh.map_err(|error| refused("a folder for temporary files", &error))?;
        let (parts, pipe_bytes) = launch.parts(size, &self.result)?;
        let mark = self.cleaner.mark();
        let run = self.run_parts(parts, &mark, launch.workload, size, limit, stop);
        mark.end_all();
        run.map(|run| Run { pipe_bytes, ..run })
    }

    /// Runs processes; `parts` has the sender first.
    fn run_parts(
        &mut self,
        parts: Vec<EndCommand>,
        mark: &Mark,
        workload: Workload,
        size: &TrialSize,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, NoSample> {
        let mut result = self.fresh_result().map_err(|error| refused("a file for the results", &error))?;
        let started_ns = monotonic_ns();
        let (mut children, mut roles) = (Vec::new(), Vec::new());
        for EndCommand { role, cpus, mut command } in parts {
            command.env("TMPDIR", &self.scratch);
            let pinned = (!cpus.is_empty()).then(|| Pinned::to_any(&cpus)).transpose();
            let _pinned = pinned.map_err(|error| refused("a CPU to run on", &error))?;
            let stderr = Captured::keeping(0, STDERR_MAX);
            let child =
                Child::spawn(command, Capture::Errors, stderr, &self.cleaner, mark).map_err(|error| {
                    let message = format!("{} cannot be started: {}", role.name, describe_errno(&error));
                    NoSample::Failed(CaseError::new(ErrorKind::Failed, message))
                })?;
            children.push(child);
            roles.push(role);
        }
        let ends = roles.iter().zip(&children).map(|(role, child)| (child.pid(), role.sends));
        let mut sampler = EndSampler::new(ends, workload, size);
        let waited = wait(&mut children, limit, stop, &mut || sampler.sample());
        let over_ns = monotonic_ns();
        match waited {
            Ok(()) => {}
            Err(NotFinished::Stopped) => return Err(NoSample::Stopped),
            Err(NotFinished::System(error)) => return Err(refused("to wait", &error)),
            Err(NotFinished::Late(said)) => {
                let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
                let message = format!("{} took longer than {:.0?}", names.join(" and "), limit);
                return Err(NoSample::Failed(with_stderr(CaseError::new(ErrorKind::Hung, message), &said)));
            }
        }
        let finished = |(role, child): (Role, &Child<'_>)| {
            Some(Finished { role, ended: child.ended()?.clone(), said: child.captured_output() })
        };
        let finished: Vec<Finished> = roles.into_iter().zip(&children).filter_map(finished).collect();
        let usages = finished.iter().map(|finished| finished.ended.usage.clone()).collect();
        let lines = ResultLines::parse(&text_of(&mut result));
        let (send, recv, elapsed_ns) =
            check_run(finished, &lines, size, &Span { started_ns, over_ns }).map_err(NoSample::Failed)?;
        let sample = Sample {
            round: 0,
            elapsed_ns,
            setup_ns: send.ready_ns.max(recv.ready_ns) - started_ns,
            bytes: size.bytes,
            messages: size.bytes.div_ceil(size.block_bytes),
            checksum: Some(format!("{:02x}", recv.xor)),
            same_cpu_share: sampler.same_cpu_share(send.began_ns, recv.ended_ns),
            read_buffer_offset: sampler.read_buffer_offset(),
            write_buffer_offset: sampler.write_buffer_offset(),
            ..Sample::of_ends(usages)
        };
        Ok(Run { sample, pipe_bytes: None, through_socket: sampler.through_socket })
    }

    /// An empty file for the results. It is read through this descriptor: a worker that replaces the path by a FIFO cannot
    /// block the reader.
    fn fresh_result(&self) -> io::Result<File> {
        clear_away(&self.result)?;
        File::options().read(true).write(true).create_new(true).open(&self.result)
    }
}

/// Starts the process that ends workers and removes their files if this process is killed.
pub(crate) fn start_cleaner() -> io::Result<Cleaner> {
    Cleaner::start().map_err(|error| {
        let why = describe_errno(&error);
        io::Error::other(format!("cannot start the process that ends workers if hosepipe is killed: {why}"))
    })
}

/// Removes a file or folder if it exists.
fn clear_away(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

fn text_of(result: &mut File) -> String {
    let mut bytes = Vec::new();
    // A result that cannot be read counts as missing.
    let _ = result.take(RESULT_MAX).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn refused(what: &str, error: &io::Error) -> NoSample {
    NoSample::Failed(CaseError::new(
        ErrorKind::Open,
        format!("the system refused {what}: {}", describe_errno(error)),
    ))
}
