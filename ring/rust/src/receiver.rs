//! The end that receives.

use super::protocol::{END, End, Error, Head, Port, Record, Role, Run, stride, whole};
use core::slice;
use std::hint::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Most pauses in which a receiver waits for a stream to run ahead: ten microseconds or so.
const PAUSES: u32 = 1024;
/// A receiver whose messages come one by one makes such a wait once in this many: perhaps they do because both ends are at the same line.
const TRIES: u32 = 1024;

/// The end that receives.
#[repr(align(128))]
pub struct Receiver<P: Port> {
    end: End<P>,
    /// Where the record behind the message in hand begins; `own`: none is in hand.
    next: u32,
    /// Length of the last message right behind its header, bytes of its record. The next one's is likely the same, and a branch that is
    /// predicted needs not wait for the header to come.
    usual: (u32, u32),
    /// Of the run that the next message is in.
    rest: Rest,
    /// Messages since it had to wait, and how often it was one alone.
    streak: u32,
    alone: u32,
}

/// The messages of a run that were not received yet.
#[derive(Default)]
struct Rest {
    /// Bytes of each, and from one to the next; 0: there is no run.
    length: u32,
    stride: u32,
    /// Positions of the last one, and of the next record.
    last: u32,
    next: u32,
}

impl Rest {
    /// Of the run that is this record.
    fn new(position: u32, record: &Record) -> Self {
        let [last, next] =
            [record.stop - record.length, whole(record.stop)].map(|bytes| position.wrapping_add(bytes));
        Self { length: record.length, stride: record.stride, last, next }
    }
}

impl<P: Port> Receiver<P> {
    /// Goes on with the records in memory; memory of zeros is an empty ring.
    ///
    /// # Safety
    /// As [`Sender::new`].
    ///
    /// # Errors
    /// As [`Sender::new`].
    pub unsafe fn new(head: *const Head, bytes: *mut u8, capacity: u32, port: P) -> Result<Self, Error> {
        let mut end = End::new(head, bytes, capacity, Role::Receiver, port)?;
        let (mut rest, taken) = (Rest::default(), end.own);
        // It may have been in the middle of a run: only the records say where they begin.
        end.own = end.given;
        while end.own != taken {
            let header = end.header(end.own).load(Acquire);
            let (bytes, done) = (end.record_bytes(header)?, taken.wrapping_sub(end.own));
            if done >= bytes {
                end.own = end.own.wrapping_add(bytes);
                continue;
            }
            let record =
                end.record(header).filter(|record| record.has_message_at(done)).ok_or(Error::Damaged)?;
            rest = Rest::new(end.own, &record);
            end.own = taken;
        }
        Ok(Self { end, next: taken, usual: (0, 8), rest, streak: 0, alone: 0 })
    }

    pub fn port(&self) -> &P {
        &self.end.port
    }

    /// A message in place; waits until there is one. A sender that is no friend can change it while it is read: copy it first.
    ///
    /// # Errors
    /// As [`Error`] says.
    #[inline]
    pub fn peek(&mut self) -> Result<&[u8], Error> {
        let (at, length) = self.look()?;
        // SAFETY: it ends before the end of the bytes.
        Ok(unsafe { slice::from_raw_parts(self.end.bytes.wrapping_add(at as usize), length as usize) })
    }

    /// The messages of a run in place, or of what is left of it; one that was sent alone is a run of one. They are done with, and come
    /// again after a death, together.
    ///
    /// # Errors
    /// As [`Self::peek`].
    pub fn peek_run(&mut self) -> Result<Run<&[u8]>, Error> {
        let (at, length) = self.look()?;
        let (stride, before) = match self.rest.stride {
            0 => (stride(length.max(1), false), 0),
            stride => (stride, self.rest.last.wrapping_sub(self.end.own)),
        };
        if self.rest.stride > 0 {
            self.next = self.rest.next;
        }
        let others = before / stride;
        self.streak = self.streak.wrapping_add(others);
        // SAFETY: the last one ends before the end of the bytes.
        let bytes = unsafe {
            slice::from_raw_parts(self.end.bytes.wrapping_add(at as usize), (before + length) as usize)
        };
        Ok(Run { bytes, length: length as usize, stride: stride as usize, count: others as usize + 1 })
    }

    /// Copies a message; its length.
    ///
    /// # Errors
    /// As [`Error`] says.
    #[inline]
    pub fn receive(&mut self, message: &mut [u8]) -> Result<usize, Error> {
        let found = self.peek()?;
        let len = found.len();
        // The first is a copy of a known length where the message is an array.
        if len == message.len() {
            message.copy_from_slice(found);
        } else if let Some(room) = message.get_mut(..len) {
            room.copy_from_slice(found);
        } else {
            self.next = self.end.own;
            return Err(Error::TooLarge(len));
        }
        Ok(len)
    }

    /// Whether nothing was published after the message in hand.
    pub fn is_last(&self) -> bool {
        !self.has_rest() && self.end.header(self.next).load(Acquire) == 0
    }

    /// The message in hand is done with: a receiver that is killed after this does not get it again. Asking for the next one does the
    /// same. Room is given back an eighth of the ring at a time, which keeps the word's cache line with the sender.
    #[inline]
    pub fn release(&mut self) {
        let next = self.next;
        if self.end.own == next {
            return;
        }
        self.end.own = next;
        if self.rest.next == next {
            self.rest.stride = 0;
        }
        self.streak = self.streak.wrapping_add(1);
        self.end.head().taken.0.store(next, Release);
        if next.wrapping_sub(self.end.given) >= self.end.capacity / 8 {
            self.give_back();
        }
    }

    /// As [`Sender::arm`].
    pub fn arm(&self) -> bool {
        !self.has_rest() && self.end.arm(self.end.header(self.next), 0)
    }

    /// Whether there is a message of the same run behind the one in hand.
    fn has_rest(&self) -> bool {
        self.rest.stride > 0 && self.next != self.rest.next
    }

    /// The place of the next message, and its length.
    #[inline]
    fn look(&mut self) -> Result<(u32, u32), Error> {
        self.release();
        let own = self.next;
        if self.rest.stride > 0 {
            return Ok(self.look_in_run(own));
        }
        // Read once: the other process could change it after the checks.
        let length = self.end.header(own).load(Acquire).wrapping_sub(1);
        let (at, left) = self.end.place(own);
        if length > left - 4 {
            return self.look_again();
        }
        if length != self.usual.0 {
            self.usual = (length, whole(4 + length));
        }
        self.next = own.wrapping_add(self.usual.1);
        Ok((at + 4, length))
    }

    /// The same of the message at this position in a run.
    #[inline]
    fn look_in_run(&mut self, own: u32) -> (u32, u32) {
        self.next = if own == self.rest.last { self.rest.next } else { own.wrapping_add(self.rest.stride) };
        (self.end.place(own).0, self.rest.length)
    }

    /// The same, if the next header is not that of a message right behind it.
    #[cold]
    fn look_again(&mut self) -> Result<(u32, u32), Error> {
        loop {
            let own = self.end.own;
            let header = self.end.header(own).load(Acquire);
            if header == 0 {
                self.wait_for_message()?;
                continue;
            }
            let Some(record) = self.end.record(header) else {
                self.next = own.wrapping_add(self.end.mark_bytes(header)?);
                if header == END {
                    return Err(Error::Ended);
                }
                self.release();
                continue;
            };
            if record.stride > 0 {
                self.rest = Rest::new(own, &record);
                self.end.own = own.wrapping_add(record.start);
                return Ok(self.look_in_run(self.end.own));
            }
            self.next = own.wrapping_add(whole(record.stop));
            return Ok((self.end.place(own).0 + record.start, record.length));
        }
    }

    /// Up to a record: what is done with of a run is found from the run's header.
    #[cold]
    fn give_back(&mut self) {
        let end = &mut self.end;
        if end.given != end.own && self.rest.stride == 0 {
            end.given = end.own;
            end.head().room.0.store(end.own, Release);
            end.tell(Role::Sender);
        }
    }

    /// A stream is faster if the two ends are not at the same cache line: looks away before, the longer the more messages came since the
    /// last wait. An answer to a request comes alone, and at once.
    #[cold]
    fn wait_for_message(&mut self) -> Result<u32, Error> {
        self.give_back(); // the sender may wait for more than an eighth
        self.alone = if self.streak > 1 { 0 } else { self.alone.wrapping_add(1) };
        let is_stream = self.alone.is_multiple_of(TRIES) && self.end.port.polls() > 1;
        let pauses = if is_stream { self.streak.saturating_mul(64).min(PAUSES) } else { 0 };
        self.streak = 0;
        (0..pauses).for_each(|_| spin_loop());
        self.end.wait(self.end.header(self.end.own), 0)
    }
}

impl<P: Port> Drop for Receiver<P> {
    fn drop(&mut self) {
        self.release();
        self.give_back();
    }
}
