//! The memory layout of a ring: its bytes, the slots that announce messages, the counters of both ends, and what they sleep on.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::event::{EventfdFlags, eventfd};
use rustix::param::page_size;

use crate::prelude::*;

/// Bytes in a ring when `size=` is not given.
pub(super) const DEFAULT_BYTES: u64 = 1 << 20;

/// The largest ring: larger than the caches of most machines; more memory would not make it faster.
pub(super) const BYTES_MAX: u64 = 128 << 20;

/// Most bytes that an end copies before it publishes them: the sender's copy of one piece then overlaps the
/// receiver's copy of the piece before. At most a quarter of the ring, so that this also works in a small ring.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// The longest message that lies in its slot, in bytes: what its two cache lines hold beside the stamp. A longer one
/// lies in the ring's bytes, which costs the receiver one more cache miss after it has seen the stamp.
pub(super) const SHORT_BYTES: usize = 96;

/// Most messages in flight. Enough to keep both ends busy with messages of a few bytes; the slots of two
/// directions still fit into a core's L2 cache.
const SLOTS: usize = 1024;

/// Low bits of a stamp that hold the message's length; the longest piece fits into them.
const LEN_BITS: u32 = 20;
const _: () = assert!(PIECE_BYTES_MAX < 1 << LEN_BITS && SHORT_BYTES <= PIECE_BYTES_MAX);

/// How an end of a ring waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingWait {
    /// Looks again at once.
    Spin,
    /// Asleep in futex(2).
    Futex,
    /// Asleep in read(2) of an eventfd(2): what a program that also waits for descriptors would do.
    Eventfd,
    /// Not at all: a single task that waited for itself would wait for ever.
    Never,
}

impl RingWait {
    /// How the ends of this request wait: the spec's `wait=` comes before the request's.
    pub(crate) fn for_request(request: &Request<'_>) -> Self {
        match (request.tasks, request.options.word("wait"), request.wait) {
            (Tasks::Single, ..) => Self::Never,
            (_, Some("spin"), _) | (_, None, Wait::Spin) => Self::Spin,
            (_, Some("eventfd"), _) => Self::Eventfd,
            _ => Self::Futex,
        }
    }

    #[inline]
    pub(super) fn sleeps(self) -> bool {
        matches!(self, Self::Futex | Self::Eventfd)
    }
}

/// What the sender writes for each message. Slots are used in turn, so that the sender writes one that the receiver
/// does not read yet, and reads the receiver's counters only after all slots were used. Two cache lines, because
/// the CPU fetches them in pairs.
#[repr(C, align(128))]
pub(super) struct Slot {
    /// The message's number, from 1 on, and its length.
    stamp: AtomicU64,
    /// The message, if it is short.
    short: UnsafeCell<Short>,
    /// Never written.
    second_line: AtomicU64,
}

/// Aligned, so that steps of 16 bytes do not reach across two cache lines.
#[repr(C, align(16))]
struct Short([u8; SHORT_BYTES]);

// SAFETY: the sender writes a short message only while the slot is its own: before it stamps it, and after the receiver
// has released the slot's last message. The receiver reads it only in between.
unsafe impl Sync for Slot {}

impl Slot {
    /// Publishes message `number`, which must be written completely before.
    #[inline]
    pub(super) fn publish(&self, number: u64, len: usize) {
        self.stamp.store(number << LEN_BITS | len as u64, Release);
    }

    /// The length of message `number`, in bytes, once it was handed over.
    #[inline]
    pub(super) fn len_of(&self, number: u64) -> Option<usize> {
        let stamp = self.stamp.load(Acquire);
        (stamp >> LEN_BITS == number).then_some((stamp & ((1 << LEN_BITS) - 1)) as usize)
    }

    /// Fetches the slot's second cache line before the message comes; later it would be a second cache miss.
    #[inline]
    pub(super) fn touch_second_line(&self) {
        self.second_line.load(Relaxed);
    }

    /// Where a short message lies.
    #[inline]
    pub(super) fn short(&self) -> *mut u8 {
        self.short.get().cast()
    }
}

/// What the receiver writes: how far the sender may go.
#[repr(C, align(128))]
struct Released {
    /// The last message all of which was received.
    message: AtomicU64,
    /// Bytes received. Short messages count too, though they do not use the ring's bytes: so bytes in flight never
    /// exceed the ring's size.
    bytes: AtomicU64,
}

/// Flags of the sleeping ends: set before a sleep, read after each publication.
#[repr(C, align(128))]
pub(super) struct Sleepers {
    pub(super) sender: AtomicU32,
    pub(super) receiver: AtomicU32,
}

#[repr(C)]
pub(super) struct Control {
    slots: [Slot; SLOTS],
    released: Released,
    pub(super) sleepers: Sleepers,
}

/// The eventfds that the ends sleep on where `wait=eventfd`.
pub(super) struct WakeFds {
    pub(super) sender: OwnedFd,
    pub(super) receiver: OwnedFd,
}

/// Bytes of the control lines, in whole pages.
pub(crate) fn control_bytes() -> usize {
    size_of::<Control>().next_multiple_of(page_size())
}

/// Bytes that a ring of this size takes of a memory that is mapped in whole pages.
pub(crate) fn mapped_bytes(ring_bytes: usize) -> usize {
    ring_bytes.next_multiple_of(page_size())
}

/// The ring as both ends see it: its bytes twice, back to back, so that nothing ever wraps, then the control lines.
pub(crate) struct Ring {
    memory: SharedMemory,
    bytes: usize,
    mapped_bytes: usize,
    /// See [`PIECE_BYTES_MAX`].
    piece_bytes: usize,
    wake_fds: Option<WakeFds>,
}

impl Ring {
    /// A ring in anonymous memory. `bytes` is a power of two.
    pub(crate) fn new(bytes: usize, wait: RingWait) -> Result<Self, OpenError> {
        let memory = SharedMemory::twice(mapped_bytes(bytes), control_bytes());
        Self::over(memory.map_err(OpenError::system("mmap(MAP_SHARED) of the ring"))?, bytes, wait)
    }

    /// A ring in memory that was mapped twice, all zeros. `bytes` is a power of two.
    pub(crate) fn over(memory: SharedMemory, bytes: usize, wait: RingWait) -> Result<Self, OpenError> {
        let mapped_bytes = mapped_bytes(bytes);
        assert!(bytes.is_power_of_two() && memory.len() >= 2 * mapped_bytes + control_bytes());
        let wake_fd = || eventfd(0, EventfdFlags::CLOEXEC).map_err(OpenError::system("eventfd2"));
        let wake_fds = match wait {
            RingWait::Eventfd => Some(WakeFds { sender: wake_fd()?, receiver: wake_fd()? }),
            RingWait::Spin | RingWait::Futex | RingWait::Never => None,
        };
        let piece_bytes = (bytes / 4).clamp(1, PIECE_BYTES_MAX);
        Ok(Self { memory, bytes, mapped_bytes, piece_bytes, wake_fds })
    }

    /// Bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The most that is published at once.
    #[inline]
    pub(super) fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    /// Maps all pages into this task's page table, to avoid page faults later: fork(2) does not copy entries of shared
    /// mappings.
    pub(super) fn populate(&self) {
        self.memory.populate();
    }

    #[inline]
    pub(super) fn control(&self) -> &Control {
        // SAFETY: the mapping is page-aligned and long enough (see `over`), zeroed (a valid Control), and all
        // fields are atomics or guarded by them, so that shared references from several tasks are sound.
        unsafe { &*self.memory.as_ptr().add(2 * self.mapped_bytes).cast::<Control>() }
    }

    /// Where message `number` is announced.
    #[inline]
    pub(super) fn slot(&self, number: u64) -> &Slot {
        &self.control().slots[number as usize % SLOTS]
    }

    /// The previous message in the slot of message `number`; 0 if there was none.
    #[inline]
    pub(super) fn before_in_slot(number: u64) -> u64 {
        number.saturating_sub(SLOTS as u64)
    }

    pub(super) fn wake_fds(&self) -> Option<&WakeFds> {
        self.wake_fds.as_ref()
    }

    /// Where message `number` of `len` bytes lies, which begins at a stream offset: in its slot if it is short, else in
    /// the ring, where as many bytes as the ring holds follow any place.
    #[inline]
    pub(super) fn message(&self, number: u64, offset: u64, len: usize) -> *mut u8 {
        if len <= SHORT_BYTES {
            return self.slot(number).short();
        }
        // SAFETY: the index is less than the bytes of the first copy.
        unsafe { self.memory.as_ptr().add(offset as usize & (self.mapped_bytes - 1)) }
    }

    /// The last message and the bytes that the receiver has released.
    #[inline]
    pub(super) fn released(&self) -> (u64, u64) {
        let released = &self.control().released;
        (released.message.load(Acquire), released.bytes.load(Acquire))
    }

    /// Returns the slots up to this message, and this many bytes since the start, to the sender.
    #[inline]
    pub(super) fn release(&self, message: u64, bytes: u64) {
        let released = &self.control().released;
        released.bytes.store(bytes, Release);
        released.message.store(message, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_knows_its_message_from_the_one_before_it() {
        let ring = Ring::new(4096, RingWait::Never).expect("a ring");
        for number in [1, 1 + SLOTS as u64, 1 << 40] {
            let slot = ring.slot(number);
            assert_eq!(slot.len_of(number), None, "{number}");
            slot.publish(number, PIECE_BYTES_MAX);
            assert_eq!(slot.len_of(number), Some(PIECE_BYTES_MAX), "{number}");
            let before = Ring::before_in_slot(number);
            assert!(before == 0 || std::ptr::eq(ring.slot(before), slot), "{number}");
        }
    }

    #[test]
    fn the_mechanisms_on_a_ring_say_how_many_messages_fit() {
        let limits = |name: &str| crate::all().iter().find(|has| has.name == name).map(|has| has.limits);
        for name in ["shm-ring", "mmap-file"] {
            assert!(
                limits(name).is_some_and(|limits| limits.contains(&format!("{SLOTS} messages"))),
                "{name}"
            );
        }
    }
}
