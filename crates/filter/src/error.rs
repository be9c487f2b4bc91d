//! Why a filter stopped before its work was done.

use std::io;

use model::describe_errno;
use payload::PayloadError;
use thiserror::Error;

/// Why a filter stopped. The sentence holds the system's answer, so no source repeats it.
#[derive(Debug, Error)]
pub enum FilterError {
    /// The payload cannot be made.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// There is no memory to lay the payload out in.
    #[error("cannot map memory for the payload: {}", describe_errno(.0))]
    Memory(io::Error),
    /// Standard output took no more.
    #[error("cannot write standard output at byte {at}: {}{}", describe_errno(.answer), remedy(.answer))]
    Write {
        /// Bytes that had gone out.
        at: u64,
        /// The system's answer.
        answer: io::Error,
    },
    /// Standard input gave no more.
    #[error("cannot read standard input at byte {at}: {}{}", describe_errno(.answer), remedy(.answer))]
    Read {
        /// Bytes that had come in.
        at: u64,
        /// The system's answer.
        answer: io::Error,
    },
}

impl FilterError {
    /// Whether the reader of standard output went away, of which a filter dies without a word.
    pub fn reader_is_gone(&self) -> bool {
        matches!(self, Self::Write { answer, .. } if answer.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// What to try next, where there is something to try.
fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => "; free some space, write elsewhere, or ask for fewer --bytes",
        Some(libc::EFBIG) => "; see `ulimit -f`, or ask for fewer --bytes",
        Some(libc::EBADF) => "; it is closed or open the other way round: redirect it or use a pipe",
        Some(libc::EISDIR) => "; it is a directory: redirect a file or use a pipe",
        _ => "",
    }
}
