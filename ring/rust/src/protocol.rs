//! Whole messages through memory, from one sender to one receiver. Copy it: MIT or Apache-2.0, as hosepipe is.
//!
//! No system call while both ends keep up. An end that was killed at any instruction loses nothing that was published; a new end with the
//! same role goes on where it stopped, and only the message that a killed receiver had in hand comes a second time.

use core::mem::offset_of;
use core::sync::atomic::compiler_fence;
use core::{fmt, slice};
use std::hint::spin_loop;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

pub const MAGIC: u32 = u32::from_ne_bytes(*b"ring");
pub const VERSION: u32 = 3;
/// Where the records begin.
pub const HEAD_BYTES: usize = 4096;
/// Messages of at least this many bytes begin at a multiple of 64.
const ALIGN_FROM: usize = 1024;
/// Most pauses in which a receiver waits for a stream to run ahead: ten microseconds or so.
const PAUSES: u32 = 1024;
/// A receiver whose messages come one by one makes such a wait once in this many: perhaps they do because both ends are at the same line.
const TRIES: u32 = 1024;
/// Beside the largest message, which lies at the first byte: what is before it, and the header behind it.
const BESIDE: u32 = 64 + 8;
/// A header is 0 (no record yet), the length of a message plus 1, or:
/// the next record is at the first byte;
const SKIP: u32 = u32::MAX;
/// the sender has finished.
const END: u32 = u32::MAX - 1;
/// Beside a length: the message begins at the next multiple of 64, and not right behind the header;
const ALIGNED: u32 = 1 << 31;
/// the record is a run: messages of this length behind a second word, which says how far they go.
const RUN: u32 = 1 << 30;
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
struct Line(AtomicU32);

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
    room: Line,
    /// and has done with this many.
    taken: Line,
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
enum Role {
    Sender,
    Receiver,
}

/// What both ends have.
struct End<P> {
    head: *const Head,
    bytes: *mut u8,
    capacity: u32,
    role: Role,
    /// Where the next record begins.
    own: u32,
    /// Where the records begin that the sender has not published; the room that the receiver has given back.
    given: u32,
    port: P,
}

/// A record of messages. Bytes from its header to
#[derive(Clone, Copy)]
struct Record {
    /// the first message,
    start: u32,
    /// and the end of the last one;
    stop: u32,
    /// of each message,
    length: u32,
    /// and from one to the next; 0: there is one.
    stride: u32,
}

impl Record {
    /// Whether it is a run with a message this many bytes behind its header.
    fn has_message_at(&self, at: u32) -> bool {
        self.stride > 0
            && (self.start..=self.stop - self.length).contains(&at)
            && (at - self.start).is_multiple_of(self.stride)
    }
}

// SAFETY: the pointers are to memory that threads share, by the contract of `Sender::new` and `Receiver::new`.
unsafe impl<P: Send> Send for End<P> {}

impl<P: Port> End<P> {
    fn new(head: *const Head, bytes: *mut u8, capacity: u32, role: Role, port: P) -> Result<Self, Error> {
        let mut end = Self { head, bytes, capacity, role, own: 0, given: 0, port };
        let sleeper = end.sleeper(role);
        sleeper.needs_fence.store(u32::from(!end.port.has_membarrier()), SeqCst);
        sleeper.how.store(0, SeqCst);
        (end.given, end.own) = (end.head().room.0.load(SeqCst), end.head().taken.0.load(SeqCst));
        let is_whole = capacity.is_power_of_two() && (4096..=1 << 30).contains(&capacity);
        let makes_sense = end.given & 7 == 0 && end.own.wrapping_sub(end.given) <= capacity;
        if is_whole && makes_sense { Ok(end) } else { Err(Error::Damaged) }
    }

    fn head<'h>(&self) -> &'h Head {
        // SAFETY: it lives as long as this end, by the contract of `new`.
        unsafe { &*self.head }
    }

    fn sleeper<'h>(&self, role: Role) -> &'h Sleeper {
        &self.head().sleepers[role as usize]
    }

    /// Where a position is in the ring, and the bytes from there to its end.
    fn place(&self, position: u32) -> (u32, u32) {
        let at = position & (self.capacity - 1);
        (at, self.capacity - at)
    }

    fn header<'h>(&self, position: u32) -> &'h AtomicU32 {
        let at = self.place(position).0;
        // SAFETY: positions are multiples of 8, and the ring lives as long as this end.
        unsafe { &*self.port.header(self.bytes, at) }
    }

    /// The messages of the next record; none: its header says something else.
    fn record(&self, header: u32) -> Option<Record> {
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
    fn in_record(&self, start: u32) -> *mut u8 {
        self.bytes.wrapping_add((self.place(self.own).0 + start) as usize)
    }

    /// Bytes of the next record.
    fn record_bytes(&self, header: u32) -> Result<u32, Error> {
        match (self.record(header), header, self.place(self.own)) {
            (Some(record), ..) => Ok(whole(record.stop)),
            (None, END, _) => Ok(8),
            (None, SKIP, (1.., left)) => Ok(left),
            _ => Err(Error::Damaged),
        }
    }

    /// After a word was written that the other end may wait for. Either this end sees that the other one sleeps, or that one sees the
    /// word: its membarrier(2) is a fence here as well.
    #[inline]
    fn tell(&self, peer: Role) {
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

    fn arm(&self, word: &AtomicU32, seen: u32) -> bool {
        self.sleeper(self.role).announce(2, || self.port.barrier(), word, seen)
    }

    /// Waits until the word differs from `seen`, and reads it.
    #[cold]
    fn wait(&self, word: &AtomicU32, seen: u32) -> Result<u32, Error> {
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

/// The end that sends. (Two ends of one program are not in one cache line.)
#[repr(align(128))]
pub struct Sender<P: Port> {
    end: End<P>,
    /// The receiver's `room`, as last read.
    room: u32,
    /// Records may be written up to here, in one piece.
    limit: u32,
    /// Header of the first record that is not published.
    first: u32,
    reserved: Reserved,
}

/// Room of the next record; a start of 0: none is reserved. Bytes
#[derive(Clone, Copy, Default)]
struct Reserved {
    /// from the record to its first message,
    start: u32,
    /// of each message,
    length: u32,
    /// and from one to the next.
    stride: u32,
    /// Messages.
    count: u32,
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
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count).map(|at| &self.bytes[at * self.stride..][..self.length])
    }
}

impl Run<&mut [u8]> {
    /// Room for each message, one after the other.
    pub fn rooms(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let length = self.length;
        self.bytes.chunks_mut(self.stride).map(move |room| &mut room[..length])
    }
}

impl<P: Port> Sender<P> {
    /// Goes on behind the records in memory; memory of zeros is an empty ring.
    ///
    /// # Safety
    /// `head` and `capacity` bytes, aligned to 64, in a program or in shared memory, live as long as this end; they have one sender and
    /// one receiver.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the words or the capacity (a power of two from 4096 to 2^30) make no sense.
    pub unsafe fn new(head: *const Head, bytes: *mut u8, capacity: u32, port: P) -> Result<Self, Error> {
        let mut end = End::new(head, bytes, capacity, Role::Sender, port)?;
        let room = end.given;
        end.own = room;
        while end.own.wrapping_sub(room) <= capacity - 8 {
            let header = end.header(end.own).load(Acquire);
            if header == 0 {
                end.given = end.own;
                let limit = end.own;
                return Ok(Self { end, room, limit, first: 0, reserved: Reserved::default() });
            }
            end.own = end.own.wrapping_add(end.record_bytes(header)?);
        }
        Err(Error::Damaged)
    }

    pub fn port(&self) -> &P {
        &self.end.port
    }

    /// Room for a message of up to `len` bytes, to be written in place; waits until there is. Then [`Self::stage`] or [`Self::commit`].
    ///
    /// # Errors
    /// As [`Error`] says; what was staged is kept.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Result<&mut [u8], Error> {
        let start = if self.fits(len) { 4 } else { self.make_room(4, len, len >= ALIGN_FROM)? };
        self.reserved = Reserved { start, length: len as u32, stride: 0, count: 1 };
        // SAFETY: there is room.
        Ok(unsafe { slice::from_raw_parts_mut(self.end.in_record(start), len) })
    }

    /// The reserved message is written, and this long; visible after [`Self::publish`].
    ///
    /// # Panics
    /// It was not reserved, or not as long.
    #[inline]
    pub fn stage(&mut self, len: usize) {
        let Reserved { start, length, stride, .. } = self.reserved;
        assert!(start > 0 && stride == 0 && len <= length as usize, "not reserved");
        self.put_message(start, len as u32);
    }

    /// The same, visible at once.
    #[inline]
    pub fn commit(&mut self, len: usize) {
        self.stage(len);
        self.publish();
    }

    /// Room for up to `count` messages of `len` bytes each, which share a record: at least one, and no more than an eighth of the ring has
    /// room for. Waits until there is. Then [`Self::commit_run`].
    ///
    /// # Errors
    /// As [`Self::reserve`].
    ///
    /// # Panics
    /// The messages are empty.
    pub fn reserve_run(&mut self, len: usize, count: usize) -> Result<Run<&mut [u8]>, Error> {
        assert!(len > 0, "a run of empty messages");
        let most = self.end.capacity as usize / 8;
        if len > self.end.capacity as usize {
            return Err(Error::TooLarge(len));
        }
        let is_aligned = len >= ALIGN_FROM;
        let stride = stride(len as u32, is_aligned) as usize;
        let count = count.clamp(1, (most / stride).max(1));
        let bytes = (count - 1) * stride + len;
        let start = self.make_room(8, bytes, is_aligned)?;
        self.reserved = Reserved { start, length: len as u32, stride: stride as u32, count: count as u32 };
        // SAFETY: there is room.
        let bytes = unsafe { slice::from_raw_parts_mut(self.end.in_record(start), bytes) };
        Ok(Run { bytes, length: len, stride, count })
    }

    /// The first `count` messages of the reserved run are written; visible at once.
    ///
    /// # Panics
    /// They were not reserved.
    pub fn commit_run(&mut self, count: usize) {
        let Reserved { start, length, stride, count: most } = self.reserved;
        assert!(stride > 0 && count <= most as usize, "not reserved");
        let Some(before) = (count as u32).checked_sub(1) else { return };
        let stop = start + before * stride + length;
        // SAFETY: it is behind the header of the record.
        unsafe { self.end.in_record(4).cast::<u32>().write(stop) };
        let aligned = if length as usize >= ALIGN_FROM { ALIGNED } else { 0 };
        self.put((length + 1) | RUN | aligned, whole(stop));
        self.publish();
    }

    /// Copies a message into the ring; visible after [`Self::publish`].
    ///
    /// # Errors
    /// As [`Self::reserve`].
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<(), Error> {
        if !self.fits(message.len()) {
            return self.push_anew(message);
        }
        // SAFETY: there is room.
        unsafe { self.end.in_record(4).copy_from_nonoverlapping(message.as_ptr(), message.len()) };
        self.put_message(4, message.len() as u32);
        Ok(())
    }

    /// The same, visible at once.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    #[inline]
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.push(message)?;
        self.publish();
        Ok(())
    }

    /// Makes visible what is staged: the receiver comes to its first header, which is written last.
    #[inline]
    pub fn publish(&mut self) {
        let end = &mut self.end;
        let (next, header, first) = (end.header(end.own), end.header(end.given), self.first);
        if end.given != end.own {
            end.given = end.own;
            next.store(0, Relaxed);
            header.store(first, Release);
            end.tell(Role::Receiver);
        }
    }

    /// After the last message: the receiver gets [`Error::Ended`] after all messages before.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub fn finish(&mut self) -> Result<(), Error> {
        self.wait_for_room(8)?;
        self.put(END, 8);
        self.publish();
        Ok(())
    }

    /// Whether the receiver has done with all that was published.
    pub fn is_drained(&self) -> bool {
        self.end.head().taken.0.load(Acquire) == self.end.given
    }

    /// Before poll(2) for the end's eventfd: true if there is nothing to do now, and the other end will write to it.
    pub fn arm(&self) -> bool {
        self.end.arm(&self.end.head().room.0, self.room)
    }

    /// Whether there is room for a message right behind its header, known without a look at the receiver's words.
    #[inline]
    fn fits(&self, len: usize) -> bool {
        len < ALIGN_FROM && whole(4 + len as u32) <= self.limit.wrapping_sub(self.end.own)
    }

    #[cold]
    fn push_anew(&mut self, message: &[u8]) -> Result<(), Error> {
        self.reserve(message.len())?.copy_from_slice(message);
        self.stage(message.len());
        Ok(())
    }

    /// Waits for room for a record of so many bytes behind its start, and the header behind it; the start. A record is in one piece: one
    /// that does not fit before the end of the bytes begins at the first byte.
    #[cold]
    fn make_room(&mut self, header_bytes: u32, len: usize, is_aligned: bool) -> Result<u32, Error> {
        self.reserved = Reserved::default();
        if len > (self.end.capacity - BESIDE) as usize {
            return Err(Error::TooLarge(len));
        }
        let (bytes, (at, left)) = (len as u32, self.end.place(self.end.own));
        let mut start = start(at, header_bytes, is_aligned);
        if start + bytes > left {
            self.wait_for_room(left)?;
            self.put(SKIP, left);
            start = self::start(0, header_bytes, is_aligned);
        }
        self.wait_for_room(whole(start + bytes))?;
        Ok(start)
    }

    /// Waits for room for a record and the header behind it. Every record is put after this or below the limit that it leaves, so the limit
    /// is never behind `own`.
    fn wait_for_room(&mut self, bytes: u32) -> Result<(), Error> {
        while self.end.own.wrapping_add(bytes + 8).wrapping_sub(self.room) > self.end.capacity {
            self.publish(); // the receiver must take what is there
            let now = self.end.wait(&self.end.head().room.0, self.room)?;
            if now & 7 != 0 || self.end.own.wrapping_sub(now) > self.end.capacity {
                return Err(Error::Damaged);
            }
            self.room = now;
        }
        let end = &self.end;
        let room = self.room.wrapping_add(end.capacity - 8).wrapping_sub(end.own);
        self.limit = end.own.wrapping_add(room.min(end.place(end.own).1));
        Ok(())
    }

    #[inline]
    fn put_message(&mut self, start: u32, bytes: u32) {
        self.put((bytes + 1) | if start > 4 { ALIGNED } else { 0 }, whole(start + bytes));
    }

    #[inline]
    fn put(&mut self, header: u32, bytes: u32) {
        let end = &mut self.end;
        let own = end.own;
        end.own = own.wrapping_add(bytes);
        self.reserved.start = 0; // it was at the old position
        self.reserved.stride = 0;
        match own == end.given {
            true => self.first = header,
            false => end.header(own).store(header, Relaxed),
        }
    }
}

/// Bytes of a record of which so many are in use.
fn whole(stop: u32) -> u32 {
    (stop + 7) & !7
}

/// From a record to its first message.
fn start(at: u32, header_bytes: u32, is_aligned: bool) -> u32 {
    if is_aligned { (at + header_bytes).next_multiple_of(64) - at } else { header_bytes }
}

/// From one message of a run to the next.
fn stride(length: u32, is_aligned: bool) -> u32 {
    length.next_multiple_of(if is_aligned { 64 } else { 4 })
}

impl<P: Port> Drop for Sender<P> {
    fn drop(&mut self) {
        self.publish();
    }
}

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
            self.next =
                if own == self.rest.last { self.rest.next } else { own.wrapping_add(self.rest.stride) };
            return Ok((self.end.place(own).0, self.rest.length));
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
                self.next = own.wrapping_add(self.end.record_bytes(header)?);
                if header == END {
                    return Err(Error::Ended);
                }
                self.release();
                continue;
            };
            self.next = own.wrapping_add(whole(record.stop));
            if record.stride > 0 {
                self.rest = Rest::new(own, &record);
                self.end.own = own.wrapping_add(record.start);
                if self.end.own != self.rest.last {
                    self.next = self.end.own.wrapping_add(record.stride);
                }
            }
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
