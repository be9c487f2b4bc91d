//! What a ring promises beside whole messages: its errors, its room, its resumption, its eventfds.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hosepipe_ring::Error;
use hosepipe_ring::linux::{self, Wait};

use crate::ends::one;

const CAPACITY: u32 = 4096;

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
    let path = folder.path().join("ring");
    (folder, path)
}

/// Looks until something is so. A lock of an end that was dropped lives on in a child that another test has forked, until it executes its
/// program.
fn soon<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "not within ten seconds");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn messages_of_every_size_arrive_whole_and_the_largest_fills_the_ring() {
    let (mut sender, mut receiver) = linux::pair(CAPACITY, Wait::Never).expect("a ring");
    for len in (0..CAPACITY as usize - 71).chain([0, 4024, 1, 4024, 4024]) {
        let message: Vec<u8> = (0..len).map(|at| (at * 7 + len) as u8).collect();
        loop {
            match sender.send(&message) {
                Ok(()) => break,
                // There is room once what is there was taken.
                Err(Error::Again) => assert_eq!(receiver.peek(), Err(Error::Again)),
                Err(error) => panic!("{error}"),
            }
        }
        let found = receiver.peek().expect("a message");
        assert!(found == message, "{len}");
        assert!(len < 1024 || found.as_ptr().align_offset(64) == 0, "{len}");
        receiver.release();
    }
    assert_eq!(sender.send(&[0; 4025]), Err(Error::TooLarge(4025)));
}

/// Calls in random order, none of which waits, and which often find no room or no message: everything arrives once, in order.
#[test]
fn what_ends_that_never_wait_do_in_any_order_loses_nothing() {
    let mut state = 1u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for turn in 0..200 {
        let (mut sender, mut receiver) = linux::pair(CAPACITY, Wait::Never).expect("a ring");
        // Lengths of what is under way; none: the end of a stream.
        let mut sent = std::collections::VecDeque::new();
        let (mut staged, mut number, mut checked) = (0, 0u8, 0u8);
        let largest = [8, 40, 300, 1200][turn % 4];
        for _ in 0..2000 {
            match random(9) {
                0..=2 => {
                    let len = 4 + if turn % 8 < 4 { largest } else { random(largest) };
                    if sender.push(&vec![number; len]).is_ok() {
                        sent.push_back(Some(len));
                        (staged, number) = (staged + 1, number.wrapping_add(1));
                    }
                }
                3 => {
                    sender.publish();
                    staged = 0;
                }
                4 if random(20) == 0 && sender.finish().is_ok() => {
                    sent.push_back(None);
                    staged = 0;
                }
                5 => {
                    if let Ok(mut run) = sender.reserve_run(1 + random(largest), random(20)) {
                        let written = random(run.count + 1);
                        for room in run.rooms().take(written) {
                            room.fill(number);
                            sent.push_back(Some(room.len()));
                            number = number.wrapping_add(1);
                        }
                        sender.commit_run(written);
                        staged = if written > 0 { 0 } else { staged };
                    }
                }
                6 => receiver.release(),
                _ => match if random(2) == 0 { receiver.peek().map(one) } else { receiver.peek_run() } {
                    Ok(run) => {
                        for message in run.messages() {
                            assert_eq!(Some(Some(message.len())), sent.pop_front(), "turn {turn}");
                            assert!(message.iter().all(|byte| *byte == checked), "turn {turn}: {message:?}");
                            checked = checked.wrapping_add(1);
                        }
                    }
                    Err(Error::Ended) => assert_eq!(Some(None), sent.pop_front(), "turn {turn}"),
                    // A sender without room has published what it had staged.
                    Err(error) => {
                        assert!(error == Error::Again && sent.len() <= staged, "turn {turn}: {error}")
                    }
                },
            }
        }
    }
}

#[test]
fn a_run_is_received_one_by_one_or_together_and_a_new_receiver_goes_on_in_it() {
    let (_folder, path) = place();
    let open = || linux::open_receiver(&path, 1 << 16, Wait::Never);
    let mut receiver = open().expect("a receiver");
    let mut sender = linux::open_sender(&path, 1 << 16, Wait::Never).expect("a sender");
    for len in [1, 4, 6, 64, 1000, 1024, 1500] {
        sender.send(b"before").expect("room");
        let mut run = sender.reserve_run(len, 5).expect("room");
        assert_eq!((run.count, run.stride % if len < 1024 { 4 } else { 64 }), (5, 0), "{len}");
        for (number, room) in (0..).zip(run.rooms()) {
            room.fill(number);
        }
        sender.commit_run(5);
        let is =
            |message: &[u8], number: u8| message.len() == len && message.iter().all(|byte| *byte == number);
        assert_eq!(receiver.peek(), Ok(&b"before"[..]));
        assert!(!receiver.is_last());
        assert!(is(receiver.peek().expect("a message"), 0), "{len}");
        assert!(!receiver.is_last() && !receiver.arm(), "{len}: four follow");
        assert!(is(receiver.peek().expect("a message"), 1), "{len}");
        receiver.release();
        drop(receiver);
        // The third one is in hand when this one ends as if it were killed: another end of this program may look at its words.
        receiver = soon(|| open().ok());
        assert!(is(receiver.peek().expect("a message"), 2), "{len}: the third");
        let rest = receiver.peek_run().expect("the others");
        assert_eq!((rest.count, rest.length), (2, len));
        assert!((3..).zip(rest.messages()).all(|(number, message)| is(message, number)), "{len}");
        assert!(receiver.is_last(), "{len}");
        assert_eq!(receiver.peek(), Err(Error::Again), "{len}");
    }
    let run = sender.reserve_run(100, 1000).expect("room");
    assert_eq!(run.count, (1 << 13) / 100, "an eighth of the ring");
    let largest = (1 << 16) - 72;
    assert_eq!(
        sender.reserve_run(largest, 9).err(),
        Some(Error::Again),
        "not before the receiver has seen the skip"
    );
    assert_eq!(receiver.peek(), Err(Error::Again));
    assert_eq!(sender.reserve_run(largest, 9).map(|run| run.count), Ok(1), "the largest message");
    sender.commit_run(0);
    assert_eq!(receiver.peek(), Err(Error::Again), "a run of no messages is none");
    assert_eq!(sender.reserve_run(largest + 1, 1).err(), Some(Error::TooLarge(largest + 1)));
}

/// What was reserved is void after another message: its room is that one's.
#[test]
#[should_panic(expected = "not reserved")]
fn a_message_after_a_reservation_makes_it_void() {
    let (mut sender, _receiver) = linux::pair(CAPACITY, Wait::Never).expect("a ring");
    sender.reserve(1000).expect("room");
    sender.push(b"another").expect("room");
    sender.stage(1000);
}

#[test]
fn a_batch_is_visible_when_it_is_published_and_a_buffer_too_small_loses_nothing() {
    let (mut sender, mut receiver) = linux::pair(CAPACITY, Wait::Never).expect("a ring");
    sender.push(b"one").expect("room");
    sender.push(b"more").expect("room");
    assert_eq!(receiver.peek(), Err(Error::Again));
    sender.publish();
    let mut small = [0; 3];
    assert_eq!(receiver.receive(&mut small), Ok(3));
    assert_eq!(receiver.receive(&mut small), Err(Error::TooLarge(4)));
    assert_eq!(receiver.peek(), Ok(&b"more"[..]));
    sender.finish().expect("room");
    assert_eq!(receiver.peek(), Err(Error::Ended));
    assert_eq!(receiver.peek(), Err(Error::Again), "another stream may follow");
}

#[test]
fn a_role_has_one_end_and_the_next_one_goes_on() {
    let (_folder, path) = place();
    let mut sender = linux::open_sender(&path, CAPACITY, Wait::Never).expect("a sender");
    let second = linux::open_sender(&path, CAPACITY, Wait::Never);
    assert_eq!(second.err().map(|error| error.kind()), Some(ErrorKind::ResourceBusy));
    for number in 0..3 {
        sender.send(&[number]).expect("room");
    }
    drop(sender);
    let mut receiver = linux::open_receiver(&path, CAPACITY, Wait::Futex).expect("a receiver");
    assert_eq!(receiver.peek(), Ok(&[0][..]));
    assert_eq!(receiver.peek(), Ok(&[1][..]));
    // It forgets the message in hand, as one that is killed.
    std::mem::forget(receiver);
    let busy = linux::open_receiver(&path, CAPACITY, Wait::Futex);
    assert_eq!(
        busy.err().map(|error| error.kind()),
        Some(ErrorKind::ResourceBusy),
        "its lock is not released"
    );
}

#[test]
fn both_ends_wait_and_say_that_none_is_there() {
    let (_folder, path) = place();
    let mut receiver = linux::open_receiver(&path, CAPACITY, Wait::Futex).expect("a receiver");
    assert_eq!(receiver.peek(), Err(Error::Absent));
    let mut sender = linux::open_sender(&path, 0, Wait::Spin).expect("a sender, which takes the capacity");
    assert!(receiver.port().peer_is_there() && sender.port().peer_is_there());
    sender.send(b"last").expect("room");
    drop(sender);
    assert_eq!(receiver.peek(), Ok(&b"last"[..]), "what was published before a death is read first");
    assert_eq!(receiver.peek(), Err(Error::Absent));
}

#[test]
fn what_is_no_ring_is_refused_and_left_alone() {
    let (_folder, path) = place();
    std::fs::write(&path, "some text of the user, longer than a few words").expect("a file");
    let refused = linux::open_sender(&path, CAPACITY, Wait::Futex);
    assert_eq!(refused.err().map(|error| error.kind()), Some(ErrorKind::InvalidData));
    assert!(std::fs::read(&path).expect("a file").starts_with(b"some text"));
    std::fs::remove_file(&path).expect("a file");
    assert!(linux::open_sender(&path, 5000, Wait::Futex).is_err(), "no power of two");
}

/// An end that was killed while it made the ring left zeros, or a part of the head: the next one makes it.
#[test]
fn a_setup_that_was_not_finished_is_repeated() {
    let (_folder, path) = place();
    let head = [[0; 4], 3u32.to_ne_bytes(), 4096u32.to_ne_bytes()].concat();
    for left in [&[][..], &[0; 4096], &head] {
        std::fs::write(&path, left).expect("a file");
        let mut sender = linux::open_sender(&path, CAPACITY, Wait::Never).expect("a sender");
        sender.send(b"message").expect("room");
        std::fs::remove_file(&path).expect("a file");
    }
}

/// Positions and lengths that make no sense are an error, and never an access outside of the ring.
#[test]
fn a_damaged_ring_is_an_error() {
    use std::os::unix::fs::FileExt;
    let write = |path: &PathBuf, at: u64, word: u32| {
        let file = std::fs::File::options().write(true).open(path).expect("a file");
        file.write_all_at(&word.to_ne_bytes(), at).expect("a word");
    };
    for (at, word) in
        [(4096, 4094), (4096, 0xffff_fff0), (4096, 0x8000_0000), (4096, 0x8000_1000), (4096, u32::MAX)]
    {
        let (_folder, path) = place();
        let mut sender = linux::open_sender(&path, CAPACITY, Wait::Never).expect("a sender");
        let mut receiver = linux::open_receiver(&path, CAPACITY, Wait::Never).expect("a receiver");
        sender.send(b"message").expect("room");
        write(&path, at, word);
        assert_eq!(receiver.peek(), Err(Error::Damaged), "{at} {word}");
    }
    let (_folder, path) = place();
    drop(linux::open_sender(&path, CAPACITY, Wait::Never).expect("a sender"));
    for (at, word) in [(256, 4), (256, 8192), (128, 8)] {
        write(&path, at, word);
        assert!(linux::open_receiver(&path, CAPACITY, Wait::Never).is_err(), "{at} {word}");
        write(&path, at, 0);
    }
    // A run whose second word says too little, too much, or half a message; a position that is in the middle of a message of a run.
    for (stop, taken) in [(11, 0), (4100, 0), (14, 0), (u32::MAX, 0), (24, 10), (24, 24)] {
        write(&path, 4096, (1 << 30) | 5);
        write(&path, 4100, stop);
        write(&path, 256, taken);
        let found = soon(|| match linux::open_receiver(&path, CAPACITY, Wait::Never) {
            Ok(mut receiver) => Some(receiver.peek().err()),
            Err(error) if error.kind() == ErrorKind::ResourceBusy => None,
            Err(_) => Some(Some(Error::Damaged)),
        });
        assert_eq!(
            found,
            Some(if (stop, taken) == (24, 24) { Error::Again } else { Error::Damaged }),
            "{stop} {taken}"
        );
        write(&path, 256, 0);
        write(&path, 128, 0);
    }
    write(&path, 4096, 0);
    // Records without end: the second one begins where the first one does.
    write(&path, 4096, 4093);
    soon(|| {
        let refused = linux::open_sender(&path, CAPACITY, Wait::Never).err().map(|error| error.kind());
        assert!(refused.is_some(), "records without end");
        (refused != Some(ErrorKind::ResourceBusy)).then_some(())
    });
    write(&path, 4096, 0);
    let mut sender = soon(|| linux::open_sender(&path, CAPACITY, Wait::Never).ok());
    write(&path, 128, 9);
    assert_eq!((0..100).find_map(|_| sender.send(&[0; 100]).err()), Some(Error::Damaged));
}

#[test]
fn a_ring_passes_over_a_socket_and_its_eventfd_can_be_polled() {
    let (here, there) = UnixStream::pair().expect("sockets");
    let mut sender = linux::offer_sender(&here, CAPACITY, Wait::Eventfd).expect("a sender");
    let mut receiver = linux::accept_receiver(&there, Wait::Never).expect("a receiver");
    assert_eq!(receiver.peek(), Err(Error::Again));
    assert!(receiver.arm(), "there is nothing");
    let event = receiver.port().event().expect("an eventfd").try_clone_to_owned().expect("a copy");
    let mut event = std::fs::File::from(event);
    assert_eq!(event.read(&mut [0; 8]).err().map(|error| error.kind()), Some(ErrorKind::WouldBlock));
    sender.send(b"wakes").expect("room");
    assert_eq!(event.read(&mut [0; 8]).expect("an event"), 8);
    assert_eq!(receiver.peek(), Ok(&b"wakes"[..]));
    assert!(event.as_fd().try_clone_to_owned().is_ok());

    // The sender waits for room in poll(2), and is woken through its own eventfd.
    let sends = std::thread::spawn(move || {
        (0..1000u32).try_for_each(|number| sender.send(&number.to_ne_bytes().repeat(64))).expect("room");
    });
    receiver = {
        let mut receiver = receiver;
        let mut number = 0u32;
        while number < 1000 {
            match receiver.peek() {
                Ok(message) => {
                    assert_eq!(message[..4], number.to_ne_bytes());
                    number += 1;
                }
                Err(Error::Again) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        receiver
    };
    sends.join().expect("the sender");
    assert_eq!(receiver.peek(), Err(Error::Again));
    soon(|| (!receiver.port().peer_is_there()).then_some(()));
}
