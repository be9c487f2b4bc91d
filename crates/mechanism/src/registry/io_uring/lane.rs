//! One direction of a task: which slots are free, in flight, or waiting, and what the kernel's answers mean.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// A part of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) slot: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// One direction. Its slots are numbered from the first on; no two lanes of a task share one.
pub(super) struct Lane {
    /// `None` also once it was closed.
    pub(super) fd: Option<OwnedFd>,
    /// The descriptor's number, or its index where it is registered.
    pub(super) target: RawFd,
    pub(super) free: Vec<usize>,
    /// Blocks to be written, or bytes that were read, in the order of the stream.
    pub(super) ready: VecDeque<Span>,
    /// The one chain in flight, in order, with what the kernel answered.
    pub(super) flight: VecDeque<(Span, Option<i32>)>,
    /// How many of those were answered.
    pub(super) answered: usize,
}

/// What a chain of reads met, beside bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) ended: bool,
    pub(super) dry: bool,
}

impl Lane {
    /// A lane with `depth` slots, or without a descriptor and any slot: one that is never used.
    pub(super) fn new(fd: Option<OwnedFd>, first_slot: usize, depth: usize) -> Self {
        let depth = if fd.is_some() { depth } else { 0 };
        Self {
            target: fd.as_ref().map_or(-1, OwnedFd::as_raw_fd),
            fd,
            free: (first_slot..first_slot + depth).rev().collect(),
            ready: VecDeque::with_capacity(depth),
            flight: VecDeque::with_capacity(depth),
            answered: 0,
        }
    }

    /// Notes an answer, if it is to a request of this lane.
    pub(super) fn take_answer(&mut self, slot: usize, answer: i32) {
        if let Some((_, result)) = self.flight.iter_mut().find(|(span, _)| span.slot == slot) {
            *result = Some(answer);
            self.answered += 1;
        }
    }

    /// Whether this slot is in flight in this lane.
    pub(super) fn has_asked(&self, slot: usize) -> bool {
        self.flight.iter().any(|(span, _)| span.slot == slot)
    }

    /// Takes it that what was not answered was written: nothing else is left unsaid.
    pub(super) fn take_silence(&mut self) {
        for (span, answer) in &mut self.flight {
            if answer.is_none() {
                *answer = Some((span.to - span.from) as i32);
                self.answered += 1;
            }
        }
    }

    /// Whether the kernel has requests it has not answered.
    pub(super) fn in_flight(&self) -> bool {
        self.flight.len() > self.answered
    }

    /// Whether nothing is queued or in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.flight.is_empty()
    }

    /// Frees the slots of a chain of writes once all of it was answered, and queues again, in front, what was
    /// not written. True where there is such a rest.
    pub(super) fn settle_writes(&mut self) -> io::Result<bool> {
        if self.flight.is_empty() || self.in_flight() {
            return Ok(false);
        }
        self.answered = 0;
        let mut rest: Vec<Span> = Vec::new();
        for (span, answer) in self.flight.drain(..) {
            let written = match answer.unwrap_or(-libc::ECANCELED) {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written @ 1.. => written as usize,
                refused => again(refused).map(|()| 0)?,
            };
            if written > 0 && !rest.is_empty() {
                return Err(io::Error::other("a write overtook the rest of a short one (a bug in hosepipe)"));
            }
            if span.from + written < span.to {
                rest.push(Span { from: span.from + written, ..span });
            } else {
                self.free.push(span.slot);
            }
        }
        rest.iter().rev().for_each(|span| self.ready.push_front(*span));
        Ok(!rest.is_empty())
    }

    /// Takes in what was read, as far as the chain was answered.
    pub(super) fn settle_reads(&mut self) -> io::Result<Reads> {
        let mut reads = Reads::default();
        while let Some((span, Some(answer))) = self.flight.front().copied() {
            self.flight.pop_front();
            self.answered -= 1;
            if answer > 0 {
                self.ready.push_back(Span { to: span.from + answer as usize, ..span });
                continue;
            }
            self.free.push(span.slot);
            match answer {
                0 => reads.ended = true,
                refused => {
                    reads.dry |= refused == -libc::EAGAIN;
                    again(refused)?;
                }
            }
        }
        Ok(reads)
    }
}

/// Whether a request that was answered so is to be made again; else the error.
fn again(answer: i32) -> io::Result<()> {
    match -answer {
        libc::EINTR | libc::EAGAIN | libc::ECANCELED => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(lens: &[usize]) -> Lane {
        let mut lane = Lane::new(Some(tempfile::tempfile().expect("file").into()), 0, lens.len());
        lane.free.clear();
        lane.flight = (0..).zip(lens).map(|(slot, len)| (Span { slot, from: 0, to: *len }, None)).collect();
        lane
    }

    #[test]
    fn what_a_short_write_left_over_is_written_first() {
        let mut lane = lane(&[10, 10, 10]);
        let later = Span { slot: 9, from: 0, to: 10 };
        lane.ready.push_back(later);
        lane.take_answer(0, 10);
        lane.take_answer(1, 4);
        assert!(!lane.settle_writes().expect("not all answered"));
        lane.take_answer(2, -libc::ECANCELED);
        assert!(lane.settle_writes().expect("a rest"));
        let expected = [Span { slot: 1, from: 4, to: 10 }, Span { slot: 2, from: 0, to: 10 }, later];
        assert_eq!(Vec::from(lane.ready.clone()), expected);
        assert_eq!(lane.free, [0]);
    }

    #[test]
    fn a_write_that_overtakes_is_an_error() {
        let mut lane = lane(&[10, 10]);
        lane.take_answer(0, 4);
        lane.take_answer(1, 10);
        assert!(lane.settle_writes().is_err());
    }

    #[test]
    fn reads_are_taken_in_the_order_of_the_chain() {
        let mut lane = lane(&[10, 10, 10, 10]);
        lane.take_answer(1, 5);
        assert_eq!(lane.settle_reads().expect("nothing yet"), Reads::default());
        lane.take_answer(0, 3);
        lane.take_answer(2, 0);
        lane.take_answer(3, -libc::EPIPE);
        assert!(lane.settle_reads().is_err());
        let expected = [Span { slot: 0, from: 0, to: 3 }, Span { slot: 1, from: 0, to: 5 }];
        assert_eq!(Vec::from(lane.ready), expected);
    }
}
