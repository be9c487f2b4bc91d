//! `hosepipe sh`: the interactive shell, and texts that run as if they were typed there.

use std::io::{IsTerminal, Read, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use shell::{Config, Ended, Shell};

use crate::script::{link, session};
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::typed;

/// An interactive shell whose `|` is yours to choose
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe sh                              a prompt; `help` there says what it knows
  hosepipe sh --via tmpfile                every `|` is a temporary file from the beginning
  hosepipe sh -c 'via socketpair; ls | wc'
  hosepipe sh pipelines.txt                line by line, no prompt; exits with the last status
  echo 'seq 10 | tac' | hosepipe sh

~/.config/hosepipe/config.toml may set how a prompt begins: link = \"pipe\", stats = true,
prompt = \"{dir} ({link}){status}> \". Earlier lines are kept in ~/.local/share/hosepipe/history.")]
pub(crate) struct ShArgs {
    /// A file with the text to run, instead of a prompt
    #[arg(value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,

    /// The text to run, instead of a prompt
    #[arg(short = 'c', value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,

    /// What stands between stages, until `via` says otherwise [default: pipe, or what config.toml says]
    #[arg(long, value_name = "LINK", value_parser = typed::Link::One)]
    via: Option<String>,

    /// A pipeline's status is its last failing stage's, as after `set -o pipefail`
    #[arg(long)]
    pipefail: bool,

    /// The shell for stages that need one
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: String,
}

/// Runs the shell and exits with its last status.
pub(crate) fn run(args: &ShArgs) -> anyhow::Result<ExitCode> {
    let text = match (&args.text, &args.file) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(file)) => Some(read_file(file)?),
        (None, None) if stdin().is_terminal() => None,
        (None, None) => Some(read_stdin()?),
    };
    let ended = match text {
        Some(text) => run_text(args, &text)?,
        None => prompt(args)?,
    };
    match ended {
        Ended::Left(status) => Ok(ExitCode::from((status & 0xff) as u8)),
        Ended::By(signal) => {
            pipeline::end_by(signal);
            Ok(ExitCode::from((128 + signal) as u8))
        }
    }
}

fn run_text(args: &ShArgs, text: &str) -> anyhow::Result<Ended> {
    let via = link(args.via.as_deref().unwrap_or("pipe"))?;
    let script = shell::read(text, &args.shell).map_err(UsageError)?;
    let stop = StopRequest::listen()?;
    let shell = Shell::new(session(&args.shell, None)?, via, args.pipefail);
    Ok(shell::script(shell, &script, text, &|| stop.signal()))
}

fn prompt(args: &ShArgs) -> anyhow::Result<Ended> {
    let (config, problem) = Config::read();
    if let Some(problem) = problem {
        terminal::remark(&format!("hosepipe: {problem}"));
    }
    let via = link(args.via.as_deref().unwrap_or(&config.link))?;
    let shell = Shell::new(session(&args.shell, None)?, via, args.pipefail);
    shell::interactive(shell, &config, &args.shell)
}

fn read_file(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    text_of(bytes, &path.display().to_string())
}

fn read_stdin() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    text_of(bytes, "standard input")
}

fn text_of(bytes: Vec<u8>, name: &str) -> anyhow::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        UsageError(format!("{name}: byte {place} is no text in UTF-8, and `hosepipe sh` takes no other"))
            .into()
    })
}
