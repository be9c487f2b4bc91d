//! Named values that nodes publish for each other: in a folder that all nodes can access, or over a stream to a program that stores them in a
//! folder. A value is one line of JSON.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::describe_errno;
use process::{Wire, open_own, write_anew};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest value, in bytes of JSON.
const BYTES_MAX: usize = 1 << 30;
/// Longest time for an answer: all nodes may send requests at once, and records may be large.
const PATIENCE: Duration = Duration::from_secs(60);

/// Named values that all nodes can read. A value is replaced as a whole.
pub enum Rendezvous {
    /// A folder.
    Folder(PathBuf),
    /// A stream to a program that runs [`serve`].
    Stream(Mutex<Wire>),
}

impl Rendezvous {
    /// The rendezvous at the other end of a stream.
    pub fn over(wire: Wire) -> Self {
        Self::Stream(Mutex::new(wire.with_lines_of(BYTES_MAX)))
    }

    /// Sets the value of a name, which has letters, digits and dashes.
    ///
    /// # Errors
    /// An error of the file system, or the other end is gone.
    pub fn put(&self, name: &str, what: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(what)?;
        match self {
            Self::Folder(folder) => write(folder, name, &line),
            Self::Stream(wire) => ask(wire, &format!("put {name} {line}\n")).map(|_| ()),
        }
    }

    /// The value of a name; `None` if it has none yet.
    ///
    /// # Errors
    /// As [`Self::put`], and `InvalidData` for a value of another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let line = match self {
            Self::Folder(folder) => read(folder, name)?,
            Self::Stream(wire) => ask(wire, &format!("get {name}\n"))?,
        };
        Ok(model::from_json(line)?)
    }
}

fn ask(wire: &Mutex<Wire>, question: &str) -> io::Result<String> {
    let mut wire = wire.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = wire.write(question.as_bytes(), PATIENCE).and_then(|()| wire.line(PATIENCE));
    answer.map_err(io::Error::other)?.ok_or_else(|| ErrorKind::TimedOut.into())
}

/// Answers the requests of [`Rendezvous::Stream`] from a folder, until the stream ends. Other lines, such as a shell's greeting, are ignored.
///
/// # Errors
/// An error of the file system or of the stream.
pub fn serve(folder: &Path, wire: Wire) -> io::Result<()> {
    let mut wire = wire.with_lines_of(BYTES_MAX);
    let is_name = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    loop {
        let Ok(question) = wire.line(PATIENCE) else { return Ok(()) };
        let question = question.unwrap_or_default();
        let mut words = question.splitn(3, ' ');
        let mut answer = match (words.next(), words.next().filter(is_name), words.next()) {
            (Some("put"), Some(name), Some(what)) => write(folder, name, what).map(|()| String::new())?,
            (Some("get"), Some(name), None) => read(folder, name)?,
            _ => continue,
        };
        answer.push('\n');
        wire.write(answer.as_bytes(), PATIENCE).map_err(io::Error::other)?;
    }
}

/// Replaces a text atomically: a reader gets the old text or the new one. Only its owner can read it.
fn write(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let unfinished = folder.join(format!(".{name}"));
    let written = write_anew(&unfinished, 0o600, text.as_bytes());
    let written = written.and_then(|()| fs::rename(unfinished, folder.join(name)));
    written.map_err(|error| in_folder(folder, &error))
}

fn read(folder: &Path, name: &str) -> io::Result<String> {
    let mut text = String::new();
    match open_own(&folder.join(name)).and_then(|mut file| file.read_to_string(&mut text)) {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok("null".to_owned()),
        Err(error) => Err(in_folder(&folder.join(name), &error)),
    }
}

fn in_folder(place: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {}", place.display(), describe_errno(error)))
}
