//! A command that is run for what it says: a version, a compiler's messages.

use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use process::{Capture, Captured, Child, Cleaner, wait_for_all};

/// Why a wait ended before the processes did. They have been ended then.
#[derive(Debug)]
pub(crate) enum Cut {
    /// The user wants no more.
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

/// Waits until every process has ended, for a limited time, and not beyond the user's patience. Meanwhile `look` is called now and
/// then.
pub(crate) fn wait(
    children: &mut [Child<'_>],
    limit: Duration,
    stop: &dyn Fn() -> bool,
    look: &mut dyn FnMut(),
) -> Result<(), Cut> {
    let began = Instant::now();
    let failed = |child: &Child<'_>| child.ended().is_some_and(|ended| !ended.status.success());
    wait_for_all(children, &failed, &mut || {
        look();
        match began.elapsed() > limit {
            _ if stop() => Err(Cut::Stopped),
            true => Err(Cut::Late),
            false => Ok(()),
        }
    })
}

/// What a command said, and how it ended.
pub(crate) struct Said {
    /// Its exit status, or the signal.
    pub(crate) status: ExitStatus,
    /// Both of its outputs.
    pub(crate) text: String,
}

/// Why a command has no end of its own.
pub(crate) enum NotRun {
    /// It could not be started.
    Start(io::Error),
    /// It took too long; what it had said by then.
    Late(String),
    /// The user wants no more.
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
    // A compiler that came to its end may have left a server behind, for the next one.
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

/// A command as one would type it.
pub(crate) fn shown(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
