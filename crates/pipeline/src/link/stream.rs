//! Relays the bytes of a pipe or a socket: with splice(2), which moves pages and copies nothing. If they are kept, tee(2) gives the same pages
//! to the reader, and then they are copied into the file. Counting lines needs a copy in the memory of this process.

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
use super::relay::{COUNTED_BYTES, On, PIECE_BYTES, Pass, Source};
use super::wait::{Stop, is_ready};

/// A link's reading end.
pub(super) struct Stream {
    /// In non-blocking mode.
    input: OwnedFd,
    copy: Option<KeptCopy>,
}

/// What is done with the bytes besides moving them to the reader: a file keeps them, or lines are counted.
struct KeptCopy {
    /// tee(2) needs a pipe: bytes of a socket go through this one first.
    own_pipe: Option<(OwnedFd, OwnedFd)>,
    /// `None` after a write to it has failed: the reader still gets all bytes.
    file: Option<File>,
    /// The folder of the file, for messages.
    folder: String,
    /// Bytes that the reader has and the file has not yet; they are still in the source pipe.
    owed_bytes: usize,
    /// Why the file is not complete.
    trouble: Option<io::Error>,
    null: File,
    /// The counter of lines, with its buffer.
    lines: Option<(Arc<Lines>, Block)>,
}

impl Stream {
    /// # Errors
    /// An error of fcntl(2), pipe2(2) or opening /dev/null; ENOSYS, or the error of a sandbox, if there is no tee(2).
    pub(super) fn new(input: OwnedFd, kept: Option<File>, lines: Option<Arc<Lines>>) -> io::Result<Self> {
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        let needs_copy = kept.is_some() || lines.is_some();
        let copy = needs_copy.then(|| KeptCopy::new(&input, kept, lines)).transpose()?;
        Ok(Self { input, copy })
    }

    /// Why nothing was moved: no bytes, or no room.
    fn obstacle(&self, pipe: &OwnedFd, ended: bool) -> io::Result<Pass> {
        let source = self.copy.as_ref().map_or(&self.input, |copy| copy.source(&self.input));
        Ok(match (is_ready(source, PollFlags::IN)?, ended) {
            // Bytes or room have come meanwhile: now there are both.
            (true, _) if is_ready(pipe, PollFlags::OUT)? => Pass::Moved(0),
            (true, _) => Pass::Blocked(On::Room),
            (false, true) => Pass::End,
            (false, false) => Pass::Blocked(On::Bytes),
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
                    copy.store_owed(&self.input)?;
                }
                Ok(Pass::Moved(moved as u64))
            }
            Err(Errno::INTR) => Ok(Pass::Moved(0)),
            Err(error) => Err(error.into()),
        }
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.input.as_fd())
    }

    /// The writer notices that the reading end is closed, as if its reader had closed it; over TCP at the first write (a reset), and not
    /// at the second.
    fn hang_up(self: Box<Self>, _stop: &Stop) -> io::Result<()> {
        // A pipe refuses this and does not need it.
        let _ = set_socket_linger(&self.input, Some(Duration::ZERO));
        Ok(())
    }

    fn not_kept(&self) -> Option<String> {
        let copy = self.copy.as_ref()?;
        let error = model::describe_errno(copy.trouble.as_ref()?);
        Some(format!("not all bytes could be kept in {}: {error}", copy.folder))
    }
}

/// The reading end of a writer's pipe, from which a relay writes into the link's own writing end.
pub(super) struct WriterPipe<S>(pub(super) S);

impl<S: Source> Source for WriterPipe<S> {
    /// A socket or a terminal without its other end gives ECONNRESET, EIO or EINVAL: all of them become EPIPE.
    fn pass(&mut self, end: &OwnedFd) -> io::Result<Pass> {
        match self.0.pass(end) {
            Err(_) if is_ready(end, PollFlags::empty())? => Err(Errno::PIPE.into()),
            other => other,
        }
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.poll_fd()
    }
}

impl KeptCopy {
    fn new(input: &OwnedFd, file: Option<File>, lines: Option<Arc<Lines>>) -> io::Result<Self> {
        let is_pipe = FileType::from_raw_mode(fstat(input)?.st_mode) == FileType::Fifo;
        let (write, read, _) = large_pipe()?;
        match tee(&read, &write, PIECE_BYTES, SpliceFlags::NONBLOCK) {
            // The answers for an empty pipe into itself: tee(2) exists.
            Err(Errno::AGAIN | Errno::INVAL) | Ok(_) => {}
            Err(missing) => return Err(missing.into()),
        }
        let null = File::options().write(true).open("/dev/null")?;
        let number = file.as_ref().map(AsRawFd::as_raw_fd);
        let path = number.and_then(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).ok());
        let folder = path.as_deref().and_then(Path::parent);
        let folder = folder.map_or_else(|| "its file".to_owned(), |folder| folder.display().to_string());
        let lines = lines.map(|lines| (lines, Block::new(COUNTED_BYTES)));
        let own_pipe = (!is_pipe).then_some((write, read));
        Ok(Self { own_pipe, file, folder, owed_bytes: 0, trouble: None, null, lines })
    }

    /// The pipe that bytes are taken from.
    fn source<'a>(&'a self, input: &'a OwnedFd) -> &'a OwnedFd {
        self.own_pipe.as_ref().map_or(input, |(_, read)| read)
    }

    /// Moves bytes of a socket into our own pipe. Returns whether the end was reached.
    fn fill(&self, input: &OwnedFd) -> io::Result<bool> {
        let Some((write, _)) = &self.own_pipe else { return Ok(false) };
        match splice(input, None, write, None, PIECE_BYTES, SpliceFlags::NONBLOCK) {
            Ok(0) => Ok(true),
            // The pipe is full, or the socket empty.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the owed bytes, which the reader has already, out of the pipe and writes them into the file.
    fn store_owed(&mut self, input: &OwnedFd) -> io::Result<()> {
        self.count_lines(input)?;
        while self.owed_bytes > 0 {
            let target = self.file.as_ref().unwrap_or(&self.null);
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

    /// The same through the memory of this process, if lines are counted.
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
