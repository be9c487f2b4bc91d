//! An experiment that shows whether a transfer passes pages by reference or copies them: a page is sent, changed
//! afterwards, and read. If the receiver reads the change, it has the page; if it reads what was sent, it has a copy.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use model::ZeroCopy;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};

use super::pipe::page_ring::page_is_passed;

/// The experiment for `transfer`, which moves a page from a pipe to the descriptor that it returns. `name` is the name of the
/// transfer in the sentence of the result.
pub(super) fn try_transfer<F: AsFd>(
    name: &str,
    transfer: impl FnOnce(BorrowedFd<'_>, usize) -> io::Result<F>,
) -> ZeroCopy {
    verdict(&format!("a page was changed after {name}"), page_is_passed(transfer))
}

/// The result of an experiment that changed something after it had been sent, for a transfer that itself copies nothing.
/// `what` is a clause that says what was changed; `seen_changed`: the reader saw the change.
pub(super) fn verdict(what: &str, seen_changed: io::Result<bool>) -> ZeroCopy {
    let (proven, seen) = match seen_changed {
        Ok(true) => (true, "the reader saw the change, so bytes pass by reference".to_owned()),
        Ok(false) => (false, "the reader did not see the change, so bytes were copied".to_owned()),
        Err(error) => (false, format!("the experiment failed: {}", model::describe_errno(&error))),
    };
    ZeroCopy { copies_per_byte: Some(0), proven, how: format!("{what}: {seen}") }
}

/// The same evidence for a mechanism that also copies bytes before or after the transfer; `where_copied` says where.
pub(super) fn but_copied(evidence: ZeroCopy, copies_per_byte: u32, where_copied: &str) -> ZeroCopy {
    ZeroCopy {
        copies_per_byte: Some(copies_per_byte),
        how: format!("{}; {where_copied}", evidence.how),
        ..evidence
    }
}

/// The experiment for vmsplice(2) from the sender's memory.
pub(super) fn of_vmsplice() -> ZeroCopy {
    try_transfer("vmsplice(2)", |pipe, _| pipe.try_clone_to_owned())
}

/// The experiment for tee(2) from pipe to pipe.
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
    fn a_copy_and_a_reference_are_distinguished() {
        // A test of `model` says so.
        if model::vmsplice_refusal().is_some() {
            return;
        }
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
