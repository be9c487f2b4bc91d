//! `hosepipe completions`: what a shell needs to complete our words, generated from the command line itself.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::terminal;

/// Prints completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hosepipe completions bash > ~/.local/share/bash-completion/completions/hosepipe\n  \
    hosepipe completions fish > ~/.config/fish/completions/hosepipe.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    generate(args.shell, &mut crate::Cli::command(), "hosepipe", &mut script);
    if args.shell == Shell::Fish {
        script.extend_from_slice(specs_for_fish().as_bytes());
    }
    terminal::print_data(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// clap_complete leaves the values of positional arguments out of what it gives to fish.
fn specs_for_fish() -> String {
    let line = |mechanism: &&dyn mechanism::Mechanism| {
        let has = mechanism.descriptor();
        let summary = has.summary.replace('\'', "");
        format!(
            "complete -c hosepipe -n \"__fish_hosepipe_using_subcommand bench\" -f -a '{}' -d '{summary}'\n",
            has.name
        )
    };
    mechanism::all().iter().map(line).collect()
}
