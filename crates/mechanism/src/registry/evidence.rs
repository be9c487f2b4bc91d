//! Whether a transfer passes pages or copies them, found out: a page is sent, changed afterwards, and read. A
//! receiver that reads the change was given the page; one that reads what was sent was given a copy.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use model::ZeroCopy;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};

use super::pipe::page_ring::page_is_passed;

/// Carries a page from a pipe to the descriptor that `transfer` returns. `way` names what was done, for people.
pub(super) fn try_transfer<F: AsFd>(
    way: &str,
    transfer: impl FnOnce(BorrowedFd<'_>, usize) -> io::Result<F>,
) -> ZeroCopy {
    verdict(&format!("a page changed after {way}"), page_is_passed(transfer))
}

/// The verdict on an experiment that changed something after it had been sent; nothing is copied.
pub(super) fn verdict(what: &str, seen_changed: io::Result<bool>) -> ZeroCopy {
    let (proven, seen) = match seen_changed {
        Ok(true) => (true, "reached the reader changed: it was passed by reference".to_owned()),
        Ok(false) => (false, "reached the reader as it had been: it was copied".to_owned()),
        Err(error) => (false, format!("could not be tried: {}", model::describe_errno(&error))),
    };
    ZeroCopy { copies_per_byte: Some(0), proven, how: format!("{what} {seen}") }
}

/// The same where bytes are copied all the same before or after; `where_copied` says where.
pub(super) fn but_copied(evidence: ZeroCopy, copies_per_byte: u32, where_copied: &str) -> ZeroCopy {
    ZeroCopy {
        copies_per_byte: Some(copies_per_byte),
        how: format!("{}; {where_copied}", evidence.how),
        ..evidence
    }
}

/// Out of the sender's memory by vmsplice(2).
pub(super) fn of_vmsplice() -> ZeroCopy {
    try_transfer("vmsplice(2)", |pipe, _| pipe.try_clone_to_owned())
}

/// From pipe to pipe by tee(2).
pub(super) fn of_tee() -> ZeroCopy {
    try_transfer("tee(2) to a second pipe", |pipe, len| {
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
        let copied = try_transfer("a copy", |pipe, _| {
            let mut page = [0u8; 4096];
            let len = rustix::io::read(pipe, &mut page)?;
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::write(&writer, &page[..len])?;
            Ok(reader)
        });
        assert!(!copied.proven && copied.how.contains("copied"), "{copied:?}");
        for evidence in [of_vmsplice(), of_tee()] {
            assert!(evidence.proven, "{evidence:?}");
        }
    }
}
