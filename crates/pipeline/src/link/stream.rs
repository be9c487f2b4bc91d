//! What a relay passes on of a pipe or a socket: by splice(2), which moves pages and copies nothing; and where it is kept, by tee(2),
//! and then into its file. The reader gets the very pages; only the file costs a copy, or counting lines one into our memory.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mechanism::large_pipe;
use payload::Block;
use rustix::event::PollFlags;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::pipe::{SpliceFlags, splice, tee};

use super::lines::Lines;
use super::relay::{COUNTED_BYTES, PIECE_BYTES, Pass, Source};
use super::wait::{Stop, has_now};

/// A link's reading end.
pub(super) struct Stream {
    /// In non-blocking mode.
    input: OwnedFd,
    copy: Option<KeptCopy>,
}

/// What becomes of what flows beside its way to the reader: a file that keeps it, lines that are counted.
struct KeptCopy {
    /// tee(2) wants a pipe: bytes of a socket go through this one first.
    own_pipe: Option<(OwnedFd, OwnedFd)>,
    /// `None` once it could not take more: the reader still gets everything.
    file: Option<File>,
    /// Where the file is, for people.
    folder: String,
    /// Bytes that the reader has and the file has not; they still lie in the pipe.
    owed_bytes: usize,
    /// What kept the file from taking everything.
    trouble: Option<io::Error>,
    nowhere: File,
    /// Where lines are counted: what they are counted in.
    lines: Option<(Arc<Lines>, Block)>,
}

impl Stream {
    /// # Errors
    /// What fcntl(2), pipe2(2) or opening /dev/null answers; ENOSYS, or what a sandbox says, where there is no tee(2).
    pub(super) fn new(input: OwnedFd, kept: Option<File>, lines: Option<Arc<Lines>>) -> io::Result<Self> {
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        let beside = kept.is_some() || lines.is_some();
        let copy = beside.then(|| KeptCopy::new(&input, kept, lines)).transpose()?;
        Ok(Self { input, copy })
    }

    /// Nothing went over: for want of bytes, or of room.
    fn obstacle(&self, pipe: &OwnedFd, ended: bool) -> io::Result<Pass> {
        let source = self.copy.as_ref().map_or(&self.input, |copy| copy.source(&self.input));
        Ok(match (has_now(source, PollFlags::IN)?, ended) {
            // Both came meanwhile.
            (true, _) if has_now(pipe, PollFlags::OUT)? => Pass::Moved(0),
            (true, _) => Pass::Full,
            (false, true) => Pass::End,
            (false, false) => Pass::Idle(None),
        })
    }
}

impl Source for Stream {
    fn pass(&mut self, pipe: &OwnedFd) -> io::Result<Pass> {
        let (mut ended, mut direct) = (false, true);
        let moved = match &self.copy {
            None => splice(&self.input, None, pipe, None, PIECE_BYTES, SpliceFlags::NONBLOCK),
            Some(copy) => {
                ended = copy.fill(&self.input)?;
                direct = copy.own_pipe.is_none();
                tee(copy.source(&self.input), pipe, PIECE_BYTES, SpliceFlags::NONBLOCK)
            }
        };
        match moved {
            Ok(0) if direct => Ok(Pass::End),
            Ok(0) | Err(Errno::AGAIN) => self.obstacle(pipe, ended),
            Ok(moved) => {
                if let Some(copy) = &mut self.copy {
                    copy.owed_bytes += moved;
                    copy.settle(&self.input)?;
                }
                Ok(Pass::Moved(moved as u64))
            }
            Err(Errno::INTR) => Ok(Pass::Moved(0)),
            Err(error) => Err(error.into()),
        }
    }

    fn wakes(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// Closing the reading end tells the writer, as the reader's own closing would have; over TCP at once (a reset), and not at the
    /// second write.
    fn hang_up(self: Box<Self>, _stop: &Stop) -> io::Result<()> {
        // A pipe refuses it and needs it not.
        let _ = set_socket_linger(&self.input, Some(Duration::ZERO));
        Ok(())
    }

    fn trouble(&self) -> Option<String> {
        let copy = self.copy.as_ref()?;
        let error = model::describe_errno(copy.trouble.as_ref()?);
        Some(format!("what flowed could not all be kept in {}: {error}", copy.folder))
    }
}

/// The reading end of a writer's pipe, from where a relay writes into the link's own writing end, whatever that is.
pub(super) struct WriterPipe<S>(pub(super) S);

impl<S: Source> Source for WriterPipe<S> {
    /// A socket or a terminal whose other side has gone answers ECONNRESET, EIO or EINVAL: all mean EPIPE.
    fn pass(&mut self, end: &OwnedFd) -> io::Result<Pass> {
        match self.0.pass(end) {
            Err(_) if has_now(end, PollFlags::empty())? => Err(Errno::PIPE.into()),
            other => other,
        }
    }

    fn wakes(&self) -> BorrowedFd<'_> {
        self.0.wakes()
    }

    /// The writer's next write raises SIGPIPE.
    fn hang_up(self: Box<Self>, _stop: &Stop) -> io::Result<()> {
        Ok(())
    }
}

impl KeptCopy {
    fn new(input: &OwnedFd, file: Option<File>, lines: Option<Arc<Lines>>) -> io::Result<Self> {
        let is_pipe = FileType::from_raw_mode(fstat(input)?.st_mode) == FileType::Fifo;
        let (write, read, _) = large_pipe()?;
        match tee(&read, &write, PIECE_BYTES, SpliceFlags::NONBLOCK) {
            // Of an empty pipe into itself: the call is there.
            Err(Errno::AGAIN | Errno::INVAL) | Ok(_) => {}
            Err(missing) => return Err(missing.into()),
        }
        let nowhere = File::options().write(true).open("/dev/null")?;
        let number = file.as_ref().map(AsRawFd::as_raw_fd);
        let path = number.and_then(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).ok());
        let folder = path.as_deref().and_then(Path::parent);
        let folder = folder.map_or_else(|| "its file".to_owned(), |folder| folder.display().to_string());
        let lines = lines.map(|lines| (lines, Block::new(COUNTED_BYTES)));
        let own_pipe = (!is_pipe).then_some((write, read));
        Ok(Self { own_pipe, file, folder, owed_bytes: 0, trouble: None, nowhere, lines })
    }

    /// The pipe that bytes are taken from.
    fn source<'a>(&'a self, input: &'a OwnedFd) -> &'a OwnedFd {
        self.own_pipe.as_ref().map_or(input, |(_, read)| read)
    }

    /// Brings what a socket has into our own pipe; whether its end was reached.
    fn fill(&self, input: &OwnedFd) -> io::Result<bool> {
        let Some((write, _)) = &self.own_pipe else { return Ok(false) };
        match splice(input, None, write, None, PIECE_BYTES, SpliceFlags::NONBLOCK) {
            Ok(0) => Ok(true),
            // Full, or nothing there: what is in the pipe goes on first.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves what the reader has been given out of the pipe and into the file.
    fn settle(&mut self, input: &OwnedFd) -> io::Result<()> {
        self.count_lines(input)?;
        while self.owed_bytes > 0 {
            let target = self.file.as_ref().unwrap_or(&self.nowhere);
            match splice(self.source(input), None, target, None, self.owed_bytes, SpliceFlags::empty()) {
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

    /// The same through our own memory, where lines are counted.
    fn count_lines(&mut self, input: &OwnedFd) -> io::Result<()> {
        let Some((lines, room)) = &mut self.lines else { return Ok(()) };
        let source = self.own_pipe.as_ref().map_or(input, |(_, read)| read);
        while self.owed_bytes > 0 {
            let most = room.len().min(self.owed_bytes);
            match rustix::io::read(source, &mut room[..most]) {
                Ok(0) => return Err(Errno::IO.into()),
                Ok(taken) => {
                    self.owed_bytes -= taken;
                    lines.count(&room[..taken]);
                    if let Some(Err(error)) = self.file.as_mut().map(|file| file.write_all(&room[..taken])) {
                        self.trouble = Some(error);
                        self.file = None;
                    }
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
