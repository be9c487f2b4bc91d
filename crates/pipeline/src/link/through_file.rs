//! From the writer's pipe into a file, and from the file into the reader's pipe.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use payload::Block;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, ioctl_fionread, pread, read, write};
use rustix::pipe::{SpliceFlags, splice};

use super::file::LinkFile;
use super::lines::Lines;
use super::relay::{COUNTED_BYTES, On, PIECE_BYTES, Pass, Source};

/// Pause between two looks whether the reader has taken all of a file that was cut off.
const CUT_POLL: Duration = Duration::from_millis(1);

/// A file between two pipes. Bytes are copied into it, and go from the page cache into the reader's pipe by reference. They do not change while the
/// reader has them: only this relay writes to the file, which only grows.
pub(super) struct ThroughFile {
    /// The reading end of the writer's pipe, in non-blocking mode. `None` after its end, and when the file takes no more: the writer's next
    /// write then raises SIGPIPE.
    input: Option<OwnedFd>,
    /// The description for writing.
    into: OwnedFd,
    file: Arc<LinkFile>,
    stored_bytes: u64,
    passed_bytes: u64,
    /// The buffer through which bytes are copied into the file where lines are counted, or the file system refuses splice(2).
    room: Option<Block>,
    /// The file system refuses splice(2) into the reader's pipe.
    copies_out: bool,
    lines: Arc<Lines>,
}

impl ThroughFile {
    /// `into` is the file's own description for writing, at its beginning.
    pub(super) fn new(
        input: OwnedFd,
        into: OwnedFd,
        file: Arc<LinkFile>,
        lines: Arc<Lines>,
    ) -> io::Result<Self> {
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        // splice(2) refuses to append.
        fcntl_setfl(&into, fcntl_getfl(&into)? - OFlags::APPEND)?;
        let (stored_bytes, passed_bytes, room, copies_out) = Default::default();
        Ok(Self { input: Some(input), into, file, stored_bytes, passed_bytes, room, copies_out, lines })
    }

    /// Moves bytes of the writer into the file. Returns whether there were any, or the end.
    fn take_in(&mut self) -> io::Result<bool> {
        let Some(input) = &self.input else { return Ok(false) };
        if self.room.is_none() && self.lines.are_wanted() {
            self.room = Some(Block::new(COUNTED_BYTES));
        }
        let taken = match &mut self.room {
            None => splice(input, None, &self.into, None, PIECE_BYTES, SpliceFlags::NONBLOCK),
            Some(room) => copy(input, &self.into, room, &self.lines),
        };
        match taken {
            Ok(0) => self.input = None,
            Ok(taken) => self.stored_bytes += taken as u64,
            Err(Errno::AGAIN) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(refused @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                self.file.refuse(refused);
                self.stored_bytes = self.file.size()?;
                self.input = None;
            }
            Err(error) if is_no_splice(error) && self.room.is_none() => {
                self.room = Some(Block::new(COUNTED_BYTES));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Moves bytes of the file into the reader's pipe.
    fn hand_out(&mut self, pipe: &OwnedFd) -> Result<usize, Errno> {
        if self.passed_bytes == self.stored_bytes {
            return Ok(0);
        }
        let file = &self.file.reader;
        let left_bytes = (self.stored_bytes - self.passed_bytes) as usize;
        let mut offset = self.passed_bytes;
        let moved = if self.copies_out {
            let room = self.room.get_or_insert_with(|| Block::new(COUNTED_BYTES));
            let most = left_bytes.min(room.len());
            let read = pread(file, &mut room[..most], offset)?;
            if read > 0 { write(pipe, &room[..read])? } else { 0 }
        } else {
            // Not sendfile(2), which older kernels let wait for room in the pipe whatever its mode.
            splice(file, Some(&mut offset), pipe, None, left_bytes.min(PIECE_BYTES), SpliceFlags::NONBLOCK)?
        };
        self.passed_bytes += moved as u64;
        // Nothing is left of what was stored: something else has cut the file.
        if moved == 0 { Err(Errno::IO) } else { Ok(moved) }
    }
}

/// Whether a file system has no splice(2).
fn is_no_splice(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Reads bytes, counts their lines, and writes all of them into a file.
fn copy(input: &OwnedFd, into: &OwnedFd, room: &mut Block, lines: &Lines) -> Result<usize, Errno> {
    let taken = read(input, &mut room[..])?;
    lines.count(&room[..taken]);
    let mut left = &room[..taken];
    while !left.is_empty() {
        match write(into, left) {
            Ok(written) => left = &left[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

impl Source for ThroughFile {
    fn pass(&mut self, pipe: &OwnedFd) -> io::Result<Pass> {
        let took = self.take_in()?;
        Ok(match self.hand_out(pipe) {
            Ok(moved @ 1..) => Pass::Moved(moved as u64),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) if took => Pass::Moved(0),
            Ok(_) if self.input.is_some() => Pass::Blocked(On::Bytes),
            // Whether the reader wanted what was cut off is known when the pipe is empty, or has no reader.
            Ok(_) if self.file.is_cut() && ioctl_fionread(pipe)? > 0 => Pass::Pause(CUT_POLL),
            Ok(_) => Pass::End,
            Err(Errno::AGAIN) if self.input.is_some() => Pass::Blocked(On::Either),
            Err(Errno::AGAIN) => Pass::Blocked(On::Room),
            Err(Errno::INTR) => Pass::Moved(0),
            Err(error) if is_no_splice(error) && !self.copies_out => {
                self.copies_out = true;
                Pass::Moved(0)
            }
            Err(error) => return Err(error.into()),
        })
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.input.as_ref().map(AsFd::as_fd)
    }
}
