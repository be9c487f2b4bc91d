//! A thread that feeds a program's standard input, a true pipe, from a link whose own reading end is none; or such a link from a
//! program's standard output, a true pipe too.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::describe_errno;
use process::sleep_on;
use process::spawn_thread;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::wait::{Stop, has_now};

/// How long a relay goes on after it was told to stop, if its reader is still there: a program in the background
/// may be reading what the pipeline's last stage left.
const GRACE: Duration = Duration::from_millis(500);

/// How long a relay that cannot go on waits for its reader to be ended, which may be another user's.
const PATIENCE: Duration = Duration::from_secs(1);

/// A full pipe is writable again as soon as its reader has taken one page of it, and to be woken for each page costs
/// more than the page. A large pipe is left alone for so long instead, in which no reader empties it.
const DRAIN: Duration = Duration::from_micros(100);
const LARGE_PIPE_BYTES: usize = 512 << 10;

/// The most one call moves, in bytes: no pipe of a link holds more.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// What is brought into our own memory at once where lines are counted, in bytes: it is still in a cache when they are.
pub(super) const COUNTED_BYTES: usize = 128 << 10;

/// What moves bytes from somewhere into a pipe. The pipe is in non-blocking mode, and no call of these waits.
pub(super) trait Source: Send {
    /// Moves what is there.
    ///
    /// # Errors
    /// EPIPE: the reader has gone. Everything else ends the relay.
    fn pass(&mut self, pipe: &OwnedFd) -> io::Result<Pass>;

    /// The descriptor that becomes readable when there is more.
    fn wakes(&self) -> BorrowedFd<'_>;

    /// Passes on to the writer that its reader has gone; returns when the writer has gone too, or soon after `stop`.
    fn hang_up(self: Box<Self>, stop: &Stop) -> io::Result<()>;

    /// What went wrong beside the way of the bytes to their reader.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// How far a source came.
pub(super) enum Pass {
    /// It moved this many bytes.
    Moved(u64),
    /// The pipe takes no more for now.
    Full,
    /// There is nothing until the source's descriptor is readable, for so long at most.
    Idle(Option<Duration>),
    /// There is nothing for so long; the source's descriptor has nothing to say.
    Pause(Duration),
    /// There is nothing left, and never will be.
    End,
}

/// What a relay did.
#[derive(Debug, Default)]
pub(super) struct Relayed {
    /// What went wrong.
    pub(super) trouble: Option<String>,
    /// It stopped before the end, for another reason than that its reader left: the reader saw an end that was none.
    pub(super) cut_short: bool,
    /// Its reader left, before the end or together with it.
    pub(super) reader_left: bool,
    /// Whether it left before the writer's end: what the writer wrote after that was not counted.
    pub(super) is_partial: bool,
}

/// A running relay; dropping it stops it and waits for its end.
pub(super) struct Relay {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Relayed>>,
}

/// What a relay's thread shares with its owner.
struct Shared {
    stop: Stop,
    failed: AtomicBool,
    /// Bytes that went into the reader's pipe.
    bytes: AtomicU64,
}

impl Relay {
    /// Starts a relay from `source` into `pipe`, whose reading end belongs to the reader alone.
    pub(super) fn start(source: Box<dyn Source>, pipe: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        let (failed, bytes) = Default::default();
        let shared = Arc::new(Shared { stop: Stop::new()?, failed, bytes });
        let of_thread = Arc::clone(&shared);
        let thread = spawn_thread("hosepipe-relay", move || run(source, pipe, &of_thread))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Whether it cannot go on and waits, for a while, for its reader to be ended, who would take an end for the end of everything.
    pub(super) fn has_failed(&self) -> bool {
        self.shared.failed.load(SeqCst)
    }

    /// Bytes that went into the reader's pipe so far.
    pub(super) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Relaxed)
    }

    /// Whether it has come to its end.
    pub(super) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the relay and says what it did. Takes no longer than [`GRACE`] and a signal's way.
    pub(super) fn finish(&mut self) -> Relayed {
        self.shared.stop.raise();
        let Some(thread) = self.thread.take() else { return Relayed::default() };
        thread.join().unwrap_or_else(|_| Relayed {
            trouble: Some("the relay of the link failed".to_owned()),
            cut_short: true,
            reader_left: false,
            is_partial: false,
        })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.finish();
    }
}

fn run(mut source: Box<dyn Source>, pipe: OwnedFd, Shared { stop, failed, bytes }: &Shared) -> Relayed {
    let mut outcome = Relayed::default();
    let carried = carry(source.as_mut(), &pipe, stop, bytes);
    outcome.trouble = source.trouble();
    let Err(error) = carried else {
        outcome.reader_left = has_now(&pipe, PollFlags::empty()).unwrap_or(false);
        return outcome;
    };
    let reader_left = Errno::from_io_error(&error) == Some(Errno::PIPE);
    (outcome.reader_left, outcome.is_partial) = (reader_left, reader_left);
    outcome.cut_short = !reader_left;
    if !reader_left {
        failed.store(true, SeqCst);
        let deadline = Instant::now() + PATIENCE;
        let left = || deadline.saturating_duration_since(Instant::now());
        while !stop.raised()
            && !left().is_zero()
            && sleep(None, (&pipe, PollFlags::empty()), stop, Some(left())).is_ok()
        {}
        failed.store(false, SeqCst);
    }
    // Whatever ended it, the writer has no reader from now on.
    drop(pipe);
    let hung_up = source.hang_up(stop).err();
    let trouble = if reader_left { hung_up } else { Some(error) };
    outcome.trouble = outcome.trouble.or(trouble.map(|error| match error.raw_os_error() {
        Some(_) => format!(
            "the relay of the link stopped, and what it carried was cut short: {}",
            describe_errno(&error)
        ),
        None => error.to_string(),
    }));
    outcome
}

/// Moves everything there is. The error is EPIPE where the reader has gone.
fn carry(source: &mut dyn Source, pipe: &OwnedFd, stop: &Stop, bytes: &AtomicU64) -> io::Result<()> {
    let mut deadline = None;
    let large = is_large(pipe);
    let mut may_drain = large;
    let wait = |source: Option<BorrowedFd<'_>>, interest, time| sleep(source, (pipe, interest), stop, time);
    loop {
        if stop.raised() && Instant::now() >= *deadline.get_or_insert_with(|| Instant::now() + GRACE) {
            return Err(io::Error::other(
                "the relay of the link stopped early: a program in the background still held an end of it",
            ));
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match source.pass(pipe)? {
            Pass::Moved(moved) => {
                bytes.fetch_add(moved, Relaxed);
                may_drain = large;
            }
            // Once; a reader that has taken nothing meanwhile is waited for.
            Pass::Full if std::mem::take(&mut may_drain) => wait(None, PollFlags::empty(), Some(DRAIN))?,
            Pass::Full => wait(None, PollFlags::OUT, left)?,
            // Of a pipe that is watched for nothing, poll(2) still tells that its reader has gone.
            Pass::Idle(time) => {
                let time = time.into_iter().chain(left).min();
                wait(Some(source.wakes()), PollFlags::empty(), time)?;
            }
            Pass::Pause(time) => {
                wait(None, PollFlags::empty(), [time].into_iter().chain(left).min())?;
            }
            Pass::End => return Ok(()),
        }
    }
}

/// Whether a pipe, once full, lasts for longer than [`DRAIN`].
fn is_large(pipe: &OwnedFd) -> bool {
    rustix::pipe::fcntl_getpipe_size(pipe).is_ok_and(|bytes| bytes >= LARGE_PIPE_BYTES)
}

/// Sleeps until something happens; EPIPE where what happened is that the reader went.
fn sleep(
    source: Option<BorrowedFd<'_>>,
    (pipe, interest): (&OwnedFd, PollFlags),
    stop: &Stop,
    at_most: Option<Duration>,
) -> io::Result<()> {
    let mut fds = vec![PollFd::new(pipe, interest)];
    fds.extend(source.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    // Once it was raised it would end every sleep at once.
    if !stop.raised() {
        fds.push(PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN));
    }
    sleep_on(&mut fds, at_most)?;
    // A pipe without readers has an error, a socket or a terminal without the other side is hung up.
    if fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
        Err(Errno::PIPE.into())
    } else {
        Ok(())
    }
}
