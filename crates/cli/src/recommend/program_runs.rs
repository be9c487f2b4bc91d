//! Compiles the programs that could be printed, and runs them on this machine.

use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::{Sizing, Spec, Speed, describe_errno};
use process::{
    Capture, Captured, Child, Cleaner, Pinned, QueueName, TemporaryPath, TemporaryQueue, wait_for_all,
};

use super::program::Program;
use crate::signals::StopRequest;

/// Messages of the first run that is timed.
const FIRST_MESSAGES: u64 = 100;
/// A number of messages is taken after this many runs of it.
const TRIES: usize = 3;
/// Time of the first run at a rate.
const FIRST_PACED: Duration = Duration::from_millis(20);
/// Fewest messages of a run at a rate.
const PACED_MIN: u64 = 5;
/// A compiler, or a run, that takes longer is ended.
const LIMIT: Duration = Duration::from_secs(20);

/// Compiles programs in a folder, and runs them there.
pub(super) struct ProgramRunner<'a> {
    pub(super) cleaner: &'a Cleaner,
    pub(super) folder: &'a Path,
    /// The CPUs that programs may use; empty: all.
    pub(super) cpus: &'a [u32],
    /// Whether the user wants to stop: then every run fails.
    pub(super) stop: &'a StopRequest,
    /// The programs' argument RATE, if they have one.
    pub(super) rate_per_s: Option<u32>,
}

/// A compiled program.
pub(super) struct CompiledProgram<'a> {
    runner: &'a ProgramRunner<'a>,
    /// The command, without its arguments.
    command: Vec<String>,
    /// The argument NAME: where the ends meet.
    name: String,
    /// Shared memory and queues that a killed program leaves behind: removed with this value, or by the cleaner.
    _shared_memory: TemporaryPath,
    queues: [TemporaryQueue; 3],
}

/// Time per message as the program reports it, and CPU time of the whole run, in nanoseconds.
pub(super) struct ProgramRun {
    pub(super) time_ns: f64,
    pub(super) cpu_ns: u64,
}

impl<'a> ProgramRunner<'a> {
    /// Writes a program into the folder and compiles it as its first comment says. `number` is different for each program.
    ///
    /// # Errors
    /// The message of the compiler, or of the system.
    pub(super) fn compile(
        &'a self,
        number: usize,
        spec: &Spec,
        program: &Program,
    ) -> io::Result<CompiledProgram<'a>> {
        let extension = program.language.facts().extension;
        let (source, binary) = (format!("program{number}.{extension}"), format!("./program{number}"));
        std::fs::write(self.folder.join(&source), program.text())?;
        let (compiler, command) = program.language.commands(&source, &binary);
        if !compiler.is_empty() {
            self.execute(&compiler, &[])?;
        }
        // Queues and shared memory have names outside of the folder.
        let (queue, key) = (QueueName::random_name().to_string(), QueueName::random_key());
        let names = [QueueName::posix(queue.clone()), QueueName::posix(format!("{queue}.back")), key.clone()];
        let queues = names.map(|name| TemporaryQueue::announced(self.cleaner.announcer(), name));
        let shared = Path::new("/dev/shm").join(queue.trim_start_matches('/'));
        let (shared_memory, ()) =
            TemporaryPath::make(self.cleaner.announcer(), shared, |_| Ok::<_, io::Error>(()))?;
        let name = match spec.mechanism.as_str() {
            "tcp" => TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string(),
            "posix-mq" | "shm-ring" => queue,
            "sysv-msgq" => key.to_string(),
            _ => format!("meeting{number}"),
        };
        let command = command.into_iter().map(str::to_owned).collect();
        Ok(CompiledProgram { runner: self, command, name, _shared_memory: shared_memory, queues })
    }

    /// Runs a command on these CPUs; returns its output and its CPU time in nanoseconds.
    fn execute(&self, words: &[&str], cpus: &[u32]) -> io::Result<(String, u64)> {
        let program = words[0];
        let mut command = Command::new(program);
        // A compiler that is killed leaves files in TMPDIR.
        command.args(&words[1..]).current_dir(self.folder).env("TMPDIR", self.folder).stdin(Stdio::null());
        let mark = self.cleaner.mark();
        // A child inherits the CPUs of this thread.
        let pinned = (!cpus.is_empty()).then(|| Pinned::to_any(cpus)).transpose()?;
        let child = Child::spawn(command, Capture::Both, Captured::keeping(2048, 2048), self.cleaner, &mark)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => io::Error::other(format!("there is no `{program}` on PATH")),
                _ => io::Error::other(format!("`{program}` does not start: {}", describe_errno(&error))),
            })?;
        drop(pinned);
        let mut children = [child];
        let began = Instant::now();
        let failed = |child: &Child<'_>| child.ended().is_some_and(|ended| !ended.status.success());
        wait_for_all(&mut children, &failed, &mut || match began.elapsed() > LIMIT {
            _ if self.stop.is_set() => Err(io::Error::other("stopped")),
            true => Err(io::Error::other(format!("`{program}` did not end within {} s", LIMIT.as_secs()))),
            false => Ok(()),
        })?;
        let [child] = &children;
        let output = child.captured_output();
        match child.ended() {
            Some(ended) if ended.status.success() => {
                Ok((output, ended.usage.user_ns + ended.usage.system_ns))
            }
            _ => {
                let message = output.lines().next().unwrap_or_default();
                Err(io::Error::other(format!("`{program}` failed: {message}")))
            }
        }
    }
}

impl CompiledProgram<'_> {
    /// Sends this many messages, or makes this many round trips.
    ///
    /// # Errors
    /// The program failed, or took too long, or the user wants to stop.
    pub(super) fn run(&self, messages: u64) -> io::Result<ProgramRun> {
        let (count, rate) = (messages.to_string(), self.runner.rate_per_s.map(|rate| rate.to_string()));
        let arguments = std::iter::once(&count).chain(&rate).chain([&self.name]);
        let words: Vec<&str> = self.command.iter().chain(arguments).map(String::as_str).collect();
        let executed = self.runner.execute(&words, self.runner.cpus);
        if executed.is_err() {
            // A killed program leaves its queues behind; its memory and files are removed with this value and the folder.
            self.queues.iter().for_each(|queue| _ = queue.remove());
        }
        let (output, cpu_ns) = executed?;
        let time_ns = output.split(' ').next().and_then(|number| number.parse().ok());
        let time_ns = time_ns.ok_or_else(|| io::Error::other(format!("it printed `{output}`")))?;
        Ok(ProgramRun { time_ns, cpu_ns })
    }

    /// The number of messages of a run that takes about `run_time`.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(super) fn messages_for(&self, run_time: Duration) -> io::Result<u64> {
        let time_ns = |messages| Ok(self.run(messages)?.time_ns);
        match self.runner.rate_per_s {
            Some(rate) => paced_messages_for(run_time, f64::from(rate), time_ns),
            None => messages_for(run_time, time_ns),
        }
    }
}

/// The number of messages of a run at a rate: as many as are due in `run_time`, at least [`PACED_MIN`]. If a short run reaches less than half
/// of the rate, the number that takes `run_time` without it.
///
/// # Errors
/// Those of `run`.
fn paced_messages_for(
    run_time: Duration,
    rate: f64,
    mut run: impl FnMut(u64) -> io::Result<f64>,
) -> io::Result<u64> {
    let due_in = |time: Duration| (rate * time.as_secs_f64()).ceil() as u64;
    let first = due_in(FIRST_PACED).max(1);
    match run(first)? * rate > 2e9 {
        true if first > 1 => messages_for(run_time, run),
        _ => Ok(due_in(run_time).max(PACED_MIN)),
    }
}

/// The number of messages of a run that takes about `run_time`. `run` makes a run of a number of messages, and returns the wall time of a
/// message in nanoseconds.
///
/// # Errors
/// Those of `run`.
fn messages_for(run_time: Duration, mut run: impl FnMut(u64) -> io::Result<f64>) -> io::Result<u64> {
    let sizing = Sizing {
        first: FIRST_MESSAGES,
        most: u64::MAX,
        growth_max: 100.0,
        enough: run_time / 2,
        trials: TRIES,
        alone: Duration::MAX,
    };
    let speed = sizing.find(|messages| {
        let elapsed = Duration::from_nanos((run(messages)? * messages as f64) as u64);
        Ok::<_, io::Error>(Some((elapsed, false)))
    })?;
    // A program that lost its CPU for a while looks slow, and its runs would be too short to be measured: the fastest run counts.
    let messages = speed.map(|speed| Speed::new(speed.amount, speed.fastest).amount_in(run_time));
    Ok(messages.map_or(1, |messages| (messages as u64).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_at_a_rate_has_the_messages_that_are_due_in_its_time() {
        let of = |rate: f64, own_ns: f64| {
            let run = |_| Ok(own_ns.max(1e9 / rate));
            paced_messages_for(Duration::from_millis(400), rate, run).expect("a number")
        };
        assert_eq!([of(1000.0, 900.0), of(2.0, 900.0)], [400, 5]);
        assert_eq!(of(1e6, 1500.0), 400_000, "nearly fast enough");
        assert_eq!(of(1e7, 1000.0), 400_000, "its own speed");
    }

    /// Expected: a run of 20 ms. Happened: one of 0.35 ms, after a run that had lost its CPU on a busy machine.
    #[test]
    fn a_run_that_lost_its_cpu_does_not_make_the_others_short() {
        let mut runs = 0;
        let messages = messages_for(Duration::from_millis(20), |messages| {
            runs += 1;
            let lost_ns = if runs % 3 == 1 { 12e6 } else { 0.0 };
            Ok(2000.0 + lost_ns / messages as f64)
        });
        assert_eq!(messages.expect("a number"), 10_000);
    }
}
