//! Watches a file that a program writes: whether it has changed, and whether the last writer has closed it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use process::spawn_thread;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::kernel::WriterCheck;

/// The first and the longest pause before the next check for writers.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// A file that is watched (inotify(7)), whether it has a name or not.
///
/// A close alone is not the end: `sh -c 'echo a > /dev/stdout; echo b'` opens the file a second time and closes that. So each close is
/// followed by checks for remaining writers: by several, because the kernel reports a close just before it no longer counts the writer.
pub(super) struct FileWatch {
    /// `None` only while it is dropped.
    inotify: Option<OwnedFd>,
    /// False if this user has as many inotify instances as fs.inotify.max_user_instances allows, which may happen with hundreds of stages, or if
    /// events were lost: then there are checks all the time.
    notified: bool,
    writers: WriterCheck,
    close_seen: bool,
    pause: Duration,
}

impl FileWatch {
    /// Watches a file that is open for reading only. No event from now on is missed.
    pub(super) fn new(file: &OwnedFd) -> io::Result<Self> {
        let writers = WriterCheck::new(file.try_clone()?)?;
        let (inotify, notified) = match notifier(file) {
            Ok(inotify) => (inotify, true),
            // A descriptor that is never readable replaces it.
            Err(Errno::MFILE | Errno::NOSPC) => {
                (eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?, false)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { inotify: Some(inotify), notified, writers, close_seen: !notified, pause: PAUSE_MIN })
    }

    /// Whether the last writer has closed the file, which then has all bytes.
    pub(super) fn all_closed(&mut self) -> io::Result<bool> {
        match self.notified.then(|| self.read_events()) {
            Some(Ok(true)) => {
                self.close_seen = true;
                self.pause = PAUSE_MIN;
            }
            // Events may be lost: from now on there are checks all the time.
            Some(Err(_)) => (self.notified, self.close_seen) = (false, true),
            _ => {}
        }
        Ok(self.close_seen && !self.writers.is_written())
    }

    /// The time after which [`FileWatch::all_closed`] must be called again even if nothing has happened.
    pub(super) fn next_check(&mut self) -> Option<Duration> {
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSE_MAX);
        self.close_seen.then_some(pause)
    }

    /// Reads the events since the last call. Returns whether a writer has closed the file.
    fn read_events(&self) -> io::Result<bool> {
        let mut room = [MaybeUninit::uninit(); 1024];
        let mut events = Reader::new(self.as_fd(), &mut room);
        let mut closed = false;
        loop {
            match events.next() {
                // An overflow may have hidden a close.
                Ok(event) => {
                    closed |= event.events().intersects(ReadFlags::CLOSE_WRITE | ReadFlags::QUEUE_OVERFLOW);
                }
                Err(Errno::AGAIN) => return Ok(closed),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn notifier(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    inotify::add_watch(&inotify, path.as_str(), WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE)?;
    Ok(inotify)
}

impl AsFd for FileWatch {
    /// Readable after an event.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_ref().expect("open until it is dropped").as_fd()
    }
}

impl Drop for FileWatch {
    /// Closes it in another thread: the kernel takes 17 ms for that, and 600 ms beside six busy processes (measured). A link whose end takes
    /// longer than the end of the shell is waited for would be missing in the record.
    fn drop(&mut self) {
        let inotify = self.inotify.take();
        // If no thread can be started, it is closed here.
        let _ = spawn_thread("hosepipe-close", move || drop(inotify));
    }
}
