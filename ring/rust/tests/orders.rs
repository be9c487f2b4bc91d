//! The protocol of the ring under every order of its two ends (loom), each of which may die before any of its stores: no published
//! message is lost or read too early, at most one comes twice, and no wake-up is lost.

// The protocol takes its atomics from `std`: here they are loom's, with a count of the stores that the thread may still make.
extern crate self as std;
extern crate std as real_std;

pub use core::marker;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use real_std::cell::Cell;
use real_std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use real_std::sync::atomic::AtomicBool;

#[path = "../src/protocol.rs"]
#[allow(dead_code, unreachable_pub, unsafe_code)]
mod protocol;
#[path = "../src/receiver.rs"]
#[allow(dead_code, unreachable_pub, unsafe_code)]
mod receiver;
#[path = "../src/sender.rs"]
#[allow(dead_code, unreachable_pub, unsafe_code)]
mod sender;

use protocol::{Error, Head, Port, Sleeper};
use receiver::Receiver;
use sender::Sender;
use sync::atomic::{AtomicU32, Ordering::Relaxed};

pub mod hint {
    pub use loom::hint::spin_loop;
}

pub mod sync {
    pub mod atomic {
        pub use loom::sync::atomic::Ordering;

        #[derive(Debug)]
        pub struct AtomicU32(loom::sync::atomic::AtomicU32);

        /// A dead thread unwinds; what its values do when they are dropped does nothing.
        impl AtomicU32 {
            pub fn new(value: u32) -> Self {
                Self(loom::sync::atomic::AtomicU32::new(value))
            }

            pub fn load(&self, order: Ordering) -> u32 {
                if crate::is_dead() { 0 } else { self.0.load(order) }
            }

            pub fn store(&self, value: u32, order: Ordering) {
                if crate::lives_for_a_store() {
                    self.0.store(value, if crate::IS_WEAK.get() { Ordering::Relaxed } else { order });
                }
            }

            pub fn swap(&self, value: u32, order: Ordering) -> u32 {
                if crate::lives_for_a_store() { self.0.swap(value, order) } else { 0 }
            }
        }

        pub fn fence(order: Ordering) {
            if !crate::is_dead() {
                loom::sync::atomic::fence(order);
            }
        }
    }
}

loom::thread_local! {
    /// Stores that this thread may make before it dies.
    static STORES_LEFT: Cell<u32> = Cell::new(u32::MAX);
    static IS_DEAD: Cell<bool> = Cell::new(false);
}

real_std::thread_local! {
    /// Whether all stores of this test are relaxed. (Threads of loom are one thread of the system.)
    static IS_WEAK: Cell<bool> = const { Cell::new(false) };
}

/// How a thread unwinds that dies.
struct Death;

fn is_dead() -> bool {
    IS_DEAD.with(Cell::get)
}

fn lives_for_a_store() -> bool {
    if is_dead() {
        return false;
    }
    let left = STORES_LEFT.with(Cell::get);
    if left == 0 {
        IS_DEAD.with(|dead| dead.set(true));
        resume_unwind(Box::new(Death));
    }
    STORES_LEFT.with(|stores| stores.set(left.saturating_sub(u32::from(left != u32::MAX))));
    true
}

/// Calls `end` with so many stores to live; false if it died.
fn with_stores(stores: u32, end: impl FnOnce()) -> bool {
    STORES_LEFT.with(|left| left.set(stores));
    let died = match catch_unwind(AssertUnwindSafe(end)) {
        Ok(()) => false,
        Err(cause) if cause.is::<Death>() => true,
        Err(cause) => resume_unwind(cause),
    };
    IS_DEAD.with(|dead| dead.set(false));
    STORES_LEFT.with(|left| left.set(u32::MAX));
    !died
}

/// futex(2): the end that clears the word also wakes. A lost wake-up sleeps for ever, which loom reports. An end whose peer died would
/// wake after its limit of time: here, when the next one is there and says so.
#[derive(Clone)]
struct Model {
    omits_fence: bool,
    /// Those at `PLACES`.
    headers: Arc<[AtomicU32; PLACES.len()]>,
    /// Deaths of both ends so far, as their locks tell of them.
    deaths: Arc<loom::sync::atomic::AtomicU32>,
}

impl Port for Model {
    fn header(&self, _: *mut u8, at: u32) -> *const AtomicU32 {
        &self.headers[PLACES.iter().position(|place| *place == at).expect("a place where a record may begin")]
    }

    fn polls(&self) -> u32 {
        1
    }

    fn has_membarrier(&self) -> bool {
        self.omits_fence
    }

    fn barrier(&self) {}

    fn sleep(&self, own: &Sleeper, word: &AtomicU32, seen: u32) -> Result<bool, Error> {
        let deaths = self.deaths.load(Relaxed);
        if own.announce(1, || self.barrier(), word, seen) {
            while own.how.load(Relaxed) == 1 && self.deaths.load(Relaxed) == deaths {
                loom::thread::yield_now();
            }
        }
        own.how.store(0, Relaxed);
        Ok(false)
    }

    fn wake(&self, _: &AtomicU32, _: u32) {}
}

const CAPACITY: u32 = 4096;
/// One fits in a ring at a time: the second one skips the rest, and waits.
const MESSAGE_BYTES: usize = 2500;
/// Of each message in a run of two.
const RUN_BYTES: usize = 100;
/// Where records begin: at the first byte; behind a run that is there, and ends behind it; behind a message at the first byte (64 bytes, the
/// message, and up to the next multiple of 8) and ends behind it; and behind a message behind a run, and its end.
const PLACES: [u32; 12] = [0, 208, 216, 224, 2568, 2576, 2584, 2592, 2600, 2760, 2768, 2776];

struct Shared {
    head: Head,
    bytes: *mut u8,
    /// One for each place where a message may be: loom sees an access that is not ordered.
    cells: Vec<UnsafeCell<u32>>,
    model: Model,
}

// SAFETY: loom runs one thread at a time.
#[allow(unsafe_code)]
unsafe impl Send for Shared {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Shared {}

#[allow(unsafe_code)]
impl Shared {
    fn new(omits_fence: bool) -> Arc<Self> {
        let bytes = vec![0u64; CAPACITY as usize / 8].leak().as_mut_ptr().cast();
        let cells = (0..CAPACITY / 64).map(|_| UnsafeCell::new(0)).collect();
        let model = Model {
            omits_fence,
            headers: Arc::new(real_std::array::from_fn(|_| AtomicU32::new(0))),
            deaths: Arc::new(loom::sync::atomic::AtomicU32::new(0)),
        };
        Arc::new(Self { head: Head::default(), bytes, cells, model })
    }

    fn cell(&self, message: &[u8]) -> &UnsafeCell<u32> {
        // SAFETY: both are in the ring.
        &self.cells[unsafe { message.as_ptr().offset_from(self.bytes) } as usize / 64]
    }

    fn sender(&self) -> Sender<Model> {
        // SAFETY: one lives at a time.
        unsafe { Sender::new(&self.head, self.bytes, CAPACITY, self.model.clone()) }.expect("a ring")
    }

    fn receiver(&self) -> Receiver<Model> {
        // SAFETY: one lives at a time.
        unsafe { Receiver::new(&self.head, self.bytes, CAPACITY, self.model.clone()) }.expect("a ring")
    }

    /// Sends `numbers`, two of them as a run if asked for, and notes how many are published for sure.
    fn send(&self, numbers: real_std::ops::Range<u32>, has_run: bool, published: &Cell<u32>) {
        let mut sender = self.sender();
        if has_run {
            let mut run = sender.reserve_run(RUN_BYTES, 2).expect("room");
            for (number, room) in numbers.clone().zip(run.rooms()) {
                // SAFETY: loom checks it.
                self.cell(room).with_mut(|cell| unsafe { *cell = number });
            }
            sender.commit_run(2);
            published.set(numbers.end);
        }
        let numbers = if has_run { 0..0 } else { numbers };
        for number in numbers {
            let room = sender.reserve(MESSAGE_BYTES).expect("room");
            // SAFETY: loom checks it.
            self.cell(room).with_mut(|cell| unsafe { *cell = number });
            sender.commit(MESSAGE_BYTES);
            published.set(number + 1);
        }
        sender.finish().expect("room");
    }

    /// Receives until the end; `got` is what it has worked on.
    fn receive(&self, got: &Cell<Vec<u32>>, has_ended: &Cell<bool>) {
        let mut receiver = self.receiver();
        loop {
            match receiver.peek() {
                Ok(message) => {
                    assert!([MESSAGE_BYTES, RUN_BYTES].contains(&message.len()));
                    // SAFETY: loom checks it.
                    let number = self.cell(message).with(|cell| unsafe { *cell });
                    let mut all = got.take();
                    all.push(number);
                    got.set(all);
                }
                Err(Error::Ended) => return has_ended.set(true),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn tell_death(&self) {
        self.model.deaths.fetch_add(1, Relaxed);
    }
}

const MESSAGES: u32 = 2;

fn check(preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(run);
}

/// One run of both ends; each dies before the store of this number (or never), and a successor goes on. Whether one died.
fn run(omits_fence: bool, has_run: bool, sender_stores: u32, receiver_stores: u32) -> bool {
    let shared = Shared::new(omits_fence);
    let theirs = shared.clone();
    let receives = loom::thread::spawn(move || {
        let (got, has_ended) = (Cell::new(Vec::new()), Cell::new(false));
        let lives = with_stores(receiver_stores, || theirs.receive(&got, &has_ended));
        if !lives && !has_ended.get() {
            theirs.tell_death();
            theirs.receive(&got, &has_ended);
        }
        (got.take(), lives)
    });
    let published = Cell::new(0);
    let lives = with_stores(sender_stores, || shared.send(0..MESSAGES, has_run, &published));
    let known = published.get();
    let goes_on = known < MESSAGES;
    if !lives {
        shared.tell_death();
        // The successor does not know what was published: it numbers its own from 100.
        shared.send(if goes_on { 100..101 } else { 0..0 }, false, &published);
    }
    let (mut got, receiver_lives) = receives.join().expect("the receiver");
    let all = got.len();
    got.dedup();
    assert!(all - got.len() <= usize::from(receiver_stores != u32::MAX), "{got:?} of {all}");
    let first = got.iter().take_while(|number| **number < 100).count() as u32;
    let together = if has_run { MESSAGES } else { 1 };
    assert!([known, known + together].contains(&first), "{got:?}, {known} published");
    let second = if lives || !goes_on { 100..100 } else { 100..101 };
    assert_eq!(got, (0..first).chain(second).collect::<Vec<u32>>());
    !(lives && receiver_lives)
}

/// An end dies before its first store, its second one, and so on, until it makes no more.
fn kill_before_each_store(run: fn(u32) -> bool) {
    for stores in 0.. {
        let died = real_std::sync::Arc::new(AtomicBool::new(false));
        let seen = died.clone();
        check(2, move || _ = seen.fetch_or(run(stores), real_std::sync::atomic::Ordering::Relaxed));
        if !died.load(real_std::sync::atomic::Ordering::Relaxed) {
            assert!(stores > 6, "{stores}");
            return;
        }
    }
}

#[test]
fn every_message_arrives_in_every_order_of_the_two_ends() {
    check(3, || _ = run(false, false, u32::MAX, u32::MAX));
    check(3, || _ = run(false, true, u32::MAX, u32::MAX));
}

#[test]
fn a_sender_may_die_before_any_store() {
    kill_before_each_store(|stores| run(false, false, stores, u32::MAX));
}

#[test]
fn a_receiver_may_die_before_any_store() {
    kill_before_each_store(|stores| run(false, false, u32::MAX, stores));
}

#[test]
fn a_sender_of_a_run_may_die_before_any_store() {
    kill_before_each_store(|stores| run(false, true, stores, u32::MAX));
}

#[test]
fn a_receiver_of_a_run_may_die_before_any_store() {
    kill_before_each_store(|stores| run(false, true, u32::MAX, stores));
}

/// The model is sharp: without the fence, for which membarrier(2) stands, a wake-up is lost, and its end waits for ever.
#[test]
#[should_panic(expected = "maximum number of branches")]
fn without_a_fence_a_wake_up_is_lost() {
    check(3, || _ = run(true, false, u32::MAX, u32::MAX));
}

/// The model is sharp: a position that is not released does not order the bytes before it.
#[test]
#[should_panic(expected = "Causality violation")]
fn without_a_release_bytes_are_read_too_early() {
    IS_WEAK.set(true);
    check(3, || _ = run(false, false, u32::MAX, u32::MAX));
}
