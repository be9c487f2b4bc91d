//! How `gen` writes: methods from the fastest to the one that always works.

use std::io;
use std::os::fd::BorrowedFd;
use std::thread::sleep;
use std::time::Duration;

use payload::{Reservoir, Tile};
use rustix::io::{Errno, Result};
use rustix::pipe::SpliceFlags;
use serde::Serialize;

use crate::pages::PayloadPages;
use crate::pipe::{PipeEnd, is_pipe};

/// Most bytes in one call, also for larger blocks: the pipe of an unprivileged user does not hold more.
const CALL_BYTES_MAX: usize = 1 << 20;

/// With a pipe of at least this size the writer sleeps when the pipe is full: no reader empties it in that time.
const DELAY_PIPE_BYTES_MIN: usize = 4 << 20;

/// Sleep before a retry (100 µs with the kernel's timer slack). A sleeping writer is not in the pipe's wait queue, so that
/// the reader does not wake it at every read: this was worth a quarter of the throughput when measured.
const RETRY_DELAY: Duration = Duration::from_micros(50);

/// The system call with which `gen` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GenMethod {
    /// tee(2) from a pipe that stays full: pages of the kernel, by reference.
    Tee,
    /// vmsplice(2): read-only pages of this process, by reference.
    Vmsplice,
    /// write(2): copied.
    Write,
}

/// Standard output and the method of writing to it.
pub(crate) struct Outlet<'a> {
    out: BorrowedFd<'a>,
    tile: &'a Tile,
    call_bytes: usize,
    transfer: Transfer,
    delays_retry: bool,
}

/// A method with its payload.
enum Transfer {
    Tee(Reservoir),
    Vmsplice(PayloadPages),
    Write(PayloadPages),
}

impl<'a> Outlet<'a> {
    /// Chooses the fastest method for this payload, block and descriptor. `pipe_bytes`: the pipe's capacity.
    ///
    /// # Errors
    /// No memory for the payload.
    pub(crate) fn choose(
        out: BorrowedFd<'a>,
        tile: &'a Tile,
        block_bytes: usize,
        pipe_bytes: usize,
    ) -> io::Result<Self> {
        let call_bytes = block_bytes.min(CALL_BYTES_MAX);
        let piped = is_pipe(out, PipeEnd::Out);
        // Each slot and each call must contain whole periods, or the next one would begin at a wrong phase.
        let in_phase =
            [Reservoir::SLOT_BYTES, call_bytes].iter().all(|len| len.is_multiple_of(tile.period()));
        let reservoir =
            if piped && in_phase { Reservoir::fill(tile.piece(0), Reservoir::SLOTS).ok() } else { None };
        let transfer = match reservoir.filter(Reservoir::is_whole) {
            Some(reservoir) => Transfer::Tee(reservoir),
            None if piped => Transfer::Vmsplice(PayloadPages::lay_out(tile, call_bytes)?),
            None => Transfer::Write(PayloadPages::lay_out(tile, call_bytes)?),
        };
        let slots = pipe_bytes / rustix::param::page_size();
        let delays_retry =
            slots.saturating_mul(call_bytes.min(Reservoir::SLOT_BYTES)) >= DELAY_PIPE_BYTES_MIN;
        Ok(Self { out, tile, call_bytes, transfer, delays_retry })
    }

    pub(crate) fn method(&self) -> GenMethod {
        match self.transfer {
            Transfer::Tee(_) => GenMethod::Tee,
            Transfer::Vmsplice(_) => GenMethod::Vmsplice,
            Transfer::Write(_) => GenMethod::Write,
        }
    }

    /// Writes at most `most` bytes of the payload from `phase` on; returns the number written.
    ///
    /// # Errors
    /// The system's. After EINVAL, ENOSYS and EPERM (a sandbox), [`Self::fall_back`] may help.
    #[inline]
    pub(crate) fn hand_over(&self, phase: usize, most: u64) -> Result<usize> {
        let len = self.call_bytes.min(usize::try_from(most).unwrap_or(usize::MAX));
        match &self.transfer {
            Transfer::Tee(reservoir) if phase == 0 => self.tee(reservoir, len),
            // The last tee(2) ended within a period: the rest of that period is copied.
            Transfer::Tee(_) => {
                let rest = self.tile.period() - phase;
                rustix::io::write(self.out, &self.tile.piece(phase)[..rest.min(len)])
            }
            Transfer::Vmsplice(pages) => pages.vmsplice(self.out, phase, len),
            Transfer::Write(pages) => rustix::io::write(self.out, &pages.at_phase(phase)[..len]),
        }
    }

    fn tee(&self, reservoir: &Reservoir, len: usize) -> Result<usize> {
        if self.delays_retry {
            for attempt in 0..2 {
                match reservoir.tee(self.out, len, SpliceFlags::NONBLOCK) {
                    Err(Errno::AGAIN) if attempt == 0 => sleep(RETRY_DELAY),
                    Err(Errno::AGAIN) => {}
                    done => return done,
                }
            }
        }
        reservoir.tee(self.out, len, SpliceFlags::empty())
    }

    /// Changes to the next slower method; false if there is none.
    ///
    /// # Errors
    /// No memory for the payload.
    pub(crate) fn fall_back(&mut self) -> io::Result<bool> {
        self.transfer = match self.transfer {
            Transfer::Tee(_) => Transfer::Vmsplice(PayloadPages::lay_out(self.tile, self.call_bytes)?),
            Transfer::Vmsplice(_) => Transfer::Write(PayloadPages::lay_out(self.tile, self.call_bytes)?),
            Transfer::Write(_) => return Ok(false),
        };
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PayloadKind;
    use payload::Period;
    use std::os::fd::AsFd;

    fn sequence() -> Tile {
        Tile::make(&PayloadKind::Sequence, 0, Period::Filter).expect("no file involved")
    }

    #[test]
    fn the_method_fits_the_descriptor_and_the_block() {
        let (_reader, pipe) = rustix::pipe::pipe().expect("pipe");
        let file = tempfile::tempfile().expect("file");
        let tile = sequence();
        let method = |fd, block| Outlet::choose(fd, &tile, block, 65536).expect("memory").method();
        assert_eq!(method(pipe.as_fd(), 65536), GenMethod::Tee);
        assert_eq!(method(pipe.as_fd(), 1000), GenMethod::Vmsplice, "1000 is no whole number of periods");
        assert_eq!(method(file.as_fd(), 65536), GenMethod::Write);
    }

    #[test]
    fn a_slot_cut_in_the_middle_of_a_period_does_not_lose_the_phase() {
        let (reader, pipe) = rustix::pipe::pipe().expect("pipe");
        let tile = sequence();
        let transfer = Transfer::Tee(Reservoir::fill(tile.piece(0), Reservoir::SLOTS).expect("pipes"));
        let outlet =
            Outlet { out: pipe.as_fd(), tile: &tile, call_bytes: 1000, transfer, delays_retry: true };
        let (mut phase, mut position) = (0, 0u64);
        let mut room = [0; 1000];
        for _ in 0..50 {
            let taken = outlet.hand_over(phase, u64::MAX).expect("room in the pipe");
            phase = tile.advance(phase, taken);
            assert_eq!(rustix::io::read(&reader, &mut room), Ok(taken));
            assert!((position..).zip(&room[..taken]).all(|(at, byte)| *byte == (at % 256) as u8));
            position += taken as u64;
        }
        assert!(!position.is_multiple_of(1000), "short copies were made");
    }

    #[test]
    fn every_method_but_write_has_a_slower_one() {
        let (_reader, pipe) = rustix::pipe::pipe().expect("pipe");
        let tile = sequence();
        let mut outlet = Outlet::choose(pipe.as_fd(), &tile, 65536, 65536).expect("memory");
        let mut methods = vec![outlet.method()];
        while outlet.fall_back().expect("memory") {
            methods.push(outlet.method());
        }
        assert_eq!(methods, [GenMethod::Tee, GenMethod::Vmsplice, GenMethod::Write]);
    }
}
