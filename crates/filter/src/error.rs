//! Why a filter stopped before its work was done.

use std::io;

use model::describe_errno;
use payload::PayloadError;
use thiserror::Error;

/// Why a filter stopped. The message contains the system's error, so there is no `source`.
#[derive(Debug, Error)]
pub enum FilterError {
    /// The payload cannot be made.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// There is no memory for the payload.
    #[error("cannot map memory for the payload: {}", describe_errno(.0))]
    Memory(io::Error),
    /// Standard output cannot be written.
    #[error("cannot write standard output at byte {at}: {}{}", describe_errno(.answer), remedy(.answer))]
    Write {
        /// Bytes written before.
        at: u64,
        /// The system's error.
        answer: io::Error,
    },
    /// Standard input cannot be read.
    #[error("cannot read standard input at byte {at}: {}{}", describe_errno(.answer), remedy(.answer))]
    Read {
        /// Bytes read before.
        at: u64,
        /// The system's error.
        answer: io::Error,
    },
}

impl FilterError {
    /// Whether the reader of standard output has ended: then a filter ends without a message.
    pub fn reader_is_gone(&self) -> bool {
        matches!(self, Self::Write { answer, .. } if answer.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// What to try next; empty if there is nothing to try.
fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => "; free some space, write elsewhere, or ask for fewer --bytes",
        Some(libc::EFBIG) => "; see `ulimit -f`, or ask for fewer --bytes",
        Some(libc::EBADF) => "; it is closed or open for the other direction: redirect it or use a pipe",
        Some(libc::EISDIR) => "; it is a directory: redirect a file or use a pipe",
        _ => "",
    }
}
