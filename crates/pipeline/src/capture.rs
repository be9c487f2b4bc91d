//! Counts and hashes the output of a pipeline while it arrives.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use mechanism::large_pipe;
use payload::{Block, Checker};
use process::ready_within;
use process::spawn_thread;
use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;

/// Largest number of bytes that one call reads.
const ROOM_BYTES: usize = 256 << 10;
/// Time between two checks whether the run has ended: a daemon may keep the pipe open.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A thread that reads the output.
pub(crate) struct Capture {
    has_ended: Arc<AtomicBool>,
    reader: JoinHandle<Output>,
}

/// The output of a pipeline.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Output {
    /// Number of bytes.
    pub bytes: u64,
    /// XXH3-64 over them, in hexadecimal.
    pub hash: String,
}

impl Capture {
    /// Begins to read. Returns the end to which the pipeline writes.
    pub(crate) fn start() -> io::Result<(OwnedFd, Self)> {
        let (writing, reading, _) = large_pipe()?;
        fcntl_setfl(&reading, OFlags::NONBLOCK)?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let seen = has_ended.clone();
        let reader = spawn_thread("capture", move || read_all(&reading, &seen))?;
        Ok((writing, Self { has_ended, reader }))
    }

    /// Returns the output. Call it when the pipeline has ended and this process has closed the writing end.
    pub(crate) fn finish(self) -> Output {
        self.has_ended.store(true, Ordering::Release);
        self.reader.join().unwrap_or_default()
    }
}

/// Reads until the end of the stream. After the pipeline has ended, only the bytes in the pipe are read: a daemon may keep it open.
fn read_all(reading: &OwnedFd, has_ended: &AtomicBool) -> Output {
    let mut room = Block::new(ROOM_BYTES);
    let mut checker = Checker::xxh3();
    let mut bytes = 0;
    loop {
        // This is checked before the pipe is read, so that all bytes that were written before the end are read.
        let ended = has_ended.load(Ordering::Acquire);
        match rustix::io::read(reading, &mut *room) {
            Ok(0) => break,
            Ok(len) => {
                checker.update(&room[..len]);
                bytes += len as u64;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if ended => break,
            Err(Errno::AGAIN) => {
                let _ = ready_within(reading, PollFlags::IN, Some(END_CHECK_INTERVAL));
            }
            Err(_) => break,
        }
    }
    Output { bytes, hash: checker.text() }
}
