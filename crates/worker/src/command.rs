//! A command that is run for its output: a version, a compiler's messages.

use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use process::{Capture, Captured, Child, Cleaner, wait_for_all};

/// Why a wait ended before the processes did. They have been killed.
#[derive(Debug)]
pub(crate) enum Cut {
    /// The user ended the run.
    Stopped,
    /// The time limit.
    Late,
    /// The system refused to wait.
    System(io::Error),
}

impl From<io::Error> for Cut {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Waits until every process has ended, until the time limit, or until `stop` is true. Calls `sample` repeatedly meanwhile.
pub(crate) fn wait(
    children: &mut [Child<'_>],
    limit: Duration,
    stop: &dyn Fn() -> bool,
    sample: &mut dyn FnMut(),
) -> Result<(), Cut> {
    let began = Instant::now();
    let failed = |child: &Child<'_>| child.ended().is_some_and(|ended| !ended.status.success());
    wait_for_all(children, &failed, &mut || {
        sample();
        match began.elapsed() > limit {
            _ if stop() => Err(Cut::Stopped),
            true => Err(Cut::Late),
            false => Ok(()),
        }
    })
}

/// A command's output, and how it ended.
pub(crate) struct Said {
    /// Its exit status, or the signal.
    pub(crate) status: ExitStatus,
    /// Its standard output and standard error.
    pub(crate) text: String,
}

/// Why a command did not end by itself.
pub(crate) enum NotRun {
    /// It could not be started.
    Start(io::Error),
    /// It took too long; its output until then.
    Late(String),
    /// The user ended the run.
    Stopped,
}

/// Runs a command without input and captures both outputs.
pub(crate) fn run(
    mut command: Command,
    limit: Duration,
    said: Captured,
    cleaner: &Cleaner,
    stop: &dyn Fn() -> bool,
) -> Result<Said, NotRun> {
    command.stdin(Stdio::null());
    let mark = cleaner.mark();
    let child = Child::spawn(command, Capture::Both, said, cleaner, &mark).map_err(NotRun::Start)?;
    let mut children = [child];
    let waited = wait(&mut children, limit, stop, &mut || {});
    // A compiler may have left a server running for the next compiler.
    if waited.is_err() {
        mark.end_all();
    }
    let text = children[0].said();
    match (waited, children[0].ended()) {
        (Ok(()), Some(ended)) => Ok(Said { status: ended.status, text }),
        (Err(Cut::Stopped), _) => Err(NotRun::Stopped),
        (Err(Cut::Late), _) => Err(NotRun::Late(text)),
        (Err(Cut::System(error)), _) => Err(NotRun::Start(error)),
        (Ok(()), None) => Err(NotRun::Start(io::ErrorKind::Other.into())),
    }
}

/// A command as it is typed.
pub(crate) fn shown(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
