//! Bytes counted on their way: from a link's reading end into the reader's pipe by splice(2), which moves pages and copies nothing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use super::relay::{Pass, Source, Until};
use super::wait::{Stop, sleep_on};

/// The most one call moves, in bytes: no pipe of a link holds more.
const PIECE_BYTES: usize = 1 << 20;

/// A stream whose relay counts.
pub(super) struct Metered {
    input: OwnedFd,
}

impl Metered {
    /// # Errors
    /// What fcntl(2) answers.
    pub(super) fn new(input: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        Ok(Self { input })
    }
}

impl Source for Metered {
    fn pass(&mut self, pipe: &OwnedFd) -> io::Result<Pass> {
        match splice(&self.input, None, pipe, None, PIECE_BYTES, SpliceFlags::NONBLOCK | SpliceFlags::MOVE) {
            Ok(0) => Ok(Pass::End),
            Ok(moved) => Ok(Pass::Moved(moved as u64)),
            Err(Errno::INTR) => Ok(Pass::Moved(0)),
            // For want of bytes, or of room.
            Err(Errno::AGAIN) => {
                let mut readable = [PollFd::new(&self.input, PollFlags::IN)];
                sleep_on(&mut readable, Some(Duration::ZERO))?;
                let something = !readable[0].revents().is_empty();
                let has_room = || -> io::Result<bool> {
                    let mut writable = [PollFd::new(pipe, PollFlags::OUT)];
                    sleep_on(&mut writable, Some(Duration::ZERO))?;
                    Ok(writable[0].revents().contains(PollFlags::OUT))
                };
                match (something, something && has_room()?) {
                    // Both came meanwhile.
                    (true, true) => Ok(Pass::Moved(0)),
                    (true, false) => Ok(Pass::Full),
                    (false, _) => Ok(Pass::Idle(Until::Woken)),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    fn wakes(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// Closing the reading end tells the writer, as the reader's own closing would have.
    fn hang_up(self: Box<Self>, _stop: &Stop) -> io::Result<()> {
        Ok(())
    }
}
