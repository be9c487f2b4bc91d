//! `--json F`, `--csv F`, `--md F`…: an option for each output format, the same in every command that makes records; and how such a
//! command prints and saves its record.

use std::io::stderr;
use std::os::fd::{OwnedFd, RawFd};

use clap::{Arg, ArgMatches, Command, FromArgMatches};
use model::RecordHead;
use report::read::Loaded;
use report::{FORMATS, Format, Style};
use rustix::io::fcntl_dupfd_cloexec;

use crate::destination::{Destination, OUTPUTS};
use crate::record;
use crate::terminal::{self, usage};

/// The requested formats and their destinations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outputs(Vec<(&'static Format, Destination)>);

impl Outputs {
    /// The destination of a format, by its option.
    pub(crate) fn destination(&self, flag: &str) -> Option<&Destination> {
        self.0.iter().find_map(|(format, destination)| (format.flag == flag).then_some(destination))
    }

    /// Whether no format was requested.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a format goes to standard output.
    pub(crate) fn has_stdout(&self) -> bool {
        self.0.iter().any(|(_, destination)| *destination == Destination::Stdout)
    }

    /// The descriptors of a program for [`process::spawn`]: its standard output is standard error if a format uses standard output.
    ///
    /// # Errors
    /// Standard error cannot be duplicated.
    pub(crate) fn streams(&self) -> anyhow::Result<Vec<(OwnedFd, RawFd)>> {
        let stderr = self.has_stdout().then(|| fcntl_dupfd_cloexec(stderr(), 3)).transpose()?;
        Ok(stderr.map(|stderr| (stderr, 1)).into_iter().collect())
    }

    /// Checks before a run that the formats can be written after it.
    ///
    /// # Errors
    /// A [`UsageError`](terminal::UsageError): a file cannot be written, or two formats have the same destination.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (index, (_, destination)) in self.0.iter().enumerate() {
            if self.0[..index].iter().any(|(_, other)| other == destination) {
                let shared = match destination {
                    Destination::Stdout => "standard output: give one a file".to_owned(),
                    Destination::File(path) => path.display().to_string(),
                };
                return usage(format!("two formats cannot share {shared}"));
            }
        }
        self.0.iter().try_for_each(|(_, destination)| destination.check())
    }

    /// Writes records in every requested format.
    pub(crate) fn write(&self, records: &[Loaded]) -> anyhow::Result<()> {
        for (format, destination) in &self.0 {
            destination.write(&(format.render)(records, study::view)?)?;
        }
        Ok(())
    }

    /// The head of a record that begins now (see [`record::begin`]).
    pub(crate) fn begin(&self) -> RecordHead {
        record::begin(!self.is_empty())
    }

    /// Prints a record's tables on standard error if `is_shown`, and writes the record in every requested format: for commands whose
    /// standard output belongs to the programs that they run.
    pub(crate) fn show_on_stderr(&self, record: Loaded, is_shown: bool) -> anyhow::Result<()> {
        if is_shown {
            let text = report::terminal(&record.record, &terminal::style_of_stderr(), study::view);
            terminal::remark_painted(text.trim_end());
        }
        self.write(&[record])
    }

    /// Writes a record in every requested format, and prints its tables unless a format uses standard output.
    pub(crate) fn show(&self, record: Loaded, style: &Style) -> anyhow::Result<()> {
        let record = [record];
        // A record that cannot be saved is still printed.
        let written = self.write(&record);
        if !self.has_stdout() {
            terminal::print_painted(&report::terminal(&record[0].record, style, study::view))?;
        }
        written
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
