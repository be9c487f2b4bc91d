//! What an end notices: that the other one died in a long pause, that a receiver is there already, that a mark is that of a dead sender.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};

use super::{BYTES, Pair, all, languages, messages, output, promise, well};
use crate::common::{Lab, until};

const PATIENCE: Duration = Duration::from_secs(30);

/// The lines of a child's standard error, with the time at which each came.
fn lines(child: &mut Child) -> Receiver<(Instant, String)> {
    let errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let (lines, received) = channel();
    std::thread::spawn(move || {
        errors.lines().map_while(Result::ok).try_for_each(|line| lines.send((Instant::now(), line)))
    });
    received
}

/// A receiver that takes a message and dies: it removes nothing, and this is when.
fn receive_one_and_die(pair: &Pair, sender: &Child) -> Instant {
    let path = pair.folder.join(&pair.name);
    let mut message = [0; BYTES as usize];
    let mut take = |link: &mut dyn Read| link.read_exact(&mut message).expect("a message");
    let free = || {
        if path.exists() {
            fs::remove_file(&path).expect("a dead receiver's")
        }
    };
    match pair.spec {
        "fifo" => take(&mut until("the FIFO", PATIENCE, || File::open(&path).ok())),
        "unix-stream" => {
            free();
            let listener = UnixListener::bind(&path).expect("a name");
            take(&mut listener.accept().expect("a sender").0);
        }
        "unix-seqpacket" => {
            free();
            // Another test forks meanwhile.
            let (flags, kind) = (SocketFlags::CLOEXEC, SocketType::SEQPACKET);
            let listener = socket_with(AddressFamily::UNIX, kind, flags, None).expect("a socket");
            bind(&listener, &SocketAddrUnix::new(&path).expect("a name")).expect("a name");
            listen(&listener, 1).expect("a name");
            take(&mut UnixStream::from(accept_with(&listener, flags).expect("a sender")));
        }
        "unix-dgram" => {
            free();
            // A datagram without bytes is no message.
            let socket = UnixDatagram::bind(&path).expect("a name");
            while socket.recv(&mut message).expect("a message") == 0 {}
        }
        "tcp" => {
            let listener =
                TcpListener::bind(("127.0.0.1", pair.name.parse().expect("a port"))).expect("a port");
            take(&mut listener.accept().expect("a sender").0);
        }
        ring => {
            assert!(ring.starts_with("shm-ring"), "{ring}");
            let mut receiver = pair.start_receiver(0);
            for pid in [receiver.id(), sender.id()] {
                let maps = || fs::read_to_string(format!("/proc/{pid}/maps")).ok();
                until(ring, PATIENCE, || maps().filter(|maps| maps.contains(&pair.name)));
            }
            // The sender has seen it.
            std::thread::sleep(Duration::from_millis(600));
            receiver.kill().and_then(|()| receiver.wait()).expect("it was ours");
        }
    }
    Instant::now()
}

/// When a sender said that its receiver has gone.
fn notice(pair: &Pair, said: &Receiver<(Instant, String)>) -> Instant {
    loop {
        let (at, line) = said.recv_timeout(PATIENCE).unwrap_or_else(|why| panic!("{}: {why}", pair.what()));
        if line.contains("the receiver has gone") {
            return at;
        }
    }
}

/// Expected: within a second. Happened: at the next message, which may be later.
#[test]
fn a_sender_notices_in_a_pause_that_its_receiver_died() {
    let lab = Lab::new();
    let mut pairs = Vec::new();
    for spec in promise("reader-crash") {
        for language in languages(&["c", "rust", "python", "go", "java"]) {
            pairs.extend(Pair::new(&lab, spec, [language; 2], BYTES, &["--must", "reader-crash"]));
        }
    }
    // The program or this one may be late once, where others use the CPUs.
    let dies_in_pauses = |pair: &Pair, rate| {
        let mut sender = pair.start_sender(1000, rate);
        let said = lines(&mut sender);
        let late = || {
            let died = receive_one_and_die(pair, &sender);
            notice(pair, &said).saturating_duration_since(died)
        };
        let is_soon = (0..5).any(|_| late() < Duration::from_millis(700));
        assert!(is_soon, "{} at {rate} in a second", pair.what());
        sender.kill().and_then(|()| sender.wait()).expect("it was ours");
    };
    std::thread::scope(|scope| {
        pairs.iter().for_each(|pair| _ = scope.spawn(|| [1, 5].map(|rate| dies_in_pauses(pair, rate))))
    });
}

/// Two would share the messages. One of two that start together says that the other is there; that one receives.
#[test]
fn a_second_receiver_is_refused() {
    let lab = Lab::new();
    let mut pairs = Vec::new();
    for spec in all() {
        for language in languages(&["c", "rust", "python", "go", "java"]) {
            pairs.extend(Pair::new(&lab, spec, [language; 2], BYTES, &[]));
        }
    }
    let refuses_a_second = |pair: &Pair| {
        let mut receivers = [pair.start_receiver(3), pair.start_receiver(3)];
        let refused = until(&pair.what(), PATIENCE, || {
            (0..2).find(|at| receivers[*at].try_wait().expect("it was ours").is_some())
        });
        let [first, second] = receivers;
        let (refused, other) = if refused == 0 { (first, second) } else { (second, first) };
        let refused = output(refused);
        assert_eq!(refused.status.code(), Some(1), "{}: {refused:?}", pair.what());
        well(&pair.what(), &output(pair.start_sender(3, 0)));
        assert_eq!(messages(&well(&pair.what(), &output(other))), 3, "{}", pair.what());
    };
    std::thread::scope(|scope| pairs.iter().for_each(|pair| _ = scope.spawn(|| refuses_a_second(pair))));
}

/// Expected: they come to the next receiver. Happened: the one that took the mark of a dead sender removed the FIFO, with the messages of the next.
#[test]
fn messages_behind_the_mark_of_a_dead_sender_stay_in_the_fifo() {
    let lab = Lab::new();
    for language in languages(&["c", "rust", "python", "go", "java"]) {
        let pair = Pair::new(&lab, "fifo", [language; 2], BYTES, &[]).expect("programs");
        let first = pair.start_receiver(0);
        let path = pair.folder.join(&pair.name);
        let mut fifo = until("the FIFO", PATIENCE, || OpenOptions::new().write(true).open(&path).ok());
        let message = |number: u64| (number | 77 << 40).to_le_bytes().repeat(BYTES as usize / 8);
        let mark = vec![0xFF; BYTES as usize];
        fifo.write_all(&[&mark[..], &message(0), &message(1)].concat()).expect("there is room");
        assert_eq!(messages(&well(&pair.what(), &output(first))), 0);
        let next = pair.start_receiver(0);
        until("a receiver", PATIENCE, || fifo.write_all(&mark).ok());
        assert_eq!(messages(&well(&pair.what(), &output(next))), 2, "{}", pair.what());
        assert!(!path.exists(), "{}", pair.what());
    }
}
