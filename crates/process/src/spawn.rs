//! Starts a program with posix_spawn(3), in which glibc uses clone(2) as vfork(2) does: its cost does not grow with the memory of
//! this process, and it may be called from a program with threads. Here is also the command with which every part of hosepipe
//! starts ssh(1): the user's configuration applies, and no shell of this host reads the words.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::unistd::execve;

use crate::signals::{mask_at_start, not_ignored_at_start, restore};

/// The variables of an environment.
pub type Environment = Vec<(OsString, OsString)>;

/// Starts the program at `path`. Of each pair in `copies`, the second descriptor becomes a copy of the first; no first
/// descriptor may be the second of another pair. The program ignores (nohup(1)) or blocks the signals that this process ignored or blocked
/// when it was started.
///
/// # Errors
/// What execve(2), or an earlier step, answered in the child.
pub fn spawn(
    path: &Path,
    words: &[OsString],
    environment: &Environment,
    copies: &[(OwnedFd, RawFd)],
) -> io::Result<i32> {
    // This process, or the Rust runtime, may have changed signals since it was started.
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_sigdefault(&not_ignored_at_start())?;
    attributes.set_sigmask(&mask_at_start())?;
    attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK)?;
    let mut actions = PosixSpawnFileActions::init()?;
    for (source, number) in copies {
        actions.add_dup2(source.as_raw_fd(), *number)?;
    }
    Ok(posix_spawn(path, &actions, &attributes, &c_words(words), &c_environment(environment))?.as_raw())
}

/// This process becomes the program at `path`, with the signals as they were when this process was started. Returns only if that fails.
pub fn become_program(path: &Path, words: &[OsString], environment: &Environment) -> io::Error {
    restore();
    let Err(error) = execve(&c_string(&[path.as_os_str()]), &c_words(words), &c_environment(environment));
    error.into()
}

/// The command that runs a line in the login shell of another host. ssh gets no terminal, and fails where it would ask for a password.
pub fn ssh_words(host: &str, line: &str) -> Vec<String> {
    ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=4", "--", host, line]
        .map(str::to_owned)
        .to_vec()
}

/// Makes a command of words; there must be at least one.
pub fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn c_words(words: &[OsString]) -> Vec<CString> {
    words.iter().map(|word| c_string(&[word])).collect()
}

fn c_environment(environment: &Environment) -> Vec<CString> {
    environment.iter().map(|(name, value)| c_string(&[name, OsStr::new("="), value])).collect()
}

/// Strings from a command line or from the environment contain no NUL.
fn c_string(parts: &[&OsStr]) -> CString {
    let bytes: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    CString::new(bytes.concat()).unwrap_or_default()
}
