//! Functions that the commands that run pipelines share: parsing the text, the link and the shell, and exiting as the shell did.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use pipeline::Ran;
use pipeline::link::LinkSpec;
use pipeline::shell::{Kind, Shell};

use crate::terminal::UsageError;

/// Refuses a text without a command.
///
/// # Errors
/// The text has no command.
pub(crate) fn check(text: &OsStr) -> anyhow::Result<()> {
    let is_empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.to_string_lossy().lines().all(is_empty) {
        let message = "the pipeline is empty: give a command line, as in hosepipe run 'ls | wc -l'";
        return Err(UsageError(message.to_owned()).into());
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
    // A text may switch extended patterns on for the lines that follow, which bash does not notice without running it. Other shells
    // have no such option.
    if shell.kind == Kind::Bash && text.contains("extglob") {
        command.args(["-O", "extglob"]);
    }
    command
        .arg("-n")
        .args(pipeline::text_arguments(shell, text.as_ref()))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let said = command.output()?;
    if said.status.success() {
        return Ok(());
    }
    Err(UsageError(String::from_utf8_lossy(&said.stderr).trim_end().to_owned()).into())
}

/// Reads a link.
///
/// # Errors
/// There is no such link.
pub(crate) fn link(text: &str) -> anyhow::Result<LinkSpec> {
    LinkSpec::parse(text).map_err(|problem| UsageError(problem.to_string()).into())
}

/// Finds a shell.
///
/// # Errors
/// There is no shell with this name, or no library can be preloaded into it.
pub(crate) fn shell(name: &OsStr) -> anyhow::Result<Shell> {
    Shell::find(name).map_err(|problem| UsageError(problem.to_string()).into())
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
        let message = "fish has no pipefail: without --pipefail, or with another shell (--shell bash)";
        return Err(UsageError(message.to_owned()).into());
    }
    let option: &[&str] = if pipefail { &["-o", "pipefail"] } else { &[] };
    Ok(option.iter().map(Into::into).chain(own).collect())
}

/// Exits as a shell did: by the same signal if a signal ended it. If data was lost, the status is not 0, also if the stages did not
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
