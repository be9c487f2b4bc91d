//! `hosepipe sink`: reads to the end, and on request checks every byte.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use model::PayloadKind;
use payload::{Block, Detector, Mismatch};
use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{SpliceFlags, splice};
use serde::Serialize;

use crate::FilterError;
use crate::pipe::{PipeEnd, enlarge, is_open_for, is_pipe, wait_for};

/// Bytes read in one call: large enough that calls do not show, small enough for a core's own cache
/// (64 KiB, 128 KiB, 512 KiB and 1 MiB were slower when it was measured).
const READ_BYTES: usize = 256 << 10;

/// Bytes spliced away in one call: more than any pipe holds.
const SPLICE_BYTES: usize = 1 << 30;

/// What `sink` has to check.
#[derive(Debug, Clone, Default)]
pub struct SinkJob {
    /// How every byte is checked; `None`: nothing is looked at.
    pub verify: Option<Verify>,
    /// The exact number of bytes that must come; `None`: any number.
    pub bytes: Option<u64>,
}

/// What the bytes should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verify {
    /// The payload; `None`: it is recognised among the named ones.
    pub payload: Option<PayloadKind>,
    /// The seed of the random payloads.
    pub seed: u64,
}

/// How `sink` takes its bytes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SinkRoad {
    /// splice(2) to /dev/null: dropped by reference, never looked at.
    Splice,
    /// read(2): copied.
    Read,
}

/// What came in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SinkReport {
    /// Bytes read, a mismatching block included.
    pub bytes: u64,
    /// The number of bytes that had to come; `None` where none was given.
    pub expected_bytes: Option<u64>,
    /// Bytes that were already in the pipe when the clock started: part of `bytes`, but not of the throughput.
    pub waiting_bytes: u64,
    /// From the moment the first byte could be read to the end (or the mismatch), in nanoseconds.
    pub elapsed_ns: u64,
    /// Throughput of the bytes that came after the clock started; `None` where none did.
    pub throughput_bytes_per_s: Option<f64>,
    /// The payload the bytes are, as far as they agree with one; `None` where nothing was checked.
    pub payload: Option<PayloadKind>,
    /// Whether every byte was checked and right, and as many came as had to.
    pub verified: bool,
    /// The first wrong byte. The stream was left there: what follows it was not read.
    pub mismatch: Option<Mismatch>,
    /// The road the bytes took.
    pub road: SinkRoad,
    /// What standard input holds as a pipe, in bytes; `None`: it is none.
    pub pipe_bytes: Option<u64>,
    /// Calls that took bytes in, or found the end.
    pub syscalls: u64,
}

impl SinkReport {
    /// Whether as many bytes came as had to.
    pub fn is_complete(&self) -> bool {
        self.expected_bytes.is_none_or(|expected| expected == self.bytes)
    }
}

/// Reads `input` to its end. At the first wrong byte, or the first too many, it stops, so that the writer stops too
/// (SIGPIPE).
///
/// # Errors
/// A payload that cannot be made, or what the system answered. A wrong byte is no error but a report.
pub fn sink(job: &SinkJob, input: BorrowedFd<'_>) -> Result<SinkReport, FilterError> {
    let piped = is_pipe(input, PipeEnd::In);
    let pipe_bytes = piped.then(|| enlarge(input) as u64);
    let inlet = match &job.verify {
        Some(verify) => Inlet::Verify(Block::new(READ_BYTES), Box::new(detector(verify)?)),
        None => piped.then(dev_null).flatten().map_or_else(Inlet::read, Inlet::Splice),
    };
    let most = job.bytes.unwrap_or(u64::MAX);
    let mut drain = Discard { input, inlet, most, bytes: 0, syscalls: 0 };
    // The clock starts when there is something to read, not when this program happened to start.
    // (A write end would never be ready; the first read says what is wrong with it.)
    if is_open_for(input, PipeEnd::In) {
        wait_for(input, PollFlags::IN).map_err(|e| drain.failed(e))?;
    }
    let started = Instant::now();
    let waiting_bytes = waiting(input);
    let mismatch = drain.run_dry()?;
    let elapsed_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let timed_bytes = drain.bytes.saturating_sub(waiting_bytes);
    let timed = timed_bytes > 0 && elapsed_ns > 0;
    let complete = job.bytes.is_none_or(|expected| expected == drain.bytes);
    Ok(SinkReport {
        bytes: drain.bytes,
        expected_bytes: job.bytes,
        waiting_bytes,
        elapsed_ns,
        throughput_bytes_per_s: timed.then(|| timed_bytes as f64 * 1e9 / elapsed_ns as f64),
        payload: drain.recognised(),
        verified: job.verify.is_some() && mismatch.is_none() && complete,
        mismatch,
        road: if matches!(drain.inlet, Inlet::Splice(_)) { SinkRoad::Splice } else { SinkRoad::Read },
        pipe_bytes,
        syscalls: drain.syscalls,
    })
}

fn detector(verify: &Verify) -> Result<Detector, FilterError> {
    Ok(match &verify.payload {
        Some(kind) => Detector::only(kind, verify.seed)?,
        None => Detector::new(verify.seed)?,
    })
}

/// Bytes in a pipe or socket before the clock started: they cost no waiting. 0 for a file, which has no writer.
fn waiting(input: BorrowedFd<'_>) -> u64 {
    let is_file =
        fstat(input).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    if is_file { 0 } else { ioctl_fionread(input).unwrap_or(0) }
}

/// The device into which splice(2) drops bytes that are not looked at; `None` where it is missing.
fn dev_null() -> Option<OwnedFd> {
    rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// How bytes are read, with the descriptor or buffer for it.
enum Inlet {
    Splice(OwnedFd),
    Read(Block),
    Verify(Block, Box<Detector>),
}

impl Inlet {
    fn read() -> Self {
        Self::Read(Block::new(READ_BYTES))
    }
}

struct Discard<'a> {
    input: BorrowedFd<'a>,
    inlet: Inlet,
    /// Nothing is read beyond this many bytes.
    most: u64,
    bytes: u64,
    syscalls: u64,
}

impl Discard<'_> {
    fn run_dry(&mut self) -> Result<Option<Mismatch>, FilterError> {
        loop {
            self.syscalls += 1;
            let taken = match &mut self.inlet {
                Inlet::Splice(null) => {
                    splice(self.input, None, null, None, SPLICE_BYTES, SpliceFlags::empty())
                }
                Inlet::Read(room) | Inlet::Verify(room, _) => rustix::io::read(self.input, &mut **room),
            };
            let len = match taken {
                Ok(0) => return Ok(None),
                Ok(len) => len,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    wait_for(self.input, PollFlags::IN).map_err(|e| self.failed(e))?;
                    continue;
                }
                Err(Errno::INVAL | Errno::NOSYS) if matches!(self.inlet, Inlet::Splice(_)) => {
                    self.inlet = Inlet::read();
                    continue;
                }
                Err(error) => return Err(self.failed(error)),
            };
            self.bytes += len as u64;
            if let Inlet::Verify(room, detector) = &mut self.inlet
                && let Err(mismatch) = detector.check(&room[..len])
            {
                return Ok(Some(mismatch));
            }
            if self.bytes > self.most {
                return Ok(None);
            }
        }
    }

    fn recognised(&self) -> Option<PayloadKind> {
        match &self.inlet {
            Inlet::Verify(_, detector) if self.bytes > 0 => Some(detector.leading().clone()),
            _ => None,
        }
    }

    fn failed(&self, error: Errno) -> FilterError {
        FilterError::Read { at: self.bytes, answer: io::Error::from(error) }
    }
}
