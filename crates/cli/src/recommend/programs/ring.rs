//! ring.rs: messages through shared memory, from one sender to one receiver (threads or processes).
//! Copy it: MIT or Apache-2.0, as hosepipe is. `BYTES` is the most bytes of a message, `SLOTS` how many are in flight: a power of two,
//! at least 8. The receiver must know each message's length. Zeroed memory is an empty ring.
//! No system call while both ends keep up: an end that must wait polls for some microseconds, then sleeps in futex(2) until it is
//! woken; with [`Spin`] it never sleeps. A ring has no end of stream, does not notice a dead peer, and cannot be polled.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_long};
use core::marker::PhantomData;
use core::{array, ptr};
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// What an end that must wait does after it has read the counter `POLLS` times.
pub trait Sleep {
    const POLLS: u32 = 100;
    /// Whether it ever sleeps.
    const SLEEPS: bool = true;
    /// Sleeps while the word is 1; may return early.
    fn sleep(word: &AtomicU32);
    /// Wakes the end that sleeps on the word.
    fn wake(word: &AtomicU32);
}

/// Sleeps in futex(2).
pub struct Futex;

impl Sleep for Futex {
    fn sleep(word: &AtomicU32) {
        futex(word, 0); // FUTEX_WAIT
    }

    fn wake(word: &AtomicU32) {
        futex(word, 1); // FUTEX_WAKE
    }
}

fn futex(word: &AtomicU32, operation: c_int) {
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    const SYS_FUTEX: c_long = if cfg!(target_arch = "x86_64") { 202 } else { 98 };
    // SAFETY: the word lives as long as the call; 1 is the value to sleep on, or how many to wake.
    unsafe { syscall(SYS_FUTEX, ptr::from_ref(word), operation, 1 as c_int, ptr::null::<u8>()) };
}

/// Never sleeps.
pub struct Spin;

impl Sleep for Spin {
    const SLEEPS: bool = false;
    fn sleep(_: &AtomicU32) {}
    fn wake(_: &AtomicU32) {}
}

/// A word in a cache line of its own; CPUs fetch lines in pairs.
#[repr(C, align(128))]
struct Line(AtomicU32);

#[repr(C, align(64))]
struct Slot<const BYTES: usize>(UnsafeCell<[u8; BYTES]>);

#[repr(C)]
pub struct Ring<S, const BYTES: usize, const SLOTS: usize> {
    sent: Line,
    taken: Line,
    sender_sleeps: Line,
    receiver_sleeps: Line,
    slots: [Slot<BYTES>; SLOTS],
    how: PhantomData<S>,
}

// SAFETY: a slot is written only by the sender, while `sent` does not count it, and read only by the receiver, while it does.
unsafe impl<S, const BYTES: usize, const SLOTS: usize> Sync for Ring<S, BYTES, SLOTS> {}

/// The end that sends. Its copy of `taken` may be old, so that it rarely reads the receiver's cache line.
pub struct Sender<'r, S, const BYTES: usize, const SLOTS: usize> {
    ring: &'r Ring<S, BYTES, SLOTS>,
    sent: u32,
    taken: u32,
}

/// The end that receives; `published` is the last `taken` that the sender can see.
pub struct Receiver<'r, S, const BYTES: usize, const SLOTS: usize> {
    ring: &'r Ring<S, BYTES, SLOTS>,
    sent: u32,
    taken: u32,
    published: u32,
}

impl<S: Sleep, const BYTES: usize, const SLOTS: usize> Ring<S, BYTES, SLOTS> {
    /// The two ends of an empty ring.
    ///
    /// # Safety
    /// Each ring has one sender and one receiver, in all processes together.
    pub unsafe fn ends(&self) -> (Sender<'_, S, BYTES, SLOTS>, Receiver<'_, S, BYTES, SLOTS>) {
        const { assert!(SLOTS.is_power_of_two() && SLOTS >= 2) };
        (Sender { ring: self, sent: 0, taken: 0 }, Receiver { ring: self, sent: 0, taken: 0, published: 0 })
    }
}

impl<S, const BYTES: usize, const SLOTS: usize> Default for Ring<S, BYTES, SLOTS> {
    fn default() -> Self {
        let line = || Line(AtomicU32::new(0));
        let slots = array::from_fn(|_| Slot(UnsafeCell::new([0; BYTES])));
        Self {
            sent: line(),
            taken: line(),
            sender_sleeps: line(),
            receiver_sleeps: line(),
            slots,
            how: PhantomData,
        }
    }
}

impl<S: Sleep, const BYTES: usize, const SLOTS: usize> Sender<'_, S, BYTES, SLOTS> {
    /// Copies a message into the ring; waits while it is full.
    pub fn send(&mut self, message: &[u8]) {
        let ring = self.ring;
        assert!(message.len() <= BYTES);
        while self.sent.wrapping_sub(self.taken) == SLOTS as u32 {
            self.taken = wait::<S>(&ring.taken.0, self.taken, &ring.sender_sleeps.0);
        }
        let slot = ring.slots[self.sent as usize % SLOTS].0.get().cast::<u8>();
        // SAFETY: the slot is the sender's: the receiver has taken what was in it.
        unsafe { ptr::copy_nonoverlapping(message.as_ptr(), slot, message.len()) };
        self.sent = self.sent.wrapping_add(1);
        publish::<S>(&ring.sent.0, self.sent, &ring.receiver_sleeps.0);
    }
}

impl<S: Sleep, const BYTES: usize, const SLOTS: usize> Receiver<'_, S, BYTES, SLOTS> {
    /// Copies a message out of the ring; waits while it is empty. Room is given back an eighth of the ring at a time, which keeps the counter's
    /// cache line with the sender.
    pub fn receive(&mut self, message: &mut [u8]) {
        let ring = self.ring;
        assert!(message.len() <= BYTES);
        while self.taken == self.sent {
            self.sent = wait::<S>(&ring.sent.0, self.sent, &ring.receiver_sleeps.0);
        }
        let slot = ring.slots[self.taken as usize % SLOTS].0.get().cast::<u8>();
        // SAFETY: the slot is the receiver's: `sent` counts it, and `taken` does not yet.
        unsafe { ptr::copy_nonoverlapping(slot, message.as_mut_ptr(), message.len()) };
        self.taken = self.taken.wrapping_add(1);
        if self.taken.wrapping_sub(self.published) >= SLOTS.div_ceil(8) as u32 {
            self.published = self.taken;
            publish::<S>(&ring.taken.0, self.taken, &ring.sender_sleeps.0);
        }
    }
}

/// Returns the counter once it is not `old`. The fence pairs with that of [`publish`]: either this end sees the new count, or the other
/// end sees the flag.
fn wait<S: Sleep>(counter: &AtomicU32, old: u32, sleeps: &AtomicU32) -> u32 {
    loop {
        for _ in 0..S::POLLS {
            let now = counter.load(Acquire);
            if now != old {
                return now;
            }
            std::hint::spin_loop();
        }
        if S::SLEEPS {
            sleeps.store(1, Relaxed);
            fence(SeqCst);
            if counter.load(Relaxed) == old {
                S::sleep(sleeps);
            }
            sleeps.store(0, Relaxed);
        }
    }
}

fn publish<S: Sleep>(counter: &AtomicU32, value: u32, sleeps: &AtomicU32) {
    counter.store(value, Release);
    if S::SLEEPS {
        fence(SeqCst);
        if sleeps.load(Relaxed) == 1 && sleeps.swap(0, Relaxed) == 1 {
            S::wake(sleeps);
        }
    }
}
