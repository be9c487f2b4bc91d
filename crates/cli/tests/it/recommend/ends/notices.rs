//! What an end notices: that the other one died in a long pause, that a receiver is there already, that a mark is that of a dead sender.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use rustix::process::Signal;

use super::{BYTES, Pair, all, languages, messages, output, promise, well};
use crate::common::{Lab, signal, until};

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

/// Expected: that none is there. Happened: that one "has gone", where those before were done and the others had not come yet.
#[test]
fn an_end_of_several_says_that_none_is_there() {
    let lab = Lab::new();
    let mut pairs = Vec::new();
    for language in languages(&["c", "rust", "python", "go", "java"]) {
        for words in [&["--senders", "2"][..], &["--receivers", "2", "--share", "compete"]] {
            pairs.extend(Pair::new(&lab, "fifo", [language; 2], BYTES, words));
        }
    }
    let says_none_is_there = |pair: &Pair, is_sender: bool| {
        let one = if is_sender { pair.start_sender(5, 0) } else { pair.start_receiver(0) };
        for _ in 0..2 {
            let other = if is_sender { pair.start_receiver(0) } else { pair.start_sender(5, 0) };
            well(&pair.what(), &output(other));
        }
        let one = output(one);
        well(&pair.what(), &one);
        let said = String::from_utf8_lossy(&one.stderr).into_owned();
        assert!(!said.contains("has gone") && !said.contains("another"), "{}: {said}", pair.what());
    };
    std::thread::scope(|scope| {
        for (at, pair) in pairs.iter().enumerate() {
            scope.spawn(move || says_none_is_there(pair, at % 2 == 1));
        }
    });
}

/// Expected: an end in Java goes on. Happened: it did not where the system's messages are in another language than English.
#[test]
fn an_end_in_java_knows_errors_in_each_language() {
    if languages(&["c", "java"]).len() < 2 {
        return;
    }
    let lab = Lab::new();
    let own = "#include <stdio.h>\n\
               int __xpg_strerror_r(int number, char *text, size_t room) { return snprintf(text, room, \"Fehler %d\", number), 0; }\n";
    fs::write(lab.here("own.c"), own).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o", "own.so", "own.c"]).current_dir(lab.here(""));
    assert!(compiler.status().expect("it starts").success());
    let mut pairs = Vec::new();
    for spec in ["fifo", "unix-stream", "tcp"] {
        let mut pair = Pair::new(&lab, spec, ["java"; 2], BYTES, &[]).expect("programs");
        let preload = format!("LD_PRELOAD={}", lab.here("own.so").display());
        pair.sender.splice(0..0, ["env".to_owned(), preload]);
        pairs.push(pair);
    }
    let goes_on = |pair: &Pair| {
        // It comes first, and its receiver dies.
        let mut sender = pair.start_sender(600, 200);
        let said = lines(&mut sender);
        std::thread::sleep(Duration::from_millis(700));
        let mut first = pair.start_receiver(0);
        std::thread::sleep(Duration::from_millis(1500));
        first.kill().and_then(|()| first.wait()).expect("it was ours");
        notice(pair, &said);
        well(&pair.what(), &output(pair.start_receiver(0)));
        well(&pair.what(), &output(sender));
        assert!(!pair.folder.join("meeting.lock").exists(), "{}: taken over", pair.what());
    };
    std::thread::scope(|scope| pairs.iter().for_each(|pair| _ = scope.spawn(|| goes_on(pair))));
}

/// Expected: a receiver in Java that waits and is stopped (Ctrl-C) leaves no lock file, and its README names the file.
#[test]
fn a_receiver_in_java_that_is_stopped_removes_its_lock() {
    if languages(&["java"]).is_empty() {
        return;
    }
    let lab = Lab::new();
    for spec in ["fifo", "unix-stream"] {
        let pair = Pair::new(&lab, spec, ["java"; 2], BYTES, &[]).expect("programs");
        let readme = fs::read_to_string(pair.folder.join("README.md")).expect("a README");
        assert!(readme.contains("locks the file NAME.lock"), "{readme}");
        let mut receiver = pair.start_receiver(0);
        let lock = pair.folder.join("meeting.lock");
        until("a lock", PATIENCE, || pair.folder.join("meeting").exists().then_some(()));
        signal(receiver.id(), Signal::TERM);
        receiver.wait().expect("it was ours");
        assert!(!lock.exists(), "{spec}");
    }
}

/// Expected: it makes the queue again. Happened: a sender in Rust failed, if the queue was removed between two of its messages.
#[test]
fn a_sender_goes_on_where_its_queue_was_removed() {
    let lab = Lab::new();
    for language in languages(&["c", "rust", "python"]) {
        let pair = Pair::new(&lab, "sysv-msgq", [language; 2], BYTES, &[]).expect("programs");
        let sender = pair.start_sender(30, 20);
        std::thread::sleep(Duration::from_millis(400));
        pair.remove();
        let receiver = pair.start_receiver(0);
        well(&pair.what(), &output(sender));
        well(&pair.what(), &output(receiver));
    }
}

/// Expected: an error. Happened: over sockets that keep boundaries the longer messages of another pair were cut off, and "all as sent".
#[test]
fn a_longer_message_is_not_cut_off() {
    let lab = Lab::new();
    for language in languages(&["c", "rust", "python", "go"]) {
        for words in [&[][..], &["--senders", "2"]] {
            let [longer, mut shorter] = [BYTES, 64].map(|bytes| {
                Pair::new(&lab, "unix-seqpacket", [language; 2], bytes, words).expect("programs")
            });
            shorter.name = longer.folder.join(&longer.name).display().to_string();
            let receiver = shorter.start_receiver(0);
            let mut sender = longer.start_sender(5, 0);
            let done = output(receiver);
            sender.kill().and_then(|()| sender.wait()).expect("it was ours");
            assert_eq!(done.status.code(), Some(1), "{}: {done:?}", shorter.what());
        }
    }
}
