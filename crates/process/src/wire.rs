//! Messages between two programs: lines of JSON over two file descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use model::{describe_errno, visible};
use rustix::event::PollFlags;
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::poll::ready_within;

/// Longest line. The facts of a machine with some thousand CPUs are shorter.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Number of characters that an error quotes of a line that is no message.
const QUOTED_MAX: usize = 80;

/// Why the other side cannot be reached, or is gone: a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct WireError(pub String);

impl WireError {
    /// The error of a system call.
    pub fn system<E: Into<io::Error>>(call: impl Into<String>) -> impl FnOnce(E) -> Self {
        let call = call.into();
        move |error| Self(format!("{call}: {}", describe_errno(&error.into())))
    }
}

/// A connection over which lines are sent and received.
pub struct Wire {
    input: OwnedFd,
    output: OwnedFd,
    received: Vec<u8>,
    /// Bytes at the beginning of `received` that are known to hold no line end.
    searched: usize,
    line_bytes_max: usize,
    /// The other side's name, for messages.
    pub name: String,
}

impl Wire {
    /// A connection over file descriptors; `name` is the other side's.
    pub fn new(input: OwnedFd, output: OwnedFd, name: &str) -> Self {
        let (received, name) = (Vec::new(), name.to_owned());
        Self { input, output, received, searched: 0, line_bytes_max: LINE_BYTES_MAX, name }
    }

    /// A connection to the standard input and output of a program that is started afterwards.
    pub fn to_program(program: &mut Command, name: &str) -> io::Result<Self> {
        let ((input, its_output), (its_input, output)) = (io::pipe()?, io::pipe()?);
        program.stdin(its_input).stdout(its_output);
        Ok(Self::new(input.into(), output.into(), name))
    }

    /// The same over standard input and output.
    ///
    /// # Errors
    /// What dup(2) answered.
    pub fn over_stdio(name: &str) -> Result<Self, WireError> {
        let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(WireError::system("dup"));
        Ok(Self::new(copy(rustix::stdio::stdin())?, copy(rustix::stdio::stdout())?, name))
    }

    /// The same connection with another limit for the length of a line.
    #[must_use]
    pub fn with_lines_of(self, line_bytes_max: usize) -> Self {
        Self { line_bytes_max, ..self }
    }

    /// A connection over a socket.
    pub fn over(socket: OwnedFd, name: &str) -> Result<Self, WireError> {
        Ok(Self::new(socket.try_clone().map_err(WireError::system("dup"))?, socket, name))
    }

    /// Sends a message; no single wait for room is longer than `patience`.
    pub fn send(&self, message: &impl Serialize, patience: Duration) -> Result<(), WireError> {
        self.write(&message_line(message), patience)
    }

    /// Writes bytes. No single wait for room is longer than `patience`.
    ///
    /// # Errors
    /// The other side is gone, or does not read for that time.
    pub fn write(&self, mut bytes: &[u8], patience: Duration) -> Result<(), WireError> {
        let problem = |error| self.gone(error);
        while !bytes.is_empty() {
            if !ready_within(&self.output, PollFlags::OUT, Some(patience)).map_err(problem)? {
                return Err(WireError(format!("{} does not read for {} s", self.name, patience.as_secs())));
            }
            // A socket or pipe that is ready takes this much without blocking.
            match rustix::io::write(&self.output, &bytes[..bytes.len().min(4096)]) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(problem(error.into())),
            }
        }
        Ok(())
    }

    /// The next line, as text; `None` if none comes within `patience`.
    ///
    /// # Errors
    /// The other side is gone, or sends a line without an end.
    pub fn line(&mut self, patience: Duration) -> Result<Option<String>, WireError> {
        if !self.has_line(patience)? {
            return Ok(None);
        }
        let end = std::mem::take(&mut self.searched);
        let line: Vec<u8> = self.received.drain(..=end).collect();
        Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()))
    }

    /// Whether a line has come, or comes within `patience`.
    pub fn has_line(&mut self, patience: Duration) -> Result<bool, WireError> {
        let began = Instant::now();
        loop {
            let more = &self.received[self.searched..];
            let end = more.iter().position(|byte| *byte == b'\n');
            self.searched += end.unwrap_or(more.len());
            if end.is_some() {
                return Ok(true);
            }
            if self.received.len() > self.line_bytes_max {
                return Err(WireError(format!("{} sends a line without an end", self.name)));
            }
            let left = patience.saturating_sub(began.elapsed());
            let is_ready = ready_within(&self.input, PollFlags::IN, Some(left));
            if !is_ready.map_err(|error| self.gone(error))? {
                return Ok(false);
            }
            let mut room = [0; 16 << 10];
            match rustix::io::read(&self.input, &mut room) {
                Ok(0) => return Err(WireError(format!("{} has ended", self.name))),
                Ok(len) => self.received.extend_from_slice(&room[..len]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(self.gone(error.into())),
            }
        }
    }

    /// The file descriptor that is readable when something has come.
    pub fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    fn gone(&self, error: io::Error) -> WireError {
        WireError(format!("{} is gone: {}", self.name, describe_errno(&error)))
    }

    /// The error of a side that sends nothing in time.
    pub fn silent(&self, patience: Duration) -> WireError {
        WireError(format!("{} says nothing for {} s", self.name, patience.as_secs()))
    }

    /// The next message, which must come within `patience`.
    pub fn expect<M: DeserializeOwned>(&mut self, patience: Duration) -> Result<M, WireError> {
        self.receive(patience)?.ok_or_else(|| self.silent(patience))
    }

    /// The next message; `None` if none comes within `patience`.
    pub fn receive<M: DeserializeOwned>(&mut self, patience: Duration) -> Result<Option<M>, WireError> {
        self.line(patience)?.map(|line| read_message(&line, &self.name)).transpose()
    }
}

/// A message as it is sent.
pub fn message_line(message: &impl Serialize) -> Vec<u8> {
    // It fails only for values that JSON does not have, as maps without text keys; no message has one.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A message that was received.
pub fn read_message<M: DeserializeOwned>(line: &str, name: &str) -> Result<M, WireError> {
    model::from_json(line).map_err(|_| {
        let quoted: String = visible(line).lines().next().unwrap_or("").chars().take(QUOTED_MAX).collect();
        WireError(format!(
            "{name} does not speak hosepipe's protocol, it sent `{quoted}` (another version? does a start-up file of the shell print something?)"
        ))
    })
}
