//! Answers of the system when a mechanism is opened: granted sizes, settings and errors.

use std::collections::BTreeMap;
use std::io;

use model::{ByteSize, describe_errno};
use thiserror::Error;

/// Sizes granted, in bytes, by name: `pipe_bytes`, `sndbuf_bytes`…
pub type Granted = BTreeMap<String, u64>;

/// [`Granted`] from pairs of a name and a size.
pub(crate) fn granted<const N: usize>(sizes: [(&str, u64); N]) -> Granted {
    sizes.map(|(name, bytes)| (name.to_owned(), bytes)).into()
}

/// Why this machine does not have a mechanism.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct Unsupported {
    /// The call and the system's error.
    pub reason: String,
    /// What the user can do.
    pub remedy: Option<String>,
}

/// Why a channel could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The request exceeds a limit of the mechanism on this machine.
    #[error("{message}")]
    Limit {
        /// The request and the limit.
        message: String,
        /// How to raise the limit or request less.
        remedy: String,
    },
    /// A block is larger than the mechanism's largest message.
    #[error("{} blocks, limit {} ({limit})", ByteSize(*block_bytes), ByteSize(*limit_bytes))]
    BlockTooLarge {
        /// The requested block.
        block_bytes: u64,
        /// The largest message.
        limit_bytes: u64,
        /// The name of the limit, such as `kernel.msgmax`.
        limit: String,
        /// How to raise the limit or request less.
        remedy: String,
    },
    /// The combination has no meaning for this mechanism.
    #[error("{message}")]
    Unsupported {
        /// The combination, and why it has no meaning.
        message: String,
        /// Combinations that have a meaning.
        remedy: String,
    },
    /// The system refused.
    #[error("{call}: {}", describe_errno(.source))]
    System {
        /// The call that failed, with its main arguments.
        call: String,
        /// The system's error.
        source: io::Error,
        /// What the user can do.
        remedy: Option<String>,
    },
}

impl From<Unsupported> for OpenError {
    fn from(missing: Unsupported) -> Self {
        Self::Unsupported { message: missing.reason, remedy: missing.remedy.unwrap_or_default() }
    }
}

impl From<OpenError> for Unsupported {
    fn from(error: OpenError) -> Self {
        Self { reason: error.to_string(), remedy: error.remedy().map(str::to_owned) }
    }
}

impl OpenError {
    /// An [`OpenError::System`] without a remedy, for `map_err`.
    pub(crate) fn system<E: Into<io::Error>>(call: impl Into<String>) -> impl FnOnce(E) -> Self {
        let call = call.into();
        move |error| Self::System { call, source: error.into(), remedy: None }
    }

    /// An [`OpenError::System`], perhaps with a remedy.
    pub(crate) fn system_with(
        call: impl Into<String>,
        source: impl Into<io::Error>,
        remedy: Option<String>,
    ) -> Self {
        Self::System { call: call.into(), source: source.into(), remedy }
    }

    /// A combination that has no meaning.
    pub(crate) fn unsupported(message: &str, remedy: &str) -> Self {
        Self::Unsupported { message: message.to_owned(), remedy: remedy.to_owned() }
    }

    /// More than a limit allows.
    pub(crate) fn limit(message: String, remedy: impl Into<String>) -> Self {
        Self::Limit { message, remedy: remedy.into() }
    }

    /// A block larger than the mechanism's largest message.
    pub(crate) fn block_too_large(block_bytes: usize, limit_bytes: u64, limit: &str, remedy: &str) -> Self {
        Self::BlockTooLarge {
            block_bytes: block_bytes as u64,
            limit_bytes,
            limit: limit.to_owned(),
            remedy: format!("{remedy}, or --block {}", ByteSize(limit_bytes)),
        }
    }

    /// The remedy, if one is known.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Self::Limit { remedy, .. }
            | Self::BlockTooLarge { remedy, .. }
            | Self::Unsupported { remedy, .. } => Some(remedy),
            Self::System { remedy, .. } => remedy.as_deref(),
        }
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
