//! Whole messages through memory, from one sender to one receiver. Copy it: MIT or Apache-2.0, as hosepipe is.
//!
//! No system call while both ends keep up. An end that was killed at any instruction loses nothing that was published; a new end with the
//! same role goes on where it stopped, and only the message that a killed receiver had in hand comes a second time.

use core::fmt;
use core::mem::offset_of;
use core::sync::atomic::compiler_fence;
use std::hint::spin_loop;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, SeqCst},
    fence,
};

pub const MAGIC: u32 = u32::from_ne_bytes(*b"ring");
pub const VERSION: u32 = 3;
/// Where the records begin.
pub const HEAD_BYTES: usize = 4096;
/// Messages of at least this many bytes begin at a multiple of 64.
pub(super) const ALIGN_FROM: usize = 1024;
/// A header is 0 (no record yet), the length of a message plus 1, or:
/// the next record is at the first byte;
pub(super) const SKIP: u32 = u32::MAX;
/// the sender has finished.
pub(super) const END: u32 = u32::MAX - 1;
/// Beside a length: the message begins at the next multiple of 64, and not right behind the header;
pub(super) const ALIGNED: u32 = 1 << 31;
/// the record is a run: messages of this length behind a second word, which says how far they go.
pub(super) const RUN: u32 = 1 << 30;
const LENGTH: u32 = RUN - 1;

/// Why a call gave nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// The sender has finished.
    Ended,
    /// This end waits, and the other one is not there: call again to go on waiting.
    Absent,
    /// This end never waits.
    Again,
    /// The other end wrote what makes no sense.
    Damaged,
    /// The message has so many bytes: more than the ring has room for, or the buffer. A receiver gets it again.
    TooLarge(usize),
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => to.write_str("the sender has finished"),
            Self::Absent => to.write_str("the other end is not there"),
            Self::Again => to.write_str("nothing to do now"),
            Self::Damaged => to.write_str("the ring is damaged"),
            Self::TooLarge(bytes) => write!(to, "a message of {bytes} bytes is too large"),
        }
    }
}

impl core::error::Error for Error {}

/// A word in a cache line of its own; CPUs fetch lines in pairs.
#[repr(C, align(128))]
pub(super) struct Line(pub(super) AtomicU32);

/// How an end sleeps.
#[repr(C, align(128))]
pub struct Sleeper {
    /// 0: it does not; 1: in futex(2); 2: in poll(2) for an eventfd.
    pub how: AtomicU32,
    /// It lacks membarrier(2): the other end needs a fence.
    needs_fence: AtomicU32,
}

impl Sleeper {
    /// Says that this end sleeps; false if the word has changed, and it must not. `barrier` is a fence in all running threads of the
    /// other end; without one the fence here needs that of [`End::tell`].
    pub fn announce(&self, how: u32, barrier: impl FnOnce(), word: &AtomicU32, seen: u32) -> bool {
        self.how.store(how, Relaxed);
        fence(SeqCst);
        barrier();
        word.load(Relaxed) == seen
    }
}

/// The first page of a ring.
#[repr(C)]
pub struct Head {
    /// Written last, when the words below are.
    pub magic: AtomicU32,
    pub version: u32,
    pub head_bytes: u32,
    pub capacity: u32,
    /// Positions count bytes, without end: the receiver has given back this many,
    pub(super) room: Line,
    /// and has done with this many.
    pub(super) taken: Line,
    sleepers: [Sleeper; 2],
}

// LAYOUT.md. (The words of a model checker are larger.)
const _: () = assert!(
    size_of::<AtomicU32>() != 4
        || offset_of!(Head, room) == 128
            && offset_of!(Head, taken) == 256
            && offset_of!(Head, sleepers) == 384
            && offset_of!(Sleeper, needs_fence) == 4
            && size_of::<Sleeper>() == 128
);

impl Default for Head {
    /// That of an empty ring.
    fn default() -> Self {
        let line = || Line(AtomicU32::new(0));
        let sleeper = || Sleeper { how: AtomicU32::new(0), needs_fence: AtomicU32::new(0) };
        Self {
            magic: AtomicU32::new(MAGIC),
            version: VERSION,
            head_bytes: HEAD_BYTES as u32,
            capacity: 0,
            room: line(),
            taken: line(),
            sleepers: [sleeper(), sleeper()],
        }
    }
}

/// What an end needs of the system.
pub trait Port {
    /// The header of the record that is `at` bytes behind `bytes`; a model checker has words of its own.
    fn header(&self, bytes: *mut u8, at: u32) -> *const AtomicU32 {
        bytes.wrapping_add(at as usize).cast()
    }
    /// How often an end that waits looks before it sleeps.
    fn polls(&self) -> u32;
    /// Whether it calls membarrier(2) before it sleeps, and answers that of others.
    fn has_membarrier(&self) -> bool;
    /// A fence in all running threads of the other end, if it has membarrier(2).
    fn barrier(&self);
    /// Sleeps until the word may differ from `seen`. True: the other end is not there.
    ///
    /// # Errors
    /// [`Error::Again`]: this end never sleeps.
    fn sleep(&self, own: &Sleeper, word: &AtomicU32, seen: u32) -> Result<bool, Error>;
    /// Wakes the other end, which slept in this way.
    fn wake(&self, word: &AtomicU32, how: u32);
}

/// Both ends are threads of this program, and never sleep.
#[derive(Debug, Clone, Copy)]
pub struct Spin;

impl Port for Spin {
    fn polls(&self) -> u32 {
        u32::MAX
    }

    fn has_membarrier(&self) -> bool {
        true // none ever sleeps
    }

    fn barrier(&self) {}

    fn sleep(&self, _: &Sleeper, _: &AtomicU32, _: u32) -> Result<bool, Error> {
        Ok(false)
    }

    fn wake(&self, _: &AtomicU32, _: u32) {}
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Sender,
    Receiver,
}

/// What both ends have.
pub(super) struct End<P> {
    head: *const Head,
    pub(super) bytes: *mut u8,
    pub(super) capacity: u32,
    role: Role,
    /// Where the next record begins.
    pub(super) own: u32,
    /// Where the records begin that the sender has not published; the room that the receiver has given back.
    pub(super) given: u32,
    pub(super) port: P,
}

/// A record of messages. Bytes from its header to
pub(super) struct Record {
    /// the first message,
    pub(super) start: u32,
    /// and the end of the last one;
    pub(super) stop: u32,
    /// of each message,
    pub(super) length: u32,
    /// and from one to the next; 0: there is one.
    pub(super) stride: u32,
}

impl Record {
    /// Whether it is a run with a message this many bytes behind its header.
    pub(super) fn has_message_at(&self, at: u32) -> bool {
        self.stride > 0
            && (self.start..=self.stop - self.length).contains(&at)
            && (at - self.start).is_multiple_of(self.stride)
    }
}

// SAFETY: the pointers are to memory that threads share, by the contract of `Sender::new` and `Receiver::new`.
unsafe impl<P: Send> Send for End<P> {}

impl<P: Port> End<P> {
    pub(super) fn new(
        head: *const Head,
        bytes: *mut u8,
        capacity: u32,
        role: Role,
        port: P,
    ) -> Result<Self, Error> {
        let mut end = Self { head, bytes, capacity, role, own: 0, given: 0, port };
        let sleeper = end.sleeper(role);
        sleeper.needs_fence.store(u32::from(!end.port.has_membarrier()), SeqCst);
        sleeper.how.store(0, SeqCst);
        (end.given, end.own) = (end.head().room.0.load(SeqCst), end.head().taken.0.load(SeqCst));
        let is_whole = capacity.is_power_of_two() && (4096..=1 << 30).contains(&capacity);
        let makes_sense = end.given & 7 == 0 && end.own.wrapping_sub(end.given) <= capacity;
        if is_whole && makes_sense { Ok(end) } else { Err(Error::Damaged) }
    }

    pub(super) fn head<'h>(&self) -> &'h Head {
        // SAFETY: it lives as long as this end, by the contract of `new`.
        unsafe { &*self.head }
    }

    fn sleeper<'h>(&self, role: Role) -> &'h Sleeper {
        &self.head().sleepers[role as usize]
    }

    /// Where a position is in the ring, and the bytes from there to its end.
    pub(super) fn place(&self, position: u32) -> (u32, u32) {
        let at = position & (self.capacity - 1);
        (at, self.capacity - at)
    }

    pub(super) fn header<'h>(&self, position: u32) -> &'h AtomicU32 {
        let at = self.place(position).0;
        // SAFETY: positions are multiples of 8, and the ring lives as long as this end.
        unsafe { &*self.port.header(self.bytes, at) }
    }

    /// The messages of the next record; none: its header says something else.
    pub(super) fn record(&self, header: u32) -> Option<Record> {
        let (at, left) = self.place(self.own);
        let length = (header & LENGTH).wrapping_sub(1);
        if header >= END || length > left {
            return None;
        }
        let is_aligned = header & ALIGNED != 0;
        if header & RUN == 0 {
            let start = start(at, 4, is_aligned);
            let stop = start + length;
            return (stop <= left).then_some(Record { start, stop, length, stride: 0 });
        }
        let (start, stride, stop) = (start(at, 8, is_aligned), stride(length, is_aligned), self.run_stop());
        let is_whole = length > 0 && stop >= start + length && (stop - start - length).is_multiple_of(stride);
        (is_whole && stop <= left).then_some(Record { start, stop, length, stride })
    }

    /// The second word of the next record. Read once: the other process could change it after the checks.
    fn run_stop(&self) -> u32 {
        // SAFETY: a record is at a multiple of 8 in the ring.
        unsafe { self.in_record(4).cast::<u32>().read_volatile() }
    }

    /// This many bytes behind the start of the next record.
    pub(super) fn in_record(&self, start: u32) -> *mut u8 {
        self.bytes.wrapping_add((self.place(self.own).0 + start) as usize)
    }

    /// Bytes of the next record.
    pub(super) fn record_bytes(&self, header: u32) -> Result<u32, Error> {
        self.record(header).map_or_else(|| self.mark_bytes(header), |record| Ok(whole(record.stop)))
    }

    /// Bytes of the next record, which has no messages.
    pub(super) fn mark_bytes(&self, header: u32) -> Result<u32, Error> {
        match (header, self.place(self.own)) {
            (END, _) => Ok(8),
            (SKIP, (1.., left)) => Ok(left),
            _ => Err(Error::Damaged),
        }
    }

    /// After a word was written that the other end may wait for. Either this end sees that the other one sleeps, or that one sees the
    /// word: its membarrier(2) is a fence here as well.
    #[inline]
    pub(super) fn tell(&self, peer: Role) {
        let peer = self.sleeper(peer);
        match !self.port.has_membarrier() || peer.needs_fence.load(Relaxed) != 0 {
            true => fence(SeqCst),
            false => compiler_fence(SeqCst),
        }
        if peer.how.load(Relaxed) != 0 {
            self.wake(peer);
        }
    }

    #[cold]
    fn wake(&self, peer: &Sleeper) {
        self.port.wake(&peer.how, peer.how.swap(0, Relaxed));
    }

    pub(super) fn arm(&self, word: &AtomicU32, seen: u32) -> bool {
        self.sleeper(self.role).announce(2, || self.port.barrier(), word, seen)
    }

    /// Waits until the word differs from `seen`, and reads it.
    #[cold]
    pub(super) fn wait(&self, word: &AtomicU32, seen: u32) -> Result<u32, Error> {
        let mut is_absent = false;
        loop {
            for _ in 0..self.port.polls() {
                let now = word.load(Acquire);
                if now != seen {
                    return Ok(now);
                }
                spin_loop();
            }
            // What died may have published before: one more look.
            if is_absent {
                return Err(Error::Absent);
            }
            is_absent = self.port.sleep(self.sleeper(self.role), word, seen)?;
        }
    }
}

/// Room for messages of one length, and messages that share a record.
#[derive(Debug)]
pub struct Run<B> {
    /// All of them, and what is between.
    pub bytes: B,
    /// Bytes of each,
    pub length: usize,
    /// from one to the next: `length` up to a multiple of 4 (of 64, for 1024 bytes and more).
    pub stride: usize,
    pub count: usize,
}

impl Run<&[u8]> {
    /// The messages, one after the other.
    #[inline]
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let Self { bytes, length, stride, count } = *self;
        (0..count).map(move |at| &bytes[at * stride..at * stride + length])
    }
}

impl Run<&mut [u8]> {
    /// Room for each message, one after the other.
    #[inline]
    pub fn rooms(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let length = self.length;
        self.bytes.chunks_mut(self.stride).map(move |room| &mut room[..length])
    }
}

/// Bytes of a record of which so many are in use.
pub(super) fn whole(stop: u32) -> u32 {
    (stop + 7) & !7
}

/// From a record to its first message.
pub(super) fn start(at: u32, header_bytes: u32, is_aligned: bool) -> u32 {
    if is_aligned { (at + header_bytes).next_multiple_of(64) - at } else { header_bytes }
}

/// From one message of a run to the next.
pub(super) fn stride(length: u32, is_aligned: bool) -> u32 {
    length.next_multiple_of(if is_aligned { 64 } else { 4 })
}
