//! Tests of the ring's protocol with the model checker loom, under every order of the steps of its two ends: no byte is read before it
//! was written or overwritten before it was read, and no wake-up is lost. Other tests weaken one memory order, fence or check each, and
//! loom must find the fault.

// The protocol takes its atomics from `std`.
extern crate loom as std;

use core::convert::Infallible;
use core::marker::PhantomData;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::Ordering::{self, Relaxed, SeqCst};
use loom::sync::atomic::{AtomicU32, fence};

#[path = "../src/registry/ring/protocol.rs"]
#[allow(dead_code, unreachable_pub, unsafe_code)]
mod protocol;
mod ring_ends;

use protocol::{Control, Kernel, Protocol, ReceiverCursor, SenderCursor};
use ring_ends::{Bytes, receive, send};

const SLOTS: usize = 2;
const SHORT_BYTES: usize = 2;

/// A change to one part of the protocol that makes it wrong.
trait Fault: Copy + Send + 'static {
    const ANNOUNCE: Ordering = Ordering::Release;
    const SEE: Ordering = Ordering::Acquire;
    const RETURN: Ordering = Ordering::Release;
    const REUSE: Ordering = Ordering::Acquire;
    const LIGHT_FENCE: bool = true;
    const HEAVY_FENCE: bool = true;
    /// Raises the flag after the last check, not before.
    const CHECKS_FIRST: bool = false;
    /// Does not wake the other end after a return of room.
    const RETURNS_WITHOUT_WAKE: bool = false;
    /// Bytes of room that the ring does not have.
    const EXCESS_BYTES: u64 = 0;
}

#[derive(Clone, Copy)]
struct Orders<F>(PhantomData<F>);

impl<F: Fault> Protocol for Orders<F> {
    const SHORT_BYTES: usize = SHORT_BYTES;
    const ANNOUNCE: Ordering = F::ANNOUNCE;
    const SEE: Ordering = F::SEE;
    const RETURN: Ordering = F::RETURN;
    const REUSE: Ordering = F::REUSE;
}

/// A model of futex(2): lowering the flag wakes the end that sleeps. After a lost wake-up that end sleeps for ever, which loom reports.
impl<F: Fault> Kernel for Orders<F> {
    type Error = Infallible;

    fn light_fence(&self) {
        if F::LIGHT_FENCE {
            fence(SeqCst);
        }
    }

    fn heavy_fence(&self) -> Result<(), Infallible> {
        if F::HEAVY_FENCE {
            fence(SeqCst);
        }
        Ok(())
    }

    fn raise(&self, flag: &AtomicU32) -> Result<(), Infallible> {
        if F::CHECKS_FIRST {
            return Ok(());
        }
        flag.store(1, Relaxed);
        self.heavy_fence()
    }

    fn sleep(&self, flag: &AtomicU32) -> Result<(), Infallible> {
        if F::CHECKS_FIRST {
            flag.store(1, Relaxed);
            self.heavy_fence()?;
        }
        while flag.load(Relaxed) == 1 {
            loom::thread::yield_now();
        }
        Ok(())
    }

    fn wake(&self, _: &AtomicU32) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The memory of both ends. Each byte is a separate cell, whose accesses loom checks against each other.
struct Memory<const RING_BYTES: usize> {
    control: Control<SLOTS>,
    bytes: Bytes<UnsafeCell<u8>, SLOTS, SHORT_BYTES, RING_BYTES>,
}

// SAFETY: loom checks the accesses to each cell.
#[allow(unsafe_code)]
unsafe impl<const RING_BYTES: usize> Sync for Memory<RING_BYTES> {}

/// Whether a message is in a slot or in the ring.
#[derive(Clone, Copy, PartialEq)]
enum Storage {
    Slot,
    Ring,
}
use Storage::{Ring, Slot};

/// Sends these messages in every order of the two ends. A limit of preemptions in an order limits the time of the check.
#[allow(unsafe_code)]
fn check<F: Fault, const RING_BYTES: usize>(_: F, messages: &'static [(Storage, usize)]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let bytes = Bytes::new(|_| UnsafeCell::new(0));
        let memory = Arc::new(Memory::<RING_BYTES> { control: Control::default(), bytes });
        let total: usize = messages.iter().map(|(_, len)| len).sum();
        let theirs = memory.clone();
        let receives = loom::thread::spawn(move || {
            let (kernel, cursor) = (Orders::<F>(PhantomData), ReceiverCursor::<Orders<F>>::new(0, 0));
            receive((&kernel, &theirs.control), cursor, total, !F::RETURNS_WITHOUT_WAKE, |position, at| {
                // SAFETY: loom checks every access to the cell.
                theirs.bytes.at(position, at).with(|byte| unsafe { *byte })
            });
        });
        let (kernel, control) = (Orders::<F>(PhantomData), &memory.control);
        let room = RING_BYTES as u64 + F::EXCESS_BYTES;
        let cursor = SenderCursor::<Orders<F>>::new(control, room, RING_BYTES);
        let messages = messages.iter().map(|&(place, len)| (len, place == Ring));
        send((&kernel, control), cursor, messages, |position, at, value| {
            // SAFETY: as above.
            memory.bytes.at(position, at).with_mut(|byte| unsafe { *byte = value });
        });
        receives.join().expect("the receiver");
    });
}

/// More tiny messages than the slots hold.
const TINY: &[(Storage, usize)] = &[(Slot, 1); 5];
/// Messages in slots and in the ring, more than the ring holds.
const MIXED: &[(Storage, usize)] = &[(Slot, 1), (Ring, 3), (Ring, 3), (Slot, 2)];
/// Tiny messages in the ring, with a lone one between them.
const TINY_MIXED: &[(Storage, usize)] = &[(Ring, 1), (Slot, 1), (Ring, 1)];
/// More tiny messages than a ring of two bytes holds.
const TINY_IN_RING: &[(Storage, usize)] = &[(Ring, 1); 3];

#[derive(Clone, Copy)]
struct Faultless;
impl Fault for Faultless {}

#[test]
fn tiny_messages_arrive_in_every_order_of_the_two_ends() {
    check::<_, 8>(Faultless, TINY);
}

#[test]
fn messages_of_all_lengths_arrive_in_every_order_of_the_two_ends() {
    check::<_, 8>(Faultless, MIXED);
}

#[test]
fn tiny_messages_in_slots_and_in_the_ring_arrive_in_every_order_of_the_two_ends() {
    check::<_, 8>(Faultless, TINY_MIXED);
}

#[test]
fn tiny_messages_in_the_ring_arrive_in_every_order_of_the_two_ends() {
    check::<_, 2>(Faultless, TINY_IN_RING);
}

/// A protocol with one fault, which must be found.
macro_rules! found {
    ($($name:ident: $item:ident: $type:ty = $value:expr, $bytes:literal, $messages:expr;)*) => {$(
        #[test]
        #[should_panic]
        fn $name() {
            #[derive(Clone, Copy)]
            struct Faulty;
            impl Fault for Faulty {
                const $item: $type = $value;
            }
            check::<_, $bytes>(Faulty, $messages);
        }
    )*};
}

found! {
    an_announcement_before_its_bytes_is_found: ANNOUNCE: Ordering = Relaxed, 8, MIXED;
    bytes_read_before_their_announcement_are_found: SEE: Ordering = Relaxed, 8, MIXED;
    a_return_before_the_bytes_are_read_is_found: RETURN: Ordering = Relaxed, 8, TINY;
    bytes_written_before_their_return_is_seen_are_found: REUSE: Ordering = Relaxed, 8, TINY;
    a_publication_without_a_fence_is_found: LIGHT_FENCE: bool = false, 8, TINY;
    a_sleep_without_a_fence_is_found: HEAVY_FENCE: bool = false, 8, TINY;
    a_check_before_the_flag_is_raised_is_found: CHECKS_FIRST: bool = true, 8, TINY;
    a_return_without_a_wake_up_is_found: RETURNS_WITHOUT_WAKE: bool = true, 8, TINY;
    an_overrun_is_found: EXCESS_BYTES: u64 = 8, 8, &[(Ring, 3); 3];
    an_announcement_before_its_tiny_bytes_in_the_ring_is_found: ANNOUNCE: Ordering = Relaxed, 2, TINY_IN_RING;
    tiny_bytes_read_before_their_announcement_are_found: SEE: Ordering = Relaxed, 2, TINY_IN_RING;
    a_return_before_tiny_bytes_are_read_is_found: RETURN: Ordering = Relaxed, 2, TINY_IN_RING;
    tiny_bytes_written_before_their_return_is_seen_are_found: REUSE: Ordering = Relaxed, 2, TINY_IN_RING;
}
