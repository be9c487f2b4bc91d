//! A link between two programs: two descriptors, and now and then a relay behind them.
//!
//! A stage's standard output is a link's writing end, the next stage's standard input its reading end. Where the
//! mechanism's own reading end does not behave like a pipe's (a file does not wait for more, a terminal ends in
//! EIO), the reader gets a true pipe, and a thread of ours feeds it. With `ends=pipe` both programs get a pipe.

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
mod stamper;
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

use file::LinkFile;
use file_watch::FileWatch;
use follow::FileFollower;
use lines::Lines;
use relay::{Relay, Source};
use stamper::Stamper;
use stream::{Stream, WriterPipe};
use terminal::TerminalSource;

/// A link, open. Dropping it closes what was not handed out, stops its relay and removes its names.
pub struct Link {
    // First in the order of drops: relays come to their end sooner when the ends are closed.
    write: Option<OwnedFd>,
    read: Option<OwnedFd>,
    /// In the order in which bytes pass them.
    relays: Vec<Relay>,
    file: Option<Arc<LinkFile>>,
    /// Where the reader waits for the writer.
    writer: Option<FileWatch>,
    /// What will keep a copy of a stored link's file.
    copy: Option<File>,
    /// The largest files that its writers may make, where they have a limit, in bytes.
    limits: Vec<u64>,
    /// A writer was ended by such a limit.
    limit_ended_writer: bool,
    lines: Arc<Lines>,
    /// A relay counts lines where they are wanted.
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
                let source = Stream::new(read, None, None).map_err(refused("fcntl(F_SETFL)"))?;
                link.feed(Box::new(source))?;
            }
            LinkKind::Stream => link.read = Some(read),
            LinkKind::Terminal => {
                let source = TerminalSource::new(read, Arc::clone(&link.lines), !pipe_ends);
                link.feed(Box::new(source.map_err(refused("fcntl(F_SETFL)"))?))?;
                link.counted = true;
            }
            LinkKind::Stored(stored) => link.store(read, stored)?,
        }
        Ok(link)
    }

    /// Makes a terminal in raw mode, whose bytes a relay passes on to a pipe. Its reader has that pipe already.
    pub(crate) fn terminal_before(output: OwnedFd) -> Result<Self, OpenError> {
        let pty = mechanism::all().iter().find(|mechanism| mechanism.name == "pty");
        let ends = pty.and_then(|pty| pty.connect(&Options::default(), &Folder::private()));
        let none = || Err(refused("openpt")(io::ErrorKind::Unsupported.into()));
        let LinkEnds { write, read, .. } = ends.unwrap_or_else(none)?;
        let mut link = Self::written_at(write, LinkRecord::default());
        let source =
            TerminalSource::new(read, Arc::clone(&link.lines), true).map_err(refused("fcntl(F_SETFL)"))?;
        let relay = Relay::start(Box::new(source), output).map_err(refused("a thread for the relay"))?;
        link.relays.push(relay);
        Ok(link)
    }

    /// Makes a link through ssh to another host.
    pub(crate) fn through_ssh(spec: String, host: &str) -> Result<Self, OpenError> {
        let (write, source) = ssh::through(host, None)?;
        let mut link = Self::written_at(write, LinkRecord { spec, ..LinkRecord::default() });
        link.feed(Box::new(source))?;
        Ok(link)
    }

    /// One that is not read yet.
    fn written_at(write: OwnedFd, record: LinkRecord) -> Self {
        Self {
            write: Some(write),
            read: None,
            relays: Vec::new(),
            file: None,
            writer: None,
            copy: None,
            limits: Vec::new(),
            limit_ended_writer: false,
            lines: Arc::default(),
            counted: false,
            record,
        }
    }

    fn store(&mut self, reader: OwnedFd, stored: Stored) -> Result<(), OpenError> {
        let watch = FileWatch::new(&reader).map_err(refused("inotify, or what stands for it"))?;
        let order = stored.order;
        let file = Arc::new(LinkFile::new(reader, stored));
        self.file = Some(Arc::clone(&file));
        match order {
            Order::Parallel => {
                let lines = Arc::clone(&self.lines);
                self.feed(Box::new(FileFollower::new(file, watch, lines)))
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
        let source = WriterPipe(Stream::new(read, None, None).map_err(refused("fcntl(F_SETFL)"))?);
        let relay = Relay::start(Box::new(source), own).map_err(refused("a thread for the relay"))?;
        self.relays.push(relay);
        Ok(())
    }

    /// Gives the reader a pipe and starts a relay that feeds it, behind those that there are.
    fn feed(&mut self, source: Box<dyn Source>) -> Result<(), OpenError> {
        let (write, read, pipe_bytes) = large_pipe().map_err(refused("pipe2"))?;
        self.record.granted.insert("pipe_bytes".to_owned(), pipe_bytes);
        self.read = Some(read);
        self.relays.push(Relay::start(source, write).map_err(refused("a thread for the relay"))?);
        Ok(())
    }

    /// Makes a pipe smaller whose size was not asked for: one part in `part`, or of the kernel's own size: many large ones in one
    /// pipeline would spend the memory that this user may have in pipes, and leave tiny ones for everybody else.
    pub(crate) fn shrink(&mut self, part: Option<u64>) {
        let granted = self.record.granted.get("pipe_bytes").copied().unwrap_or(0);
        let bytes = part.map_or_else(default_pipe_bytes, |part| granted / part);
        let pipe = self.write.as_ref().filter(|_| bytes < granted && !spec::says_size(&self.record.spec));
        // What stands behind a relay is not this end; it says so with an error and stays as it is.
        if let Some(Ok(held)) = pipe.map(|pipe| fcntl_setpipe_size(pipe, bytes as usize)) {
            self.record.granted.insert("pipe_bytes".to_owned(), held as u64);
        }
    }

    /// Keeps a copy of what flows in `copy`, which must be empty; to be asked for before the ends are taken.
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
        let source = source.map_err(refused("tee(2), which makes the copy"))?;
        self.counted = true;
        self.feed(Box::new(source))
    }

    /// Counts what flows, where nothing of ours counts it already; to be asked for before the ends are taken.
    ///
    /// # Errors
    /// The relay that counts could not be started.
    pub fn meter(&mut self) -> Result<(), OpenError> {
        if self.file.is_some() || !self.relays.is_empty() && self.uncounted().is_none() {
            return Ok(());
        }
        let Some(input) = self.read.take() else { return Ok(()) };
        let source = Stream::new(input, None, self.uncounted()).map_err(refused("fcntl(F_SETFL)"))?;
        self.counted = true;
        self.feed(Box::new(source))
    }

    /// Counts lines, too, where [`Link::meter`] or [`Link::keep`] is asked for next; to be asked for before the ends are taken.
    pub fn count_lines(&self) {
        self.lines.want();
    }

    /// Notes when each line comes into the link, and counts what flows; to be asked for before anything else. The writer gets a pipe of
    /// one page, so that little waits before it is noted, and a relay from there into the link; a terminal and a stored link, whose
    /// relays read the bytes already, note them behind the link.
    ///
    /// # Errors
    /// The relay could not be started.
    pub(crate) fn stamp(&mut self) -> Result<(), OpenError> {
        self.lines.want_stamps();
        if self.counted || self.file.is_some() {
            return Ok(());
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| refused("pipe2")(errno.into()))?;
        // The kernel makes it one page; where it refuses, the pipe is larger and the times a little less of the reader's.
        let _ = fcntl_setpipe_size(&write, 1);
        let Some(own) = self.write.replace(write) else { return Ok(()) };
        let stamper = Stamper::new(read, Arc::clone(&self.lines)).map_err(refused("fcntl(F_SETFL)"))?;
        let relay = Relay::start(Box::new(WriterPipe(stamper)), own);
        self.relays.insert(0, relay.map_err(refused("a thread for the relay"))?);
        self.counted = true;
        Ok(())
    }

    /// The lines that go through it, where they are counted or their times noted.
    pub(crate) fn shared_lines(&self) -> Arc<Lines> {
        Arc::clone(&self.lines)
    }

    /// A writer may make no file larger than this, in bytes.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.limits.push(bytes);
    }

    /// A writer was ended because it wanted to make a file larger than it may.
    pub(crate) fn note_limit_ended_writer(&mut self) {
        self.limit_ended_writer = true;
    }

    /// Whether [`Link::finish`] reads everything once more that the link has stored.
    pub(crate) fn is_slow_to_finish(&self) -> bool {
        self.copy.is_some() || self.file.is_some() && self.relays.is_empty() && self.lines.are_wanted()
    }

    /// Bytes that went through so far; `None` where nothing of ours sees them.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let relayed = self.relays.last().map(Relay::bytes);
        relayed.or_else(|| self.file.as_ref()?.look().ok())
    }

    /// Lines that went through so far; `None` where they are not counted.
    pub fn lines(&self) -> Option<u64> {
        self.lines.seen()
    }

    /// Where lines are to be counted by the next relay: no other one counts them.
    fn uncounted(&self) -> Option<Arc<Lines>> {
        (self.lines.are_wanted() && !self.counted).then(|| Arc::clone(&self.lines))
    }

    /// The writer's end, for the standard output of a stage. Given once, and to be closed here as soon as the stage
    /// has it: the stream ends when the last copy is closed.
    pub fn take_write(&mut self) -> Option<OwnedFd> {
        self.write.take()
    }

    /// The reader's end, for the standard input of a stage. Given once, and to be closed here as soon as the stage
    /// has it: the writer learns that the reader has gone when the last copy is closed.
    pub fn take_read(&mut self) -> Option<OwnedFd> {
        self.read.take()
    }

    /// What is known of it so far: what it is, and the sizes that the system really gave.
    pub fn record(&self) -> &LinkRecord {
        &self.record
    }

    /// Whether the last copy of the writer's end is closed, in sequential order; in parallel order that is not awaited.
    ///
    /// # Errors
    /// What inotify(7) answers.
    pub fn is_written(&mut self) -> io::Result<bool> {
        self.writer.as_mut().map_or(Ok(true), FileWatch::all_closed)
    }

    /// Whether nothing of ours is left to do: its relays, where there are any, have come to their end.
    pub(crate) fn is_over(&self) -> bool {
        self.relays.iter().all(Relay::is_over)
    }

    /// Whether a relay cannot go on and waits for its readers to be ended: what they have is not everything.
    pub(crate) fn has_failed(&self) -> bool {
        self.relays.iter().any(Relay::has_failed)
    }

    /// Closes the link and says what is known of it, and whether the reader saw an end of the stream that was none; to be called when
    /// the stages have ended. Does not wait for programs in the background that still hold an end.
    pub fn finish(mut self) -> (LinkRecord, bool) {
        self.write = None;
        self.read = None;
        let mut record = std::mem::take(&mut self.record);
        let (mut cut_short, mut reader_left, mut is_partial) = (false, false, false);
        record.relay = !self.relays.is_empty();
        for relay in &mut self.relays {
            let outcome = relay.finish();
            record.bytes = Some(relay.bytes());
            record.trouble = record.trouble.or(outcome.trouble);
            cut_short |= outcome.cut_short;
            reader_left |= outcome.reader_left;
            is_partial |= outcome.is_partial;
        }
        if let Some(file) = &self.file {
            if self.relays.is_empty() && self.lines.are_wanted() {
                // An error leaves fewer lines counted.
                let _ = file.copy_to(&*self.lines);
            }
            let looked = file.look().err().map(|error| error.to_string());
            let copied = self.copy.take().and_then(|copy| file.copy_to(copy).err());
            let not_kept = copied
                .map(|error| format!("what flowed could not all be kept: {}", model::describe_errno(&error)));
            record.stored_bytes = Some(file.bytes_max());
            record.bytes = record.bytes.or(record.stored_bytes);
            record.path = file.path().map(|path| path.to_string_lossy().into_owned());
            let stored_bytes = file.bytes_max();
            let limited = self.limits.contains(&stored_bytes) || self.limit_ended_writer && stored_bytes > 0;
            let limited = (limited && !reader_left).then(|| limit_trouble(&record));
            // In sequential order the limit is what ends a writer without end, whose reader may want the beginning only.
            cut_short |= limited.is_some() && !self.relays.is_empty();
            record.trouble =
                file.trouble(&record.spec).or(limited).or(record.trouble).or(looked).or(not_kept);
        }
        record.bytes_is =
            record.bytes.map(|_| if is_partial { Certainty::AtLeast } else { Certainty::Exact });
        record.lines = self.lines.seen();
        (record, cut_short)
    }
}

/// What to say where a limit for file sizes has ended what a writer wrote: the pipe that the link stands for has none.
pub(crate) fn limit_trouble(record: &LinkRecord) -> String {
    format!(
        "link {}: its writer reached its limit for the size of files, and what it wrote was cut short after {}: a higher limit \
         (ulimit -f), or a link that stores nothing",
        record.spec,
        ByteSize(record.stored_bytes.unwrap_or(0))
    )
}

/// What to say where a system call was refused.
pub fn refused(call: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::System { call: call.to_owned(), source, remedy: None }
}
