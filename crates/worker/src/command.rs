//! Waits for processes within a time limit, and runs commands for their output: a version, a compiler's messages.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use process::{Capture, Captured, Child, Cleaner, wait_for_all};

/// Why processes did not run to their end. They have been killed.
#[derive(Debug)]
pub(crate) enum NotFinished {
    /// The user ended the run.
    Stopped,
    /// The time limit was reached; with the output until then.
    Late(String),
    /// A system call failed while a process was started or waited for.
    System(io::Error),
}

impl From<io::Error> for NotFinished {
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
) -> Result<(), NotFinished> {
    let began = Instant::now();
    let failed = |child: &Child<'_>| child.ended().is_some_and(|ended| !ended.status.success());
    let waited = wait_for_all(children, &failed, &mut || {
        sample();
        match began.elapsed() > limit {
            _ if stop() => Err(NotFinished::Stopped),
            true => Err(NotFinished::Late(String::new())),
            false => Ok(()),
        }
    });
    waited.map_err(|error| match error {
        NotFinished::Late(_) => {
            NotFinished::Late(children.iter().map(Child::captured_output).collect::<Vec<_>>().join("\n"))
        }
        other => other,
    })
}

/// Runs a command without input. Returns its exit status, and its standard output and standard error.
pub(crate) fn run(
    mut command: Command,
    limit: Duration,
    captured: Captured,
    cleaner: &Cleaner,
    stop: &dyn Fn() -> bool,
) -> Result<(ExitStatus, String), NotFinished> {
    command.stdin(Stdio::null());
    let mark = cleaner.mark();
    let mut children = [Child::spawn(command, Capture::Both, captured, cleaner, &mark)?];
    let waited = wait(&mut children, limit, stop, &mut || {});
    // A compiler may have left a server running for the next compiler.
    if waited.is_err() {
        mark.end_all();
    }
    waited?;
    let ended = children[0].ended().ok_or_else(|| io::Error::from(io::ErrorKind::Other))?;
    Ok((ended.status, children[0].captured_output()))
}
