//! From a terminal's master into a pipe.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use payload::Block;
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::io::Errno;
use rustix::pty::ptsname;

use super::follow::Grace;
use super::holders::{Holders, Writing};
use super::lines::Lines;
use super::relay::{Pass, Source};
use super::wait::Stop;

/// What a line discipline holds: no read(2) brings more.
const ROOM_BYTES: usize = 4096;

/// How often, and how far apart, EIO must have come before it is believed: it can come while the last bytes are
/// still on their way from the slave.
const LOOKS_AFTER_HANGUP: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// The master of a terminal in raw mode.
pub(super) struct TerminalSource {
    master: OwnedFd,
    room: Block,
    /// What of `room` was read and not yet passed on.
    waiting: Range<usize>,
    looks: u32,
    /// The slave by its name, and not as one who could write to it; `None` where only a relay of ours writes to it.
    slave: Option<OwnedFd>,
    lines: Arc<Lines>,
}

impl TerminalSource {
    pub(super) fn new(master: OwnedFd, lines: Arc<Lines>, programs_write: bool) -> io::Result<Self> {
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        let name = ptsname(&master, Vec::new())?;
        let slave = programs_write.then(|| open(name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()));
        let slave = slave.transpose()?;
        Ok(Self { slave, master, room: Block::new(ROOM_BYTES), waiting: 0..0, looks: 0, lines })
    }

    /// Reads what is there; what stands in the way otherwise.
    fn fill(&mut self) -> io::Result<Option<Pass>> {
        match rustix::io::read(&self.master, &mut *self.room) {
            Ok(read) if read > 0 => {
                self.waiting = 0..read;
                self.looks = 0;
                Ok(None)
            }
            Err(Errno::AGAIN) => Ok(Some(Pass::Idle(None))),
            Err(Errno::INTR) => Ok(Some(Pass::Moved(0))),
            // The slave is closed: EIO, as on Linux, or an end as elsewhere.
            Ok(_) | Err(Errno::IO) if self.looks < LOOKS_AFTER_HANGUP => {
                self.looks += 1;
                Ok(Some(Pass::Pause(BETWEEN_LOOKS)))
            }
            Ok(_) | Err(Errno::IO) => Ok(Some(Pass::End)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Source for TerminalSource {
    fn pass(&mut self, pipe: &OwnedFd) -> io::Result<Pass> {
        if self.waiting.is_empty()
            && let Some(obstacle) = self.fill()?
        {
            return Ok(obstacle);
        }
        match rustix::io::write(pipe, &self.room[self.waiting.clone()]) {
            Ok(written) => {
                if self.lines.are_wanted() {
                    self.lines.count(&self.room[self.waiting.start..][..written]);
                }
                self.waiting.start += written;
                Ok(Pass::Moved(written as u64))
            }
            Err(Errno::AGAIN) => Ok(Pass::Full),
            Err(Errno::INTR) => Ok(Pass::Moved(0)),
            Err(error) => Err(error.into()),
        }
    }

    fn wakes(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    /// Closing the master would only make writes to the slave fail with EIO, again and again for who looks at no
    /// error. So a process that writes on is sent the signal that a pipe would send, and what was written is thrown away; only
    /// for one that ignores the signal the master is closed.
    fn hang_up(mut self: Box<Self>, stop: &Stop) -> io::Result<()> {
        let Some(slave) = &self.slave else { return Ok(()) };
        let mut holders = Holders::of(slave)?;
        let mut grace = Grace::default();
        let mut looks = 0;
        loop {
            let grown_bytes = match rustix::io::read(&self.master, &mut *self.room) {
                Ok(read) => read as u64,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                // The slave is closed, or on its way to be.
                Err(Errno::IO) if looks >= LOOKS_AFTER_HANGUP => return Ok(()),
                Err(Errno::IO) => {
                    looks += 1;
                    0
                }
                Err(error) => return Err(error.into()),
            };
            let grown = grown_bytes > 0;
            if grown {
                looks = 0;
                if holders.stop_writing(grown_bytes) == Writing::GoesOn {
                    return Ok(());
                }
            }
            if stop.raised() && grace.is_over(grown) {
                return Ok(());
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}
