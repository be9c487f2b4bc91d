//! The roads out of `gen`, from the fastest to the one that always works.

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

/// The most that is handed over in one call, however large a block is asked for: no pipe holds more.
const CALL_BYTES_MAX: usize = 1 << 20;

/// A pipe that holds this much is worth a nap when it is full: no reader empties it meanwhile.
const NAP_WORTH_BYTES: usize = 4 << 20;

/// How long a nap is (and the kernel's timer slack makes 100 µs of it). A writer that naps is not in the
/// pipe's queue, so the reader need not wake it at every read: worth a quarter of the throughput when measured.
const NAP: Duration = Duration::from_micros(50);

/// How `gen` hands its bytes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GenRoad {
    /// tee(2) out of a pipe kept full: pages of the kernel, by reference.
    Tee,
    /// vmsplice(2): sealed pages of ours, by reference.
    Vmsplice,
    /// write(2): copied.
    Write,
}

/// Standard output and the road to it.
pub(crate) struct Outlet<'a> {
    out: BorrowedFd<'a>,
    tile: &'a Tile,
    call_bytes: usize,
    road: Way,
    naps: bool,
}

/// A road with what it takes to go it.
enum Way {
    Tee(Reservoir),
    Vmsplice(PayloadPages),
    Write(PayloadPages),
}

impl<'a> Outlet<'a> {
    /// Chooses the fastest road for this payload, block and descriptor. `pipe_bytes`: what the pipe holds.
    ///
    /// # Errors
    /// No memory to lay the payload out in.
    pub(crate) fn choose(
        out: BorrowedFd<'a>,
        tile: &'a Tile,
        block_bytes: usize,
        pipe_bytes: usize,
    ) -> io::Result<Self> {
        let call_bytes = block_bytes.min(CALL_BYTES_MAX);
        let piped = is_pipe(out, PipeEnd::Out);
        // Whole periods in each slot and in each call, or the phase would be lost between them.
        let in_phase =
            [Reservoir::SLOT_BYTES, call_bytes].iter().all(|len| len.is_multiple_of(tile.period()));
        let reservoir =
            if piped && in_phase { Reservoir::fill(tile.piece(0), Reservoir::SLOTS).ok() } else { None };
        let road = match reservoir.filter(Reservoir::is_whole) {
            Some(reservoir) => Way::Tee(reservoir),
            None if piped => Way::Vmsplice(PayloadPages::lay_out(tile, call_bytes)?),
            None => Way::Write(PayloadPages::lay_out(tile, call_bytes)?),
        };
        let slots = pipe_bytes / rustix::param::page_size();
        let naps = slots.saturating_mul(call_bytes.min(Reservoir::SLOT_BYTES)) >= NAP_WORTH_BYTES;
        Ok(Self { out, tile, call_bytes, road, naps })
    }

    /// The road taken.
    pub(crate) fn road(&self) -> GenRoad {
        match self.road {
            Way::Tee(_) => GenRoad::Tee,
            Way::Vmsplice(_) => GenRoad::Vmsplice,
            Way::Write(_) => GenRoad::Write,
        }
    }

    /// Hands over at most `most` bytes of the payload from `phase` on; returns how many were taken.
    ///
    /// # Errors
    /// The system's. EINVAL, ENOSYS and EPERM (a sandbox) may be of a road that [`Self::step_down`] can leave.
    #[inline]
    pub(crate) fn hand_over(&self, phase: usize, most: u64) -> Result<usize> {
        let len = self.call_bytes.min(usize::try_from(most).unwrap_or(usize::MAX));
        match &self.road {
            Way::Tee(reservoir) if phase == 0 => self.tee(reservoir, len),
            // A kernel that cut a slot elsewhere than asked: a short copy to the next whole period.
            Way::Tee(_) => {
                let rest = self.tile.period() - phase;
                rustix::io::write(self.out, &self.tile.piece(phase)[..rest.min(len)])
            }
            Way::Vmsplice(pages) => pages.vmsplice(self.out, phase, len),
            Way::Write(pages) => rustix::io::write(self.out, &pages.from(phase)[..len]),
        }
    }

    fn tee(&self, reservoir: &Reservoir, len: usize) -> Result<usize> {
        if self.naps {
            for attempt in 0..2 {
                match reservoir.tee(self.out, len, SpliceFlags::NONBLOCK) {
                    Err(Errno::AGAIN) if attempt == 0 => sleep(NAP),
                    Err(Errno::AGAIN) => {}
                    done => return done,
                }
            }
        }
        reservoir.tee(self.out, len, SpliceFlags::empty())
    }

    /// Takes the next slower road; false where there is none.
    ///
    /// # Errors
    /// No memory to lay the payload out in.
    pub(crate) fn step_down(&mut self) -> io::Result<bool> {
        self.road = match self.road {
            Way::Tee(_) => Way::Vmsplice(PayloadPages::lay_out(self.tile, self.call_bytes)?),
            Way::Vmsplice(_) => Way::Write(PayloadPages::lay_out(self.tile, self.call_bytes)?),
            Way::Write(_) => return Ok(false),
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
    fn the_road_fits_the_descriptor_and_the_block() {
        let (_reader, pipe) = rustix::pipe::pipe().expect("pipe");
        let file = tempfile::tempfile().expect("file");
        let tile = sequence();
        let road = |fd, block| Outlet::choose(fd, &tile, block, 65536).expect("memory").road();
        assert_eq!(road(pipe.as_fd(), 65536), GenRoad::Tee);
        assert_eq!(road(pipe.as_fd(), 1000), GenRoad::Vmsplice, "1000 is no whole number of periods");
        assert_eq!(road(file.as_fd(), 65536), GenRoad::Write);
    }

    #[test]
    fn a_slot_cut_in_the_middle_of_a_period_does_not_lose_the_phase() {
        let (reader, pipe) = rustix::pipe::pipe().expect("pipe");
        let tile = sequence();
        let road = Way::Tee(Reservoir::fill(tile.piece(0), Reservoir::SLOTS).expect("pipes"));
        let outlet = Outlet { out: pipe.as_fd(), tile: &tile, call_bytes: 1000, road, naps: true };
        let (mut phase, mut position) = (0, 0u64);
        let mut room = [0; 1000];
        for _ in 0..50 {
            let taken = outlet.hand_over(phase, u64::MAX).expect("room in the pipe");
            phase = tile.advance(phase, taken);
            assert_eq!(rustix::io::read(&reader, &mut room), Ok(taken));
            assert!((position..).zip(&room[..taken]).all(|(at, byte)| *byte == (at % 256) as u8));
            position += taken as u64;
        }
        assert!(!position.is_multiple_of(1000), "the short copies took part");
    }

    #[test]
    fn every_road_but_the_last_has_a_slower_one() {
        let (_reader, pipe) = rustix::pipe::pipe().expect("pipe");
        let tile = sequence();
        let mut outlet = Outlet::choose(pipe.as_fd(), &tile, 65536, 65536).expect("memory");
        let mut roads = vec![outlet.road()];
        while outlet.step_down().expect("memory") {
            roads.push(outlet.road());
        }
        assert_eq!(roads, [GenRoad::Tee, GenRoad::Vmsplice, GenRoad::Write]);
    }
}
