//! What stands between two programs: two descriptors, and now and then a relay behind them.
//!
//! A stage's standard output is a link's writing end, the next stage's standard input its reading end. Where the
//! mechanism's own reading end does not behave like a pipe's (a file does not wait for more, a terminal ends in
//! EIO), the reader gets a true pipe, and a thread of ours feeds it.

mod file;
mod follow;
mod holders;
mod kept;
mod kernel;
mod meter;
mod relay;
mod spec;
mod terminal;
mod wait;
mod watch;

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use mechanism::{Folder, Granted, OpenError, Order};
pub use spec::{LinkProblem, LinkSpec};

use mechanism::{LinkEnds, LinkKind, Stored, large_pipe};
use rustix::event::{PollFd, PollFlags};
use rustix::pipe::fcntl_setpipe_size;

use file::LinkFile;
use follow::Follower;
use kept::KeptStream;
use meter::Metered;
use relay::{Relay, Source};
use terminal::TerminalSource;
use wait::sleep_on;
use watch::Watch;

/// How often a wait for a writer's end asks whether it should be given up.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(50);

/// A link, open. Dropping it closes what was not handed out, stops its relay and removes its names.
pub struct Link {
    spec: String,
    // First in the order of drops: the relay comes to its end sooner when the ends are closed.
    write: Option<OwnedFd>,
    read: Option<OwnedFd>,
    granted: Granted,
    relay: Option<Relay>,
    /// A relay that stands before that one.
    before: Option<Relay>,
    file: Option<Arc<LinkFile>>,
    /// Where the reader waits for the writer.
    writer: Option<RefCell<Watch>>,
    /// What will keep a copy of a stored link's file.
    copy: Option<File>,
}

/// What is known of a link when all is over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkReport {
    /// Bytes that came to the reader's end, where they can be known: a relay counts, a file has a size.
    pub bytes: Option<u64>,
    /// The most that was stored in a file, in bytes; `None` where nothing is.
    pub stored_bytes: Option<u64>,
    /// The name the file had. It is gone.
    pub path: Option<PathBuf>,
    /// Whether a relay was in the path.
    pub relay: bool,
    /// What went wrong: a full disk, a relay that could not go on.
    pub trouble: Option<String>,
    /// The reader saw an end of the stream that was none.
    pub cut_short: bool,
}

impl Link {
    /// Makes a link of a mechanism's ends.
    pub(crate) fn between(spec: String, ends: LinkEnds) -> Result<Self, OpenError> {
        let LinkEnds { write, read, granted, kind } = ends;
        let mut link = Self {
            spec,
            write: Some(write),
            read: None,
            granted,
            relay: None,
            before: None,
            file: None,
            writer: None,
            copy: None,
        };
        match kind {
            LinkKind::Stream => link.read = Some(read),
            LinkKind::Terminal => {
                let source = TerminalSource::new(read).map_err(refused("fcntl(F_SETFL)"))?;
                link.feed(Box::new(source))?;
            }
            LinkKind::Stored(stored) => link.store(read, stored)?,
        }
        Ok(link)
    }

    fn store(&mut self, reader: OwnedFd, stored: Stored) -> Result<(), OpenError> {
        let watch = Watch::new(&reader).map_err(refused("inotify, or what stands for it"))?;
        let order = stored.order;
        let file = Arc::new(LinkFile::new(reader, stored));
        self.file = Some(Arc::clone(&file));
        match order {
            Order::Parallel => self.feed(Box::new(Follower::new(file, watch))),
            Order::Sequential => {
                self.read = Some(file.reader.try_clone().map_err(refused("fcntl(F_DUPFD_CLOEXEC)"))?);
                self.writer = Some(RefCell::new(watch));
                Ok(())
            }
        }
    }

    /// Gives the reader a pipe and starts the relay that feeds it.
    fn feed(&mut self, source: Box<dyn Source>) -> Result<(), OpenError> {
        let (write, read, pipe_bytes) = large_pipe().map_err(refused("pipe2"))?;
        self.granted.insert("pipe_bytes".to_owned(), pipe_bytes);
        self.read = Some(read);
        self.relay = Some(Relay::start(source, write).map_err(refused("a thread for the relay"))?);
        Ok(())
    }

    /// Makes a pipe whose size nobody asked for smaller, one part in so many, or of the kernel's own size: many large ones in one
    /// pipeline would spend the memory that this user may have in pipes, and leave tiny ones for everybody else.
    pub(crate) fn shrink(&mut self, part: Option<u64>) {
        const USUAL_BYTES: u64 = 64 << 10;
        let granted = self.granted.get("pipe_bytes").copied().unwrap_or(0);
        let bytes = part.map_or(USUAL_BYTES, |part| granted / part);
        let pipe = self.write.as_ref().filter(|_| bytes < granted && !self.spec.contains("size="));
        // What stands behind a relay is not this end; it says so with an error and stays as it is.
        if let Some(Ok(held)) = pipe.map(|pipe| fcntl_setpipe_size(pipe, bytes as usize)) {
            self.granted.insert("pipe_bytes".to_owned(), held as u64);
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
        let source = KeptStream::new(input, copy).map_err(refused("tee(2), which makes the copy"))?;
        // A terminal's own relay goes on; this one stands behind it.
        self.before = self.relay.take();
        self.feed(Box::new(source))
    }

    /// Counts what flows, where nothing of ours counts it already; to be asked for before the ends are taken.
    ///
    /// # Errors
    /// The relay that counts could not be started.
    pub fn meter(&mut self) -> Result<(), OpenError> {
        if self.file.is_some() || self.relay.is_some() {
            return Ok(());
        }
        let Some(input) = self.read.take() else { return Ok(()) };
        let source = Metered::new(input).map_err(refused("fcntl(F_SETFL)"))?;
        self.feed(Box::new(source))
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

    /// Sizes the system really gave, in bytes.
    pub fn granted(&self) -> &Granted {
        &self.granted
    }

    /// Whether a relay of ours is in the path.
    pub fn has_relay(&self) -> bool {
        self.relay.is_some()
    }

    /// Waits, in sequential order, until the last copy of the writer's end is closed; in parallel order, not at all.
    /// Asks every now and then whether to `stop`.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] where it was told to stop, or what inotify(7) answers.
    pub fn wait_written(&self, stop: &dyn Fn() -> bool) -> io::Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let mut watch = writer.borrow_mut();
        while !watch.all_closed()? {
            if stop() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let time = watch.look_again().map_or(BETWEEN_QUESTIONS, |time| time.min(BETWEEN_QUESTIONS));
            sleep_on(&mut [PollFd::from_borrowed_fd(watch.as_fd(), PollFlags::IN)], Some(time))?;
        }
        Ok(())
    }

    /// Whether the last copy of the writer's end is closed, in sequential order; in parallel order nobody waits for that.
    ///
    /// # Errors
    /// What inotify(7) answers.
    pub fn is_written(&self) -> io::Result<bool> {
        self.writer.as_ref().map_or(Ok(true), |writer| writer.borrow_mut().all_closed())
    }

    /// Whether nothing of ours is left to do: its relays, where there are any, have come to their end.
    pub fn is_over(&self) -> bool {
        self.before.iter().chain(&self.relay).all(Relay::is_over)
    }

    /// Whether a relay cannot go on and waits for its readers to be ended: what they have is not everything.
    pub fn has_failed(&self) -> bool {
        self.before.iter().chain(&self.relay).any(Relay::has_failed)
    }

    /// Closes the link and says what is known of it; to be called when the stages have ended. Does not wait for
    /// programs in the background that still hold an end.
    pub fn finish(mut self) -> LinkReport {
        self.write = None;
        self.read = None;
        let relay = self.relay.is_some();
        let before = self.before.take().map(Relay::finish).unwrap_or_default();
        let mut outcome = self.relay.take().map(Relay::finish).unwrap_or_default();
        outcome.trouble = before.trouble.or(outcome.trouble);
        outcome.cut_short |= before.cut_short;
        let Some(file) = &self.file else {
            return LinkReport {
                bytes: relay.then_some(outcome.bytes),
                relay,
                trouble: outcome.trouble,
                cut_short: outcome.cut_short,
                ..LinkReport::default()
            };
        };
        let looked = file.look().err().map(|error| error.to_string());
        let stored_bytes = file.bytes_max();
        let copied = self.copy.take().map(|copy| file.copy_to(copy));
        let not_kept = copied
            .and_then(Result::err)
            .map(|error| format!("what flowed could not all be kept: {}", model::describe_errno(&error)));
        LinkReport {
            bytes: Some(if relay { outcome.bytes } else { stored_bytes }),
            stored_bytes: Some(stored_bytes),
            path: file.path().map(PathBuf::from),
            relay,
            cut_short: outcome.cut_short,
            trouble: file.trouble(&self.spec).or(outcome.trouble).or(looked).or(not_kept),
        }
    }
}

fn refused(call: &str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::System { call: call.to_owned(), source, remedy: None }
}
