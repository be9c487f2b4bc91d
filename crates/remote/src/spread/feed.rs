//! A process that writes ranges of files, one after the other, into a pipe.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::time::Duration;

use model::describe_errno;
use process::{Child, describe_ending, open_regular};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};

use crate::launcher::have_ended_within;
use crate::spread::partition::{Range, shown};

/// Longest time until the process has noticed that its reader has ended.
const GRACE: Duration = Duration::from_millis(500);
/// Size of the pipe: a larger one wakes its ends less often.
const PIPE_BYTES: usize = 1 << 20;

/// The process that writes into the pipe, if one is needed. Dropping this kills it.
pub struct FeedProcess(Option<Child<'static>>);

/// Opens ranges for reading: the file itself if the only range is a whole file, else a pipe, and a process that writes the ranges into it. The
/// calling process must have only one thread.
///
/// # Errors
/// A file cannot be opened, or the system refused a pipe or a process.
pub fn feed(ranges: Vec<Range>) -> io::Result<(OwnedFd, FeedProcess)> {
    if let [range] = ranges.as_slice() {
        let file = open_regular(&range.file.path)?;
        if range.offset == 0 && range.bytes == file.metadata()?.len() {
            return Ok((file.into(), FeedProcess(None)));
        }
    }
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut pipe = Filler::new(File::from(write))?;
    let (mut ranges, mut has_room) = (VecDeque::from(ranges), true);
    // Fills the pipe; an error occurs again in the process, which reports it.
    while has_room && let Some(range) = ranges.front_mut() {
        has_room = pipe.fill(range).unwrap_or(false);
        if range.bytes == 0 {
            ranges.pop_front();
        }
    }
    if ranges.is_empty() {
        return Ok((read, FeedProcess(None)));
    }
    let child = Child::fork(c"hosepipe-feed", |said| {
        for range in &mut ranges {
            let Err(error) = pipe.write_range(range) else { continue };
            // It is no error that a reader has ended: `head` ends early.
            if error.kind() != io::ErrorKind::BrokenPipe {
                // The parent treats any text as a failure.
                let _ = write!(said, "{}: {}", shown(&range.file.path), describe_errno(&error));
            }
            return;
        }
    })?;
    Ok((read, FeedProcess(Some(child))))
}

/// Writes into a pipe, and pauses when it is full: a reader of 4 KiB at a time would otherwise wake the writer after each read.
struct Filler {
    pipe: File,
    pipe_bytes: usize,
    pause: Duration,
}

/// Shortest and longest pause. The pause is adjusted so that a quarter to a half of the pipe is free after it.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(5)];

impl Filler {
    fn new(pipe: File) -> io::Result<Self> {
        // If the system refuses, the pipe keeps its size.
        let granted = fcntl_setpipe_size(&pipe, PIPE_BYTES).or_else(|_| fcntl_getpipe_size(&pipe));
        Ok(Self { pipe_bytes: granted?, pipe, pause: PAUSES[0] })
    }

    /// Writes all of a range. A file that cannot be spliced, as those of /proc, is read and written.
    fn write_range(&mut self, range: &mut Range) -> io::Result<()> {
        while range.bytes > 0 {
            let before = range.bytes;
            match self.fill(range) {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => {
                    let mut file = open_regular(&range.file.path)?;
                    file.seek(SeekFrom::Start(range.offset))?;
                    range.bytes -= io::copy(&mut file.take(range.bytes), &mut self.pipe)?;
                    return if range.bytes == 0 { Ok(()) } else { Err(file_shrank()) };
                }
                Err(error) => return Err(error),
                Ok(true) => {}
                Ok(false) => self.wait((before - range.bytes) as usize),
            }
        }
        Ok(())
    }

    /// Writes as much of a range as the pipe has room for, and removes that from the range; false if the pipe is full. The file's own pages go
    /// into the pipe without a copy.
    fn fill(&mut self, range: &mut Range) -> io::Result<bool> {
        let mut file = open_regular(&range.file.path)?;
        file.seek(SeekFrom::Start(range.offset))?;
        while range.bytes > 0 {
            let most = range.bytes.min(PIPE_BYTES as u64) as usize;
            let bytes = match splice(&file, None, &self.pipe, None, most, SpliceFlags::NONBLOCK) {
                Ok(bytes) => bytes as u64,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            if bytes == 0 {
                return Err(file_shrank());
            }
            range.offset += bytes;
            range.bytes -= bytes;
        }
        Ok(true)
    }

    /// Pauses because the pipe is full; `bytes` were written since the last pause.
    fn wait(&mut self, bytes: usize) {
        match bytes {
            few if few < self.pipe_bytes / 4 => self.pause = (self.pause * 2).min(PAUSES[1]),
            many if many > self.pipe_bytes / 2 => self.pause = (self.pause / 2).max(PAUSES[0]),
            _ => {}
        }
        std::thread::sleep(self.pause);
    }
}

fn file_shrank() -> io::Error {
    io::Error::other("the file became shorter while it was read")
}

impl FeedProcess {
    /// Checks, after the reader has ended, whether all ranges could be read.
    ///
    /// # Errors
    /// A sentence: what could not be read.
    pub fn finish(mut self) -> Result<(), String> {
        let Some(child) = self.0.take() else { return Ok(()) };
        let mut children = [child];
        // A background program may have the pipe open without reading it: then the process is killed, which is no failure.
        let _ = have_ended_within(&mut children, GRACE);
        let said = children[0].captured_output();
        match children[0].ended().filter(|ended| !ended.status.success()) {
            _ if !said.is_empty() => Err(said),
            Some(ended) => Err(format!("the process that reads it {}", describe_ending(ended.status))),
            None => Ok(()),
        }
    }
}
