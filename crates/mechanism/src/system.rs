//! Answers of the system when a mechanism is opened: granted sizes, settings and errors.

use std::collections::BTreeMap;
use std::io;

use model::{ByteSize, ErrorKind, describe_errno};
use thiserror::Error;

/// Sizes granted, in bytes, by name: `pipe_bytes`, `sndbuf_bytes`…
pub type Granted = BTreeMap<String, u64>;

/// [`Granted`] from pairs of a name and a size.
pub(crate) fn granted<const N: usize>(sizes: [(&str, u64); N]) -> Granted {
    sizes.map(|(name, bytes)| (name.to_owned(), bytes)).into()
}

/// Why a channel could not be opened, or why this machine does not have a mechanism.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct OpenError {
    /// `Limit`: more than the mechanism can do on this machine. `Unsupported`: the combination has no meaning for this mechanism.
    /// `Unavailable`: a sandbox forbids it. `Open`: the system refused.
    pub kind: ErrorKind,
    /// The request and the limit, or the call that failed, with its main arguments and the system's error.
    pub message: String,
    /// What the user can do.
    pub remedy: Option<String>,
    /// The system's error.
    pub source: Option<io::Error>,
    /// The mechanism's largest message and the name of that limit, if a block is larger.
    pub largest_message: Option<String>,
}

impl OpenError {
    /// A call that the system refused, with the call's main arguments, and perhaps a remedy.
    pub fn system(call: impl Into<String>, source: impl Into<io::Error>, remedy: Option<String>) -> Self {
        let source = source.into();
        let message = format!("{}: {}", call.into(), describe_errno(&source));
        Self { kind: ErrorKind::Open, message, remedy, source: Some(source), largest_message: None }
    }

    /// A system call that a filter of the process refuses (seccomp(2)), with the filter's error.
    pub(crate) fn forbidden(call: &str, error: &io::Error) -> Self {
        let why = match error.raw_os_error() {
            Some(libc::ENOSYS) => "the kernel does not have it, or a sandbox says so",
            _ => "a sandbox forbids it (seccomp, as containers have it)",
        };
        let message = format!("{call}: {}: {why}", describe_errno(error));
        let remedy = format!("outside of the container, or a seccomp profile that allows {call}");
        Self { kind: ErrorKind::Unavailable, ..Self::limit(message, remedy) }
    }

    /// A combination that has no meaning.
    pub fn unsupported(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Unsupported, ..Self::limit(message, remedy) }
    }

    /// More than a limit allows.
    pub(crate) fn limit(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (message, remedy) = (message.into(), Some(remedy.into()));
        Self { kind: ErrorKind::Limit, message, remedy, source: None, largest_message: None }
    }

    /// A block larger than the mechanism's largest message.
    pub(crate) fn block_too_large(block_bytes: usize, limit_bytes: u64, limit: &str, remedy: &str) -> Self {
        let (block, most) = (ByteSize(block_bytes as u64), ByteSize(limit_bytes));
        let largest = format!("{most} ({limit})");
        let error =
            Self::limit(format!("{block} blocks, limit {largest}"), format!("{remedy}, or --block {most}"));
        Self { largest_message: Some(largest), ..error }
    }
}

/// Names the call that failed.
pub(crate) trait InCall<T> {
    /// The value; or [`OpenError::system`] without a remedy.
    fn in_call(self, call: impl Into<String>) -> Result<T, OpenError>;
}

impl<T, E: Into<io::Error>> InCall<T> for Result<T, E> {
    fn in_call(self, call: impl Into<String>) -> Result<T, OpenError> {
        self.map_err(|error| OpenError::system(call, error, None))
    }
}

/// The result of a call of the C library: if it is negative, the error in `errno`.
pub(crate) fn libc_result(answer: impl TryInto<usize>) -> io::Result<usize> {
    answer.try_into().map_err(|_| io::Error::last_os_error())
}

/// The value of a kernel setting below /proc/sys, such as `fs/pipe-max-size`; `None` if it is not a number or cannot be read.
pub(crate) fn kernel_setting(path: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/{path}")).ok()?.trim().parse().ok()
}
