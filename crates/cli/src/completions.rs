//! `hosepipe completions`: prints a shell's completion script, generated from the definition of the command line.

use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Arg, Args, Command, CommandFactory, ValueEnum, ValueHint};
use clap_complete::{Shell, generate};
use clap_complete_nushell::Nushell;

use crate::terminal;

/// Prints completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/completions.txt"))]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: CompletedShell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompletedShell {
    Bash,
    Elvish,
    Fish,
    Nushell,
    Zsh,
}

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut command = without_hidden(&crate::Cli::command());
    let mut script = Vec::new();
    match args.shell {
        CompletedShell::Bash => generate(Shell::Bash, &mut command, "hosepipe", &mut script),
        CompletedShell::Elvish => generate(Shell::Elvish, &mut command, "hosepipe", &mut script),
        CompletedShell::Fish => generate(Shell::Fish, &mut command, "hosepipe", &mut script),
        CompletedShell::Nushell => generate(Nushell, &mut command, "hosepipe", &mut script),
        CompletedShell::Zsh => generate(Shell::Zsh, &mut command, "hosepipe", &mut script),
    }
    if args.shell == CompletedShell::Fish {
        script.extend_from_slice(values_for_fish(&command).as_bytes());
    }
    terminal::print_data(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// The command without its hidden options and subcommands, which clap_complete would offer, too.
fn without_hidden(command: &Command) -> Command {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned();
    let about = command.get_about().cloned().unwrap_or_default();
    let version = command.get_version().map(str::to_owned);
    let below = command.get_subcommands().filter(|one| !one.is_hide_set()).map(without_hidden);
    let made = Command::new(command.get_name().to_owned()).about(about).args(shown).subcommands(below);
    let made = made.disable_help_flag(command.is_disable_help_flag_set());
    if let Some(version) = version { made.version(version) } else { made }
}

/// The lines for positional arguments, which clap_complete omits for fish: their values, and commands with arguments.
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
    let runs_a_command = |command: &&Command| {
        command.get_positionals().any(|argument| argument.get_value_hint() == ValueHint::CommandWithArguments)
    };
    let of_commands = command.get_subcommands().filter(runs_a_command).map(|command| {
        let condition = format!("__fish_hosepipe_using_subcommand {}", command.get_name());
        // Completes the words after the first two, `hosepipe` and the subcommand.
        format!("complete -c hosepipe -n \"{condition}\" -x -a '(__fish_complete_subcommand --fcs-skip=2)'\n")
    });
    command.get_subcommands().flat_map(lines_of).chain(of_commands).collect()
}
