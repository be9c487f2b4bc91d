//! Compiles the programs that could be printed, and runs them in turn on this machine: the advice must hold for the program, and not only
//! for the loops of `bench`.

use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use model::{ProgramFigures, Spec};
use process::{Capture, Captured, Child, Cleaner, TemporaryPath, wait_for_all};

use super::program::{CodeLanguage, Program};

/// Runs of each program.
const ROUNDS: usize = 5;
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
    /// Where a name of its own may stay behind: removed with this value, or by the cleaner.
    _shared_memory: TemporaryPath,
}

/// Runs programs side by side; each run takes about `run_time`. Where `stop` says so, those that were timed by then have figures.
///
/// # Errors
/// There is no temporary folder, or no process to clean up.
pub(super) fn time(
    programs: &[(Spec, Program)],
    run_time: Duration,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Vec<ProgramFigures>> {
    // Both before anything is made: what is left behind is theirs.
    let cleaner = mechanism::start_cleaner().context("cannot start the process that cleans up after us")?;
    let folder = cleaner.make_folder().context("cannot make a folder for the programs")?;
    let mut timed = Vec::new();
    for (number, (spec, program)) in programs.iter().enumerate() {
        let mut figures = ProgramFigures {
            spec: spec.clone(),
            messages: 0,
            time_ns: Vec::new(),
            cpu_ns: Vec::new(),
            failure: None,
        };
        let ready = compile(number, spec, program, folder.path(), &cleaner, stop).and_then(|runnable| {
            let idle_ns = runnable.run(1, stop)?.1;
            figures.messages = messages_for(&runnable, run_time, stop)?;
            Ok((runnable, idle_ns))
        });
        let ready = match ready {
            Ok(ready) => Some(ready),
            Err(NotTimed::Stopped) => break,
            Err(NotTimed::Failed(why)) => {
                figures.failure = Some(why);
                None
            }
        };
        timed.push((figures, ready));
    }
    'rounds: for _ in 0..ROUNDS {
        for (figures, ready) in &mut timed {
            let Some((runnable, idle_ns)) = ready else { continue };
            match runnable.run(figures.messages, stop) {
                Ok((time_ns, cpu_ns)) => {
                    figures.time_ns.push(time_ns);
                    figures.cpu_ns.push(cpu_ns.saturating_sub(*idle_ns) as f64 / figures.messages as f64);
                }
                Err(NotTimed::Stopped) => break 'rounds,
                Err(NotTimed::Failed(why)) => {
                    figures.failure = Some(why);
                    *ready = None;
                }
            }
        }
    }
    Ok(timed.into_iter().map(|(figures, _)| figures).collect())
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
    folder: &'c Path,
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
        end_of(compiler, folder, cleaner, stop)?;
    }
    let words = match program.language {
        CodeLanguage::Python => vec!["python3".to_owned(), source],
        CodeLanguage::C | CodeLanguage::Rust => vec![made],
    };
    let own = format!("hosepipe-{}-{number}", std::process::id());
    // A ring's memory has a name outside of the folder.
    let shared = Path::new("/dev/shm").join(&own);
    let (shared_memory, ()) = TemporaryPath::make(cleaner.announcer(), shared, |_| Ok::<_, io::Error>(()))?;
    let name = match spec.mechanism.as_str() {
        "tcp" => TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string(),
        "posix-mq" | "shm-ring" => format!("/{own}"),
        _ => format!("meeting{number}"),
    };
    Ok(Runnable { words, name, folder, cleaner, _shared_memory: shared_memory })
}

impl Runnable<'_> {
    /// Time per message as the program says it, and the CPU time of the whole run, in nanoseconds.
    fn run(&self, messages: u64, stop: &dyn Fn() -> bool) -> Result<(f64, u64), NotTimed> {
        let ran = self.run_once(messages, stop);
        if ran.is_err() {
            // Each removes what an earlier run has left under its name.
            let _ = self.run_once(1, &|| false);
        }
        ran
    }

    fn run_once(&self, messages: u64, stop: &dyn Fn() -> bool) -> Result<(f64, u64), NotTimed> {
        let count = messages.to_string();
        let words: Vec<&str> =
            self.words.iter().map(String::as_str).chain([count.as_str(), self.name.as_str()]).collect();
        let (said, cpu_ns) = end_of(&words, self.folder, self.cleaner, stop)?;
        let time_ns = said.split(' ').next().and_then(|number| number.parse().ok());
        let time_ns = time_ns.ok_or_else(|| NotTimed::Failed(format!("it printed `{said}`")))?;
        Ok((time_ns, cpu_ns))
    }
}

/// Runs a program to its end; gives what it printed, and its CPU time in nanoseconds.
fn end_of(
    words: &[&str],
    folder: &Path,
    cleaner: &Cleaner,
    stop: &dyn Fn() -> bool,
) -> Result<(String, u64), NotTimed> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(folder).stdin(Stdio::null());
    let mark = cleaner.mark();
    let said = Captured::keeping(2048, 2048);
    let child = Child::spawn(command, Capture::Both, said, cleaner, &mark).map_err(|error| {
        NotTimed::Failed(match error.kind() {
            io::ErrorKind::NotFound => format!("there is no `{}` on this machine", words[0]),
            _ => format!("`{}` does not start: {}", words[0], model::describe_errno(&error)),
        })
    })?;
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
