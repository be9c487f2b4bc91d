//! From the writer's pipe into a file, and from the file into the reader's pipe.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use payload::Block;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, ioctl_fionread, pread, read, write};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};

use super::file::LinkFile;
use super::lines::Lines;
use super::relay::{COUNTED_BYTES, On, PIECE_BYTES, Pass, Source};

/// Pause between two looks whether the reader has taken all of a file that was cut off.
const CUT_POLL: Duration = Duration::from_millis(1);

/// Size of the writer's pipe and of our own once they have been full: all pipes of a user together have a limit. With more, bytes would have left the
/// cores' caches before they are copied.
const STAGE_BYTES: usize = 256 << 10;

/// Bytes that gather in the file before they go on, as long as the writer has more: each piece that goes on takes the lock of the reader's pipe, and
/// may wake the reader.
const GATHERED_BYTES: u64 = 512 << 10;

/// A file between two pipes. Bytes are copied into it, and go from the page cache into the reader's pipe by reference. They do not change while the
/// reader has them: only this relay writes to the file, which only grows.
pub(super) struct ThroughFile {
    /// The reading end of the writer's pipe, in non-blocking mode. `None` after its end, and when the file takes no more: the writer's next
    /// write then raises SIGPIPE.
    input: Option<OwnedFd>,
    /// The ends of a pipe of our own. The kernel holds a pipe's lock as long as it copies from it into a file; the writer would wait for it. From the
    /// writer's pipe into this one only references are moved.
    stage: (OwnedFd, OwnedFd),
    stage_bytes: usize,
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
        let stage = pipe_with(PipeFlags::CLOEXEC)?;
        let stage_bytes = fcntl_getpipe_size(&stage.0)?;
        // A larger pipe works, too.
        let _ = fcntl_setpipe_size(&input, stage_bytes);
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        // splice(2) refuses to append.
        fcntl_setfl(&into, fcntl_getfl(&into)? - OFlags::APPEND)?;
        let (stored_bytes, passed_bytes, room, copies_out) = Default::default();
        let input = Some(input);
        Ok(Self {
            input,
            stage,
            stage_bytes,
            into,
            file,
            stored_bytes,
            passed_bytes,
            room,
            copies_out,
            lines,
        })
    }

    /// Moves bytes of the writer into the file. Returns whether there were any, or the end.
    fn take_in(&mut self) -> io::Result<bool> {
        let Some(input) = &self.input else { return Ok(false) };
        let stage_bytes = self.stage_bytes;
        if self.room.is_none() && self.lines.are_wanted() {
            self.room = Some(Block::new(COUNTED_BYTES));
        }
        let taken = match &mut self.room {
            None => splice(input, None, &self.stage.1, None, stage_bytes, SpliceFlags::NONBLOCK)
                .and_then(|staged| self.store(staged)),
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

    /// Moves all bytes of our own pipe into the file. Returns their number.
    fn store(&mut self, staged: usize) -> Result<usize, Errno> {
        if staged == self.stage_bytes && staged < STAGE_BYTES {
            self.stage_bytes = STAGE_BYTES;
            for pipe in self.input.iter().chain([&self.stage.0]) {
                // If it is refused, a smaller pipe does.
                let _ = fcntl_setpipe_size(pipe, STAGE_BYTES);
            }
        }
        let mut left = staged;
        while left > 0 {
            let stored = match &mut self.room {
                None => splice(&self.stage.0, None, &self.into, None, left, SpliceFlags::empty()),
                Some(room) => copy(&self.stage.0, &self.into, room, &self.lines),
            };
            match stored {
                Ok(stored) => left -= stored,
                Err(Errno::INTR) => {}
                Err(error) if is_no_splice(error) && self.room.is_none() => {
                    self.room = Some(Block::new(COUNTED_BYTES));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(staged)
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
        if took && self.input.is_some() && self.stored_bytes - self.passed_bytes < GATHERED_BYTES {
            return Ok(Pass::Moved(0));
        }
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
