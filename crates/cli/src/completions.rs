//! `hosepipe completions`: what a shell needs to complete our words, generated from the command line itself.

use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Arg, Args, Command, CommandFactory};
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
    let mut command = crate::Cli::command();
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |one| without_hidden_options(&one));
    }
    let mut script = Vec::new();
    generate(args.shell, &mut command, "hosepipe", &mut script);
    if args.shell == Shell::Fish {
        script.extend_from_slice(values_for_fish(&command).as_bytes());
    }
    terminal::print_data(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// clap_complete offers hidden options as well.
fn without_hidden_options(command: &Command) -> Command {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned();
    let about = command.get_about().cloned().unwrap_or_default();
    let made = Command::new(command.get_name().to_owned()).about(about).args(shown);
    made.disable_help_flag(command.is_disable_help_flag_set())
}

/// clap_complete leaves the values of positional arguments out of what it gives to fish.
fn values_for_fish(command: &Command) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
    let lines_of = |command: &Command| -> Vec<String> {
        let values = command.get_positionals().flat_map(Arg::get_possible_values);
        let line = |value: PossibleValue| {
            let condition = format!("__fish_hosepipe_using_subcommand {}", command.get_name());
            let help = value
                .get_help()
                .map_or_else(String::new, |help| format!(" -d {}", quoted(&help.to_string())));
            format!("complete -c hosepipe -n \"{condition}\" -f -a {}{help}\n", quoted(value.get_name()))
        };
        values.map(line).collect()
    };
    command.get_subcommands().flat_map(lines_of).collect()
}
