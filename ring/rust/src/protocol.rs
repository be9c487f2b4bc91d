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
pub const VERSION: u32 = 1;
/// Where the records begin.
pub const HEAD_BYTES: usize = 4096;
/// Messages of at least this many bytes begin at a multiple of 64.
const ALIGN_FROM: u32 = 1024;
/// Most pauses in which a receiver waits for a stream to run ahead: two microseconds or so.
const PAUSES: u32 = 256;
/// In place of a length: the next record is at the first byte.
const SKIP: u32 = u32::MAX;
/// In place of a length: the sender has finished.
const END: u32 = u32::MAX - 1;
/// Beside a length: the message begins at the next multiple of 64, and not right behind.
const ALIGNED: u32 = 1 << 31;

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
    /// Positions count bytes, without end: the sender has published this many,
    written: Line,
    /// the receiver has given back this many,
    room: Line,
    /// and has done with this many.
    taken: Line,
    sleepers: [Sleeper; 2],
}

// LAYOUT.md. (The words of a model checker are larger.)
const _: () = assert!(
    size_of::<AtomicU32>() != 4
        || offset_of!(Head, written) == 128
            && offset_of!(Head, room) == 256
            && offset_of!(Head, taken) == 384
            && offset_of!(Head, sleepers) == 512
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
            written: line(),
            room: line(),
            taken: line(),
            sleepers: [sleeper(), sleeper()],
        }
    }
}

/// What an end needs of the system.
pub trait Port {
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
    /// The other end's position, as last read.
    seen: u32,
    /// Own position, as the other end can read it.
    given: u32,
    /// Bytes of the record that is reserved (up to its message), or in hand (all).
    held: u32,
    /// Bytes of the message that is reserved.
    reserved: u32,
    /// Messages since the receiver had to wait.
    streak: u32,
    port: P,
}

// SAFETY: the pointers are to memory that threads share, by the contract of `Sender::new` and `Receiver::new`.
unsafe impl<P: Send> Send for End<P> {}

impl<P: Port> End<P> {
    fn new(head: *const Head, bytes: *mut u8, capacity: u32, role: Role, port: P) -> Result<Self, Error> {
        let mut end = Self {
            head,
            bytes,
            capacity,
            role,
            own: 0,
            seen: 0,
            given: 0,
            held: 0,
            reserved: 0,
            streak: 0,
            port,
        };
        let head = end.head();
        let own = &head.sleepers[role as usize];
        own.needs_fence.store(u32::from(!end.port.has_membarrier()), SeqCst);
        own.how.store(0, SeqCst);
        let [written, room, taken] = [&head.written, &head.room, &head.taken].map(|line| line.0.load(SeqCst));
        let used;
        (end.own, end.given, end.seen, used) = match role {
            Role::Sender => (written, written, room, written.wrapping_sub(room)),
            Role::Receiver => (taken, room, taken, written.wrapping_sub(taken)),
        };
        let is_whole = capacity.is_power_of_two() && (4096..=1 << 30).contains(&capacity);
        let makes_sense =
            (end.own | end.given | end.seen) & 7 == 0 && used <= capacity && end.unpublished() <= capacity;
        if is_whole && makes_sense { Ok(end) } else { Err(Error::Damaged) }
    }

    fn head<'h>(&self) -> &'h Head {
        // SAFETY: it lives as long as this end, by the contract of `new`.
        unsafe { &*self.head }
    }

    /// The word that the other end writes.
    fn peer_word<'h>(&self) -> &'h AtomicU32 {
        match self.role {
            Role::Sender => &self.head().room.0,
            Role::Receiver => &self.head().written.0,
        }
    }

    fn unpublished(&self) -> u32 {
        self.own.wrapping_sub(self.given)
    }

    /// Where the next record is in the ring, and the bytes from there to its end.
    fn place(&self) -> (u32, u32) {
        let at = self.own & (self.capacity - 1);
        (at, self.capacity - at)
    }

    /// Either this end sees that the other one sleeps, or that one sees the new position: its membarrier(2) is a fence here as well.
    #[inline]
    fn tell(&mut self) {
        let head = self.head();
        let (word, peer) = match self.role {
            Role::Sender => (&head.written.0, &head.sleepers[Role::Receiver as usize]),
            Role::Receiver => (&head.room.0, &head.sleepers[Role::Sender as usize]),
        };
        self.given = self.own;
        word.store(self.own, Release);
        match !self.port.has_membarrier() || peer.needs_fence.load(Relaxed) != 0 {
            true => fence(SeqCst),
            false => compiler_fence(SeqCst),
        }
        if peer.how.load(Relaxed) != 0 {
            self.wake(peer);
        }
    }

    fn arm(&self) -> bool {
        let own = &self.head().sleepers[self.role as usize];
        own.announce(2, || self.port.barrier(), self.peer_word(), self.seen)
    }

    #[cold]
    fn wake(&self, peer: &Sleeper) {
        self.port.wake(&peer.how, peer.how.swap(0, Relaxed));
    }

    /// Waits until the other end's word differs from `seen`, and reads it.
    #[cold]
    fn wait(&mut self) -> Result<(), Error> {
        let word = self.peer_word();
        let mut is_absent = false;
        loop {
            for _ in 0..self.port.polls() {
                let now = word.load(Acquire);
                if now != self.seen {
                    let used = match self.role {
                        Role::Sender => self.own.wrapping_sub(now),
                        Role::Receiver => now.wrapping_sub(self.own),
                    };
                    self.seen = now;
                    return if used <= self.capacity && now & 7 == 0 { Ok(()) } else { Err(Error::Damaged) };
                }
                spin_loop();
            }
            // What died may have published before: one more look.
            if is_absent {
                return Err(Error::Absent);
            }
            let own = &self.head().sleepers[self.role as usize];
            is_absent = self.port.sleep(own, word, self.seen)?;
        }
    }
}

/// The end that sends.
pub struct Sender<P: Port>(End<P>);

impl<P: Port> Sender<P> {
    /// Goes on from the words in memory.
    ///
    /// # Safety
    /// `head` and `capacity` bytes, in a program or in shared memory, live as long as this end; they have one sender and one receiver.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the words or the capacity (a power of two from 4096 to 2^30) make no sense.
    pub unsafe fn new(head: *const Head, bytes: *mut u8, capacity: u32, port: P) -> Result<Self, Error> {
        End::new(head, bytes, capacity, Role::Sender, port).map(Self)
    }

    pub fn port(&self) -> &P {
        &self.0.port
    }

    /// Room for a message of up to `len` bytes, to be written in place; waits until there is. Then [`Self::stage`] or [`Self::commit`].
    ///
    /// # Errors
    /// As [`Error`] says; what was staged is kept.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Result<&mut [u8], Error> {
        let end = &mut self.0;
        if len > end.capacity as usize - 64 {
            return Err(Error::TooLarge(len));
        }
        let bytes = len as u32;
        let (mut at, left) = end.place();
        let mut start = start(at, bytes);
        if start + bytes > left {
            self.skip(left)?;
            (at, start) = (0, self::start(0, bytes));
        }
        let whole = (start + bytes).next_multiple_of(8);
        if !self.has_room(whole) {
            self.wait_for_room(whole)?;
        }
        (self.0.held, self.0.reserved) = (start, bytes);
        // SAFETY: `at + start + bytes` is at most the capacity, and the receiver has given these bytes back.
        Ok(unsafe { slice::from_raw_parts_mut(self.0.bytes.add((at + start) as usize), len) })
    }

    /// The reserved message is written, and this long; visible after [`Self::publish`].
    ///
    /// # Panics
    /// It was not reserved, or not as long.
    #[inline]
    pub fn stage(&mut self, len: usize) {
        let start = core::mem::take(&mut self.0.held);
        assert!(start > 0 && len <= self.0.reserved as usize, "not reserved");
        self.mark(len as u32 | if start > 4 { ALIGNED } else { 0 });
        self.0.own = self.0.own.wrapping_add((start + len as u32).next_multiple_of(8));
    }

    /// The same, visible at once.
    #[inline]
    pub fn commit(&mut self, len: usize) {
        self.stage(len);
        self.publish();
    }

    /// Copies a message into the ring; visible after [`Self::publish`].
    ///
    /// # Errors
    /// As [`Self::reserve`].
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<(), Error> {
        self.reserve(message.len())?.copy_from_slice(message);
        self.stage(message.len());
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

    /// Makes visible what is staged.
    #[inline]
    pub fn publish(&mut self) {
        if self.0.unpublished() != 0 {
            self.0.tell();
        }
    }

    /// After the last message: the receiver gets [`Error::Ended`] after all messages before.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub fn finish(&mut self) -> Result<(), Error> {
        self.wait_for_room(8)?;
        self.mark(END);
        self.0.own = self.0.own.wrapping_add(8);
        self.publish();
        Ok(())
    }

    /// Whether the receiver has done with all that was published.
    pub fn is_drained(&self) -> bool {
        self.0.head().taken.0.load(Acquire) == self.0.given
    }

    /// Before poll(2) for the end's eventfd: true if there is nothing to do now, and the other end will write to it.
    pub fn arm(&self) -> bool {
        self.0.arm()
    }

    fn has_room(&self, bytes: u32) -> bool {
        self.0.own.wrapping_add(bytes).wrapping_sub(self.0.seen) <= self.0.capacity
    }

    fn wait_for_room(&mut self, bytes: u32) -> Result<(), Error> {
        while !self.has_room(bytes) {
            self.publish(); // the receiver must take what is there
            self.0.wait()?;
        }
        Ok(())
    }

    /// A record is in one piece: one that does not fit before the end of the bytes begins at the first byte.
    #[cold]
    fn skip(&mut self, left: u32) -> Result<(), Error> {
        self.wait_for_room(left)?;
        self.mark(SKIP);
        self.0.own = self.0.own.wrapping_add(left);
        Ok(())
    }

    fn mark(&mut self, word: u32) {
        let (at, _) = self.0.place();
        // SAFETY: positions are multiples of 8, and these bytes are the sender's.
        unsafe { self.0.bytes.add(at as usize).cast::<u32>().write(word) };
    }
}

/// From a record to a message of so many bytes.
fn start(at: u32, bytes: u32) -> u32 {
    if bytes < ALIGN_FROM { 4 } else { aligned_start(at) }
}

fn aligned_start(at: u32) -> u32 {
    (at + 4).next_multiple_of(64) - at
}

impl<P: Port> Drop for Sender<P> {
    fn drop(&mut self) {
        self.publish();
    }
}

/// The end that receives.
pub struct Receiver<P: Port>(End<P>);

impl<P: Port> Receiver<P> {
    /// Goes on from the words in memory.
    ///
    /// # Safety
    /// As [`Sender::new`].
    ///
    /// # Errors
    /// As [`Sender::new`].
    pub unsafe fn new(head: *const Head, bytes: *mut u8, capacity: u32, port: P) -> Result<Self, Error> {
        End::new(head, bytes, capacity, Role::Receiver, port).map(Self)
    }

    pub fn port(&self) -> &P {
        &self.0.port
    }

    /// A message in place; waits until there is one. A sender that is no friend can change it while it is read: copy it first.
    ///
    /// # Errors
    /// As [`Error`] says.
    #[inline]
    pub fn peek(&mut self) -> Result<&[u8], Error> {
        self.release();
        loop {
            if self.0.own == self.0.seen {
                self.wait_for_message()?;
            }
            let end = &mut self.0;
            let (at, to_end) = end.place();
            // SAFETY: positions are multiples of 8 below the capacity. Read once: the other process could change it after the checks.
            let word = unsafe { end.bytes.add(at as usize).cast::<u32>().read_volatile() };
            let length = word & !ALIGNED;
            let start = if word & ALIGNED == 0 { 4 } else { aligned_start(at) };
            let left = to_end.min(end.seen.wrapping_sub(end.own));
            if word < END && start <= left && length <= left - start {
                end.held = (start + length).next_multiple_of(8);
                // SAFETY: it ends before the end of the bytes and of what was published.
                return Ok(unsafe {
                    slice::from_raw_parts(end.bytes.add((at + start) as usize), length as usize)
                });
            }
            end.held = match word {
                END => 8,
                SKIP if left == to_end => left,
                _ => return Err(Error::Damaged),
            };
            if word == END {
                return Err(Error::Ended);
            }
            self.release();
        }
    }

    /// Copies a message; its length.
    ///
    /// # Errors
    /// As [`Error`] says.
    #[inline]
    pub fn receive(&mut self, message: &mut [u8]) -> Result<usize, Error> {
        let found = self.peek()?;
        let len = found.len();
        let Some(room) = message.get_mut(..len) else {
            self.0.held = 0;
            return Err(Error::TooLarge(len));
        };
        room.copy_from_slice(found);
        Ok(len)
    }

    /// Whether nothing was published after the message in hand.
    pub fn is_last(&self) -> bool {
        self.0.head().written.0.load(Acquire) == self.0.own.wrapping_add(self.0.held)
    }

    /// The message in hand is done with: a receiver that is killed after this does not get it again. Asking for the next one does the
    /// same. Room is given back an eighth of the ring at a time, which keeps the word's cache line with the sender.
    #[inline]
    pub fn release(&mut self) {
        let end = &mut self.0;
        if end.held == 0 {
            return;
        }
        end.own = end.own.wrapping_add(end.held);
        end.held = 0;
        end.streak = end.streak.saturating_add(1);
        end.head().taken.0.store(end.own, Release);
        if end.unpublished() >= end.capacity / 8 {
            end.tell();
        }
    }

    /// As [`Sender::arm`].
    pub fn arm(&self) -> bool {
        self.0.own.wrapping_add(self.0.held) == self.0.seen && self.0.arm()
    }

    #[cold]
    fn wait_for_message(&mut self) -> Result<(), Error> {
        let end = &mut self.0;
        if end.head().written.0.load(Acquire) == end.own {
            // The sender may wait for more than an eighth.
            if end.unpublished() != 0 {
                end.tell();
            }
            // A stream is faster if the two ends are not at the same cache line: looks away as many times as it had messages.
            (1..end.streak.min(PAUSES)).for_each(|_| spin_loop());
            end.streak = 0;
        }
        end.wait()
    }
}

impl<P: Port> Drop for Receiver<P> {
    fn drop(&mut self) {
        self.release();
        if self.0.unpublished() != 0 {
            self.0.tell();
        }
    }
}
