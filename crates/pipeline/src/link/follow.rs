//! From a file that is still being written into a pipe.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use payload::Block;
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use super::file::LinkFile;
use super::file_watch::FileWatch;
use super::holders::{Holders, Writing};
use super::lines::Lines;
use super::relay::{COUNTED_BYTES, PIECE_BYTES, Pass, Source};
use super::wait::{Stop, sleep_on_reads};

/// The first and the longest pause between two looks at a writer that does not stop.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// How long a writer that has lost its reader may take to end by itself.
const SOON: Duration = Duration::from_millis(1);

/// A writer of small pieces wakes the relay for each of them, which costs more than the pieces. After so many bytes a
/// stream is one that flows, and the relay lets it gather for so long: less than a pipe takes to run dry.
const FLOWS_BYTES: u64 = 256 << 10;
const GATHER: Duration = Duration::from_micros(500);

/// A file, followed to its end.
///
/// Bytes go from the page cache into the pipe by reference. They do not change under the reader, since the
/// writer's description appends. (A program that opens its standard output anew, to cut or overwrite what it wrote,
/// finds a file where it expects a pipe, and its reader may see either.)
pub(super) struct FileFollower {
    file: Arc<LinkFile>,
    watch: FileWatch,
    passed_bytes: u64,
    /// Bytes passed when there was nothing more the last time.
    idle_at_bytes: u64,
    /// The last writer has gone: what is in the file is all there will be.
    complete: bool,
    /// Where the file system refuses splice(2), bytes take this way.
    room: Option<Block>,
    lines: Arc<Lines>,
    /// What lines are counted in.
    seen: Vec<u8>,
}

impl FileFollower {
    /// Follows a file from its beginning. `watch` is older than the first write.
    pub(super) fn new(file: Arc<LinkFile>, watch: FileWatch, lines: Arc<Lines>) -> Self {
        Self {
            file,
            watch,
            passed_bytes: 0,
            idle_at_bytes: 0,
            complete: false,
            room: None,
            lines,
            seen: Vec::new(),
        }
    }

    /// Whether there is likely to be more in a moment.
    fn flows(&self) -> bool {
        self.passed_bytes >= FLOWS_BYTES && self.passed_bytes > self.idle_at_bytes && !self.complete
    }

    /// Counts the lines of what is passed, once more from the page cache, `bytes` from here on.
    fn count_lines(&mut self, bytes: usize) {
        if !self.lines.are_wanted() {
            return;
        }
        self.seen.resize(COUNTED_BYTES, 0);
        let (mut from, end) = (self.passed_bytes, self.passed_bytes + bytes as u64);
        while from < end {
            let most = self.seen.len().min((end - from) as usize);
            let read = rustix::io::pread(&self.file.reader, &mut self.seen[..most], from);
            // Cut off meanwhile by its writer: what there was is not known.
            let Ok(read @ 1..) = read else { return };
            self.lines.count(&self.seen[..read]);
            from += read as u64;
        }
    }

    /// Whether the last writer goes by itself: that takes most of them less time than it takes to find out who they are.
    fn closes_soon(&mut self, stop: &Stop) -> io::Result<bool> {
        let began = Instant::now();
        while !self.watch.all_closed()? {
            let Some(left) = SOON.checked_sub(began.elapsed()) else { return Ok(false) };
            let time = self.watch.look_again().map_or(left, |time| time.min(left));
            sleep_on_reads([self.watch.as_fd(), stop.as_fd()], Some(time))?;
        }
        Ok(true)
    }

    fn piece(&mut self, pipe: &OwnedFd) -> Result<usize, Errno> {
        let file = &self.file.reader;
        if let Some(room) = &mut self.room {
            let read = rustix::io::pread(file, &mut **room, self.passed_bytes)?;
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
            Ok(0) if self.complete => Ok(Pass::End),
            Ok(0) if self.flows() => {
                self.idle_at_bytes = self.passed_bytes;
                Ok(Pass::Pause(GATHER))
            }
            Ok(0) if self.watch.all_closed()? => {
                // Something may have been written between the two looks.
                self.complete = true;
                Ok(Pass::Moved(0))
            }
            Ok(0) => Ok(Pass::Idle(self.watch.look_again())),
            Ok(moved) => {
                self.count_lines(moved);
                self.passed_bytes += moved as u64;
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

    fn wakes(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    /// A pipe without a reader stops its writer at the next write; a file takes all. So a process that writes on is sent
    /// the signal that the pipe would send, and what was written is thrown away, or `yes | head -1` would fill the
    /// disk. One that ignores the signal gets an error of the write, as over a pipe: EFBIG here, EPIPE there.
    fn hang_up(mut self: Box<Self>, stop: &Stop) -> io::Result<()> {
        if self.closes_soon(stop)? {
            self.file.look()?;
            return self.file.settle();
        }
        let mut holders = Holders::of(&self.file.reader)?;
        self.file.look()?;
        let mut held_bytes = self.file.discard()?;
        let mut pause = PAUSE_MIN;
        let mut grace = Grace::default();
        while !self.watch.all_closed()? {
            // A file that is kept holds what was written before, too.
            let grown_bytes = self.file.look()?.saturating_sub(held_bytes);
            let grown = grown_bytes > 0;
            let time = if grown {
                held_bytes = self.file.discard()?;
                if holders.stop_writing(grown_bytes) == Writing::GoesOn {
                    // Where the file cannot be closed, what is written is thrown away for as long as it comes.
                    let _ = self.file.close_to_writers();
                }
                let time = pause;
                pause = (pause * 2).min(PAUSE_MAX);
                Some(time)
            } else {
                pause = PAUSE_MIN;
                self.watch.look_again()
            };
            if !stop.raised() {
                sleep_on_reads([self.watch.as_fd(), stop.as_fd()], time)?;
            } else if grace.is_over(grown) {
                break;
            } else {
                std::thread::sleep(PAUSE_MIN);
            }
        }
        self.file.look()?;
        self.file.settle()
    }
}

/// After the stages have ended, programs in the background may still hold the file: one that goes on writing is
/// stopped, one that keeps still is left alone, and neither is waited for much longer than it takes to tell.
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
