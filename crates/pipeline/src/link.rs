//! A link between two programs: two descriptors, and sometimes a relay behind them.
//!
//! A stage's standard output is a link's writing end, the next stage's standard input its reading end. If the
//! mechanism's own reading end does not behave like a pipe's (a file does not wait for more, a terminal ends with
//! EIO), the reader gets a pipe, and a thread of this process feeds it. With `ends=pipe` both programs get a pipe.

mod copier;
mod file;
mod follow;
mod holders;
mod kernel;
pub use kernel::wait_for_writers;
mod file_watch;
pub(crate) mod lines;
mod relay;
mod spec;
mod ssh;
mod stream;
mod terminal;
mod wait;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub use mechanism::{Folder, OpenError, Order};
pub use spec::{LinkProblem, LinkSpec};

use mechanism::{LinkEnds, LinkKind, Options, Stored, default_pipe_bytes, large_pipe};
use model::{ByteSize, Certainty, LinkRecord};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use copier::Copier;
pub(crate) use file::{Cut, Moved};

use file::{LinkFile, Unread};
use file_watch::FileWatch;
use follow::FileFollower;
use lines::Lines;
use relay::{COUNTED_BYTES, Relay, Source};
use stream::{Stream, WriterPipe};
use terminal::TerminalSource;

/// How the writers of a link have ended.
#[derive(Default, Clone, Copy)]
pub(crate) struct Writers {
    /// One has failed, other than by SIGPIPE.
    pub(crate) failed: bool,
    /// One was ended by its limit for the size of files.
    pub(crate) limited: bool,
}

/// What a link that has ended has lost.
#[derive(Default)]
pub struct Loss {
    /// The reader saw the end of a stream that was not complete.
    pub(crate) cut_short: bool,
    /// Not all bytes that were to be kept are in their file.
    pub(crate) not_kept: bool,
    /// The reader has ended before the stream.
    pub(crate) reader_left: bool,
    /// The message if a writer turns out to have failed: there was no more room for the file at some time.
    pub(crate) doubt: Option<String>,
    /// The file that the reader still reads: its end may look like the end of the data.
    pub(crate) unread: Option<Unread>,
}

/// An open link. Dropping it closes the ends that were not taken, stops its relays and removes its names.
#[derive(Default)]
pub struct Link {
    // Dropped first: relays end sooner when the ends are closed.
    write: Option<OwnedFd>,
    read: Option<OwnedFd>,
    /// In the order in which bytes pass them.
    relays: Vec<Relay>,
    file: Option<Arc<LinkFile>>,
    /// Of a link whose reader waits for the writers to end.
    writer: Option<FileWatch>,
    /// The file that gets a copy of a stored link's file.
    copy: Option<File>,
    /// The file size limits of its writers, in bytes.
    pub(crate) limits: Vec<u64>,
    /// How its writers have ended so far.
    pub(crate) writers: Writers,
    /// The counter of lines, which may have their times.
    pub(crate) lines: Arc<Lines>,
    /// A relay counts lines, if they are to be counted.
    counted: bool,
    record: LinkRecord,
}

impl Link {
    /// Makes a link of a mechanism's ends; with `pipe_ends`, which no stored link has, both programs get pipes.
    pub(crate) fn between(spec: String, ends: LinkEnds, pipe_ends: bool) -> Result<Self, OpenError> {
        let LinkEnds { write, read, granted, kind } = ends;
        let mut link = Self::written_at(write, LinkRecord { spec, granted, ..LinkRecord::default() });
        if pipe_ends {
            link.give_writer_a_pipe()?;
        }
        match kind {
            LinkKind::Stream if pipe_ends => {
                link.feed(Stream::new(read, None, None).map_err(refused("fcntl(F_SETFL)"))?)?;
            }
            LinkKind::Stream => link.read = Some(read),
            LinkKind::Terminal => {
                let source = TerminalSource::new(read, Arc::clone(&link.lines), !pipe_ends);
                link.feed(source.map_err(refused("fcntl(F_SETFL)"))?)?;
                link.counted = true;
            }
            LinkKind::Stored(stored) => link.store(read, stored)?,
        }
        Ok(link)
    }

    /// Makes a terminal in raw mode, and a relay from there into a pipe that its reader already has.
    pub(crate) fn terminal_before(output: OwnedFd) -> Result<Self, OpenError> {
        let pty = mechanism::all().iter().find(|mechanism| mechanism.name == "pty");
        let ends = pty.and_then(|pty| pty.connect(&Options::default(), &Folder::private()));
        let none = || Err(refused("openpt")(io::ErrorKind::Unsupported.into()));
        let LinkEnds { write, read, .. } = ends.unwrap_or_else(none)?;
        let mut link = Self::written_at(write, LinkRecord::default());
        let source = TerminalSource::new(read, Arc::clone(&link.lines), true);
        link.relays.push(relay(source.map_err(refused("fcntl(F_SETFL)"))?, output)?);
        Ok(link)
    }

    /// Makes a link through ssh to another host.
    pub(crate) fn through_ssh(spec: String, host: &str) -> Result<Self, OpenError> {
        let (write, source) = ssh::through(host)?;
        let mut link = Self::written_at(write, LinkRecord { spec, ..LinkRecord::default() });
        link.feed(source)?;
        Ok(link)
    }

    /// A link without a reading end.
    fn written_at(write: OwnedFd, record: LinkRecord) -> Self {
        Self { write: Some(write), record, ..Self::default() }
    }

    fn store(&mut self, reader: OwnedFd, stored: Stored) -> Result<(), OpenError> {
        let watch = FileWatch::new(&reader).map_err(refused("inotify, or its replacement"))?;
        let order = stored.order;
        let file = LinkFile::new(reader, stored);
        self.file = Some(Arc::clone(&file));
        match order {
            Order::Parallel => {
                let lines = Arc::clone(&self.lines);
                self.feed(FileFollower::new(file, watch, lines))
            }
            Order::Sequential => {
                self.read = Some(file.reader.try_clone().map_err(refused("fcntl(F_DUPFD_CLOEXEC)"))?);
                self.writer = Some(watch);
                Ok(())
            }
        }
    }

    /// Gives the writer a pipe and starts a relay from there into the link's own writing end.
    fn give_writer_a_pipe(&mut self) -> Result<(), OpenError> {
        let (write, read, _) = large_pipe().map_err(refused("pipe2"))?;
        let Some(own) = self.write.replace(write) else { return Ok(()) };
        let source = Stream::new(read, None, None).map_err(refused("fcntl(F_SETFL)"))?;
        self.relays.push(relay(WriterPipe(source), own)?);
        Ok(())
    }

    /// Gives the reader a pipe and starts a relay that feeds it, after the existing ones.
    fn feed(&mut self, source: impl Source + 'static) -> Result<(), OpenError> {
        let (write, read, pipe_bytes) = large_pipe().map_err(refused("pipe2"))?;
        self.record.granted.insert("pipe_bytes".to_owned(), pipe_bytes);
        self.read = Some(read);
        self.relays.push(relay(source, write)?);
        Ok(())
    }

    /// Makes a pipe smaller whose size the user did not choose: to one part in `part`, or to the kernel's default. Many large pipes in one
    /// pipeline would spend the user's quota of pipe pages, and all further pipes would be tiny.
    pub(crate) fn shrink(&mut self, part: Option<u64>) {
        let granted = self.record.granted.get("pipe_bytes").copied().unwrap_or(0);
        let bytes = part.map_or_else(default_pipe_bytes, |part| granted / part);
        let pipe =
            self.write.as_ref().filter(|_| bytes < granted && !spec::has_size_option(&self.record.spec));
        // An end that is no pipe gives an error and stays as it is.
        if let Some(Ok(held)) = pipe.map(|pipe| fcntl_setpipe_size(pipe, bytes as usize)) {
            self.record.granted.insert("pipe_bytes".to_owned(), held as u64);
        }
    }

    /// Keeps a copy of all bytes in `copy`, which must be empty. To be called before the ends are taken.
    ///
    /// # Errors
    /// The relay that makes the copy could not be started.
    pub fn keep(&mut self, copy: File) -> Result<(), OpenError> {
        if let Some(file) = &self.file {
            file.keep();
            self.copy = Some(copy);
            return Ok(());
        }
        let Some(input) = self.read.take() else { return Ok(()) };
        let source = Stream::new(input, Some(copy), self.uncounted());
        self.counted = true;
        self.feed(source.map_err(refused("tee(2), which makes the copy"))?)
    }

    /// Counts bytes, unless a relay counts them already. To be called before the ends are taken.
    ///
    /// # Errors
    /// The relay that counts could not be started.
    pub fn meter(&mut self) -> Result<(), OpenError> {
        if self.file.is_some() || !self.relays.is_empty() && self.uncounted().is_none() {
            return Ok(());
        }
        let Some(input) = self.read.take() else { return Ok(()) };
        let source = Stream::new(input, None, self.uncounted());
        self.counted = true;
        self.feed(source.map_err(refused("fcntl(F_SETFL)"))?)
    }

    /// Notes when each line enters the link, and counts bytes. To be called before all others. The writer gets a pipe of one page, so that
    /// lines wait in it only shortly, and a relay from there into the link; the relays of a terminal and of a stored link read the bytes
    /// already, and note the lines after the link.
    ///
    /// # Errors
    /// The relay could not be started.
    pub(crate) fn stamp(&mut self) -> Result<(), OpenError> {
        self.lines.want_stamps();
        if self.counted || self.file.is_some() {
            return Ok(());
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| refused("pipe2")(errno.into()))?;
        // The kernel makes it one page. If it refuses, lines wait in a larger pipe before they are noted.
        let _ = fcntl_setpipe_size(&write, 1);
        let Some(own) = self.write.replace(write) else { return Ok(()) };
        let source = Copier::new(read, Arc::clone(&self.lines), COUNTED_BYTES);
        self.relays.insert(0, relay(WriterPipe(source.map_err(refused("fcntl(F_SETFL)"))?), own)?);
        self.counted = true;
        Ok(())
    }

    /// Whether [`Link::finish`] reads all stored bytes once more.
    pub(crate) fn is_slow_to_finish(&self) -> bool {
        self.copy.is_some() || self.file.is_some() && self.relays.is_empty() && self.lines.are_wanted()
    }

    /// Bytes that went through so far; `None` if no relay counts them.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let relayed = self.relays.last().map(Relay::bytes);
        relayed.or_else(|| self.file.as_ref()?.size().ok())
    }

    /// Lines that went through so far; `None` if they are not counted.
    pub fn lines(&self) -> Option<u64> {
        self.lines.seen()
    }

    /// The counter of lines for the next relay, if no other one counts them.
    fn uncounted(&self) -> Option<Arc<Lines>> {
        (self.lines.are_wanted() && !self.counted).then(|| Arc::clone(&self.lines))
    }

    /// Takes the writer's end, for the standard output of a stage. It must be closed here as soon as the stage has it: the stream ends when the
    /// last copy is closed.
    pub fn take_write(&mut self) -> Option<OwnedFd> {
        self.write.take()
    }

    /// Takes the reader's end, for the standard input of a stage. It must be closed here as soon as the stage has it: the writer gets SIGPIPE
    /// when the last copy is closed.
    pub fn take_read(&mut self) -> Option<OwnedFd> {
        self.read.take()
    }

    /// What is known so far: its spec, and the sizes that the system granted.
    pub fn record(&self) -> &LinkRecord {
        &self.record
    }

    /// Whether the last copy of the writer's end is closed, in sequential order; always true in parallel order.
    ///
    /// # Errors
    /// An error of inotify(7).
    pub fn is_written(&mut self) -> io::Result<bool> {
        self.writer.as_mut().map_or(Ok(true), FileWatch::all_closed)
    }

    /// Whether all relays have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.relays.iter().all(Relay::is_over)
    }

    /// Whether a relay has failed and waits until its readers, whose data is not complete, are killed.
    pub(crate) fn has_failed(&self) -> bool {
        self.relays.iter().any(Relay::has_failed)
    }

    /// Whether a relay could not go on, even if it has not come to its end.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.relays.iter().any(Relay::is_cut_short)
    }

    /// Closes the link. Returns its record, and what it has lost. To be called when the stages have ended. Does not wait for programs in the
    /// background that still hold an end.
    pub fn finish(mut self) -> (LinkRecord, Loss) {
        self.write = None;
        self.read = None;
        let mut record = std::mem::take(&mut self.record);
        let (mut loss, mut is_partial) = (Loss::default(), false);
        record.relay = !self.relays.is_empty();
        for relay in &mut self.relays {
            let outcome = relay.finish();
            record.bytes = Some(relay.bytes());
            record.trouble = record.trouble.or(outcome.trouble);
            loss.cut_short |= outcome.cut_short;
            loss.not_kept |= outcome.not_kept;
            loss.reader_left |= outcome.reader_left;
            is_partial |= outcome.is_partial;
        }
        if let Some(file) = self.file.take()
            && let Err(error) = self.finish_file(&file, &mut record, &mut loss)
        {
            record.trouble.get_or_insert_with(|| error.to_string());
        }
        record.bytes_is =
            record.bytes.map(|_| if is_partial { Certainty::AtLeast } else { Certainty::Exact });
        record.lines = self.lines.seen();
        (record, loss)
    }

    fn finish_file(&mut self, file: &LinkFile, record: &mut LinkRecord, loss: &mut Loss) -> io::Result<()> {
        if self.relays.is_empty() && self.lines.are_wanted() {
            // After an error fewer lines are counted.
            let _ = file.copy_to(&*self.lines);
        }
        let checked = file.check_room();
        let stored_bytes = file.bytes_max();
        record.stored_bytes = Some(stored_bytes);
        record.bytes = record.bytes.or(record.stored_bytes);
        record.path = file.path().map(|path| path.to_string_lossy().into_owned());
        let is_full = file.is_cut() || self.writers.failed && file.was_refused();
        let limited = self.limits.contains(&stored_bytes) || self.writers.limited && stored_bytes > 0;
        let cut = if is_full {
            Some(file.trouble(&record.spec))
        } else {
            (limited && !loss.reader_left).then(|| limit_trouble(record))
        };
        if file.was_refused() && cut.is_none() {
            loss.doubt = Some(file.trouble(&record.spec));
        }
        if self.relays.is_empty() {
            let by = if is_full { Cut::NoRoom } else { Cut::Limit };
            loss.unread = Some(file.unread(cut.is_some().then_some(by))?);
        } else {
            loss.cut_short |= cut.is_some() && !loss.reader_left;
        }
        record.trouble = cut.or(record.trouble.take());
        if let Some(Err(error)) = self.copy.take().map(|copy| file.copy_to(copy)) {
            let not_kept = format!("not all bytes could be kept: {}", model::describe_errno(&error));
            record.trouble.get_or_insert(not_kept);
            loss.not_kept = true;
        }
        checked
    }
}

fn relay(source: impl Source + 'static, pipe: OwnedFd) -> Result<Relay, OpenError> {
    Relay::start(Box::new(source), pipe).map_err(refused("a thread for the relay"))
}

/// The message where a file size limit has cut off what a writer wrote. A pipe has no such limit.
pub(crate) fn limit_trouble(record: &LinkRecord) -> String {
    format!(
        "link {}: its writer reached its limit for the size of files, and its output was cut short after {}: a higher limit \
         (ulimit -f), or a link that stores nothing",
        record.spec,
        ByteSize(record.stored_bytes.unwrap_or(0))
    )
}

/// The error for a system call that failed.
pub fn refused(call: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::system(call, source, None)
}
