//! Writes to the standard streams without a panic. All text for a terminal goes through this file or [`crate::bar`]: its only escape
//! sequences are hosepipe's own colours.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use clap::error::ErrorKind;
use model::{describe_errno, one_line, visible};
use report::Style;
pub(crate) use report::wrap;

use crate::{help, tips};

/// An error of the command line that the parser cannot find: exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

impl UsageError {
    pub(crate) fn new(problem: impl ToString) -> Self {
        Self(problem.to_string())
    }
}

/// Fails with a [`UsageError`].
pub(crate) fn usage<T>(problem: impl Into<String>) -> anyhow::Result<T> {
    Err(UsageError(problem.into()).into())
}

/// Fails with the message of the first condition that holds.
///
/// # Errors
/// A [`UsageError`].
pub(crate) fn refuse<const N: usize>(conditions: [(bool, &str); N]) -> anyhow::Result<()> {
    match conditions.into_iter().find(|(holds, _)| *holds) {
        Some((_, problem)) => usage(problem),
        None => Ok(()),
    }
}

/// Prints an error and returns its exit status.
pub(crate) fn report_error(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        // The reader of the output has ended: no error has to be reported.
        return ExitCode::from(141);
    }
    // A line feed within a name must not begin a new message.
    remark(&format!("hosepipe: {}", describe(error).replace('\n', "\n  ")));
    if error.downcast_ref::<UsageError>().is_some() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// The error and its causes, errno by name.
fn describe(error: &anyhow::Error) -> String {
    let words = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<io::Error>() {
        Some(error) => describe_errno(error),
        None => cause.to_string(),
    };
    let mut message = String::new();
    for words in error.chain().map(words) {
        // Some messages already end with their cause.
        if !message.ends_with(&words) {
            message += if message.is_empty() { "" } else { ": " };
            message += &words;
        }
    }
    message
}

/// Prints the parser's message: help and version on standard output, an error on standard error.
pub(crate) fn print_answer(answer: clap::Error) -> ExitCode {
    // The message contains arguments and colours: it is made again with arguments that are safe for a terminal.
    let arguments: Vec<String> =
        std::env::args_os().map(|argument| one_line(&argument.to_string_lossy())).collect();
    let style = if answer.use_stderr() { style_of_stderr() } else { style() };
    if answer.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        remark(&help::first_steps(style.width));
        return ExitCode::from(2);
    }
    let mut command = help::laid_out(crate::Cli::command(), style.width);
    command = tips::with_negative_values(command, &arguments);
    let (answer, is_safe) = match command.try_get_matches_from_mut(&arguments) {
        Err(mut answer) => {
            tips::add(&mut answer, &command, &arguments);
            (answer, true)
        }
        Ok(_) => (answer, false),
    };
    let text = answer.render();
    let shown = if style.color && is_safe { text.ansi().to_string() } else { visible(&text.to_string()) };
    let painted = help::rendered(&shown);
    if answer.use_stderr() {
        remark_painted(painted.trim_end());
        return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2));
    }
    print_painted(&painted).map_or_else(|error| report_error(&error), |()| ExitCode::SUCCESS)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(broken)
}

/// Writes text to standard output.
///
/// # Errors
/// Standard output is closed, a pipe without a reader, or a file on a full disk.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_painted(&visible(text))
}

/// Writes data to standard output: unchanged, unless standard output is a terminal.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_data(text: &str) -> anyhow::Result<()> {
    if io::stdout().is_terminal() { print(text) } else { print_painted(text) }
}

/// Writes text to standard output as it is: with hosepipe's own colours, and without other control characters.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_painted(text: &str) -> anyhow::Result<()> {
    // Not through `Stdout`, which ignores EBADF.
    let written = io::stdout().as_fd().try_clone_to_owned();
    let written = written.and_then(|fd| File::from(fd).write_all(text.as_bytes()));
    written.context("cannot write standard output")
}

/// Writes remarks of a command that listens, on its callers. Their number is limited: a caller may try again and again.
pub(crate) fn remarks_of(command: &'static str) -> impl FnMut(&str) + Send {
    const COUNT_MAX: usize = 20;
    let mut count = 0;
    move |text| {
        count += 1;
        match count {
            ..COUNT_MAX => remark(&format!("hosepipe {command}: {text}")),
            COUNT_MAX => remark(&format!("hosepipe {command}: {text} (further remarks are not shown)")),
            _ => {}
        }
    }
}

/// Writes a remark to standard error. A failure to write it is ignored.
pub(crate) fn remark(text: &str) {
    remark_painted(&visible(text));
}

/// The same for text with hosepipe's own colours, and without other control characters.
pub(crate) fn remark_painted(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// The style of tables on standard output.
pub(crate) fn style() -> Style {
    style_of(&io::stdout())
}

/// The style of tables on standard error.
pub(crate) fn style_of_stderr() -> Style {
    style_of(&io::stderr())
}

/// The width of the terminal or of COLUMNS; colours only on a terminal and only if they are wanted. With all remarks: a verb that has `--explain`
/// sets that itself.
fn style_of(stream: &(impl AsFd + IsTerminal)) -> Style {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let window = rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    Style {
        width: window.filter(|width| *width > 0).or(columns).unwrap_or(100),
        color: stream.is_terminal() && model::colours_are_wanted(),
        explain: true,
        ..Style::default()
    }
}
