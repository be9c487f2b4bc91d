//! `--json F`, `--csv F`, `--md F`…: one option for each format of the registry.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Arg, ArgMatches, Command, FromArgMatches};
use model::{BenchRecord, describe_errno};
use report::{FORMATS, Format};

use crate::terminal::{self, UsageError};

/// The formats asked for and where each goes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outputs(Vec<(&'static Format, Destination)>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Destination {
    Stdout,
    File(PathBuf),
}

impl Destination {
    fn file(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) => Some(path),
        }
    }
}

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
            can_be_written(path).map_err(|error| {
                UsageError(format!("cannot write `{}`: {}", path.display(), describe_errno(&error)))
            })?;
        }
        Ok(())
    }

    /// Writes the record in every format asked for.
    pub(crate) fn write(&self, record: &BenchRecord) -> anyhow::Result<()> {
        for (format, destination) in &self.0 {
            let text = (format.render)(record)?;
            match destination {
                Destination::Stdout => terminal::print(&text)?,
                Destination::File(path) => {
                    write_file(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
                }
            }
        }
        Ok(())
    }
}

/// A file that replaces what was there only when it is complete. What is no regular file (/dev/stderr, a FIFO, a
/// process substitution) is written as it is.
fn write_file(path: &Path, text: &str) -> io::Result<()> {
    if is_special(path) {
        return std::fs::write(path, text);
    }
    let mut file = temporary_beside(path)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map(|_| ()).map_err(|error| error.error)
}

fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Tries what can be tried without a trace. A special file is not touched: opening a FIFO is an event.
fn can_be_written(path: &Path) -> io::Result<()> {
    if is_special(path) {
        return Ok(());
    }
    match path.symlink_metadata() {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    temporary_beside(path).map(|_| ())
}

fn temporary_beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    if path.is_dir() || path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    if path.file_name().is_none() {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As a shell's redirection would make it: readable by others, less the umask.
    let permissions = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(".hosepipe-").permissions(permissions).tempfile_in(folder)
}

impl clap::Args for Outputs {
    fn augment_args(command: Command) -> Command {
        FORMATS.iter().fold(command, |command, format| {
            let help = format!("Write {} (- is standard output)", format.summary);
            command.arg(Arg::new(format.flag).long(format.flag).value_name("F").help(help))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Outputs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let asked = FORMATS.iter().filter_map(|format| {
            let text = matches.get_one::<String>(format.flag)?;
            let destination =
                if text == "-" { Destination::Stdout } else { Destination::File(PathBuf::from(text)) };
            Some((format, destination))
        });
        Ok(Self(asked.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
