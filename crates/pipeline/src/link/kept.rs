//! A copy of what flows: from a link's reading end into the reader's pipe and into a file, by tee(2) and splice(2).
//! The reader gets the very pages; only the file costs a copy.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use mechanism::large_pipe;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice, tee};

use super::relay::{Pass, Source, Until};
use super::wait::{Stop, sleep_on};

/// The most one call moves, in bytes: no pipe of a link holds more.
const PIECE_BYTES: usize = 1 << 20;

/// A stream and the file that keeps it.
pub(super) struct KeptStream {
    /// Where bytes come from, in non-blocking mode.
    input: OwnedFd,
    /// tee(2) wants a pipe: bytes of a socket go through this one first.
    own_pipe: Option<(OwnedFd, OwnedFd)>,
    /// `None` once it could not take more: the reader still gets everything.
    file: Option<File>,
    /// Where the file is, for people.
    name: String,
    /// Bytes that the reader has and the file has not; they still lie in the pipe.
    owed_bytes: usize,
    /// What kept the file from taking everything.
    trouble: Option<io::Error>,
    nowhere: File,
}

impl KeptStream {
    /// # Errors
    /// What fcntl(2), pipe2(2) or opening /dev/null answers; ENOSYS, or what a sandbox says, where there is no tee(2).
    pub(super) fn new(input: OwnedFd, file: File) -> io::Result<Self> {
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        let is_pipe = FileType::from_raw_mode(fstat(&input)?.st_mode) == FileType::Fifo;
        let own_pipe = if is_pipe { None } else { Some(large_pipe().map(|(write, read, _)| (write, read))?) };
        let (write, read, _) = large_pipe()?;
        match tee(&read, &write, PIECE_BYTES, SpliceFlags::NONBLOCK) {
            // Of an empty pipe into itself: the call is there.
            Err(Errno::AGAIN | Errno::INVAL) | Ok(_) => {}
            Err(missing) => return Err(missing.into()),
        }
        let nowhere = File::options().write(true).open("/dev/null")?;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let name = path.map_or_else(|_| "its file".to_owned(), |path| path.display().to_string());
        Ok(Self { input, own_pipe, file: Some(file), name, owed_bytes: 0, trouble: None, nowhere })
    }

    /// Brings what a socket has into our own pipe; whether its end was reached.
    fn fill(&self) -> io::Result<bool> {
        let Some((write, _)) = &self.own_pipe else { return Ok(false) };
        match splice(&self.input, None, write, None, PIECE_BYTES, SpliceFlags::NONBLOCK) {
            Ok(0) => Ok(true),
            // Full, or nothing there: what is in the pipe goes on first.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn pipe_with_bytes(&self) -> &OwnedFd {
        self.own_pipe.as_ref().map_or(&self.input, |(_, read)| read)
    }

    /// Moves what the reader has been given out of the pipe and into the file.
    fn settle(&mut self) -> io::Result<()> {
        while self.owed_bytes > 0 {
            let pipe = self.own_pipe.as_ref().map_or(&self.input, |(_, read)| read);
            let target = self.file.as_ref().unwrap_or(&self.nowhere);
            match splice(pipe, None, target, None, self.owed_bytes, SpliceFlags::empty()) {
                Ok(0) => return Err(Errno::IO.into()),
                Ok(moved) => self.owed_bytes -= moved,
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) if self.file.is_some() => {
                    self.trouble = Some(error.into());
                    self.file = None;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Nothing went over: for want of bytes, or of room.
    fn obstacle(&self, ended: bool) -> io::Result<Pass> {
        let mut readable = [PollFd::new(self.pipe_with_bytes(), PollFlags::IN)];
        sleep_on(&mut readable, Some(Duration::ZERO))?;
        let something = readable[0].revents().contains(PollFlags::IN);
        Ok(match (something, ended) {
            (true, _) => Pass::Full,
            (false, true) => Pass::End,
            (false, false) => Pass::Idle(Until::Woken),
        })
    }
}

impl Source for KeptStream {
    fn pass(&mut self, pipe: &OwnedFd) -> io::Result<Pass> {
        let ended = self.fill()?;
        match tee(self.pipe_with_bytes(), pipe, PIECE_BYTES, SpliceFlags::NONBLOCK) {
            Ok(0) if self.own_pipe.is_none() => Ok(Pass::End),
            Ok(0) | Err(Errno::AGAIN) => self.obstacle(ended),
            Ok(moved) => {
                self.owed_bytes += moved;
                self.settle()?;
                Ok(Pass::Moved(moved as u64))
            }
            Err(Errno::INTR) => Ok(Pass::Moved(0)),
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

    fn trouble(&self) -> Option<String> {
        let error = self.trouble.as_ref()?;
        Some(format!("what flowed could not all be kept in {}: {}", self.name, model::describe_errno(error)))
    }
}
