//! What nodes let each other know, by name: in a folder that all of them see, or through somebody at the other end of a stream who keeps
//! such a folder. What stands there is JSON in one line.

use std::fs;
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// No line on a board is longer.
const BYTES_MAX: u64 = 1 << 30;

/// A board. What stands under a name is replaced as a whole.
pub enum Board {
    /// A folder.
    Folder(PathBuf),
    /// Both ways of a stream, at whose other end [`serve`] answers.
    Stream(Mutex<(Box<dyn BufRead + Send>, Box<dyn Write + Send>)>),
}

impl Board {
    /// The board behind a stream.
    pub fn over(answers: impl BufRead + Send + 'static, questions: impl Write + Send + 'static) -> Self {
        Self::Stream(Mutex::new((Box::new(answers), Box::new(questions))))
    }

    /// Puts something up under a name of small letters, digits and dashes.
    ///
    /// # Errors
    /// What the system answered; `UnexpectedEof` where nobody answers any more.
    pub fn put(&self, name: &str, what: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(what)?;
        match self {
            Self::Folder(folder) => write(folder, name, line.as_bytes()),
            Self::Stream(_) => self.ask(&format!("put {name} {line}\n")).map(|_| ()),
        }
    }

    /// What stands under a name; `None` where there is nothing yet.
    ///
    /// # Errors
    /// As [`Self::put`], and `InvalidData` for something else.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let line = match self {
            Self::Folder(folder) => read(folder, name)?,
            Self::Stream(_) => self.ask(&format!("get {name}\n"))?,
        };
        Ok(serde_json::from_slice(&line)?)
    }

    fn ask(&self, question: &str) -> io::Result<Vec<u8>> {
        let Self::Stream(both) = self else { return Ok(Vec::new()) };
        let (answers, questions) = &mut *both.lock().unwrap_or_else(PoisonError::into_inner);
        questions.write_all(question.as_bytes())?;
        questions.flush()?;
        line(&mut **answers)?.ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }
}

/// Answers what a board behind a stream asks, from a folder, until the stream ends. Lines that are no question are passed over: a shell's
/// greeting, for example.
///
/// # Errors
/// What the system answered.
pub fn serve(folder: &Path, questions: &mut dyn BufRead, answers: &mut dyn Write) -> io::Result<()> {
    let is_name = |name: &[u8]| name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    while let Some(question) = line(questions)? {
        let mut words = question.splitn(3, |byte| *byte == b' ');
        let mut answer = match (words.next(), words.next().filter(|name| is_name(name)), words.next()) {
            (Some(b"put"), Some(name), Some(what)) => {
                write(folder, &String::from_utf8_lossy(name), what)?;
                Vec::new()
            }
            (Some(b"get"), Some(name), None) => read(folder, &String::from_utf8_lossy(name))?,
            _ => continue,
        };
        answer.push(b'\n');
        answers.write_all(&answer)?;
        answers.flush()?;
    }
    Ok(())
}

/// Whoever reads finds the old text or the new one, and nobody but their owner reads them.
fn write(folder: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(format!(".{name}"));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?.write_all(text)?;
    fs::rename(unfinished, folder.join(name))
}

fn read(folder: &Path, name: &str) -> io::Result<Vec<u8>> {
    match fs::read(folder.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(b"null".to_vec()),
        read => read,
    }
}

/// The next line without its end; `None` at the end of the stream.
fn line(from: &mut dyn BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    from.take(BYTES_MAX).read_until(b'\n', &mut line)?;
    Ok((line.pop() == Some(b'\n')).then_some(line))
}
