//! One run: the programs started, watched, and their word checked.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use model::{CaseError, ErrorKind, NoSample, Sample, WorkerStart, describe_errno, monotonic_ns};
use process::{Capture, Captured, Child, Cleaner, Mark, Pinned, TemporaryPath};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};

use crate::command::{Cut, wait};
use crate::job::Job;
use crate::judge::{Finished, Role, Span, judge, saying};
use crate::program::Program;
use crate::result_line::ResultLines;
use crate::whereabouts::Whereabouts;

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
    /// Whether the writer joined its reader by a socket instead; `None` where that was not seen.
    pub through_socket: Option<bool>,
}

/// Who is launched. The writer starts the reader by its own means, or hosepipe starts both over a pipe of its own.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The program that sends.
    pub writer: &'a Program,
    /// The program that receives.
    pub reader: &'a Program,
    /// Who starts it.
    pub start: WorkerStart,
    /// The writer's CPU and the reader's; empty where the scheduler chooses.
    pub cpus: &'a [u32],
}

/// Starts workers, one run at a time. Dropping it leaves nothing behind, and neither does SIGKILL.
#[derive(Debug)]
pub struct Launcher {
    result: PathBuf,
    scratch: PathBuf,
    cleaner: Cleaner,
    folder: TemporaryPath,
}

/// A process to be started.
struct EndCommand {
    role: Role,
    cpu: Option<u32>,
    command: Command,
}

impl<'a> Launch<'a> {
    /// The writer's `pair`, with the receiver of another program, or of the same, as its child.
    pub fn pair(writer: &'a Program, reader: &'a Program) -> Self {
        Self { writer, reader, start: WorkerStart::Pair, cpus: &[] }
    }

    /// Both ends over a pipe of ours of the default size.
    pub fn between(writer: &'a Program, reader: &'a Program) -> Self {
        Self { writer, reader, start: WorkerStart::Harness, cpus: &[] }
    }

    /// The processes to be started, the sender's first, and what the pipe holds, in bytes, where we made it.
    fn parts(&self, job: &Job, result: &Path) -> Result<(Vec<EndCommand>, Option<u64>), NoSample> {
        let (writer, reader) = (self.writer.end.label(), self.reader.end.label());
        let (writers_cpu, readers_cpu) = (self.cpus.first().copied(), self.cpus.last().copied());
        if self.start == WorkerStart::Pair {
            let apart = readers_cpu.filter(|_| readers_cpu != writers_cpu);
            let reader = apart.map_or_else(|| self.reader.clone(), |cpu| self.reader.on_cpu(cpu));
            let mut command = self.writer.pair_command(&reader, job, result);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            let role = Role { name: writer, sends: true, receives: true };
            return Ok((vec![EndCommand { role, cpu: writers_cpu, command }], None));
        }
        let (read_end, write_end) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| refused("a pipe", &error.into()))?;
        let pipe_bytes = fcntl_getpipe_size(&read_end).ok().map(|bytes| bytes as u64);
        let mut sends = self.writer.end_command("send", job, result);
        sends.stdin(Stdio::null()).stdout(write_end);
        let mut receives = self.reader.end_command("recv", job, result);
        receives.stdin(read_end).stdout(Stdio::null());
        let writer = Role { name: format!("the writer {writer}"), sends: true, receives: false };
        let reader = Role { name: format!("the reader {reader}"), sends: false, receives: true };
        let parts = [(writer, writers_cpu, sends), (reader, readers_cpu, receives)];
        Ok((parts.map(|(role, cpu, command)| EndCommand { role, cpu, command }).into(), pipe_bytes))
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

    /// Runs programs to their end, and ends whatever they have left running.
    ///
    /// # Errors
    /// See [`NoSample`].
    pub fn run(
        &mut self,
        launch: &Launch<'_>,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, NoSample> {
        // Its own folder for temporary files: a worker that is ended cannot remove them.
        let fresh = clear_away(&self.scratch).and_then(|()| fs::create_dir(&self.scratch));
        fresh.map_err(|error| refused("a folder for temporary files", &error))?;
        let (parts, pipe_bytes) = launch.parts(job, &self.result)?;
        let mark = self.cleaner.mark();
        let run = self.run_parts(parts, &mark, job, limit, stop);
        mark.end_all();
        run.map(|run| Run { pipe_bytes, ..run })
    }

    /// Runs processes, the sender's first.
    fn run_parts(
        &mut self,
        parts: Vec<EndCommand>,
        mark: &Mark,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, NoSample> {
        let mut result = self.fresh_result().map_err(|error| refused("a file for the results", &error))?;
        let started_ns = monotonic_ns();
        let (mut children, mut roles) = (Vec::new(), Vec::new());
        for EndCommand { role, cpu, mut command } in parts {
            command.env("TMPDIR", &self.scratch);
            let pinned = cpu.map(Pinned::to).transpose();
            let _pinned = pinned.map_err(|error| refused("a CPU to run on", &error))?;
            let said = Captured::keeping(0, SAID_MAX);
            let child =
                Child::spawn(command, Capture::Errors, said, &self.cleaner, mark).map_err(|error| {
                    let message = format!("{} cannot be started: {}", role.name, describe_errno(&error));
                    NoSample::Failed(CaseError::new(ErrorKind::Failed, message))
                })?;
            children.push(child);
            roles.push(role);
        }
        let ends = roles.iter().zip(&children).map(|(role, child)| (child.pid(), role.sends));
        let mut seen = Whereabouts::new(ends, job);
        let waited = wait(&mut children, limit, stop, &mut || seen.look());
        let over_ns = monotonic_ns();
        match waited {
            Ok(()) => {}
            Err(Cut::Stopped) => return Err(NoSample::Stopped),
            Err(Cut::System(error)) => return Err(refused("to wait", &error)),
            Err(Cut::Late) => {
                let said = children.iter().map(Child::said).collect::<Vec<_>>().join("\n");
                let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
                let message = format!("{} took longer than {:.0?}", names.join(" and "), limit);
                return Err(NoSample::Failed(saying(CaseError::new(ErrorKind::Hung, message), &said)));
            }
        }
        let finished = |(role, child): (Role, &Child<'_>)| {
            Some(Finished { role, ended: child.ended()?.clone(), said: child.said() })
        };
        let finished: Vec<Finished> = roles.into_iter().zip(&children).filter_map(finished).collect();
        let usages = finished.iter().map(|finished| finished.ended.usage.clone()).collect();
        let lines = ResultLines::parse(&text_of(&mut result));
        let (send, recv, elapsed_ns) =
            judge(finished, &lines, job, &Span { started_ns, over_ns }).map_err(NoSample::Failed)?;
        let sample = Sample {
            round: 0,
            elapsed_ns,
            setup_ns: send.ready_ns.max(recv.ready_ns) - started_ns,
            bytes: job.bytes,
            messages: job.bytes.div_ceil(job.block_bytes),
            checksum: Some(format!("{:02x}", recv.xor)),
            same_cpu_share: seen.same_cpu_share(send.began_ns, recv.ended_ns),
            ..Sample::of_ends(usages)
        };
        Ok(Run { sample, pipe_bytes: None, through_socket: seen.through_socket() })
    }

    /// The folder it makes for results: it is on every worker's command line.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// An empty file for the results. It is read through this descriptor: whatever a worker puts in the place of the path, a
    /// FIFO without a writer, is not waited for.
    fn fresh_result(&self) -> io::Result<File> {
        clear_away(&self.result)?;
        File::options().read(true).write(true).create_new(true).open(&self.result)
    }
}

/// Starts what ends workers and removes their files should this process be killed.
pub(crate) fn start_cleaner() -> io::Result<Cleaner> {
    Cleaner::start().map_err(|error| {
        let why = describe_errno(&error);
        io::Error::other(format!("cannot start the process that ends workers after us: {why}"))
    })
}

/// Removes what is there, if there is anything.
fn clear_away(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

fn text_of(result: &mut File) -> String {
    let mut bytes = Vec::new();
    // What cannot be read is judged as what was not written.
    let _ = result.take(RESULT_MAX).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn refused(what: &str, error: &io::Error) -> NoSample {
    NoSample::Failed(CaseError::new(
        ErrorKind::Open,
        format!("the system refused {what}: {}", describe_errno(error)),
    ))
}
