//! The standard streams of a whole pipeline, where they are not this program's own.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Standard input, output and error, by number; `None` is this program's own.
#[derive(Debug, Default)]
pub struct Standard {
    /// What the first stage reads.
    pub stdin: Option<OwnedFd>,
    /// What the last stage writes to.
    pub stdout: Option<OwnedFd>,
    /// Where every stage complains.
    pub stderr: Option<OwnedFd>,
}

impl Standard {
    /// The streams that are not this program's own, with their numbers.
    pub(crate) fn given(&self) -> impl Iterator<Item = (i32, BorrowedFd<'_>)> {
        [(0, &self.stdin), (1, &self.stdout), (2, &self.stderr)]
            .into_iter()
            .filter_map(|(number, fd)| Some((number, fd.as_ref()?.as_fd())))
    }
}
