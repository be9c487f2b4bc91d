//! A command that is run for what it says: a version, a compiler's messages.

use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::captured::Captured;
use crate::guard::Guard;
use crate::process::{Capture, Process};
use crate::supervise::{Cut, wait_for_all};

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
    guard: &Guard,
    stop: &dyn Fn() -> bool,
) -> Result<Said, NotRun> {
    command.stdin(Stdio::null());
    let mark = guard.mark();
    let process = Process::start(command, Capture::Both, said, guard, &mark).map_err(NotRun::Start)?;
    let mut processes = [process];
    let waited = wait_for_all(&mut processes, limit, stop, &mut || {});
    // A compiler that came to its end may have left a server behind, for the next one.
    if waited.is_err() {
        mark.end_all();
    }
    match waited {
        Ok(()) => {}
        Err(Cut::Stopped) => return Err(NotRun::Stopped),
        Err(Cut::Late) => return Err(NotRun::Late(processes[0].said())),
        Err(Cut::System(error)) => return Err(NotRun::Start(error)),
    }
    match processes[0].ended() {
        Some(ended) => Ok(Said { status: ended.status, text: processes[0].said() }),
        None => Err(NotRun::Start(io::ErrorKind::Other.into())),
    }
}

/// A command as one would type it.
pub(crate) fn shown(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
