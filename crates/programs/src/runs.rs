//! Compiles the programs that could be printed, and runs them on this machine.

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::{Sizing, Spec, Speed, describe_errno};
use process::{
    Capture, Captured, Child, Cleaner, Mark, Pinned, QueueName, TemporaryPath, TemporaryQueue, wait_for_all,
};

use crate::program::{Program, Role};
use crate::question::{Pattern, Question, Share};

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
pub(crate) struct ProgramRunner<'a> {
    pub(crate) cleaner: &'a Cleaner,
    pub(crate) folder: &'a Path,
    /// The CPUs that programs may use; empty: all.
    pub(crate) cpus: &'a [u32],
    /// Whether the user wants to stop: then every run fails.
    pub(crate) is_stopped: &'a dyn Fn() -> bool,
    /// The rate of the messages, and the number of ends.
    pub(crate) question: &'a Question,
}

/// The compiled programs of a mechanism.
pub(crate) struct CompiledProgram<'a> {
    runner: &'a ProgramRunner<'a>,
    /// Where they are, and run.
    folder: PathBuf,
    /// What each does, and its command without arguments.
    commands: Vec<(Role, Vec<String>)>,
    /// The argument NAME: where the ends meet.
    name: String,
    outside: Outside,
}

/// Shared memory and queues that a killed program leaves behind: removed with this value, or by the cleaner.
struct Outside {
    _memory: Vec<TemporaryPath>,
    queues: Vec<TemporaryQueue>,
}

/// The first of this many TCP ports in a row that are free now.
fn free_ports(number: u32) -> io::Result<u16> {
    const TRIES: u32 = 100;
    let bind = |port: u16| TcpListener::bind(("127.0.0.1", port));
    for _ in 0..TRIES {
        let first = bind(0)?.local_addr()?.port();
        if (0..number).all(|at| first.checked_add(at as u16).is_some_and(|port| bind(port).is_ok())) {
            return Ok(first);
        }
    }
    Err(io::Error::other(format!("no {number} ports in a row are free")))
}

/// Time per message as the programs report it, and CPU time of the whole run, in nanoseconds.
pub(crate) struct ProgramRun {
    pub(crate) time_ns: f64,
    pub(crate) cpu_ns: u64,
    /// Messages of all senders.
    pub(crate) messages: u64,
}

/// What a program printed at its end.
struct Printed {
    role: Role,
    time_ns: f64,
    messages: u64,
    /// Whether it received all that was sent.
    is_complete: bool,
}

impl Printed {
    /// Reads a line such as "812.4 ns per message: 1000 of 200 bytes, all as sent".
    fn read(role: Role, output: &str) -> io::Result<Self> {
        let line = output.lines().find(|line| line.contains(" ns per ")).unwrap_or_default();
        let number = |text: &str| text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
        let parts = line.split_once(": ").and_then(|(time, rest)| Some((number(time)?, number(rest)?)));
        let (time_ns, messages) = parts.ok_or_else(|| io::Error::other(format!("it printed `{output}`")))?;
        Ok(Self { role, time_ns, messages: messages as u64, is_complete: line.ends_with("all as sent") })
    }
}

impl<'a> ProgramRunner<'a> {
    /// Writes the programs of a mechanism into a folder of their own and compiles them as their first comments say. `number` is different for
    /// each mechanism.
    ///
    /// # Errors
    /// The message of a compiler, or of the system.
    pub(crate) fn compile(
        &'a self,
        number: usize,
        spec: &Spec,
        programs: &[Program],
    ) -> io::Result<CompiledProgram<'a>> {
        let folder = self.folder.join(format!("program{number}"));
        std::fs::create_dir(&folder)?;
        let mut commands = Vec::new();
        for program in programs {
            std::fs::write(folder.join(program.file()), program.text())?;
            let (compiler, command) = program.commands();
            if !compiler.is_empty() {
                self.execute(&folder, &[compiler], &[])?;
            }
            commands.push((program.role, command));
        }
        let (name, outside) = self.meeting(spec, programs.len() > 1)?;
        Ok(CompiledProgram { runner: self, folder, commands, name, outside })
    }

    /// A name for a run, and what it may leave outside of its folder: queues or shared memory.
    fn meeting(&self, spec: &Spec, is_pair: bool) -> io::Result<(String, Outside)> {
        let announcer = self.cleaner.announcer();
        let queue = |name| TemporaryQueue::announced(announcer, name);
        // Replies have a name of their own, and so has each receiver with a link of its own.
        let links = self.question.receivers;
        let suffixes =
            [String::new(), ".back".to_owned()].into_iter().chain((0..links).map(|at| format!(".{at}")));
        let random = QueueName::random_name().to_string();
        let names = suffixes.map(|suffix| format!("{random}{suffix}"));
        let shared = |name: &str| Path::new("/dev/shm").join(name.trim_start_matches('/'));
        let memory = |name: String| {
            TemporaryPath::make(announcer, shared(&name), |_| Ok::<_, io::Error>(())).map(|(path, ())| path)
        };
        let mut outside = Outside { _memory: vec![], queues: vec![] };
        let name = match spec.mechanism.as_str() {
            "tcp" => free_ports(links + 1)?.to_string(),
            "shm-ring" => {
                outside._memory = names.map(memory).collect::<io::Result<_>>()?;
                if is_pair { shared(&random).display().to_string() } else { random }
            }
            "posix-mq" => {
                outside.queues = names.map(QueueName::posix).map(queue).collect();
                random
            }
            "sysv-msgq" => {
                let QueueName::SystemV(key) = QueueName::random_key() else {
                    return Err(io::Error::other("no key for a queue"));
                };
                let keys = (0..=links.cast_signed()).map(|at| QueueName::SystemV(key.wrapping_add(at)));
                outside.queues = keys.map(queue).collect();
                key.to_string()
            }
            _ => "meeting".to_owned(),
        };
        Ok((name, outside))
    }

    /// Runs commands side by side on these CPUs; returns the output of each, and their CPU time together in nanoseconds.
    fn execute(
        &self,
        folder: &Path,
        commands: &[Vec<String>],
        cpus: &[u32],
    ) -> io::Result<(Vec<String>, u64)> {
        let mark = self.cleaner.mark();
        let start = |words: &Vec<String>| self.start(folder, words, cpus, &mark);
        let mut children: Vec<Child<'_>> = commands.iter().map(start).collect::<io::Result<_>>()?;
        let began = Instant::now();
        let failed = |child: &Child<'_>| child.ended().is_some_and(|ended| !ended.status.success());
        let program = &commands[0][0];
        wait_for_all(&mut children, &failed, &mut || match began.elapsed() > LIMIT {
            _ if (self.is_stopped)() => Err(io::Error::other("stopped")),
            true => Err(io::Error::other(format!("`{program}` did not end within {} s", LIMIT.as_secs()))),
            false => Ok(()),
        })?;
        // The first that failed, not those that were ended because of it.
        let has_failed = || commands.iter().zip(&children).filter(|(_, child)| failed(child));
        let by_itself = has_failed().find(|(_, child)| !child.captured_output().is_empty());
        if let Some((command, child)) = by_itself.or_else(|| has_failed().next()) {
            let output = child.captured_output();
            let message = output.lines().next().unwrap_or_default();
            return Err(io::Error::other(format!("`{}` failed: {message}", command.join(" "))));
        }
        let cpu_ns =
            |child: &Child<'_>| child.ended().map_or(0, |ended| ended.usage.user_ns + ended.usage.system_ns);
        let outputs = children.iter().map(Child::captured_output).collect();
        Ok((outputs, children.iter().map(cpu_ns).sum()))
    }

    fn start<'c>(
        &'c self,
        folder: &Path,
        words: &[String],
        cpus: &[u32],
        mark: &'c Mark,
    ) -> io::Result<Child<'c>> {
        let program = &words[0];
        let mut command = Command::new(program);
        // A compiler that is killed leaves files in TMPDIR.
        command.args(&words[1..]).current_dir(folder).env("TMPDIR", self.folder).stdin(Stdio::null());
        // A child inherits the CPUs of this thread.
        let _pinned = (!cpus.is_empty()).then(|| Pinned::to_any(cpus)).transpose()?;
        Child::spawn(command, Capture::Both, Captured::keeping(2048, 2048), self.cleaner, mark).map_err(
            |error| match error.kind() {
                io::ErrorKind::NotFound => io::Error::other(format!("there is no `{program}` on PATH")),
                _ => io::Error::other(format!("`{program}` does not start: {}", describe_errno(&error))),
            },
        )
    }
}

impl CompiledProgram<'_> {
    /// Sends this many messages, or makes this many round trips.
    ///
    /// # Errors
    /// The program failed, or took too long, or the user wants to stop.
    pub(crate) fn run(&self, messages: u64) -> io::Result<ProgramRun> {
        let executed = self.runner.execute(&self.folder, &self.command_lines(messages), self.runner.cpus);
        if executed.is_err() {
            // A killed program leaves its queues behind; its memory and files are removed with this value and the folder.
            self.outside.queues.iter().for_each(|queue| _ = queue.remove());
        }
        let (outputs, cpu_ns) = executed?;
        let read = |((role, _), output): (&(Role, _), &String)| Printed::read(*role, output);
        let printed: Vec<Printed> = self.started().zip(&outputs).map(read).collect::<io::Result<_>>()?;
        let messages = self.per_sender(messages) * u64::from(self.senders());
        Ok(ProgramRun { time_ns: self.time_ns(&printed, messages)?, cpu_ns, messages })
    }

    /// Whether the user wants to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        (self.runner.is_stopped)()
    }

    fn senders(&self) -> u32 {
        self.runner.question.senders
    }

    /// The argument COUNT of a sender, where all together send about so much.
    fn per_sender(&self, messages: u64) -> u64 {
        messages.div_ceil(u64::from(self.senders()))
    }

    /// The programs of a run, in the order of their start: receivers first.
    fn started(&self) -> impl Iterator<Item = &(Role, Vec<String>)> {
        self.commands.iter().rev().flat_map(|one| {
            let times = match one.0 {
                Role::Both => 1,
                Role::Sender => self.senders(),
                Role::Receiver => self.runner.question.receivers,
            };
            std::iter::repeat_n(one, times as usize)
        })
    }

    /// The command lines of a run of this many messages.
    fn command_lines(&self, messages: u64) -> Vec<Vec<String>> {
        let question = self.runner.question;
        let count = self.per_sender(messages);
        let rate = question.sender_rate_per_s();
        let line = |(role, command): &(Role, Vec<String>)| {
            let count = match role {
                Role::Receiver => question.receiver_count(count),
                Role::Both | Role::Sender => count,
            };
            // Only the program of both ends has no RATE where none is asked for.
            let rate = rate.or((*role != Role::Both).then_some(0)).map(|rate| rate.to_string());
            let arguments = std::iter::once(count.to_string()).chain(rate).chain([self.name.clone()]);
            command.iter().cloned().chain(arguments).collect()
        };
        self.started().map(line).collect()
    }

    /// The wall time of a message of a run, in nanoseconds.
    ///
    /// # Errors
    /// Not all messages arrived.
    fn time_ns(&self, printed: &[Printed], messages: u64) -> io::Result<f64> {
        let question = self.runner.question;
        let of = |role: Role| printed.iter().filter(move |one| one.role == role);
        if let Some(both) = of(Role::Both).next() {
            return Ok(both.time_ns);
        }
        let arrived = match question.share {
            Some(Share::Compete) => of(Role::Receiver).map(|one| one.messages).sum(),
            _ => of(Role::Receiver).map(|one| one.messages).min().unwrap_or_default(),
        };
        if arrived != messages || !of(Role::Receiver).all(|one| one.is_complete) {
            return Err(io::Error::other(format!("of {messages} messages {arrived} arrived")));
        }
        // A client waits for each reply; one way the last to be ready decides, and with a rate the sender.
        let role = match question.pattern {
            Pattern::Stream if question.rate_per_s.is_none() => Role::Receiver,
            _ => Role::Sender,
        };
        let whole_ns = of(role).map(|one| one.time_ns * one.messages as f64);
        Ok(whole_ns.fold(0.0, f64::max) / messages as f64)
    }

    /// The number of messages of a run that takes about `run_time`.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) fn messages_for(&self, run_time: Duration) -> io::Result<u64> {
        let time_ns = |messages| Ok(self.run(messages)?.time_ns);
        match self.runner.question.rate_per_s {
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
