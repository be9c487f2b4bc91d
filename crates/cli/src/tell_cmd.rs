//! `hosepipe __tell`: a command typed at a prompt of `hosepipe sh`, handed on to the server of that shell.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

/// A command at a prompt
#[derive(Debug, Args)]
pub(crate) struct TellArgs {
    /// The name of the server's socket
    server: String,

    /// The command, as it was typed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Hands the command on, and prints what is said to it.
pub(crate) fn run(args: &TellArgs) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let said = shell::tell(&args.server, &words)?;
    std::io::stdout().write_all(said.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
