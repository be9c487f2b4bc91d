//! Destinations of records: standard output, or a file, which is replaced only by a complete one.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::builder::{OsStringValueParser, TypedValueParser};
use model::describe_errno;

use crate::terminal::{self, UsageError};

/// The heading of these options in the help.
pub(crate) const OUTPUTS: &str = "Records and other outputs";

/// The destination of a record: a file, or standard output for `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
}

impl Destination {
    /// Parses a destination; a path may be other than UTF-8.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        let parse = |typed: OsString| if typed == "-" { Self::Stdout } else { Self::File(typed.into()) };
        OsStringValueParser::new().map(parse)
    }

    /// Checks before a run that the record can be written after it.
    ///
    /// # Errors
    /// A [`UsageError`] with the answer of the system.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let Some(path) = self.file() else { return Ok(()) };
        can_be_written(path).map_err(|error| {
            UsageError(format!("cannot write `{}`: {}", path.display(), describe_errno(&error))).into()
        })
    }

    /// Writes a text to it.
    pub(crate) fn write(&self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::Stdout => terminal::print_data(text),
            Self::File(path) => {
                write_file(path, text).with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }

    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) => Some(path),
        }
    }
}

/// Writes a file that replaces the old one only when it is complete. Writes directly to anything but a regular file (/dev/stderr,
/// a FIFO, a process substitution).
fn write_file(path: &Path, text: &str) -> io::Result<()> {
    if is_special(path) {
        return std::fs::write(path, text);
    }
    let mut file = temporary_beside(path)?;
    // `as_file_mut`, because errors of `NamedTempFile` carry a path and no errno.
    file.as_file_mut().write_all(text.as_bytes())?;
    file.persist(path).map(|_| ()).map_err(|error| error.error)
}

fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Checks without side effects. A special file is not opened: the other end of a FIFO would notice it.
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
    if path.is_dir() || path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    if path.file_name().is_none() {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The mode of a shell's redirection, 0666 without the umask; tempfile's own is 0600.
    let make = |path: &Path| std::fs::File::options().write(true).create_new(true).open(path);
    tempfile::Builder::new().prefix(".hosepipe-").make_in(folder, make)
}
