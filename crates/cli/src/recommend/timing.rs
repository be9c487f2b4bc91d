//! Compiles the programs that could be printed, and runs them in rounds on this machine: the advice must hold for the program, and not
//! only for the loops of `bench`.

use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use model::{ProgramFigures, Spec};
use process::{Capture, Captured, Child, Cleaner, Pinned, TemporaryPath, wait_for_all};

use super::program::{CodeLanguage, Program};

/// Runs of each program, however little time is left.
const ROUNDS_MIN: usize = 3;
/// Messages of the first run that is timed.
const FIRST_MESSAGES: u64 = 100;
/// A compiler, or a run, that takes longer is ended.
const LIMIT: Duration = Duration::from_secs(20);

/// Why there is no figure.
enum NotTimed {
    Stopped,
    Failed(String),
}

impl From<io::Error> for NotTimed {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A program that can be run.
struct Runnable<'c> {
    words: Vec<String>,
    name: String,
    folder: &'c Path,
    cleaner: &'c Cleaner,
    /// The CPUs to which it is kept; none where the scheduler chooses.
    cpus: &'c [u32],
    /// Where a name of its own may stay behind: removed with this value, or by the cleaner.
    _shared_memory: TemporaryPath,
}

/// When to run which program.
pub(super) struct Schedule<'a> {
    /// About the time of a run.
    pub(super) run_time: Duration,
    /// The CPUs of the rows, to which the programs are kept too; none where the scheduler chooses.
    pub(super) cpus: &'a [u32],
    /// After it no further round begins.
    pub(super) until: Instant,
    /// Of the order within rounds.
    pub(super) seed: u64,
    /// Of all programs, in their order, those of which another run would tell something.
    pub(super) wanted: &'a dyn Fn(&[ProgramFigures]) -> Vec<bool>,
    pub(super) stop: &'a dyn Fn() -> bool,
}

/// Runs programs in rounds, each once in a round, until no further run is wanted or the time is over. Once one is not wanted it has had
/// its last run. After a stop, those that were timed by then have figures.
///
/// # Errors
/// There is no temporary folder, or no process to clean up.
pub(super) fn time(
    programs: &[(Spec, Program)],
    schedule: &Schedule<'_>,
) -> anyhow::Result<Vec<ProgramFigures>> {
    let stop = schedule.stop;
    // Both before anything is made: what is left behind is theirs.
    let cleaner = mechanism::start_cleaner().context("cannot start the process that cleans up after us")?;
    let folder = cleaner.make_folder().context("cannot make a folder for the programs")?;
    let (mut timed, mut runnables) = (Vec::new(), Vec::new());
    for (number, (spec, program)) in programs.iter().enumerate() {
        let mut figures = ProgramFigures {
            spec: spec.clone(),
            messages: 0,
            time_ns: Vec::new(),
            cpu_ns: Vec::new(),
            failure: None,
        };
        let place = (folder.path(), schedule.cpus);
        let ready = compile(number, spec, program, place, &cleaner, stop).and_then(|runnable| {
            let idle_ns = runnable.run(1, stop)?.1;
            figures.messages = messages_for(&runnable, schedule.run_time, stop)?;
            Ok((runnable, idle_ns))
        });
        runnables.push(match ready {
            Ok(ready) => Some(ready),
            Err(NotTimed::Stopped) => break,
            Err(NotTimed::Failed(why)) => {
                figures.failure = Some(why);
                None
            }
        });
        timed.push(figures);
    }
    let mut random = fastrand::Rng::with_seed(schedule.seed);
    let mut order: Vec<usize> = (0..timed.len()).collect();
    for round in 0.. {
        if round >= ROUNDS_MIN {
            let wanted = (schedule.wanted)(&timed);
            order.retain(|at| wanted[*at] && runnables[*at].is_some());
            if order.is_empty() || Instant::now() >= schedule.until {
                break;
            }
        }
        random.shuffle(&mut order);
        for at in &order {
            let (figures, ready) = (&mut timed[*at], &mut runnables[*at]);
            let Some((runnable, idle_ns)) = ready else { continue };
            match runnable.run(figures.messages, stop) {
                Ok((time_ns, cpu_ns)) => {
                    figures.time_ns.push(time_ns);
                    figures.cpu_ns.push(cpu_ns.saturating_sub(*idle_ns) as f64 / figures.messages as f64);
                }
                Err(NotTimed::Stopped) => return Ok(timed),
                Err(NotTimed::Failed(why)) => {
                    (figures.time_ns, figures.cpu_ns) = (Vec::new(), Vec::new());
                    figures.failure = Some(why);
                    *ready = None;
                }
            }
        }
    }
    Ok(timed)
}

/// How many messages a run of about so long has.
fn messages_for(
    runnable: &Runnable<'_>,
    run_time: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<u64, NotTimed> {
    let mut messages = FIRST_MESSAGES;
    loop {
        let took_ns = runnable.run(messages, stop)?.0 * messages as f64;
        let times = run_time.as_nanos() as f64 / took_ns.max(1.0);
        if times < 2.0 {
            return Ok(((messages as f64 * times) as u64).max(1));
        }
        messages = (messages as f64 * times.min(100.0)) as u64;
    }
}

/// Writes a program into the folder, and compiles it as its first comment says.
fn compile<'c>(
    number: usize,
    spec: &Spec,
    program: &Program,
    (folder, cpus): (&'c Path, &'c [u32]),
    cleaner: &'c Cleaner,
    stop: &dyn Fn() -> bool,
) -> Result<Runnable<'c>, NotTimed> {
    let source = format!("program{number}.{}", program.language.extension());
    std::fs::write(folder.join(&source), program.text())?;
    let made = format!("./program{number}");
    let compiler: &[&str] = match program.language {
        CodeLanguage::C => &["cc", "-O2", "-pthread", "-o", &made, &source, "-lrt"],
        CodeLanguage::Rust => &["rustc", "-O", "--edition", "2021", "-o", &made, &source],
        CodeLanguage::Python => &[],
    };
    if !compiler.is_empty() {
        end_of(compiler, (folder, &[]), cleaner, stop)?;
    }
    let words = match program.language {
        CodeLanguage::Python => vec!["python3".to_owned(), source],
        CodeLanguage::C | CodeLanguage::Rust => vec![made],
    };
    // A queue's name, and that of a ring's memory, lie outside of the folder.
    let (own, key) = mechanism::queue_of_program(number as u32);
    let shared = Path::new("/dev/shm").join(own.trim_start_matches('/'));
    let (shared_memory, ()) = TemporaryPath::make(cleaner.announcer(), shared, |_| Ok::<_, io::Error>(()))?;
    let name = match spec.mechanism.as_str() {
        "tcp" => TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string(),
        "posix-mq" | "shm-ring" => own,
        "sysv-msgq" => key.to_string(),
        _ => format!("meeting{number}"),
    };
    Ok(Runnable { words, name, folder, cleaner, cpus, _shared_memory: shared_memory })
}

impl Runnable<'_> {
    /// Time per message as the program says it, and the CPU time of the whole run, in nanoseconds.
    fn run(&self, messages: u64, stop: &dyn Fn() -> bool) -> Result<(f64, u64), NotTimed> {
        let ran = self.run_once(messages, stop);
        if ran.is_err() {
            // One that was ended could not; its memory and its files go with this value and the folder.
            mechanism::remove_queues_of_programs();
        }
        ran
    }

    fn run_once(&self, messages: u64, stop: &dyn Fn() -> bool) -> Result<(f64, u64), NotTimed> {
        let count = messages.to_string();
        let words: Vec<&str> =
            self.words.iter().map(String::as_str).chain([count.as_str(), self.name.as_str()]).collect();
        let (said, cpu_ns) = end_of(&words, (self.folder, self.cpus), self.cleaner, stop)?;
        let time_ns = said.split(' ').next().and_then(|number| number.parse().ok());
        let time_ns = time_ns.ok_or_else(|| NotTimed::Failed(format!("it printed `{said}`")))?;
        Ok((time_ns, cpu_ns))
    }
}

/// Runs a program to its end; gives what it printed, and its CPU time in nanoseconds.
fn end_of(
    words: &[&str],
    (folder, cpus): (&Path, &[u32]),
    cleaner: &Cleaner,
    stop: &dyn Fn() -> bool,
) -> Result<(String, u64), NotTimed> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(folder).stdin(Stdio::null());
    let mark = cleaner.mark();
    let said = Captured::keeping(2048, 2048);
    // A child inherits the CPUs of this thread.
    let pinned = (!cpus.is_empty()).then(|| Pinned::to_any(cpus)).transpose()?;
    let child = Child::spawn(command, Capture::Both, said, cleaner, &mark).map_err(|error| {
        NotTimed::Failed(match error.kind() {
            io::ErrorKind::NotFound => format!("there is no `{}` on PATH", words[0]),
            _ => format!("`{}` does not start: {}", words[0], model::describe_errno(&error)),
        })
    })?;
    drop(pinned);
    let mut children = [child];
    let began = Instant::now();
    let failed = |child: &Child<'_>| child.ended().is_some_and(|ended| !ended.status.success());
    wait_for_all(&mut children, &failed, &mut || match began.elapsed() > LIMIT {
        _ if stop() => Err(NotTimed::Stopped),
        true => Err(NotTimed::Failed(format!("`{}` did not end within {} s", words[0], LIMIT.as_secs()))),
        false => Ok(()),
    })?;
    let [child] = &children;
    let said = child.said();
    match child.ended() {
        Some(ended) if ended.status.success() => Ok((said, ended.usage.user_ns + ended.usage.system_ns)),
        _ => Err(NotTimed::Failed(format!(
            "`{}` failed: {}",
            words[0],
            said.lines().next().unwrap_or_default()
        ))),
    }
}
