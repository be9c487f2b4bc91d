//! `hosepipe gen`: writes exactly the requested number of payload bytes.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;

use model::PayloadKind;
use payload::{Period, Tile};
use process::ready_within;
use rustix::event::PollFlags;
use rustix::io::Errno;
use serde::Serialize;

use crate::FilterError;
use crate::outlet::{GenMethod, Outlet};
use crate::pipe::{PipeEnd, enlarge, is_pipe};

/// What is to be written.
#[derive(Debug, Clone)]
pub struct GenJob {
    /// Number of bytes; `None`: until the reader ends.
    pub bytes: Option<u64>,
    /// Most bytes in one call.
    pub block_bytes: NonZeroUsize,
    /// What the bytes are.
    pub payload: PayloadKind,
    /// The seed of the random payloads.
    pub seed: u64,
}

/// What was written, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GenReport {
    /// Bytes written.
    pub bytes: u64,
    /// The fastest method that worked.
    pub method: GenMethod,
    /// The capacity of standard output in bytes; `None`: it is not a pipe.
    pub pipe_bytes: Option<u64>,
    /// System calls that wrote bytes.
    pub syscalls: u64,
}

/// Writes the payload to `out`, a descriptor of any kind.
///
/// # Errors
/// A payload that cannot be made, or a system error; see [`FilterError::reader_is_gone`].
pub fn generate(job: &GenJob, out: BorrowedFd<'_>) -> Result<GenReport, FilterError> {
    let pipe_bytes = is_pipe(out, PipeEnd::Out).then(|| enlarge(out));
    let tile = Tile::make(&job.payload, job.seed, Period::Filter)?;
    let block_bytes = job.block_bytes.get();
    let outlet =
        Outlet::choose(out, &tile, block_bytes, pipe_bytes.unwrap_or(0)).map_err(FilterError::Memory)?;
    let report = write_payload(job.bytes, &tile, outlet, out)?;
    Ok(GenReport { pipe_bytes: pipe_bytes.map(|bytes| bytes as u64), ..report })
}

fn write_payload(
    bytes: Option<u64>,
    tile: &Tile,
    mut outlet: Outlet<'_>,
    out: BorrowedFd<'_>,
) -> Result<GenReport, FilterError> {
    let mut report = GenReport { bytes: 0, method: outlet.method(), pipe_bytes: None, syscalls: 0 };
    let mut phase = 0;
    loop {
        // Unlimited: 2^64 bytes take 584 years at 1 GB/s.
        let left = bytes.unwrap_or(u64::MAX) - report.bytes;
        if left == 0 {
            return Ok(report);
        }
        match outlet.hand_over(phase, left) {
            Ok(taken) => {
                phase = tile.advance(phase, taken);
                report.bytes += taken as u64;
                report.syscalls += 1;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                ready_within(&out, PollFlags::OUT, None).map_err(|e| failed(report.bytes, e))?;
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM)
                if outlet.fall_back().map_err(FilterError::Memory)? =>
            {
                report.method = outlet.method();
            }
            Err(error) => return Err(failed(report.bytes, error.into())),
        }
    }
}

fn failed(at: u64, answer: io::Error) -> FilterError {
    FilterError::Write { at, answer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use payload::Comparer;
    use std::os::fd::AsFd;

    #[test]
    fn a_pipe_of_one_page_that_was_not_enlarged_is_enough() {
        // A test of `model` says so.
        if model::vmsplice_refusal().is_some() {
            return;
        }
        for (payload, method) in
            [(PayloadKind::Sequence, GenMethod::Tee), (PayloadKind::Random, GenMethod::Vmsplice)]
        {
            let (reader, writer) = rustix::pipe::pipe().expect("pipe");
            let pipe_bytes =
                rustix::pipe::fcntl_setpipe_size(&writer, 4096).expect("one page is always granted");
            let tile = Tile::make(&payload, 2, Period::Filter).expect("named");
            let mut comparer = Comparer::new(Tile::make(&payload, 2, Period::Filter).expect("named"));
            let writing = std::thread::spawn(move || {
                let outlet = Outlet::choose(writer.as_fd(), &tile, 65536, pipe_bytes).expect("memory");
                write_payload(Some(1_000_001), &tile, outlet, writer.as_fd())
            });
            let mut room = vec![0; 10_000];
            while let Ok(len @ 1..) = rustix::io::read(&reader, &mut room[..]) {
                assert_eq!(comparer.check(&room[..len]), Ok(()));
            }
            let report = writing.join().expect("no panic").expect("a reader until the end");
            assert_eq!((report.bytes, report.method), (1_000_001, method));
        }
    }
}
