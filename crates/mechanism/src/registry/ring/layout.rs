//! Where everything lies in a ring's memory.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::event::{EventfdFlags, eventfd};
use rustix::param::page_size;

use super::wait::RingWait;
use crate::{OpenError, SharedMemory};

/// Bytes in a ring when `size=` is not given.
pub(super) const DEFAULT_BYTES: u64 = 1 << 20;

/// The largest ring: more than any cache, and half a gigabyte is no buffer any more.
pub(super) const BYTES_MAX: u64 = 128 << 20;

/// The most one end works on before it tells the other, in bytes: the work on one piece then overlaps that on
/// the next. A quarter of a small ring, so that neither end waits for the other's whole copy.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// The longest message that the head's own word carries: published in one store, since the receiver, who looks at
/// the line all the time, would take it away between two (a fifth of a round trip, when it was measured).
const WORD_BYTES: usize = 3;

/// The longest message that the head's own cache line carries: it then costs one line transfer, not two.
pub(super) const LINE_BYTES: usize = 40;

/// How much of the head's word is the head: more than a ring holds, so that differences are exact.
const HEAD_BITS: u32 = 29;
const HEAD_SHIFT: u32 = u64::BITS - HEAD_BITS;
const SHORT_SHIFT: u32 = HEAD_SHIFT - 6;
const _: () =
    assert!(BYTES_MAX < 1 << HEAD_BITS && LINE_BYTES < 1 << 6 && WORD_BYTES * 8 <= SHORT_SHIFT as usize);

/// How far the sender has come, modulo 2^29, and, after a short message, its bytes: the last ones of the stream so
/// far. They lie in the ring as well; here the receiver finds them sooner.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head(u64);

impl Head {
    /// Nothing was sent.
    pub(super) const START: Self = Self(0);

    /// A head whose last `short` bytes stand on its line; those of a very short message, in `bytes`, in the head.
    #[inline]
    fn new(sent: u64, short: usize, bytes: &[u8]) -> Self {
        let mut word = sent << HEAD_SHIFT | (short as u64) << SHORT_SHIFT;
        for (index, byte) in bytes.iter().enumerate() {
            word |= u64::from(*byte) << (8 * index);
        }
        Self(word)
    }

    /// Bytes sent and not yet received.
    #[inline]
    pub(super) fn ahead_of(self, received: u64) -> usize {
        // The difference of the upper bits, modulo what they hold.
        (self.0.wrapping_sub(received << HEAD_SHIFT) >> HEAD_SHIFT) as usize
    }

    /// How many of the last bytes stand on the head's line too.
    #[inline]
    pub(super) fn short(self) -> usize {
        (self.0 >> SHORT_SHIFT) as usize & ((1 << (HEAD_SHIFT - SHORT_SHIFT)) - 1)
    }

    /// The bytes of a very short message, if that is what was sent last; further bytes mean nothing.
    #[inline]
    pub(super) fn bytes(self) -> Option<[u8; 8]> {
        (self.short() <= WORD_BYTES).then_some(self.0.to_le_bytes())
    }
}

/// What the sender writes. A cache line of its own, and the neighbour that the prefetcher fetches with it.
#[repr(C, align(128))]
pub(super) struct SenderLine {
    head: AtomicU64,
    short: UnsafeCell<[u8; LINE_BYTES]>,
}

// SAFETY: the short message is written by the sender only while it knows that everything was received, and read by
// the receiver only after the head that covers it was published, and before it is released.
unsafe impl Sync for SenderLine {}

impl SenderLine {
    /// The head as it is now.
    #[inline]
    pub(super) fn head(&self) -> Head {
        Head(self.head.load(Acquire))
    }

    /// Publishes a head: `sent` bytes in all, of which the message `last` was the last. `alone`: everything before it
    /// was received.
    #[inline]
    pub(super) fn publish(&self, sent: u64, last: &[u8], alone: impl FnOnce() -> bool) {
        let head = if last.len() <= WORD_BYTES {
            Head::new(sent, last.len(), last)
        } else if last.len() <= LINE_BYTES && alone() {
            // SAFETY: the receiver reads nothing here any more (see `Sync` above), and the line has room.
            unsafe { std::ptr::copy_nonoverlapping(last.as_ptr(), self.short.get().cast(), last.len()) };
            Head::new(sent, last.len(), &[])
        } else {
            Head::new(sent, 0, &[])
        };
        self.head.store(head.0, Release);
    }

    /// The short message's bytes.
    #[inline]
    pub(super) fn short(&self) -> *const u8 {
        self.short.get().cast()
    }
}

/// What the receiver writes.
#[repr(C, align(128))]
pub(super) struct ReceiverLine {
    /// Bytes received so far.
    pub(super) tail: AtomicU64,
}

/// Who sleeps: written before a sleep, read after each publication.
#[repr(C, align(128))]
pub(super) struct Sleepers {
    pub(super) sender: AtomicU32,
    pub(super) receiver: AtomicU32,
}

#[repr(C)]
pub(super) struct Control {
    pub(super) sender: SenderLine,
    pub(super) receiver: ReceiverLine,
    pub(super) sleepers: Sleepers,
}

/// What two ends sleep on beside the words of [`Sleepers`], if anything.
pub(super) struct Bells {
    pub(super) sender: OwnedFd,
    pub(super) receiver: OwnedFd,
}

/// Bytes of the control lines, in whole pages.
pub(in super::super) fn control_bytes() -> usize {
    size_of::<Control>().next_multiple_of(page_size())
}

/// Bytes that a ring of this size takes of a memory that is mapped in whole pages.
pub(in super::super) fn mapped_bytes(ring_bytes: usize) -> usize {
    ring_bytes.next_multiple_of(page_size())
}

/// The ring as both ends see it: its bytes twice, back to back, so that nothing ever wraps, then the control lines.
pub(in super::super) struct Ring {
    memory: SharedMemory,
    bytes: usize,
    mapped_bytes: usize,
    /// See [`PIECE_BYTES_MAX`].
    piece_bytes: usize,
    bells: Option<Bells>,
}

impl Ring {
    /// A ring in anonymous memory. `bytes` is a power of two.
    pub(in super::super) fn new(bytes: usize, wait: RingWait) -> Result<Self, OpenError> {
        let memory = SharedMemory::twice(mapped_bytes(bytes), control_bytes());
        Self::over(memory.map_err(OpenError::system("mmap(MAP_SHARED) of the ring"))?, bytes, wait)
    }

    /// A ring in memory that was mapped twice, all zeros. `bytes` is a power of two.
    pub(in super::super) fn over(
        memory: SharedMemory,
        bytes: usize,
        wait: RingWait,
    ) -> Result<Self, OpenError> {
        let mapped_bytes = mapped_bytes(bytes);
        assert!(bytes.is_power_of_two() && memory.len() >= 2 * mapped_bytes + control_bytes());
        let bell = || eventfd(0, EventfdFlags::CLOEXEC).map_err(OpenError::system("eventfd2"));
        let bells = match wait {
            RingWait::Eventfd => Some(Bells { sender: bell()?, receiver: bell()? }),
            RingWait::Spin | RingWait::Futex | RingWait::Never => None,
        };
        let piece_bytes = (bytes / 4).clamp(1, PIECE_BYTES_MAX);
        Ok(Self { memory, bytes, mapped_bytes, piece_bytes, bells })
    }

    /// Bytes it holds.
    pub(in super::super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The most that is published at once.
    #[inline]
    pub(super) fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    /// Puts the pages where this task finds them without a fault: a fork leaves shared ones out.
    pub(super) fn populate(&self) {
        self.memory.populate();
    }

    #[inline]
    pub(super) fn control(&self) -> &Control {
        // SAFETY: the mapping is page-aligned and long enough (see `over`), zeroed (a valid Control), and all
        // fields are atomics or guarded by them, so that shared references from several tasks are sound.
        unsafe { &*self.memory.as_ptr().add(2 * self.mapped_bytes).cast::<Control>() }
    }

    pub(super) fn bells(&self) -> Option<&Bells> {
        self.bells.as_ref()
    }

    /// The place of a stream offset: as many bytes as the ring holds follow it.
    #[inline]
    pub(super) fn place(&self, offset: u64) -> *mut u8 {
        // SAFETY: the index is less than the bytes of the first copy.
        unsafe { self.memory.as_ptr().add(offset as usize & (self.mapped_bytes - 1)) }
    }
}

/// The error of a task that would have to wait for itself.
#[cold]
pub(super) fn would_wait_for_itself() -> io::Error {
    io::Error::new(
        io::ErrorKind::WouldBlock,
        "one task that sends and then receives would wait for itself: the block does not fit in the ring \
         (smaller --block, larger size=, or --tasks processes)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_knows_how_far_it_is_ahead_wherever_the_stream_stands() {
        for received in [0, 5, (1 << HEAD_BITS) - 2, (1 << 40) + 3] {
            for ahead in [0, 1, 3, BYTES_MAX] {
                assert_eq!(Head::new(received + ahead, 0, &[]).ahead_of(received), ahead as usize);
            }
        }
    }

    #[test]
    fn a_very_short_message_is_in_the_head() {
        let head = Head::new(1 << 33, 3, b"abc");
        assert_eq!((head.short(), head.ahead_of((1 << 33) - 3)), (3, 3));
        assert_eq!(head.bytes().map(|bytes| [bytes[0], bytes[1], bytes[2]]), Some(*b"abc"));
        assert_eq!(Head::new(7, LINE_BYTES, &[]).bytes(), None);
    }
}
