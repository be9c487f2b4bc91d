//! `hosepipe gen`: writes a payload, exactly as many bytes as asked.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;

use model::PayloadKind;
use payload::{Period, Tile};
use rustix::event::PollFlags;
use rustix::io::Errno;
use serde::Serialize;

use crate::FilterError;
use crate::outlet::{GenRoad, Outlet};
use crate::pipe::{PipeEnd, enlarge, is_pipe, wait_for};

/// What is to be written.
#[derive(Debug, Clone)]
pub struct GenJob {
    /// How many bytes; `None`: until the reader goes away.
    pub bytes: Option<u64>,
    /// The most that is handed over in one call, in bytes.
    pub block_bytes: NonZeroUsize,
    /// What the bytes are.
    pub payload: PayloadKind,
    /// Of the random payloads.
    pub seed: u64,
}

/// What was written, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GenReport {
    /// Bytes written.
    pub bytes: u64,
    /// The road they took.
    pub road: GenRoad,
    /// What standard output holds as a pipe, in bytes; `None`: it is none.
    pub pipe_bytes: Option<u64>,
    /// Calls that handed bytes over.
    pub syscalls: u64,
}

/// Writes the payload to `out`, a descriptor of any kind, in whatever pieces it takes.
///
/// # Errors
/// A payload that cannot be made, or what the system answered; see [`FilterError::reader_is_gone`].
pub fn generate(job: &GenJob, out: BorrowedFd<'_>) -> Result<GenReport, FilterError> {
    let pipe_bytes = is_pipe(out, PipeEnd::Out).then(|| enlarge(out));
    let tile = Tile::make(&job.payload, job.seed, Period::Filter)?;
    let block_bytes = job.block_bytes.get();
    let outlet =
        Outlet::choose(out, &tile, block_bytes, pipe_bytes.unwrap_or(0)).map_err(FilterError::Memory)?;
    let mut report = GenReport {
        bytes: 0,
        road: outlet.road(),
        pipe_bytes: pipe_bytes.map(|bytes| bytes as u64),
        syscalls: 0,
    };
    pour(job.bytes, &tile, outlet, out, &mut report)?;
    Ok(report)
}

fn pour(
    bytes: Option<u64>,
    tile: &Tile,
    mut outlet: Outlet<'_>,
    out: BorrowedFd<'_>,
    report: &mut GenReport,
) -> Result<(), FilterError> {
    let mut phase = 0;
    loop {
        // Unlimited: what is left never runs out (584 years at 1 GB/s).
        let left = bytes.unwrap_or(u64::MAX) - report.bytes;
        if left == 0 {
            return Ok(());
        }
        match outlet.hand_over(phase, left) {
            Ok(taken) => {
                phase = tile.advance(phase, taken);
                report.bytes += taken as u64;
                report.syscalls += 1;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_for(out, PollFlags::OUT).map_err(|e| failed(report.bytes, e))?,
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM)
                if outlet.step_down().map_err(FilterError::Memory)? =>
            {
                report.road = outlet.road();
            }
            Err(error) => return Err(failed(report.bytes, error)),
        }
    }
}

fn failed(at: u64, error: Errno) -> FilterError {
    FilterError::Write { at, answer: io::Error::from(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use payload::Comparer;
    use std::os::fd::AsFd;

    #[test]
    fn a_pipe_of_one_page_that_was_not_enlarged_is_enough() {
        for (payload, road) in
            [(PayloadKind::Sequence, GenRoad::Tee), (PayloadKind::Random, GenRoad::Vmsplice)]
        {
            let (reader, writer) = rustix::pipe::pipe().expect("pipe");
            let pipe_bytes =
                rustix::pipe::fcntl_setpipe_size(&writer, 4096).expect("one page is always granted");
            let tile = Tile::make(&payload, 2, Period::Filter).expect("named");
            let mut comparer = Comparer::new(Tile::make(&payload, 2, Period::Filter).expect("named"));
            let poured = std::thread::spawn(move || {
                let outlet = Outlet::choose(writer.as_fd(), &tile, 65536, pipe_bytes).expect("memory");
                let mut report = GenReport { bytes: 0, road: outlet.road(), pipe_bytes: None, syscalls: 0 };
                pour(Some(1_000_001), &tile, outlet, writer.as_fd(), &mut report).map(|()| report)
            });
            let mut room = vec![0; 10_000];
            while let Ok(len @ 1..) = rustix::io::read(&reader, &mut room[..]) {
                assert_eq!(comparer.check(&room[..len]), Ok(()));
            }
            let report = poured.join().expect("no panic").expect("a reader until the end");
            assert_eq!((report.bytes, report.road), (1_000_001, road));
        }
    }
}
