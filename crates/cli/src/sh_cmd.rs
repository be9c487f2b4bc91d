//! `hosepipe sh`: the user's own shell, whose `|` makes the chosen links.

use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdin};
use std::process::ExitCode;

use clap::Args;
use pipeline::link::LinkSpec;
use pipeline::shell::Shell;
use pipeline::{LineBuffered, Prompt, ShellRun, ShellUse};
use shell::Config;

use crate::{copies, script, terminal, typed};

/// Start a shell whose pipelines use the chosen link
#[derive(Debug, Args)]
#[command(
    // `-h` is the shell's.
    disable_help_flag = true,
    override_usage = "hosepipe sh [--via LINK] [--shell SHELL] [--pipefail] [--line-buffered[=STAGES]] [--align-buffers] [ARGUMENTS OF THE SHELL]...",
    after_help = include_str!("help/sh.txt")
)]
pub(crate) struct ShArgs {
    /// The link between stages [default: pipe; at a prompt the one in config.toml]
    #[arg(long, value_name = "LINK", value_parser = typed::link())]
    via: Option<String>,

    /// A pipeline's status is its last failing stage's, as after `set -o pipefail`
    #[arg(long)]
    pipefail: bool,

    /// Let programs write each line at once, in all stages of pipelines or in those with these numbers (from 1), as in --line-buffered=2,3
    #[arg(long, value_name = "STAGES", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    line_buffered: Option<LineBuffered>,

    /// Start programs so that malloc puts no large buffer where this CPU copies slowly; without effect on other CPUs
    #[arg(long)]
    align_buffers: bool,

    /// The shell [default: bash; at a prompt $SHELL]
    #[arg(long, value_name = "SHELL")]
    shell: Option<OsString>,

    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,

    /// The shell's own arguments: its options, a file to run and the file's arguments, -c TEXT, -s
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs the shell and exits with its status.
pub(crate) fn run(args: &ShArgs) -> anyhow::Result<ExitCode> {
    let prompt = if args.arguments.is_empty() { stdin().is_terminal() } else { args.arguments == ["-i"] };
    if prompt {
        return at_prompt(args);
    }
    let via = script::link(args.via.as_deref().unwrap_or("pipe"))?;
    let shell = script::shell(args.shell.as_deref().unwrap_or("bash".as_ref()))?;
    run_shell(args, &shell, &via, None)
}

fn at_prompt(args: &ShArgs) -> anyhow::Result<ExitCode> {
    let (config, problem) = Config::read();
    if let Some(problem) = problem {
        terminal::remark(&format!("hosepipe: {problem}"));
    }
    let via = script::link(args.via.as_deref().unwrap_or(&config.link))?;
    let shell = script::shell(&args.shell.clone().unwrap_or_else(shell::users_shell))?;
    let prompt = Prompt {
        begin: &|names| shell::begin(&shell, names),
        line: &shell::line,
        stats: config.stats,
        above: config.above(),
        mark_pipes: config.mark_pipes,
    };
    run_shell(args, &shell, &via, Some(prompt))
}

fn run_shell(
    args: &ShArgs,
    shell: &Shell,
    via: &LinkSpec,
    prompt: Option<Prompt<'_>>,
) -> anyhow::Result<ExitCode> {
    let arguments = script::arguments(args.pipefail, shell, args.arguments.iter().cloned())?;
    let has_terminal = stdin().is_terminal() && stderr().is_terminal();
    let is_interactive = prompt.is_some() || is_interactive(&args.arguments, has_terminal);
    let shell_use = if is_interactive { ShellUse::Interactive } else { ShellUse::Script };
    let shell_run = ShellRun {
        line_buffered: args.line_buffered.clone(),
        align_buffers: args.align_buffers && copies::alignment_has_effect(),
        prompt,
        ..script::shell_run(shell, arguments, via, shell_use)
    };
    Ok(script::exit(&pipeline::run(&shell_run)?))
}

/// Whether a shell with these arguments is interactive (bash(1), INVOCATION; other shells have the same letters).
fn is_interactive(arguments: &[OsString], has_terminal: bool) -> bool {
    let (mut is_requested, mut reads_stdin) = (has_terminal, false);
    let mut words = arguments.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        let letters = word.trim_start_matches(['-', '+']);
        match &word[..word.len() - letters.len()] {
            // The next argument is the text of `-c`.
            "-" | "+" if letters.contains('c') => return false,
            "-" | "+" => {
                is_requested |= word.starts_with('-') && letters.contains('i');
                reads_stdin |= letters.contains('s');
                // The next argument is the name of an option.
                if letters.ends_with(['o', 'O']) {
                    words.next();
                }
            }
            "--" if letters.is_empty() => return is_requested && (reads_stdin || words.next().is_none()),
            "--" if letters == "interactive" => is_requested = true,
            "--" if ["rcfile", "init-file"].contains(&letters) => drop(words.next()),
            "--" if letters.starts_with("command") => return false,
            "--" => {}
            // A file to run.
            _ => return is_requested && reads_stdin,
        }
    }
    is_requested
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interactive_shell_is_known_by_its_arguments() {
        let is_interactive = |line: &str, has_terminal| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            is_interactive(&words, has_terminal)
        };
        for line in ["--norc -i", "-i", "-li", "-o emacs -i", "--rcfile x -i", "-is a b", "--interactive"] {
            assert!(is_interactive(line, false), "{line}");
        }
        for line in ["--norc", "--rcfile x", "-l", "+m -O extglob", "-s a b", "--"] {
            assert!(is_interactive(line, true), "{line}");
            assert!(!is_interactive(line, false), "{line}");
        }
        for line in
            ["-ic true", "script -i", "-i script", "-o pipefail script", "-- script", "--command=true"]
        {
            assert!(!is_interactive(line, true), "{line}");
        }
    }
}
