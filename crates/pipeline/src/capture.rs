//! The output of a pipeline, counted and hashed while it comes.

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

/// Most bytes that one call reads.
const ROOM_BYTES: usize = 256 << 10;
/// How often is checked whether the run has ended: a daemon may hold the pipe open.
const PATIENCE: Duration = Duration::from_millis(20);

/// A thread that reads the output.
pub(crate) struct Capture {
    over: Arc<AtomicBool>,
    reader: JoinHandle<Output>,
}

/// The output of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// How many bytes.
    pub bytes: u64,
    /// XXH3-64 over them, in hexadecimal.
    pub hash: String,
}

impl Capture {
    /// Begins to read. Returns the end that a pipeline writes to.
    pub(crate) fn start() -> io::Result<(OwnedFd, Self)> {
        let (writing, reading, _) = large_pipe()?;
        fcntl_setfl(&reading, OFlags::NONBLOCK)?;
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let reader = spawn_thread("capture", move || read_all(&reading, &seen))?;
        Ok((writing, Self { over, reader }))
    }

    /// All output, once the pipeline has ended and its end is closed here.
    pub(crate) fn finish(self) -> Output {
        self.over.store(true, Ordering::Release);
        self.reader.join().unwrap_or_else(|_| Output { bytes: 0, hash: String::new() })
    }
}

/// Reads to the end; after the pipeline has ended, only what the pipe still holds: a daemon may keep it open.
fn read_all(reading: &OwnedFd, over: &AtomicBool) -> Output {
    let mut room = Block::new(ROOM_BYTES);
    let mut checker = Checker::xxh3();
    let mut bytes = 0;
    loop {
        // Read before the pipe, so that all bytes that were written before the end are found.
        let ended = over.load(Ordering::Acquire);
        match rustix::io::read(reading, &mut *room) {
            Ok(0) => break,
            Ok(len) => {
                checker.update(&room[..len]);
                bytes += len as u64;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if ended => break,
            Err(Errno::AGAIN) => {
                let _ = ready_within(reading, PollFlags::IN, Some(PATIENCE));
            }
            Err(_) => break,
        }
    }
    Output { bytes, hash: checker.text() }
}
