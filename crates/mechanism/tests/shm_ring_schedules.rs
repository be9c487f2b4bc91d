//! Tests of the ring's protocol with shuttle: hundreds of messages under thousands of random schedules of the two ends, which are longer
//! than those that `shm_ring_orders.rs` tries one by one. All memory is sequentially consistent here: what a weak order breaks, only loom finds.

// The protocol takes its atomics from `std`.
extern crate shuttle as std;

use core::convert::Infallible;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::atomic::Ordering::{Relaxed, SeqCst};
use shuttle::sync::atomic::{AtomicU8, AtomicU32, fence};
use shuttle::sync::{Arc, Condvar, Mutex};
use shuttle::{Config, Runner};

#[path = "../src/registry/ring/protocol.rs"]
#[allow(dead_code, unreachable_pub, unsafe_code)]
mod protocol;
mod ring_ends;

use protocol::{AsWritten, Control, Kernel, ReceiverCursor, SHORT_BYTES, SenderCursor};
use ring_ends::{Bytes, receive, send};

const SLOTS: usize = 4;
const RING_BYTES: usize = 8;
const MESSAGES: usize = 150;
const SCHEDULES: usize = 2000;
/// Each byte of the ring is a variable whose accesses shuttle follows, and takes hundreds.
const STACK_BYTES: usize = 1 << 20;
/// Changes of priority in a schedule of PCT, which finds faults of that depth with a known probability.
const DEPTH: usize = 4;

/// What is wrong with the protocol.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The flag is raised after the last check.
    ChecksFirst,
    /// The sender is not woken after a return of room.
    ReturnsWithoutWake,
    /// The sender believes in room that the ring does not have.
    Overruns,
}

/// A model of futex(2): a wake-up that is lost leaves both ends asleep, which shuttle reports.
struct Futex<'a> {
    asleep: &'a (Mutex<()>, Condvar),
    fault: Fault,
}

impl Kernel for Futex<'_> {
    type Error = Infallible;

    fn light_fence(&self) {
        fence(SeqCst);
    }

    fn heavy_fence(&self) -> Result<(), Infallible> {
        fence(SeqCst);
        Ok(())
    }

    fn raise(&self, flag: &AtomicU32) -> Result<(), Infallible> {
        if self.fault != Fault::ChecksFirst {
            flag.store(1, Relaxed);
        }
        self.heavy_fence()
    }

    fn sleep(&self, flag: &AtomicU32) -> Result<(), Infallible> {
        let mut held = self.asleep.0.lock().expect("no panic under the lock");
        if self.fault == Fault::ChecksFirst {
            flag.store(1, Relaxed);
        }
        while flag.load(Relaxed) == 1 {
            held = self.asleep.1.wait(held).expect("no panic under the lock");
        }
        Ok(())
    }

    fn wake(&self, _: &AtomicU32) -> Result<(), Infallible> {
        let _held = self.asleep.0.lock().expect("no panic under the lock");
        self.asleep.1.notify_all();
        Ok(())
    }
}

struct Memory {
    control: Control<SLOTS>,
    bytes: Bytes<AtomicU8, SLOTS, SHORT_BYTES, RING_BYTES>,
    asleep: (Mutex<()>, Condvar),
}

/// The number of bytes of a message, and whether they lie in the ring.
fn message(number: usize) -> (usize, bool) {
    (1 + number * 7 % 5, !number.is_multiple_of(3))
}

fn stream(fault: Fault) {
    let memory = Arc::new(Memory {
        control: Control::default(),
        bytes: Bytes::new(|_| AtomicU8::new(0)),
        asleep: (Mutex::new(()), Condvar::new()),
    });
    let total: usize = (0..MESSAGES).map(|number| message(number).0).sum();
    let theirs = memory.clone();
    let receives = shuttle::thread::spawn(move || {
        let kernel = Futex { asleep: &theirs.asleep, fault };
        let (cursor, wakes) = (ReceiverCursor::<AsWritten>::new(0, 0), fault != Fault::ReturnsWithoutWake);
        receive((&kernel, &theirs.control), cursor, total, wakes, |position, at| {
            theirs.bytes.at(position, at).load(Relaxed)
        });
    });
    let (kernel, control) = (Futex { asleep: &memory.asleep, fault }, &memory.control);
    let excess = if fault == Fault::Overruns { RING_BYTES } else { 0 };
    let cursor = SenderCursor::<AsWritten>::new(control, (RING_BYTES + excess) as u64, RING_BYTES);
    send((&kernel, control), cursor, (0..MESSAGES).map(message), |position, at, value| {
        memory.bytes.at(position, at).store(value, Relaxed);
    });
    receives.join().expect("the receiver");
}

fn try_schedules(fault: Fault, scheduler: impl Scheduler + 'static) {
    let mut config = Config::new();
    config.silence_warnings = true;
    config.stack_size = STACK_BYTES;
    Runner::new(scheduler, config).run(move || stream(fault));
}

const SEED: u64 = 1;

#[test]
fn messages_arrive_under_random_schedules() {
    try_schedules(Fault::None, RandomScheduler::new_from_seed(SEED, SCHEDULES));
}

#[test]
fn messages_arrive_under_schedules_with_few_preemptions() {
    try_schedules(Fault::None, PctScheduler::new_from_seed(SEED, DEPTH, SCHEDULES));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_check_before_the_flag_is_raised_is_found() {
    try_schedules(Fault::ChecksFirst, RandomScheduler::new_from_seed(SEED, SCHEDULES));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_return_without_a_wake_up_is_found() {
    try_schedules(Fault::ReturnsWithoutWake, RandomScheduler::new_from_seed(SEED, SCHEDULES));
}

#[test]
#[should_panic(expected = "byte ")]
fn an_overrun_is_found() {
    try_schedules(Fault::Overruns, PctScheduler::new_from_seed(SEED, DEPTH, SCHEDULES));
}
