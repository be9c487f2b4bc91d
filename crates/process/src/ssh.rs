//! ssh(1), as every part of hosepipe starts it: configured by the user, through an argument vector.

use std::process::Command;

/// The words that run a line in the login shell of another host. Nothing can type a password, and there is no terminal.
pub fn ssh_words(host: &str, line: &str) -> Vec<String> {
    ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=4", "--", host, line]
        .map(str::to_owned)
        .to_vec()
}

/// The command of these words, of which there is one at least.
pub fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}
