//! Copies what programs write to a terminal from its master into a pipe.

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

/// The buffer of a line discipline: read(2) never returns more.
const ROOM_BYTES: usize = 4096;

/// EIO means that the slave is closed, but it can come while its last bytes are still in flight. So the end of the stream
/// is this many EIO in a row, this far apart.
const LOOKS_AFTER_HANGUP: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// The master of a terminal in raw mode.
pub(super) struct TerminalSource {
    master: OwnedFd,
    room: Block,
    /// The part of `room` that was read and not yet passed on.
    waiting: Range<usize>,
    looks: u32,
    /// The slave, opened with O_PATH so that we do not count as a writer; `None` where only our own relay writes to it.
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

    /// Reads into `room`. Returns `None` if it got bytes, else what to do instead.
    fn fill(&mut self) -> io::Result<Option<Pass>> {
        match rustix::io::read(&self.master, &mut *self.room) {
            Ok(read) if read > 0 => {
                self.waiting = 0..read;
                self.looks = 0;
                Ok(None)
            }
            Err(Errno::AGAIN) => Ok(Some(Pass::Idle(None))),
            Err(Errno::INTR) => Ok(Some(Pass::Moved(0))),
            // The slave is closed: EIO on Linux, an end of file on other systems.
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

    /// After closing the master, writes to the slave would fail with EIO, and a program that ignores errors would write
    /// for ever. So a process that goes on writing is sent SIGPIPE, as a pipe would do, and its bytes are discarded. If it
    /// ignores the signal, the master is closed.
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
