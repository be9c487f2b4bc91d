//! One direction of a task: which slots are free, queued or in flight, and the meaning of the kernel's completions.

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

/// One direction of a task. Its slots have consecutive numbers; the two lanes of a task have different slots.
pub(super) struct Lane {
    /// `None` if the task does not use this direction, or has closed it.
    pub(super) fd: Option<OwnedFd>,
    /// The descriptor's number, or its index where it is registered.
    pub(super) target: RawFd,
    pub(super) free: Vec<usize>,
    /// Blocks to be written, or bytes that were read, in the order of the stream.
    pub(super) ready: VecDeque<Span>,
    /// The only chain in flight, in order, with the results of its completed requests.
    pub(super) flight: VecDeque<(Span, Option<i32>)>,
    /// The number of completed requests in `flight`.
    pub(super) completed: usize,
    /// A read has returned the end of the stream.
    pub(super) ended: bool,
    /// A read among those that were taken last has found no bytes (EAGAIN).
    pub(super) would_block: bool,
}

impl Lane {
    /// A lane with `depth` slots; without a descriptor it has no slots and is not used.
    pub(super) fn new(fd: Option<OwnedFd>, first_slot: usize, depth: usize) -> Self {
        let depth = if fd.is_some() { depth } else { 0 };
        Self {
            target: fd.as_ref().map_or(-1, OwnedFd::as_raw_fd),
            fd,
            free: (first_slot..first_slot + depth).rev().collect(),
            ready: VecDeque::with_capacity(depth),
            flight: VecDeque::with_capacity(depth),
            completed: 0,
            ended: false,
            would_block: false,
        }
    }

    /// Stores the result of the request for `slot`, if it is a request of this lane.
    pub(super) fn complete(&mut self, slot: usize, result: i32) {
        if let Some((_, stored)) = self.flight.iter_mut().find(|(span, _)| span.slot == slot) {
            *stored = Some(result);
            self.completed += 1;
        }
    }

    /// Whether this lane has a request for `slot`.
    pub(super) fn is_reading(&self, slot: usize) -> bool {
        self.flight.iter().any(|(span, _)| span.slot == slot)
    }

    /// Completes all writes without a result as whole ones: the kernel reports only short writes and errors
    /// (IOSQE_CQE_SKIP_SUCCESS).
    pub(super) fn complete_unreported_writes(&mut self) {
        for (span, result) in &mut self.flight {
            if result.is_none() {
                *result = Some((span.to - span.from) as i32);
                self.completed += 1;
            }
        }
    }

    /// Whether the kernel has requests that are not completed.
    pub(super) fn in_flight(&self) -> bool {
        self.flight.len() > self.completed
    }

    /// Whether nothing is queued or in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.flight.is_empty()
    }

    /// Frees the slots of a chain of writes when all of it is completed, and queues again, in front, the bytes that were
    /// not written. Returns whether there are any.
    pub(super) fn reap_writes(&mut self) -> io::Result<bool> {
        if self.flight.is_empty() || self.in_flight() {
            return Ok(false);
        }
        self.completed = 0;
        let mut rest: Vec<Span> = Vec::new();
        for (span, result) in self.flight.drain(..) {
            let written = match result.unwrap_or(-libc::ECANCELED) {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written @ 1.. => written as usize,
                errno => error_unless_retryable(errno).map(|()| 0)?,
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

    /// Queues the bytes that were read, from the beginning of the chain up to the first request that is not completed.
    pub(super) fn reap_reads(&mut self) -> io::Result<()> {
        self.would_block = false;
        while let Some((span, Some(result))) = self.flight.front().copied() {
            self.flight.pop_front();
            self.completed -= 1;
            if result > 0 {
                self.ready.push_back(Span { to: span.from + result as usize, ..span });
                continue;
            }
            self.free.push(span.slot);
            match result {
                0 => self.ended = true,
                errno => {
                    self.would_block |= errno == -libc::EAGAIN;
                    error_unless_retryable(errno)?;
                }
            }
        }
        Ok(())
    }
}

/// The error for a negative result, unless the request is simply made again.
fn error_unless_retryable(result: i32) -> io::Result<()> {
    match -result {
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
    fn the_remainder_of_a_short_write_is_written_first() {
        let mut lane = lane(&[10, 10, 10]);
        let later = Span { slot: 9, from: 0, to: 10 };
        lane.ready.push_back(later);
        lane.complete(0, 10);
        lane.complete(1, 4);
        assert!(!lane.reap_writes().expect("not all completed"));
        lane.complete(2, -libc::ECANCELED);
        assert!(lane.reap_writes().expect("a rest"));
        let expected = [Span { slot: 1, from: 4, to: 10 }, Span { slot: 2, from: 0, to: 10 }, later];
        assert_eq!(Vec::from(lane.ready.clone()), expected);
        assert_eq!(lane.free, [0]);
    }

    #[test]
    fn a_write_that_overtakes_is_an_error() {
        let mut lane = lane(&[10, 10]);
        lane.complete(0, 4);
        lane.complete(1, 10);
        assert!(lane.reap_writes().is_err());
    }

    #[test]
    fn reads_are_taken_in_the_order_of_the_chain() {
        let mut lane = lane(&[10, 10, 10, 10]);
        lane.complete(1, 5);
        lane.reap_reads().expect("nothing yet");
        assert!(!lane.ended && !lane.would_block && lane.ready.is_empty());
        lane.complete(0, 3);
        lane.complete(2, 0);
        lane.complete(3, -libc::EPIPE);
        assert!(lane.reap_reads().is_err());
        let expected = [Span { slot: 0, from: 0, to: 3 }, Span { slot: 1, from: 0, to: 5 }];
        assert_eq!(Vec::from(lane.ready), expected);
    }
}
