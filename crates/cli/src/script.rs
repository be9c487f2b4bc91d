//! What the commands that run pipelines share: reading the text and the link, and ending as the text did.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;
use pipeline::link::LinkSpec;
use pipeline::shell::Shell;
use pipeline::syntax::{Script, SyntaxError, parse};
use pipeline::{Ending, Finished, Session, Text};

use crate::terminal::{self, UsageError};

/// Reads a text. What we cannot take apart and the shell takes is given to the shell in one piece.
///
/// # Errors
/// A syntax error, shown at its place; a text without a command.
pub(crate) fn read(text: &str, shell: &str) -> anyhow::Result<Script> {
    let script = match parse(text) {
        Ok(script) => script,
        Err(_) if shell_accepts(text, shell) => Script::in_one_piece(text),
        Err(error) => return Err(UsageError(pointed_out(text, &error)).into()),
    };
    if script.items.is_empty() {
        let message = "the pipeline is empty: give a command line, as in hosepipe run 'ls | wc -l'";
        return Err(UsageError(message.to_owned()).into());
    }
    Ok(script)
}

fn shell_accepts(text: &str, shell: &str) -> bool {
    let mut command = Command::new(shell);
    // A text that switches extended patterns on means them from the next line on; without running it bash cannot know.
    if text.contains("extglob") {
        command.args(["-O", "extglob"]);
    }
    command.args(["-n", "-c", "--", text]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The line with the error, and a mark below the place.
fn pointed_out(text: &str, error: &SyntaxError) -> String {
    let offset = error.offset.min(text.len());
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let before: String = text[start..offset].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    format!("{error}\n  {line}\n  {before}^")
}

/// Reads a link.
///
/// # Errors
/// There is no such link.
pub(crate) fn link(text: &str) -> anyhow::Result<LinkSpec> {
    LinkSpec::parse(text).map_err(|problem| UsageError(problem.to_string()).into())
}

/// A session with a shell, which begins where the one ended that wrote `state`.
///
/// # Errors
/// There is no such shell, or no such file.
pub(crate) fn session(shell: &str, state: Option<&Path>) -> anyhow::Result<Session> {
    let mut session =
        Session::new(shell).map_err(|problem| UsageError(format!("{problem}: try --shell /bin/sh")))?;
    if let Some(state) = state {
        session.resume(state).with_context(|| format!("cannot read {}", state.display()))?;
    }
    Ok(session)
}

/// Runs a shell with these arguments, its pipelines over a link, and exits as it did.
///
/// # Errors
/// There is no such shell or link, or the system refused something.
pub(crate) fn in_the_shell(shell: &OsStr, via: &str, arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let via = link(via)?;
    let shell = Shell::find(shell).map_err(|problem| UsageError(problem.to_string()))?;
    let ran = pipeline::run_in_shell(&Text { shell: &shell, arguments, via: &via })?;
    // Data that was cut short must not look like a normal end, whatever the stages made of it.
    Ok(exit_as(ran.ending, ran.summary.cut_short))
}

/// Exits as a shell did: a signal that ended it ends us, so that who waits for us sees it too.
pub(crate) fn exit_as(ending: Ending, cut_short: bool) -> ExitCode {
    if let Ending::Killed(signal) = ending {
        pipeline::end_by(signal);
    }
    ExitCode::from((ending.status().max(i32::from(cut_short)) & 0xff) as u8)
}

/// Says what the user should know; with `shown`, what a table has said already is left out. Who asked for a link is
/// told where it was not used.
pub(crate) fn remarks(finished: &Finished, shown: bool, link_asked: bool) {
    if !shown {
        for trouble in finished.links.iter().filter_map(|link| link.trouble.as_ref()) {
            terminal::remark(&format!("hosepipe: {trouble}"));
        }
    }
    if (shown || link_asked)
        && let Some(text) = &finished.in_one_shell
    {
        let line = text.lines().next().unwrap_or_default();
        terminal::remark(&format!(
            "From `{line}` on, the shell ran the rest by itself, over its own pipes: what that sets lives in one shell only."
        ));
    }
}

/// Exits as the text did: a signal that ended it ends us, so that who waits for us sees it too.
pub(crate) fn exit(finished: &Finished) -> ExitCode {
    if let Some(signal) = finished.ended_by {
        pipeline::end_by(signal);
    }
    ExitCode::from((finished.status & 0xff) as u8)
}
