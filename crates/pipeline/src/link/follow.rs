//! From a file that is still being written into a pipe.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use payload::Block;
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{SpliceFlags, splice};

use super::file::LinkFile;
use super::file_watch::FileWatch;
use super::holders::{Holders, Writing};
use super::lines::Lines;
use super::relay::{COUNTED_BYTES, PIECE_BYTES, Pass, Source};
use super::wait::{Stop, sleep_on_reads};

/// The first and the longest pause between two checks of a writer that does not stop.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Time for a writer without a reader to end by itself.
const SOON: Duration = Duration::from_millis(1);

/// A writer of small pieces wakes the relay for each of them, which costs more than to move them. After this many bytes the relay pauses for
/// this time, in which the pipe does not become empty, so that pieces gather.
const STREAM_BYTES: u64 = 256 << 10;
const GATHER: Duration = Duration::from_micros(500);

/// A file that is read while it grows.
///
/// Bytes go from the page cache into the pipe by reference. They do not change while the reader has them, because the writer's description
/// appends. (A program that opens its standard output anew, to cut or overwrite it, finds a file where it expects a pipe, and its reader may
/// see the old or the new bytes.)
pub(super) struct FileFollower {
    file: Arc<LinkFile>,
    watch: FileWatch,
    passed_bytes: u64,
    /// Bytes passed when the end of the file was reached the last time.
    idle_at_bytes: u64,
    /// The last writer has closed the file: it does not grow any more.
    complete: bool,
    /// The buffer for bytes if the file system refuses splice(2), or if the times of lines are noted: a line's time must be taken before
    /// the next stage can read it.
    room: Option<Block>,
    lines: Arc<Lines>,
    /// Bytes whose lines were counted.
    counted_bytes: u64,
    /// The buffer in which lines are counted.
    seen: Vec<u8>,
}

impl FileFollower {
    /// Follows a file from its beginning. `watch` is older than the first write.
    pub(super) fn new(file: Arc<LinkFile>, watch: FileWatch, lines: Arc<Lines>) -> Self {
        let (passed_bytes, idle_at_bytes, counted_bytes) = Default::default();
        let (complete, room, seen) = Default::default();
        Self { file, watch, passed_bytes, idle_at_bytes, complete, room, lines, counted_bytes, seen }
    }

    /// Whether more bytes are likely to come soon.
    fn flows(&self) -> bool {
        self.passed_bytes >= STREAM_BYTES && self.passed_bytes > self.idle_at_bytes && !self.complete
    }

    /// Counts the lines of the passed bytes that were not counted yet, which are read once more from the page cache.
    fn count_lines(&mut self) {
        if !self.lines.are_wanted() {
            return;
        }
        self.seen.resize(COUNTED_BYTES, 0);
        while self.counted_bytes < self.passed_bytes {
            let most = self.seen.len().min((self.passed_bytes - self.counted_bytes) as usize);
            let read = rustix::io::pread(&self.file.reader, &mut self.seen[..most], self.counted_bytes);
            // Its writer has cut the file meanwhile.
            let Ok(read @ 1..) = read else { break };
            self.lines.count(&self.seen[..read]);
            self.counted_bytes += read as u64;
        }
        // A pipe that was full did not take all bytes of a piece whose lines were counted.
        self.counted_bytes = self.counted_bytes.max(self.passed_bytes);
    }

    /// Whether the last writer ends by itself, which most do sooner than they could be found.
    fn closes_soon(&mut self, stop: &Stop) -> io::Result<bool> {
        let began = Instant::now();
        while !self.watch.all_closed()? {
            let Some(left) = SOON.checked_sub(began.elapsed()) else { return Ok(false) };
            let time = self.watch.next_check().map_or(left, |time| time.min(left));
            sleep_on_reads([self.watch.as_fd(), stop.as_fd()], Some(time))?;
        }
        Ok(true)
    }

    fn piece(&mut self, pipe: &OwnedFd) -> Result<usize, Errno> {
        let file = &self.file.reader;
        if self.room.is_none() && self.lines.have_stamps() {
            self.room = Some(Block::new(PIECE_BYTES));
        }
        if let Some(room) = &mut self.room {
            let read = rustix::io::pread(file, &mut **room, self.passed_bytes)?;
            if self.lines.are_wanted() {
                let counted = (self.counted_bytes - self.passed_bytes) as usize;
                self.lines.count(room.get(counted..read).unwrap_or_default());
                self.counted_bytes = self.counted_bytes.max(self.passed_bytes + read as u64);
            }
            return if read == 0 { Ok(0) } else { rustix::io::write(pipe, &room[..read]) };
        }
        // Not sendfile(2), which older kernels let wait for room in the pipe whatever its mode.
        let mut offset = self.passed_bytes;
        splice(file, Some(&mut offset), pipe, None, PIECE_BYTES, SpliceFlags::NONBLOCK)
    }
}

impl Source for FileFollower {
    fn pass(&mut self, pipe: &OwnedFd) -> io::Result<Pass> {
        match self.piece(pipe) {
            // Whether its reader wants all is known when the pipe is empty, or has no reader.
            Ok(0) if self.complete && self.file.may_be_cut() && ioctl_fionread(pipe)? > 0 => {
                Ok(Pass::Pause(PAUSE_MIN))
            }
            Ok(0) if self.complete => Ok(Pass::End),
            Ok(0) if self.flows() => {
                self.idle_at_bytes = self.passed_bytes;
                Ok(Pass::Pause(GATHER))
            }
            Ok(0) if self.watch.all_closed()? => {
                // Bytes may have been written after the last read.
                self.complete = true;
                self.file.check_room()?;
                Ok(Pass::Moved(0))
            }
            Ok(0) => Ok(Pass::Idle(self.watch.next_check())),
            Ok(moved) => {
                self.passed_bytes += moved as u64;
                self.count_lines();
                Ok(Pass::Moved(moved as u64))
            }
            Err(Errno::AGAIN) => Ok(Pass::Full),
            Err(Errno::INTR) => Ok(Pass::Moved(0)),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if self.room.is_none() => {
                self.room = Some(Block::new(PIECE_BYTES));
                Ok(Pass::Moved(0))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    /// A pipe without a reader stops its writer at the next write; a file accepts all bytes. So a process that continues to write is sent
    /// SIGPIPE, and its bytes are discarded; otherwise `yes | head -1` would fill the disk. If it ignores the signal, its writes fail: with
    /// EFBIG, and not with EPIPE as over a pipe.
    fn hang_up(mut self: Box<Self>, stop: &Stop) -> io::Result<()> {
        let closes_soon = self.closes_soon(stop)?;
        self.file.check_room_if_little()?;
        if closes_soon {
            return self.file.set_final_size();
        }
        let mut holders = Holders::find_for(&self.file.reader)?;
        let mut held_bytes = self.file.discard()?;
        let mut pause = PAUSE_MIN;
        let mut grace = Grace::default();
        while !self.watch.all_closed()? {
            // A file that is kept also has the bytes from before.
            let grown_bytes = self.file.size()?.saturating_sub(held_bytes);
            let grown = grown_bytes > 0;
            let time = if grown {
                held_bytes = self.file.discard()?;
                if holders.stop_writing(grown_bytes) == Writing::Continues {
                    // If the file cannot be closed to writers, bytes are discarded for as long as they come.
                    let _ = self.file.close_to_writers();
                }
                let time = pause;
                pause = (pause * 2).min(PAUSE_MAX);
                Some(time)
            } else {
                pause = PAUSE_MIN;
                self.watch.next_check()
            };
            if !stop.raised() {
                sleep_on_reads([self.watch.as_fd(), stop.as_fd()], time)?;
            } else if grace.is_over(grown) {
                break;
            } else {
                std::thread::sleep(PAUSE_MIN);
            }
        }
        self.file.size()?;
        self.file.set_final_size()
    }
}

/// After the stages have ended, programs in the background may still hold the file. One that continues to write is stopped, one that does not is
/// left alone. This decides when enough time has passed to know which it is.
#[derive(Default)]
pub(super) struct Grace {
    begun: Option<Instant>,
    grown: Option<Instant>,
}

impl Grace {
    const QUIET: Duration = Duration::from_millis(30);
    const LONGEST: Duration = Duration::from_millis(500);

    pub(super) fn is_over(&mut self, grown: bool) -> bool {
        let now = Instant::now();
        let begun = *self.begun.get_or_insert(now);
        if grown {
            self.grown = Some(now);
        }
        now - begun >= Self::LONGEST || now - self.grown.unwrap_or(begun) >= Self::QUIET
    }
}
