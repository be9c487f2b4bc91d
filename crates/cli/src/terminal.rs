//! What the standard streams are, and how to write to them without a panic.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use anyhow::Context;
use model::describe_errno;
use report::Style;

/// A mistake on the command line that the parser could not see: exit status 2.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Prints an error as one line and gives the exit status it stands for.
pub(crate) fn report_error(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        // Whoever read our output has stopped: nothing to say, and nobody to say it to.
        return ExitCode::from(141);
    }
    let _ = writeln!(io::stderr(), "hosepipe: {}", describe(error));
    if error.downcast_ref::<UsageError>().is_some() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// The error and its causes in one line, errno by name.
fn describe(error: &anyhow::Error) -> String {
    let words = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<io::Error>() {
        Some(error) => describe_errno(error),
        None => cause.to_string(),
    };
    error.chain().map(words).collect::<Vec<_>>().join(": ")
}

/// Prints what the parser has to say: help and version on standard output, a mistake on standard error.
pub(crate) fn print_answer(answer: &clap::Error) -> ExitCode {
    if answer.use_stderr() {
        let _ = answer.print();
        return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2));
    }
    let text = answer.render();
    let text = if style().color { text.ansi().to_string() } else { text.to_string() };
    print(&text).map_or_else(|error| report_error(&error), |()| ExitCode::SUCCESS)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(broken)
}

/// Writes to standard output.
///
/// # Errors
/// It is closed, a pipe that nobody reads, or a full disk.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    // Not through `Stdout`, which takes EBADF for success.
    let written = io::stdout().as_fd().try_clone_to_owned();
    let written = written.and_then(|fd| File::from(fd).write_all(text.as_bytes()));
    written.context("cannot write standard output")
}

/// Says something on standard error. That it cannot be said is no reason to stop.
pub(crate) fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// How tables should look on standard output.
pub(crate) fn style() -> Style {
    style_of(&io::stdout())
}

/// How tables should look on standard error.
pub(crate) fn style_of_stderr() -> Style {
    style_of(&io::stderr())
}

/// As wide as the terminal or COLUMNS says, colours only on a terminal and only without NO_COLOR (no-color.org).
fn style_of(stream: &(impl AsFd + IsTerminal)) -> Style {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let window = rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Style {
        width: window.filter(|width| *width > 0).or(columns).unwrap_or(100),
        color: stream.is_terminal() && !plain,
        unicode: true,
    }
}

/// Breaks at blanks; a word longer than the width stands alone.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
