//! What both sides say to each other: lines, of JSON between the two ends of a benchmark.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use engine::{FarNews, Order};
use model::{CaseError, Host, Tool, describe_errno, visible};
use process::ready_within;
use rustix::event::PollFlags;
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::peer::auth::{Nonce, Proof, nonce};

/// What is talked about, and in which version of the words.
pub type Protocol = &'static str;

/// The two ends of a benchmark.
pub(crate) const BENCH: Protocol = "bench 2";

/// A machine of some thousand CPUs is told of in less.
const LINE_BYTES_MAX: usize = 1 << 20;

/// So much of what was no line of ours is quoted.
const QUOTED_MAX: usize = 80;

/// Why the other side is not there, or not any more: a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PeerError(pub(crate) String);

impl PeerError {
    /// What the system answered to a call.
    pub fn system<E: Into<io::Error>>(call: impl Into<String>) -> impl FnOnce(E) -> Self {
        let call = call.into();
        move |error| Self(format!("{call}: {}", describe_errno(&error.into())))
    }
}

/// What each side begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: String,
    /// Which hosepipe it is.
    pub(crate) version: String,
    pub(crate) nonce: Nonce,
}

impl Hello {
    pub(crate) fn new(protocol: Protocol) -> Result<Self, PeerError> {
        let nonce = nonce().map_err(PeerError::system("getrandom"))?;
        Ok(Self { protocol: protocol.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), nonce })
    }

    /// Whether both are there for the same thing, and do it in the same way.
    pub(crate) fn check(&self, who: &str, own: Protocol) -> Result<(), PeerError> {
        let own_version = env!("CARGO_PKG_VERSION");
        if self.protocol == own && self.version == own_version {
            return Ok(());
        }
        let [version, protocol] = [&self.version, &self.protocol].map(|text| visible(text));
        Err(PeerError(format!(
            "{who} is hosepipe {version} (protocol {protocol}), this is {own_version} (protocol {own}): \
             install the same version on both hosts"
        )))
    }
}

/// What the far side says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FromFar {
    Hello(Hello),
    /// Where there is a token: we have it, and so has this side.
    Known(Proof),
    /// Where ends meet, and the machine.
    Here {
        address: SocketAddr,
        tool: Tool,
        host: Box<Host>,
    },
    /// Of a trial, by the number of its order: how it goes, or why there is no report.
    News(u64, Result<FarNews, CaseError>),
}

/// What the near side says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FromNear {
    Hello { hello: Hello, proof: Option<Proof> },
    Order(u64, Order),
    Confirm { bytes: u64, checksum: Option<String> },
}

/// A connection of lines.
pub struct Wire {
    input: OwnedFd,
    output: OwnedFd,
    heard: Vec<u8>,
    /// So much of that holds no end of a line.
    searched: usize,
    line_bytes_max: usize,
    /// The other side's name, for people.
    name: String,
}

impl Wire {
    /// Over descriptors in blocking mode, at whose other end somebody is called so.
    pub fn new(input: OwnedFd, output: OwnedFd, name: &str) -> Self {
        let (heard, name) = (Vec::new(), name.to_owned());
        Self { input, output, heard, searched: 0, line_bytes_max: LINE_BYTES_MAX, name }
    }

    /// Over standard input and output, at whose other end somebody is called so.
    ///
    /// # Errors
    /// What dup(2) answered.
    pub fn over_stdio(name: &str) -> Result<Self, PeerError> {
        let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(PeerError::system("dup"));
        Ok(Self::new(copy(rustix::stdio::stdin())?, copy(rustix::stdio::stdout())?, name))
    }

    /// With lines that may be so long.
    #[must_use]
    pub fn with_lines_of(self, line_bytes_max: usize) -> Self {
        Self { line_bytes_max, ..self }
    }

    /// Over a socket.
    pub(crate) fn over(socket: OwnedFd, name: &str) -> Result<Self, PeerError> {
        Ok(Self::new(socket.try_clone().map_err(PeerError::system("dup"))?, socket, name))
    }

    /// Says something, and waits for so long at the most until it can be said.
    pub(crate) fn say(&self, message: &impl Serialize, patience: Duration) -> Result<(), PeerError> {
        self.write(&line(message), patience)
    }

    /// Writes bytes. No single wait for room is longer than `patience`.
    ///
    /// # Errors
    /// The other side is gone, or takes nothing for so long.
    pub fn write(&self, mut bytes: &[u8], patience: Duration) -> Result<(), PeerError> {
        let problem =
            |error: io::Error| PeerError(format!("{} is gone: {}", self.name, describe_errno(&error)));
        while !bytes.is_empty() {
            if !ready_within(&self.output, PollFlags::OUT, Some(patience)).map_err(problem)? {
                return Err(PeerError(format!("{} takes nothing for {} s", self.name, patience.as_secs())));
            }
            // No more than a socket or pipe that is ready takes without waiting.
            match rustix::io::write(&self.output, &bytes[..bytes.len().min(4096)]) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(problem(error.into())),
            }
        }
        Ok(())
    }

    /// The next line, as text; `None` where there is none for so long.
    ///
    /// # Errors
    /// The other side is gone, or sends a line without an end.
    pub fn line(&mut self, patience: Duration) -> Result<Option<String>, PeerError> {
        if !self.has_line(patience)? {
            return Ok(None);
        }
        let end = std::mem::take(&mut self.searched);
        let line: Vec<u8> = self.heard.drain(..=end).collect();
        Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()))
    }

    /// Whether there is a line, or comes within so long.
    pub(crate) fn has_line(&mut self, patience: Duration) -> Result<bool, PeerError> {
        let began = Instant::now();
        loop {
            let more = &self.heard[self.searched..];
            let end = more.iter().position(|byte| *byte == b'\n');
            self.searched += end.unwrap_or(more.len());
            if end.is_some() {
                return Ok(true);
            }
            if self.heard.len() > self.line_bytes_max {
                return Err(PeerError(format!("{} sends a line without an end", self.name)));
            }
            let left = patience.saturating_sub(began.elapsed());
            let problem =
                |error: io::Error| PeerError(format!("{} is gone: {}", self.name, describe_errno(&error)));
            if !ready_within(&self.input, PollFlags::IN, Some(left)).map_err(problem)? {
                return Ok(false);
            }
            let mut room = [0; 16 << 10];
            match rustix::io::read(&self.input, &mut room) {
                Ok(0) => return Err(PeerError(format!("{} has ended", self.name))),
                Ok(len) => self.heard.extend_from_slice(&room[..len]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(problem(error.into())),
            }
        }
    }

    /// What the other side says next; `None` where that is nothing for so long.
    pub(crate) fn hear<M: DeserializeOwned>(&mut self, patience: Duration) -> Result<Option<M>, PeerError> {
        self.line(patience)?.map(|line| read(&line, &self.name)).transpose()
    }
}

/// A message as it is sent.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    // Numbers, texts and lists of them: there is nothing that JSON does not have.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A message that was received.
pub(crate) fn read<M: DeserializeOwned>(line: &str, name: &str) -> Result<M, PeerError> {
    serde_json::from_str(line).map_err(|_| {
        let quoted: String = visible(line).lines().next().unwrap_or("").chars().take(QUOTED_MAX).collect();
        PeerError(format!(
            "{name} does not talk as hosepipe does, it says `{quoted}` (another version? does a start-up file of the shell print something?)"
        ))
    })
}
