//! The ring that `hosepipe recommend` prints, under every order of its two ends (loom): no message is lost, and no wake-up.

// The ring takes its atomics from `std`.
extern crate loom as std;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[path = "../src/recommend/programs/ring.rs"]
#[allow(dead_code, unreachable_pub, unsafe_code)]
mod ring;

/// futex(2): the end that clears the word also wakes. A lost wake-up sleeps for ever, which loom reports.
struct Model;

impl ring::Sleep for Model {
    const POLLS: u32 = 1;

    fn sleep(word: &AtomicU32) {
        while word.load(Relaxed) == 1 {
            loom::thread::yield_now();
        }
    }

    fn wake(_: &AtomicU32) {}
}

#[test]
#[allow(unsafe_code)]
fn every_message_arrives_in_every_order_of_the_two_ends() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let ring = Arc::new(ring::Ring::<Model, 1, 2>::default());
        let theirs = ring.clone();
        let receives = loom::thread::spawn(move || {
            // SAFETY: the receiver is this thread's alone, the sender the other's.
            let (_, mut receiver) = unsafe { theirs.ends() };
            for number in 0..3 {
                let mut message = [9];
                receiver.receive(&mut message);
                assert_eq!(message, [number]);
            }
        });
        // SAFETY: as above.
        let (mut sender, _) = unsafe { ring.ends() };
        (0..3).for_each(|number| sender.send(&[number]));
        receives.join().expect("the receiver");
    });
}
