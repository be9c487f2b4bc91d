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

/// Size of a line discipline's buffer: read(2) never returns more.
const ROOM_BYTES: usize = 4096;

/// EIO means that the slave is closed, but its last bytes may still be on the way. So the end of the stream is this many EIO in a row, with this
/// pause between them.
const HANGUP_READS: u32 = 20;
const HANGUP_POLL: Duration = Duration::from_millis(1);

/// The master of a terminal in raw mode.
pub(super) struct TerminalSource {
    master: OwnedFd,
    room: Block,
    /// The part of `room` that was not written yet.
    waiting: Range<usize>,
    hangups: u32,
    /// The slave, opened with O_PATH so that this process does not count as a writer; `None` if only our own relay writes to it.
    slave: Option<OwnedFd>,
    lines: Arc<Lines>,
}

impl TerminalSource {
    pub(super) fn new(master: OwnedFd, lines: Arc<Lines>, programs_write: bool) -> io::Result<Self> {
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        let name = ptsname(&master, Vec::new())?;
        let slave = programs_write.then(|| open(name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()));
        let slave = slave.transpose()?;
        Ok(Self { slave, master, room: Block::new(ROOM_BYTES), waiting: 0..0, hangups: 0, lines })
    }

    /// Reads into `room`. Returns `None` if there were bytes.
    fn fill(&mut self) -> io::Result<Option<Pass>> {
        match rustix::io::read(&self.master, &mut *self.room) {
            Ok(read) if read > 0 => {
                // Counted before the write: a line's time must be taken before the next stage can read it.
                self.lines.count(&self.room[..read]);
                self.waiting = 0..read;
                self.hangups = 0;
                Ok(None)
            }
            Err(Errno::AGAIN) => Ok(Some(Pass::Idle(None))),
            Err(Errno::INTR) => Ok(Some(Pass::Moved(0))),
            // The slave is closed: EIO on Linux, an end of file on other systems.
            Ok(_) | Err(Errno::IO) if self.hangups < HANGUP_READS => {
                self.hangups += 1;
                Ok(Some(Pass::Pause(HANGUP_POLL)))
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
                self.waiting.start += written;
                Ok(Pass::Moved(written as u64))
            }
            Err(Errno::AGAIN) => Ok(Pass::Full),
            Err(Errno::INTR) => Ok(Pass::Moved(0)),
            Err(error) => Err(error.into()),
        }
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    /// Without a master, writes to the slave fail with EIO, and a program that ignores errors would write for ever. So a process that continues to
    /// write is sent SIGPIPE, as by a pipe, and its bytes are discarded. If it ignores the signal, the master is closed.
    fn hang_up(mut self: Box<Self>, stop: &Stop) -> io::Result<()> {
        let Some(slave) = &self.slave else { return Ok(()) };
        let mut holders = Holders::find_for(slave)?;
        let mut grace = Grace::default();
        let mut hangups = 0;
        loop {
            let grown_bytes = match rustix::io::read(&self.master, &mut *self.room) {
                Ok(read) => read as u64,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                // The slave is closed, or is being closed.
                Err(Errno::IO) if hangups >= HANGUP_READS => return Ok(()),
                Err(Errno::IO) => {
                    hangups += 1;
                    0
                }
                Err(error) => return Err(error.into()),
            };
            let grown = grown_bytes > 0;
            if grown {
                hangups = 0;
                if holders.stop_writing(grown_bytes) == Writing::Continues {
                    return Ok(());
                }
            }
            if stop.raised() && grace.is_over(grown) {
                return Ok(());
            }
            std::thread::sleep(HANGUP_POLL);
        }
    }
}
