//! `hosepipe __prompt`: runs a command of a prompt of `hosepipe sh`, such as `via tmpfile`.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

/// A command at a prompt
#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// The name of the server's socket
    server: String,

    /// The command, as it was typed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Runs the command and prints its answer.
pub(crate) fn run(args: &PromptArgs) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let text = shell::run_prompt_command(&args.server, &words)?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
