//! A thread that moves bytes between a pipe, which a program has, and a link that is no pipe: from the link to a reader, or from a writer to the
//! link.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use model::describe_errno;
use process::sleep_on;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::wait::{Bell, RingingThread, Stop, is_ready};

/// How long a relay continues after it was asked to stop, if its reader still exists: a program in the background may read what the pipeline's
/// last stage left.
const GRACE: Duration = Duration::from_millis(500);

/// How long a relay that has failed waits for its reader to be killed. (A reader of another user cannot be killed.)
const READER_WAIT: Duration = Duration::from_secs(1);

/// A full pipe is writable again as soon as its reader has taken one page, and to be woken for each page costs more than to move it. So after a
/// large pipe was full, the relay pauses for this time, in which no reader empties it.
const DRAIN: Duration = Duration::from_micros(100);
const LARGE_PIPE_BYTES: usize = 512 << 10;

/// Most bytes that one call moves: no pipe of a link holds more.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// Most bytes that are read at once where lines are counted, so that they are still in a CPU cache then.
pub(super) const COUNTED_BYTES: usize = 128 << 10;

/// Moves bytes into a pipe, which is in non-blocking mode. None of these functions waits, except `hang_up`.
pub(super) trait Source: Send {
    /// Moves the bytes that are available.
    ///
    /// # Errors
    /// EPIPE: there is no reader any more. All errors end the relay.
    fn pass(&mut self, pipe: &OwnedFd) -> io::Result<Pass>;

    /// The descriptor that becomes readable when there are more bytes; `None` after the last ones.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Ends a writer that a closed reading end does not end; returns then, or soon after `stop`.
    fn hang_up(self: Box<Self>, _stop: &Stop) -> io::Result<()> {
        Ok(())
    }

    /// Why not all bytes that were to be kept are in their file.
    fn not_kept(&self) -> Option<String> {
        None
    }
}

/// The result of [`Source::pass`].
pub(super) enum Pass {
    /// It moved this many bytes.
    Moved(u64),
    /// It can move none until then.
    Blocked(On),
    /// There are no bytes for this time.
    Pause(Duration),
    /// The end of the stream.
    End,
}

/// What a source waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    /// More bytes: its descriptor is readable.
    Bytes,
    /// Room in the pipe.
    Room,
    /// One of the two.
    Either,
}

/// What a relay did.
#[derive(Debug, Default)]
pub(super) struct Relayed {
    /// What went wrong.
    pub(super) trouble: Option<String>,
    /// It stopped before the end although its reader did not leave: the reader saw the end of a stream that was not complete.
    pub(super) cut_short: bool,
    /// Not all bytes that were to be kept are in their file.
    pub(super) not_kept: bool,
    /// Its reader has ended, before the end of the stream or together with it.
    pub(super) reader_left: bool,
    /// The reader has ended before the stream: later bytes of the writer were not counted.
    pub(super) is_partial: bool,
}

/// A running relay; dropping it stops it and waits for its end.
pub(super) struct Relay {
    shared: Arc<Shared>,
    thread: Option<RingingThread<Relayed>>,
}

/// What a relay's thread shares with its owner.
struct Shared {
    stop: Stop,
    /// Rung when it has failed.
    bell: Bell,
    failed: AtomicBool,
    /// It could not go on: its reader has not got all bytes.
    cut_short: AtomicBool,
    /// Bytes that went into the reader's pipe.
    bytes: AtomicU64,
}

impl Relay {
    /// Starts a relay from `source` into `pipe`, whose reading end belongs to the reader alone. It rings when it has failed, and when it has ended.
    pub(super) fn start(source: Box<dyn Source>, pipe: OwnedFd, bell: Bell) -> io::Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        let (failed, cut_short, bytes) = Default::default();
        let shared = Arc::new(Shared { stop: Stop::new()?, bell: bell.clone(), failed, cut_short, bytes });
        let of_thread = Arc::clone(&shared);
        let thread = RingingThread::start("hosepipe-relay", bell, move || run(source, pipe, &of_thread))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Whether it has failed and waits for its reader to be killed: the reader would take the end of the pipe for the end of the data.
    pub(super) fn has_failed(&self) -> bool {
        self.shared.failed.load(SeqCst)
    }

    /// Whether it could not go on. This is known before the relay has ended.
    pub(super) fn is_cut_short(&self) -> bool {
        self.shared.cut_short.load(SeqCst)
    }

    /// Bytes that went into the reader's pipe so far.
    pub(super) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Relaxed)
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(RingingThread::is_over)
    }

    /// Stops the relay, and returns what it did. Takes at most [`GRACE`], and the time in which a writer is ended ([`Source::hang_up`]).
    pub(super) fn finish(&mut self) -> Relayed {
        self.shared.stop.raise();
        let Some(thread) = self.thread.take() else { return Relayed::default() };
        thread.join().unwrap_or_else(|_| Relayed {
            trouble: Some("the relay of the link failed".to_owned()),
            cut_short: true,
            ..Relayed::default()
        })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.finish();
    }
}

fn run(mut source: Box<dyn Source>, pipe: OwnedFd, shared: &Shared) -> Relayed {
    let Shared { stop, failed, bell, .. } = shared;
    let mut outcome = Relayed::default();
    let carried = carry(source.as_mut(), &pipe, stop, &shared.bytes);
    outcome.trouble = source.not_kept();
    outcome.not_kept = outcome.trouble.is_some();
    let Err(error) = carried else {
        outcome.reader_left = is_ready(&pipe, PollFlags::empty()).unwrap_or(false);
        return outcome;
    };
    let reader_left = Errno::from_io_error(&error) == Some(Errno::PIPE);
    (outcome.reader_left, outcome.is_partial) = (reader_left, reader_left);
    outcome.cut_short = !reader_left;
    if !reader_left {
        shared.cut_short.store(true, SeqCst);
        failed.store(true, SeqCst);
        bell.ring();
        let deadline = Instant::now() + READER_WAIT;
        let left = || deadline.saturating_duration_since(Instant::now());
        while !stop.raised()
            && !left().is_zero()
            && sleep(None, (&pipe, PollFlags::empty()), stop, Some(left())).is_ok()
        {}
        failed.store(false, SeqCst);
    }
    // From now on the writer has no reader.
    drop(pipe);
    let hung_up = source.hang_up(stop).err();
    let trouble = if reader_left { hung_up } else { Some(error) };
    outcome.trouble = outcome.trouble.or(trouble.map(|error| match error.raw_os_error() {
        Some(_) => {
            format!("the relay of the link stopped, and its data was cut short: {}", describe_errno(&error))
        }
        None => error.to_string(),
    }));
    outcome
}

/// Moves all bytes. The error is EPIPE if there is no reader any more.
fn carry(source: &mut dyn Source, pipe: &OwnedFd, stop: &Stop, bytes: &AtomicU64) -> io::Result<()> {
    let mut deadline = None;
    let large = is_large(pipe);
    let mut may_drain = large;
    let wait = |source: Option<BorrowedFd<'_>>, interest, time| sleep(source, (pipe, interest), stop, time);
    // poll(2) without events still reports a pipe without a reader.
    let nothing = PollFlags::empty();
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
                may_drain |= large && moved > 0;
            }
            Pass::Blocked(On::Bytes) => wait(source.poll_fd(), nothing, left)?,
            // Only once: if the reader has taken nothing meanwhile, the relay waits for it.
            Pass::Blocked(_) if std::mem::take(&mut may_drain) => wait(None, nothing, Some(DRAIN))?,
            Pass::Blocked(On::Room) => wait(None, PollFlags::OUT, left)?,
            Pass::Blocked(On::Either) => wait(source.poll_fd(), PollFlags::OUT, left)?,
            Pass::Pause(time) => wait(None, nothing, [time].into_iter().chain(left).min())?,
            Pass::End => return Ok(()),
        }
    }
}

/// Whether no reader empties this pipe within [`DRAIN`].
fn is_large(pipe: &OwnedFd) -> bool {
    rustix::pipe::fcntl_getpipe_size(pipe).is_ok_and(|bytes| bytes >= LARGE_PIPE_BYTES)
}

/// Sleeps until an event; EPIPE if there is no reader any more.
fn sleep(
    source: Option<BorrowedFd<'_>>,
    (pipe, interest): (&OwnedFd, PollFlags),
    stop: &Stop,
    at_most: Option<Duration>,
) -> io::Result<()> {
    let mut fds = vec![PollFd::new(pipe, interest)];
    fds.extend(source.into_iter().chain(stop.fd()).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    sleep_on(&mut fds, at_most)?;
    // A pipe without readers has POLLERR; a socket or a terminal without its other end has POLLHUP.
    if fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
        Err(Errno::PIPE.into())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    /// A source that cannot be read, and whose writer goes on until it is stopped.
    struct Unreadable(OwnedFd);

    impl Source for Unreadable {
        fn pass(&mut self, _: &OwnedFd) -> io::Result<Pass> {
            Err(Errno::IO.into())
        }

        fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
            Some(self.0.as_fd())
        }

        fn hang_up(self: Box<Self>, stop: &Stop) -> io::Result<()> {
            while !stop.raised() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }
    }

    /// Expected: what a relay could not carry to its end is known while the relay still ends its writer.
    /// Happened: the shell had ended by then, and the run had status 0 with part of the output.
    #[test]
    fn what_was_cut_short_is_known_before_the_end_of_the_relay() {
        let (reader, pipe) = rustix::pipe::pipe().expect("a pipe");
        let unreadable = Unreadable(reader.try_clone().expect("a copy"));
        let mut relay = Relay::start(Box::new(unreadable), pipe, Bell::default()).expect("a relay");
        // Nothing kills this reader within READER_WAIT, so it sees the end of the pipe.
        assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0));
        assert!(relay.is_cut_short() && !relay.has_failed() && !relay.is_over());
        assert!(relay.finish().cut_short);
    }
}
