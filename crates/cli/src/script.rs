//! What the commands that run pipelines share: the checks of a text, a link and a shell, and exiting as the shell did.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use pipeline::link::LinkSpec;
use pipeline::shell::{Kind, Shell};
use pipeline::{Ran, ShellRun, ShellUse};

use crate::terminal::{UsageError, usage};
use crate::tips;

/// Refuses a text without a command.
///
/// # Errors
/// The text has no command.
pub(crate) fn check(text: &OsStr) -> anyhow::Result<()> {
    let is_empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.to_string_lossy().lines().all(is_empty) {
        return usage("the pipeline is empty: give a command line, as in hosepipe run 'ls | wc -l'");
    }
    Ok(())
}

/// Refuses a text that the shell cannot parse, with the shell's own message.
///
/// # Errors
/// There is no command in it, or an error of syntax.
pub(crate) fn check_syntax(text: &str, shell: &Shell) -> anyhow::Result<()> {
    check(text.as_ref())?;
    let mut command = Command::new(&shell.path);
    // A text may enable extended patterns for its later lines (shopt -s extglob): bash -n does not run it, and would not parse them.
    if shell.kind == Kind::Bash && text.contains("extglob") {
        command.args(["-O", "extglob"]);
    }
    command
        .arg("-n")
        .args(pipeline::text_arguments(shell, text.as_ref()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let (status, errors) = process::output(&mut command)?;
    if status.success() { Ok(()) } else { usage(String::from_utf8_lossy(&errors).trim_end()) }
}

/// Parses a link.
///
/// # Errors
/// There is no such link.
pub(crate) fn link(text: &str) -> anyhow::Result<LinkSpec> {
    Ok(LinkSpec::parse(text).map_err(|problem| {
        match tips::several(text, |one| LinkSpec::parse(one).is_ok()) {
            Some(links) => UsageError(format!(
                "`{text}` is several links: only `hosepipe compare` takes several, with commas (--via {})",
                links.join(",")
            )),
            None => UsageError::new(problem),
        }
    })?)
}

/// Finds a shell.
///
/// # Errors
/// There is no shell with this name, or no library can be preloaded into it.
pub(crate) fn shell(name: &OsStr) -> anyhow::Result<Shell> {
    Ok(Shell::find(name).map_err(UsageError::new)?)
}

/// A shell's arguments, with those of pipefail if requested.
///
/// # Errors
/// The shell has no pipefail.
pub(crate) fn arguments(
    pipefail: bool,
    shell: &Shell,
    own: impl IntoIterator<Item = OsString>,
) -> anyhow::Result<Vec<OsString>> {
    // fish would take `-o pipefail` for the name of a file.
    if pipefail && shell.kind == Kind::Fish {
        return usage("fish has no pipefail: leave out --pipefail, or use another shell (--shell bash)");
    }
    let option: &[&str] = if pipefail { &["-o", "pipefail"] } else { &[] };
    Ok(option.iter().map(Into::into).chain(own).collect())
}

/// What the shell is to run, without any of the options of `hosepipe run`.
pub(crate) fn shell_run<'a>(
    shell: &'a Shell,
    arguments: Vec<OsString>,
    via: &'a LinkSpec,
    shell_use: ShellUse,
) -> ShellRun<'a> {
    ShellRun {
        shell,
        arguments,
        streams: Vec::new(),
        via,
        keep: None,
        watched: None,
        line_buffered: None,
        align_buffers: false,
        recorded: false,
        without: None,
        prompt: None,
        shell_use,
    }
}

/// Exits as a shell did: by the same signal if a signal ended it. If data was lost, the status is not 0, even if the stages did not
/// notice it.
pub(crate) fn exit(ran: &Ran) -> ExitCode {
    exit_as(ran.ended, ran.status())
}

/// Exits with a status, or by the signal that ended a program.
pub(crate) fn exit_as(ended: ExitStatus, status: i32) -> ExitCode {
    if let Some(signal) = ended.signal() {
        process::signals::end_by(signal);
    }
    ExitCode::from((status & 0xff) as u8)
}
