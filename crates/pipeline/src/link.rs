//! A link between two programs: two descriptors, and sometimes a relay behind them.
//!
//! A stage's standard output is a link's writing end, the next stage's standard input its reading end. Programs have
//! the ends of a pipe, a FIFO and sockets themselves. Any other transport stands between two pipes, and threads of this
//! process move the bytes:
//!
//! ```text
//! a file                       writer | pipe → relay: into the file, and out of it → pipe | reader
//! a terminal, or `ends=pipe`   writer | pipe → relay → transport → relay → pipe | reader
//! order=sequential             writer | the file itself; and when all writers have closed it | reader
//! ```

mod copier;
mod file;
pub(crate) mod lines;
mod relay;
mod spec;
mod ssh;
mod stream;
mod terminal;
mod through_file;
pub(crate) mod wait;
mod writers;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub use mechanism::{Folder, OpenError, Order};
pub use spec::{LinkProblem, LinkSpec};
pub use wait::Bell;
pub use writers::wait_for_writers;

use mechanism::{LinkEnds, Options, Stored, Transport, default_pipe_bytes, large_pipe};
use model::{Certainty, LinkRecord};
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use copier::Copier;
pub(crate) use file::{Cut, Moved, limit_trouble};

use file::{LinkFile, Unread};
use lines::Lines;
use relay::{COUNTED_BYTES, Relay, Source};
use stream::{Stream, WriterPipe};
use terminal::TerminalSource;
use through_file::ThroughFile;
use wait::RingingThread;

/// What a link that has ended has lost.
#[derive(Default)]
pub struct Loss {
    /// The reader saw the end of a stream that was not complete.
    pub(crate) cut_short: bool,
    /// Not all bytes that were to be kept are in their file.
    pub(crate) not_kept: bool,
    /// The reader has ended before the stream.
    pub(crate) reader_left: bool,
    /// Of a file in sequential order: it ends where the room for it ended.
    pub(crate) is_cut: bool,
    /// The message if such a file is cut off: there was no more room for it at some time.
    pub(crate) no_room: Option<String>,
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
    /// Of a link whose reader waits for the writers to end; `None` inside as long as its writing end is not given away.
    writers_end: Option<Option<RingingThread<()>>>,
    /// The file that gets a copy of a stored link's file.
    copy: Option<File>,
    /// The counter of lines, which may have their times.
    pub(crate) lines: Arc<Lines>,
    /// A relay counts lines, if they are to be counted.
    counted: bool,
    /// Rung when a relay has failed or ended, and when all writers have ended.
    bell: Bell,
    record: LinkRecord,
}

impl Link {
    /// Makes a link of a mechanism's ends; with `pipe_ends`, which no stored link has, both programs get pipes.
    pub(crate) fn between(
        spec: String,
        ends: LinkEnds,
        pipe_ends: bool,
        bell: &Bell,
    ) -> Result<Self, OpenError> {
        let LinkEnds { write, read, granted, transport } = ends;
        let mut link = Self::written_at(write, LinkRecord { spec, granted, ..LinkRecord::default() }, bell);
        match transport {
            Transport::Stream if pipe_ends => {
                let (input, own) = link.put_pipe_before()?;
                let source = Stream::new(input, None, None).map_err(refused("fcntl(F_SETFL)"))?;
                link.relay(WriterPipe(source), own)?;
                link.feed(Stream::new(read, None, None).map_err(refused("fcntl(F_SETFL)"))?)?;
            }
            Transport::Stream => link.read = Some(read),
            Transport::Terminal => {
                link.count_before()?;
                link.feed(TerminalSource::new(read, None).map_err(refused("fcntl(F_SETFL)"))?)?;
            }
            Transport::Stored(stored) => link.store(read, stored)?,
        }
        Ok(link)
    }

    /// Makes a terminal in raw mode for a program, and a relay from there into a pipe that its reader already has.
    pub(crate) fn terminal_before(output: OwnedFd, program: i32, bell: &Bell) -> Result<Self, OpenError> {
        let pty = mechanism::all().iter().find(|mechanism| mechanism.name == "pty");
        let ends = pty.and_then(|pty| pty.connect(&Options::default(), &Folder::private()));
        let none = || Err(refused("openpt")(io::ErrorKind::Unsupported.into()));
        let LinkEnds { write, read, .. } = ends.unwrap_or_else(none)?;
        let mut link = Self::written_at(write, LinkRecord::default(), bell);
        let program = Pid::from_raw(program).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        link.relay(TerminalSource::new(read, program).map_err(refused("fcntl(F_SETFL)"))?, output)?;
        Ok(link)
    }

    /// Makes a link through ssh to another host.
    pub(crate) fn through_ssh(spec: String, host: &str, bell: &Bell) -> Result<Self, OpenError> {
        let (write, source) = ssh::through(host)?;
        let mut link = Self::written_at(write, LinkRecord { spec, ..LinkRecord::default() }, bell);
        link.feed(source)?;
        Ok(link)
    }

    /// A link without a reading end.
    fn written_at(write: OwnedFd, record: LinkRecord, bell: &Bell) -> Self {
        Self { write: Some(write), record, bell: bell.clone(), ..Self::default() }
    }

    fn store(&mut self, reader: OwnedFd, stored: Stored) -> Result<(), OpenError> {
        let order = stored.order;
        let file = LinkFile::new(reader, stored);
        self.file = Some(Arc::clone(&file));
        match order {
            Order::Parallel => {
                let (input, own) = self.put_pipe_before()?;
                let source = ThroughFile::new(input, own, file, Arc::clone(&self.lines));
                self.counted = true;
                self.feed(source.map_err(refused("fcntl(F_SETFL)"))?)
            }
            Order::Sequential => {
                self.write.iter().for_each(writers::mark);
                self.writers_end = Some(None);
                self.read = Some(file.reader.try_clone().map_err(refused("fcntl(F_DUPFD_CLOEXEC)"))?);
                Ok(())
            }
        }
    }

    /// Gives the writer a pipe in place of the link's own writing end. Returns the pipe's reading end and the own end.
    fn put_pipe_before(&mut self) -> Result<(OwnedFd, OwnedFd), OpenError> {
        let (write, read, _) = large_pipe().map_err(refused("pipe2"))?;
        let own = self.write.replace(write);
        Ok((read, own.ok_or_else(|| refused("dup")(io::ErrorKind::NotFound.into()))?))
    }

    /// Gives the writer a pipe, and starts a relay from there, before the existing ones, that counts lines if that is wanted.
    fn count_before(&mut self) -> Result<(), OpenError> {
        let (input, own) = self.put_pipe_before()?;
        let copier = Copier::new(input, Arc::clone(&self.lines), COUNTED_BYTES);
        self.relay(WriterPipe(copier.map_err(refused("fcntl(F_SETFL)"))?), own)?;
        self.relays.rotate_right(1);
        self.counted = true;
        Ok(())
    }

    /// Starts a relay behind the existing ones.
    fn relay(&mut self, source: impl Source + 'static, pipe: OwnedFd) -> Result<(), OpenError> {
        let relay = Relay::start(Box::new(source), pipe, self.bell.clone());
        self.relays.push(relay.map_err(refused("a thread for the relay"))?);
        Ok(())
    }

    /// Gives the reader a pipe and starts a relay that feeds it, after the existing ones.
    fn feed(&mut self, source: impl Source + 'static) -> Result<(), OpenError> {
        let (write, read, pipe_bytes) = large_pipe().map_err(refused("pipe2"))?;
        self.record.granted.insert("pipe_bytes".to_owned(), pipe_bytes);
        self.read = Some(read);
        self.relay(source, write)
    }

    /// Makes a pipe smaller whose size the user did not choose: to one part in `part`, or to the kernel's default. Many large pipes in one
    /// pipeline would spend the user's quota of pipe pages, and all further pipes would be tiny.
    pub(crate) fn shrink(&mut self, part: Option<u64>) {
        let granted = self.record.granted.get("pipe_bytes").copied().unwrap_or(0);
        let bytes = part.map_or_else(default_pipe_bytes, |part| granted / part);
        if bytes >= granted || spec::has_size_option(&self.record.spec) {
            return;
        }
        let is_larger = |end: &&OwnedFd| fcntl_getpipe_size(end).is_ok_and(|held| held as u64 > bytes);
        for end in [&self.write, &self.read].into_iter().flatten().filter(is_larger) {
            if let Ok(held) = fcntl_setpipe_size(end, bytes as usize) {
                self.record.granted.insert("pipe_bytes".to_owned(), held as u64);
            }
        }
    }

    /// Keeps a copy of all bytes in `copy`, which must be empty. To be called before the ends are taken.
    ///
    /// # Errors
    /// The relay that makes the copy could not be started.
    pub fn keep(&mut self, copy: File) -> Result<(), OpenError> {
        if self.file.is_some() {
            self.copy = Some(copy);
            return Ok(());
        }
        self.pass_through(Some(copy), "tee(2), which makes the copy")
    }

    /// Counts bytes, unless a relay counts them already. To be called before the ends are taken.
    ///
    /// # Errors
    /// The relay that counts could not be started.
    pub fn meter(&mut self) -> Result<(), OpenError> {
        if self.file.is_some() || !self.relays.is_empty() && self.uncounted().is_none() {
            return Ok(());
        }
        self.pass_through(None, "fcntl(F_SETFL)")
    }

    /// Starts a relay before the reader, which counts. `call` is named where it is refused.
    fn pass_through(&mut self, copy: Option<File>, call: &'static str) -> Result<(), OpenError> {
        let Some(input) = self.read.take() else { return Ok(()) };
        let source = Stream::new(input, copy, self.uncounted());
        self.counted = true;
        self.feed(source.map_err(refused(call))?)
    }

    /// Notes when each line enters the link, and counts bytes. To be called before all others. The writer gets a pipe of one page, so that
    /// lines wait in it only shortly, and a relay from there into the link.
    ///
    /// # Errors
    /// The relay could not be started.
    pub(crate) fn stamp(&mut self) -> Result<(), OpenError> {
        self.lines.want_stamps();
        if !self.counted {
            self.count_before()?;
        }
        // The kernel makes it one page. If it refuses, lines wait in a larger pipe before they are noted.
        let _ = self.write.as_ref().map(|write| fcntl_setpipe_size(write, 1));
        Ok(())
    }

    /// Whether [`Link::finish`] reads all stored bytes once more.
    pub(crate) fn is_slow_to_finish(&self) -> bool {
        self.copy.is_some() || self.writers_end.is_some() && self.lines.are_wanted()
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

    /// Waits for the writers to end, in a thread, where the reader waits for that. To be called when the writing end is given away; `given` is a
    /// connection that its receiver closes when it has the end.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn await_writers(&mut self, given: Option<OwnedFd>) -> io::Result<()> {
        if let (Some(ended), Some(file)) = (&mut self.writers_end, &self.file) {
            *ended = Some(writers::await_writers(&file.reader, given, self.bell.clone())?);
        }
        Ok(())
    }

    /// What is known so far: its spec, and the sizes that the system granted.
    pub fn record(&self) -> &LinkRecord {
        &self.record
    }

    /// Whether the last copy of the writer's end is closed, in sequential order; always true in parallel order.
    pub fn is_written(&self) -> bool {
        let ended = |thread: &Option<RingingThread<()>>| thread.as_ref().is_some_and(RingingThread::is_over);
        self.writers_end.as_ref().is_none_or(ended)
    }

    /// Its record if it goes on, with what it has stored so far.
    pub(crate) fn record_so_far(&self) -> LinkRecord {
        let file = self.file.as_ref();
        let stored_bytes = file.and_then(|file| file.size().ok());
        let path = file.and_then(|file| Some(file.path()?.to_string_lossy().into_owned()));
        LinkRecord { relay: !self.relays.is_empty(), stored_bytes, path, ..self.record.clone() }
    }

    /// Whether all relays have ended.
    pub fn is_over(&self) -> bool {
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
        let is_sequential = self.writers_end.is_some();
        if is_sequential && self.lines.are_wanted() {
            // After an error fewer lines are counted.
            let _ = file.copy_to(&*self.lines);
        }
        let checked = if is_sequential { file.check_room() } else { file.size().map(drop) };
        let stored_bytes = file.bytes_max();
        record.stored_bytes = Some(stored_bytes);
        record.bytes = record.bytes.or(record.stored_bytes);
        record.path = file.path().map(|path| path.to_string_lossy().into_owned());
        if is_sequential {
            loss.is_cut = file.is_cut();
            loss.no_room = file.was_refused().then(|| file.trouble(&record.spec));
            loss.unread = Some(file.unread()?);
        } else if file.is_cut() && !loss.reader_left {
            loss.cut_short = true;
            record.trouble = Some(file.trouble(&record.spec));
        }
        if let Some(Err(error)) = self.copy.take().map(|copy| file.copy_to(copy)) {
            let not_kept = format!("not all bytes could be kept: {}", model::describe_errno(&error));
            record.trouble.get_or_insert(not_kept);
            loss.not_kept = true;
        }
        checked
    }
}

/// The error for a system call that failed.
pub fn refused(call: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::system(call, source, None)
}
