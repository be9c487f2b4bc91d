//! `hosepipe sink`: reads to the end, and checks every byte if requested.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use model::PayloadKind;
use payload::{Block, Detector, Mismatch};
use process::ready_within;
use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{SpliceFlags, splice};
use serde::Serialize;

use crate::FilterError;
use crate::pipe::{PipeEnd, enlarge, is_open_for, is_pipe};

/// Bytes read in one call: so large that the cost of calls is small, and small enough for a core's own cache
/// (64 KiB, 128 KiB, 512 KiB and 1 MiB were slower when measured).
const READ_BYTES: usize = 256 << 10;

/// Bytes spliced in one call: more than any pipe holds.
const SPLICE_BYTES: usize = 1 << 30;

/// What `sink` has to check.
#[derive(Debug, Clone, Default)]
pub struct SinkJob {
    /// How every byte is checked; `None`: no byte is checked.
    pub verify: Option<Verify>,
    /// The expected number of bytes; `None`: any number.
    pub bytes: Option<u64>,
}

/// The expected bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verify {
    /// The payload; `None`: it is recognised among the named ones.
    pub payload: Option<PayloadKind>,
    /// The seed of the random payloads.
    pub seed: u64,
}

/// The system call with which `sink` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SinkMethod {
    /// splice(2) to /dev/null: not copied.
    Splice,
    /// read(2): copied.
    Read,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SinkReport {
    /// Bytes read, including the block with a mismatch.
    pub bytes: u64,
    /// The expected number of bytes, if one was given.
    pub expected_bytes: Option<u64>,
    /// Bytes that were in the pipe when the clock started: part of `bytes`, but not of the throughput.
    pub waiting_bytes: u64,
    /// Nanoseconds from the first readable byte to the end or the mismatch.
    pub elapsed_ns: u64,
    /// Throughput of the bytes that came after the clock started; `None` if none did.
    pub throughput_bytes_per_s: Option<f64>,
    /// The payload with the longest agreement from the first byte on; `None` if nothing was checked.
    pub payload: Option<PayloadKind>,
    /// Whether every byte was checked and is right, and their number is the expected one.
    pub verified: bool,
    /// The first wrong byte. Nothing after it was checked.
    pub mismatch: Option<Mismatch>,
    /// The system call that was used.
    pub method: SinkMethod,
    /// The capacity of standard input in bytes; `None`: it is not a pipe.
    pub pipe_bytes: Option<u64>,
    /// Calls that read bytes or the end of the stream.
    pub syscalls: u64,
}

impl SinkReport {
    /// Whether the number of bytes is the expected one.
    pub fn is_complete(&self) -> bool {
        self.expected_bytes.is_none_or(|expected| expected == self.bytes)
    }
}

/// Reads `input` to its end. Stops at the first wrong byte or the first extra byte; then the writer gets SIGPIPE.
///
/// # Errors
/// A payload that cannot be made, or a system error. A wrong byte is not an error: the report has it.
pub fn sink(job: &SinkJob, input: BorrowedFd<'_>) -> Result<SinkReport, FilterError> {
    let piped = is_pipe(input, PipeEnd::In);
    let pipe_bytes = piped.then(|| enlarge(input) as u64);
    let inlet = match &job.verify {
        Some(Verify { payload, seed }) => {
            Inlet::Verify(Block::new(READ_BYTES), Box::new(Detector::new(payload.as_ref(), *seed)?))
        }
        None => piped.then(dev_null).flatten().map_or_else(Inlet::read, Inlet::Splice),
    };
    let most = job.bytes.unwrap_or(u64::MAX);
    let mut reader = Reader { input, inlet, most, bytes: 0, syscalls: 0 };
    // The clock starts when there is something to read. (A write end is never ready: the first read returns its error.)
    if is_open_for(input, PipeEnd::In) {
        ready_within(&input, PollFlags::IN, None).map_err(|e| reader.failed(e))?;
    }
    let started = Instant::now();
    let waiting_bytes = waiting(input);
    let mismatch = reader.read_to_end()?;
    let elapsed_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let timed_bytes = reader.bytes.saturating_sub(waiting_bytes);
    let timed = timed_bytes > 0 && elapsed_ns > 0;
    let complete = job.bytes.is_none_or(|expected| expected == reader.bytes);
    Ok(SinkReport {
        bytes: reader.bytes,
        expected_bytes: job.bytes,
        waiting_bytes,
        elapsed_ns,
        throughput_bytes_per_s: timed.then(|| timed_bytes as f64 * 1e9 / elapsed_ns as f64),
        payload: reader.recognised(),
        verified: job.verify.is_some() && mismatch.is_none() && complete,
        mismatch,
        method: if matches!(reader.inlet, Inlet::Splice(_)) { SinkMethod::Splice } else { SinkMethod::Read },
        pipe_bytes,
        syscalls: reader.syscalls,
    })
}

/// Bytes in a pipe or socket before the clock starts; 0 for a file.
fn waiting(input: BorrowedFd<'_>) -> u64 {
    let is_file =
        fstat(input).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    if is_file { 0 } else { ioctl_fionread(input).unwrap_or(0) }
}

/// The target of splice(2); `None` if it is missing.
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

/// Reads the input and drops what it has read.
struct Reader<'a> {
    input: BorrowedFd<'a>,
    inlet: Inlet,
    /// Reading stops when more bytes than this were read.
    most: u64,
    bytes: u64,
    syscalls: u64,
}

impl Reader<'_> {
    fn read_to_end(&mut self) -> Result<Option<Mismatch>, FilterError> {
        loop {
            self.syscalls += 1;
            let taken = match &mut self.inlet {
                Inlet::Splice(null) => {
                    splice(self.input, None, null, None, SPLICE_BYTES, SpliceFlags::empty())
                }
                Inlet::Read(buffer) | Inlet::Verify(buffer, _) => rustix::io::read(self.input, &mut **buffer),
            };
            let len = match taken {
                Ok(0) => return Ok(None),
                Ok(len) => len,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    ready_within(&self.input, PollFlags::IN, None).map_err(|e| self.failed(e))?;
                    continue;
                }
                Err(Errno::INVAL | Errno::NOSYS) if matches!(self.inlet, Inlet::Splice(_)) => {
                    self.inlet = Inlet::read();
                    continue;
                }
                Err(error) => return Err(self.failed(error.into())),
            };
            self.bytes += len as u64;
            if let Inlet::Verify(buffer, detector) = &mut self.inlet
                && let Err(mismatch) = detector.check(&buffer[..len])
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

    fn failed(&self, answer: io::Error) -> FilterError {
        FilterError::Read { at: self.bytes, answer }
    }
}
