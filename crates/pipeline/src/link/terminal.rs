//! Copies what programs write to a terminal from its master into a pipe.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pty::ptsname;

use super::copier::Copier;
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
    master: Copier,
    hangups: u32,
    /// The slave, opened with O_PATH so that this process does not count as a writer; `None` if only our own relay writes to it.
    slave: Option<OwnedFd>,
}

impl TerminalSource {
    pub(super) fn new(master: OwnedFd, lines: Arc<Lines>, programs_write: bool) -> io::Result<Self> {
        let name = ptsname(&master, Vec::new())?;
        let slave = programs_write.then(|| open(name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()));
        Ok(Self { slave: slave.transpose()?, master: Copier::new(master, lines, ROOM_BYTES)?, hangups: 0 })
    }
}

impl Source for TerminalSource {
    fn pass(&mut self, pipe: &OwnedFd) -> io::Result<Pass> {
        let passed = self.master.pass(pipe);
        // The slave is closed: EIO on Linux, an end of file on other systems.
        let is_closed = match &passed {
            Ok(pass) => matches!(pass, Pass::End),
            Err(error) => Errno::from_io_error(error) == Some(Errno::IO),
        };
        match passed {
            _ if is_closed && self.hangups >= HANGUP_READS => return Ok(Pass::End),
            _ if is_closed => {
                self.hangups += 1;
                return Ok(Pass::Pause(HANGUP_POLL));
            }
            Ok(Pass::Moved(1..) | Pass::Full) => self.hangups = 0,
            _ => {}
        }
        passed
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.master.poll_fd()
    }

    /// Without a master, writes to the slave fail with EIO, and a program that ignores errors would write for ever. So a process that continues to
    /// write is sent SIGPIPE, as by a pipe, and its bytes are discarded. If it ignores the signal, the master is closed.
    fn hang_up(mut self: Box<Self>, stop: &Stop) -> io::Result<()> {
        let Some(slave) = &self.slave else { return Ok(()) };
        let mut holders = Holders::find_for(slave)?;
        let mut grace = Grace::default();
        let mut hangups = 0;
        loop {
            let grown_bytes = match rustix::io::read(&self.master.input, &mut *self.master.room) {
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
