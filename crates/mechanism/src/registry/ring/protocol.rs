//! The protocol of a ring: how its two ends announce bytes, return room, sleep and wake each other. It has only counters and flags;
//! `layout.rs` has the memory of the bytes. Its atomics come from `std`; the tests `shm_ring_orders` and
//! `shm_ring_schedules` replace them by those of a model checker.

use core::cell::UnsafeCell;
use core::marker::PhantomData;

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The longest message that is stored in a slot, in bytes: the size of a cache line without the stamp. A message that is sent alone then
/// moves one cache line from one end to the other. Messages that are sent one after the other are stored in the ring, whatever their
/// length: the CPU prefetches the lines of the ring, and one stamp announces thousands of messages.
pub(super) const SHORT_BYTES: usize = 56;

/// The memory orders of the protocol. The tests with the model checker weaken each of them, and the checker must find the fault.
pub(super) trait Protocol {
    const SHORT_BYTES: usize = SHORT_BYTES;
    /// The sender announces what it has written.
    const ANNOUNCE: Ordering = Release;
    /// The receiver reads the announcement before the bytes.
    const SEE: Ordering = Acquire;
    /// The receiver returns the slots and bytes that it has read.
    const RETURN: Ordering = Release;
    /// The sender reads what was returned before it overwrites those slots and bytes.
    const REUSE: Ordering = Acquire;
}

/// The memory orders that are used outside tests.
#[derive(Clone, Copy)]
pub(super) struct AsWritten;
impl Protocol for AsWritten {}

/// Low bits of a stamp: how many bytes the slot announces.
pub(super) const LEN_BITS: u32 = 20;
/// Flag of a stamp: the bytes are in the ring and not in the slot.
const LONG: u64 = 1 << LEN_BITS;
/// Flag of a stamp: no bytes will be added to the slot.
const CLOSED: u64 = LONG << 1;
const NUMBER_SHIFT: u32 = LEN_BITS + 2;

/// Announces one or more consecutive messages. A message is added to the current slot, which the receiver already reads, if it fits.
/// Slots are used in turn, and numbered from 1 on.
#[repr(C, align(64))]
pub(super) struct Slot {
    stamp: AtomicU64,
    short: UnsafeCell<[u8; SHORT_BYTES]>,
}

// SAFETY: the sender writes only bytes of a slot that its stamp does not count yet, and only after the receiver has returned the
// slot's last use; the receiver reads only those that it counts.
unsafe impl Sync for Slot {}

impl Slot {
    /// The memory of short messages.
    #[inline]
    pub(super) fn short(&self) -> *mut u8 {
        self.short.get().cast()
    }
}

/// What the receiver has returned to the sender; written by the receiver.
#[repr(C, align(128))]
pub(super) struct Returned {
    /// The last slot that was received completely.
    slot: AtomicU64,
    /// Bytes received, including those in slots: so bytes in flight never exceed the ring's size.
    bytes: AtomicU64,
}

/// One flag for each end: 1 before and while it sleeps. Each end reads the other's flag after each announcement or return. While no end
/// sleeps, the caches of both CPUs have a copy of the line.
#[repr(C, align(128))]
pub(super) struct Sleepers {
    pub(super) sender: AtomicU32,
    pub(super) receiver: AtomicU32,
}

/// All data that the ends share, except the ring's bytes. All zeros is the state of a new ring.
#[repr(C)]
pub(super) struct Control<const SLOTS: usize> {
    slots: [Slot; SLOTS],
    returned: Returned,
    pub(super) sleepers: Sleepers,
}

impl<const SLOTS: usize> Control<SLOTS> {
    #[inline]
    pub(super) fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize % SLOTS]
    }
}

impl<const SLOTS: usize> Default for Control<SLOTS> {
    fn default() -> Self {
        let (word, flag) = (|| AtomicU64::new(0), || AtomicU32::new(0));
        let slot = |_| Slot { stamp: word(), short: UnsafeCell::new([0; SHORT_BYTES]) };
        Self {
            slots: core::array::from_fn(slot),
            returned: Returned { slot: word(), bytes: word() },
            sleepers: Sleepers { sender: flag(), receiver: flag() },
        }
    }
}

/// Where bytes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// In this slot, from this byte on.
    Slot(u64, usize),
    /// In the ring, from this byte of the stream on.
    Ring(u64),
}

/// The state of the sender.
#[derive(Clone, Copy)]
pub(super) struct SenderCursor<P> {
    /// The slot to which bytes are added.
    slot: u64,
    /// Bytes in it.
    fill: usize,
    long: bool,
    /// Bytes sent.
    head: u64,
    /// The last slot, and the end of the bytes, that the sender may use, as last read.
    slot_limit: u64,
    byte_limit: u64,
    ring_bytes: u64,
    /// The most bytes that a slot announces.
    piece_bytes: usize,
    protocol: PhantomData<P>,
}

impl<P: Protocol> SenderCursor<P> {
    /// The only sender of a fresh ring.
    pub(super) fn new<const SLOTS: usize>(_: &Control<SLOTS>, ring_bytes: u64, piece_bytes: usize) -> Self {
        let (slot_limit, byte_limit) = (SLOTS as u64, ring_bytes);
        Self {
            slot: 1,
            fill: 0,
            long: false,
            head: 0,
            slot_limit,
            byte_limit,
            ring_bytes,
            piece_bytes,
            protocol: PhantomData,
        }
    }

    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Bytes that the receiver has returned, as last read.
    #[inline]
    pub(super) fn returned_bytes(&self) -> u64 {
        self.byte_limit - self.ring_bytes
    }

    #[inline]
    fn slot_bytes(&self) -> usize {
        if self.long { self.piece_bytes } else { P::SHORT_BYTES }
    }

    /// The slot to which bytes are added.
    #[inline]
    pub(super) fn slot_in<'a, const SLOTS: usize>(&self, control: &'a Control<SLOTS>) -> &'a Slot {
        control.slot(self.slot)
    }

    /// Whether a message of `len` bytes, in the ring if `long`, can be added to the slot, by what was last read.
    #[inline]
    pub(super) fn has_room(&self, len: usize, long: bool) -> bool {
        self.fill + len <= self.slot_bytes()
            && long == self.long
            && self.slot <= self.slot_limit
            && self.head + len as u64 <= self.byte_limit
    }

    /// Bytes that can be added to the slot, by what was last read.
    #[inline]
    pub(super) fn free_bytes(&self) -> usize {
        (self.slot_bytes() - self.fill).min((self.byte_limit - self.head) as usize)
    }

    /// Prepares the slot for a message of `len` bytes, in the ring if `long`: if the message does not fit, closes the slot and goes to
    /// the next one.
    pub(super) fn begin<const SLOTS: usize>(&mut self, control: &Control<SLOTS>, len: usize, long: bool) {
        if self.fill > 0 && (self.long != long || self.fill + len > self.slot_bytes()) {
            self.stamp(control, CLOSED);
        }
        if self.fill == 0 {
            self.long = long;
        }
    }

    /// Reads how much the receiver has returned.
    #[inline]
    pub(super) fn refresh<const SLOTS: usize>(&mut self, control: &Control<SLOTS>) {
        self.slot_limit = control.returned.slot.load(P::REUSE) + SLOTS as u64;
        self.byte_limit = control.returned.bytes.load(P::REUSE) + self.ring_bytes;
    }

    /// Where the next bytes go.
    #[inline]
    pub(super) fn position(&self) -> Position {
        if self.long { Position::Ring(self.head) } else { Position::Slot(self.slot, self.fill) }
    }

    /// Announces `len` bytes, of one or more messages, that were written at [`Self::position`]. Closes the slot if another message, of `next`
    /// bytes, will not fit: then the receiver already reads the next slot when that message comes.
    #[inline]
    pub(super) fn announce<const SLOTS: usize>(&mut self, control: &Control<SLOTS>, len: usize, next: usize) {
        self.fill += len;
        self.head += len as u64;
        let closed = if self.fill + next > self.slot_bytes() { CLOSED } else { 0 };
        self.stamp(control, closed);
    }

    #[inline]
    fn stamp<const SLOTS: usize>(&mut self, control: &Control<SLOTS>, closed: u64) {
        let kind = if self.long { LONG } else { 0 };
        let stamp = self.slot << NUMBER_SHIFT | closed | kind | self.fill as u64;
        self.slot_in(control).stamp.store(stamp, P::ANNOUNCE);
        if closed != 0 {
            self.slot += 1;
            self.fill = 0;
        }
    }
}

/// The state of the receiver.
pub(super) struct ReceiverCursor<P> {
    /// The slot whose bytes are received, its stamp as last read, and the number of its bytes that were taken.
    slot: u64,
    seen: u64,
    taken: usize,
    /// Bytes received in all.
    tail: u64,
    /// What was returned.
    returned_slot: u64,
    returned_bytes: u64,
    /// Most slots and bytes that are received and not yet returned. Returns are rare because each one moves a cache line to the sender.
    kept_slots: u64,
    kept_bytes: u64,
    protocol: PhantomData<P>,
}

impl<P: Protocol> ReceiverCursor<P> {
    /// The only receiver of a fresh ring.
    pub(super) fn new(kept_slots: u64, kept_bytes: u64) -> Self {
        Self {
            slot: 1,
            seen: 0,
            taken: 0,
            tail: 0,
            returned_slot: 0,
            returned_bytes: 0,
            kept_slots,
            kept_bytes,
            protocol: PhantomData,
        }
    }

    /// Bytes that were announced and not taken, as last read.
    #[inline]
    pub(super) fn left(&self) -> usize {
        (self.seen & (LONG - 1)) as usize - self.taken
    }

    /// The position of the next bytes; if they are not announced yet, a guess: that they are stored as the last ones were.
    #[inline]
    pub(super) fn position(&self) -> Position {
        if self.seen & LONG > 0 { Position::Ring(self.tail) } else { Position::Slot(self.slot, self.taken) }
    }

    /// Reads the announcements, after all known bytes were taken. Returns whether there are more bytes.
    #[inline]
    pub(super) fn has_bytes<const SLOTS: usize>(&mut self, control: &Control<SLOTS>) -> bool {
        loop {
            let stamp = control.slot(self.slot).stamp.load(P::SEE);
            // The stamp of an earlier use of the slot, or none.
            if stamp >> NUMBER_SHIFT != self.slot {
                return false;
            }
            self.seen = stamp;
            if self.left() > 0 {
                return true;
            }
            if stamp & CLOSED == 0 {
                return false;
            }
            self.next_slot();
        }
    }

    #[inline]
    fn next_slot(&mut self) {
        self.slot += 1;
        self.taken = 0;
        // Clears the length and the number. LONG stays, as the guess of `position`.
        self.seen &= LONG;
    }

    /// Takes `len` of the bytes left. Returns whether slots or bytes were returned to the sender, which may sleep.
    #[inline]
    pub(super) fn take<const SLOTS: usize>(&mut self, control: &Control<SLOTS>, len: usize) -> bool {
        self.taken += len;
        self.tail += len as u64;
        if self.left() > 0 && self.tail - self.returned_bytes <= self.kept_bytes {
            return false;
        }
        if self.left() == 0 && self.seen & CLOSED > 0 {
            self.next_slot();
        }
        let keeps = self.slot - 1 - self.returned_slot <= self.kept_slots
            && self.tail - self.returned_bytes <= self.kept_bytes;
        if !keeps {
            (self.returned_slot, self.returned_bytes) = (self.slot - 1, self.tail);
            control.returned.bytes.store(self.returned_bytes, P::RETURN);
            control.returned.slot.store(self.returned_slot, P::RETURN);
        }
        !keeps
    }
}

/// How an end sleeps and is woken. The two fences belong together: either the end that goes to sleep sees the other end's store, or the
/// end that stores sees the flag. Sleeps are rare and stores are not, so the fence before a sleep may cost more.
pub(super) trait Kernel {
    type Error;
    /// Between an announcement or return and reading the other end's flag.
    fn light_fence(&self);
    /// Between raising the flag and the last check before a sleep.
    fn heavy_fence(&self) -> Result<(), Self::Error>;
    /// Sleeps while the flag is raised; may return early.
    fn sleep(&self, flag: &AtomicU32) -> Result<(), Self::Error>;
    /// Wakes the end that sleeps on the flag, which was lowered.
    fn wake(&self, flag: &AtomicU32) -> Result<(), Self::Error>;

    /// Raises the flag of an end that will sleep, before its last check.
    fn raise(&self, flag: &AtomicU32) -> Result<(), Self::Error> {
        flag.store(1, Relaxed);
        self.heavy_fence()
    }
}

/// Waits until `ready`: makes `checks` checks, then sleeps, then checks again. Returns the number of checks since the last sleep, and
/// whether it slept.
pub(super) fn wait_until<K: Kernel>(
    kernel: &K,
    flag: &AtomicU32,
    checks: u32,
    mut ready: impl FnMut() -> bool,
) -> Result<(u32, bool), K::Error> {
    let mut slept = false;
    loop {
        for made in 0..checks {
            if ready() {
                return Ok((made, slept));
            }
            std::hint::spin_loop();
        }
        kernel.raise(flag)?;
        if ready() {
            flag.store(0, Relaxed);
            return Ok((checks, slept));
        }
        kernel.sleep(flag)?;
        slept = true;
    }
}

/// Wakes the other end if it sleeps, after an announcement or return.
#[inline]
pub(super) fn wake<K: Kernel>(kernel: &K, flag: &AtomicU32) -> Result<(), K::Error> {
    kernel.light_fence();
    if flag.load(Relaxed) == 0 {
        return Ok(());
    }
    flag.store(0, Relaxed);
    kernel.wake(flag)
}
