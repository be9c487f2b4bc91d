//! `--json F`, `--csv F`, `--md F`…: one option for each format of the registry.

use clap::{Arg, ArgMatches, Command, FromArgMatches};
use model::BenchRecord;
use report::{FORMATS, Format};

use crate::destination::{Destination, OUTPUTS};
use crate::terminal::UsageError;

/// The formats asked for and where each goes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outputs(Vec<(&'static Format, Destination)>);

impl Outputs {
    /// Whether a format goes to standard output, which is then not the table's.
    pub(crate) fn use_stdout(&self) -> bool {
        self.0.iter().any(|(_, destination)| *destination == Destination::Stdout)
    }

    /// Refuses what could not be written after the run, before it.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let stdout = self.0.iter().filter(|(_, destination)| *destination == Destination::Stdout).count();
        if stdout > 1 {
            return Err(
                UsageError("two formats cannot share standard output: give one a file".to_owned()).into()
            );
        }
        let files = || self.0.iter().filter_map(|(_, destination)| destination.file());
        for (index, path) in files().enumerate() {
            if files().take(index).any(|other| other == path) {
                return Err(UsageError(format!("two formats cannot share {}", path.display())).into());
            }
        }
        self.0.iter().try_for_each(|(_, destination)| destination.check())
    }

    /// Writes the record in every format asked for.
    pub(crate) fn write(&self, record: &BenchRecord) -> anyhow::Result<()> {
        for (format, destination) in &self.0 {
            destination.write(&(format.render)(record)?)?;
        }
        Ok(())
    }
}

impl clap::Args for Outputs {
    fn augment_args(command: Command) -> Command {
        FORMATS.iter().fold(command, |command, format| {
            let help = format!("Write {} (- is standard output)", format.summary);
            let option = Arg::new(format.flag).long(format.flag).value_name("F").help(help);
            command.arg(option.help_heading(OUTPUTS).value_parser(Destination::parser()))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Outputs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let asked = FORMATS
            .iter()
            .filter_map(|format| Some((format, matches.get_one::<Destination>(format.flag)?.clone())));
        Ok(Self(asked.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
