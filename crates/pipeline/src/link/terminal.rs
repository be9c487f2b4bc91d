//! Copies what is written to a terminal from its master into a pipe.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use process::sleep_on;
use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, read};
use rustix::process::{Signal, pidfd_send_signal};

use super::copier::Copier;
use super::lines::Lines;
use super::relay::{On, Pass, Source};
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
    /// A pidfd of the program that has the slave as its standard output; `None` if only a relay of ours writes to it.
    writer: Option<OwnedFd>,
}

impl TerminalSource {
    pub(super) fn new(master: OwnedFd, writer: Option<OwnedFd>) -> io::Result<Self> {
        // Where a relay writes, it counts the lines.
        let master = Copier::new(master, Arc::<Lines>::default(), ROOM_BYTES)?;
        Ok(Self { writer, master, hangups: 0 })
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
            Ok(Pass::Moved(1..) | Pass::Blocked(On::Room)) => self.hangups = 0,
            _ => {}
        }
        passed
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.master.poll_fd()
    }

    /// Without a master, writes to the slave fail with EIO, and a program that ignores errors would write for ever. So a program that continues to
    /// write is sent SIGPIPE, as by a pipe. If it ignores the signal, it gets that error.
    fn hang_up(mut self: Box<Self>, stop: &Stop) -> io::Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        while !stop.raised() {
            match read(&self.master.input, &mut *self.master.room) {
                Err(Errno::AGAIN | Errno::INTR) => {
                    let fds = self.master.poll_fd().into_iter().chain(stop.fd());
                    let mut fds: Vec<PollFd<'_>> =
                        fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
                    sleep_on(&mut fds, None)?;
                }
                // It has ended meanwhile, or has closed the slave.
                Ok(0) | Err(_) => break,
                Ok(_) => {
                    let _ = pidfd_send_signal(writer, Signal::PIPE);
                    break;
                }
            }
        }
        Ok(())
    }
}
