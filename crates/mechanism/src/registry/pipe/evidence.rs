//! Whether a road passes pages or copies them, found out: a page is sent, changed afterwards, and read. Whoever
//! reads the change was given the page; whoever reads what was sent was given a copy.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};

use super::page_ring::page_is_passed;
use crate::channel::Evidence;

/// Carries a page from a pipe to the descriptor that `road` returns. `way` names what was done, for people.
pub(in crate::registry) fn try_road<F: AsFd>(
    way: &str,
    road: impl FnOnce(BorrowedFd<'_>, usize) -> io::Result<F>,
) -> Evidence {
    judge(way, page_is_passed(road))
}

/// The verdict on an experiment.
pub(in crate::registry) fn judge(way: &str, passed: io::Result<bool>) -> Evidence {
    let (proven, what) = match passed {
        Ok(true) => (true, "was read changed: passed by reference".to_owned()),
        Ok(false) => (false, "was read as it had been: this kernel copies there".to_owned()),
        Err(error) => (false, format!("could not be tried: {}", model::describe_errno(&error))),
    };
    Evidence { proven, how: format!("a page changed after {way} {what}") }
}

/// Out of the sender's memory by vmsplice(2).
pub(super) fn of_vmsplice() -> Evidence {
    try_road("vmsplice(2)", |pipe, _| pipe.try_clone_to_owned())
}

/// From pipe to pipe by tee(2).
pub(super) fn of_tee() -> Evidence {
    try_road("tee(2) to a second pipe", |pipe, len| {
        let (reader, writer): (OwnedFd, OwnedFd) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        tee(pipe, &writer, len, SpliceFlags::NONBLOCK)?;
        Ok(reader)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_told_from_a_reference() {
        let copied = try_road("a copy", |pipe, _| {
            let mut page = [0u8; 4096];
            let len = rustix::io::read(pipe, &mut page)?;
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::write(&writer, &page[..len])?;
            Ok(reader)
        });
        assert!(!copied.proven && copied.how.contains("copies"), "{copied:?}");
        for evidence in [of_vmsplice(), of_tee()] {
            assert!(evidence.proven, "{evidence:?}");
        }
    }
}
