//! Ends in C, Rust and Python share one ring, and are killed at random moments: nothing that was published is lost or torn, at most one
//! message or run comes twice, and the other end notices within a second. `tests/end.c` says what an end does; this program is the one in Rust.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hosepipe_ring::linux::{Wait, open_receiver, open_sender};
use hosepipe_ring::{Error, Run};

const CAPACITY: u32 = 1 << 16;
pub(crate) const FUTEX: &str = "1";
pub(crate) const SPIN: &str = "0";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Rust,
    Python,
}
use Language::{C, Python, Rust};

/// A folder with a ring, and what its ends have noted.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
    ids: u64,
    random: u64,
}

/// An end that is killed when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Running {
    pub(crate) fn succeeds(mut self) {
        let status = self.0.wait().expect("its status");
        assert!(status.success(), "{status}");
    }
}

/// The folder of `end.c` and `end.py`.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests")
}

/// The end in C, compiled; `None` with a word about it where there is no compiler for that.
pub(crate) fn compiled(options: &[&str], name: &str) -> Option<PathBuf> {
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let own = binary.with_extension(std::process::id().to_string());
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2"]).args(options);
    let done = cc.arg(sources().join("end.c")).arg("-o").arg(&own).output().ok()?;
    if !done.status.success() {
        eprintln!("skipped: cc {options:?}: {}", String::from_utf8_lossy(&done.stderr));
        return None;
    }
    std::fs::rename(own, &binary).ok()?;
    Some(binary)
}

fn end_in_c() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| compiled(&[], "end").expect("a C compiler"))
}

impl Lab {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
        for name in ["sent", "got"] {
            File::create(folder.path().join(name)).expect("a file");
        }
        Self { folder, ids: 0, random: (u64::from(std::process::id()) << 20) | 1 }
    }

    pub(crate) fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn start_binary(
        &mut self,
        mut binary: Command,
        role: &str,
        count: u64,
        wait: &str,
    ) -> Running {
        self.ids += u64::from(role == "sender");
        let state = self.at(if role == "sender" { "sent" } else { "got" });
        binary.args([role.into(), self.at("ring"), self.ids.to_string().into(), state]);
        binary.args([&count.to_string(), wait]).stdout(Stdio::piped());
        Running(binary.spawn().expect("an end"))
    }

    /// Starts an end; `count` 0: it sends for ever.
    pub(crate) fn start(&mut self, language: Language, role: &str, count: u64, wait: &str) -> Running {
        let binary = match language {
            C => Command::new(end_in_c()),
            Rust => {
                // This very program, of which only `end_of_other_tests` runs.
                let mut own = Command::new(std::env::current_exe().expect("this program"));
                own.args(["--exact", "ends::end_of_other_tests", "--nocapture", "--test-threads=1", "--"]);
                own.env("RING_TEST_END", "1");
                own
            }
            Python => {
                let mut python = Command::new("python3");
                python.arg(sources().join("end.py"));
                python
            }
        };
        self.start_binary(binary, role, count, wait)
    }

    fn noted(&self, name: &str) -> Vec<u64> {
        words(&std::fs::read(self.at(name)).expect("a file"))
    }

    /// Everything that senders published has arrived. What was published just before a kill may not be noted: a message and a run of
    /// eight.
    pub(crate) fn assert_all_arrived(&self) {
        let (sent, mut got) = (self.noted("sent"), self.noted("got"));
        got.resize(sent.len().max(got.len()), 0);
        for (id, (sent, got)) in sent.iter().zip(&got).enumerate() {
            assert!((*sent..=sent + 9).contains(got), "{got} of {sent} messages of sender {id}");
        }
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect()
}

/// Ends of these languages in turn, each killed after up to `life_us`.
fn kill(languages: &[Language], kills: usize, life_us: u64, wait: &str) {
    let mut lab = Lab::new();
    let start = |lab: &mut Lab, role: &str, count: u64| {
        let language = languages[lab.random(languages.len() as u64) as usize];
        lab.start(language, role, count, wait)
    };
    let mut ends = [start(&mut lab, "sender", 0), start(&mut lab, "receiver", 0)];
    for _ in 0..kills {
        sleep(Duration::from_micros(lab.random(life_us)));
        for end in &mut ends {
            assert_eq!(end.0.try_wait().expect("its status"), None, "an end failed");
        }
        let at = lab.random(2) as usize;
        ends[at].0.kill().expect("to be killed");
        ends[at].0.wait().expect("its status");
        ends[at] = start(&mut lab, ["sender", "receiver"][at], 0);
    }
    let [sender, receiver] = ends;
    drop(sender);
    start(&mut lab, "sender", 3000).succeeds();
    receiver.succeeds();
    lab.assert_all_arrived();
}

#[test]
fn kills_in_c_lose_nothing() {
    kill(&[C], 150, 12_000, FUTEX);
}

#[test]
fn kills_in_rust_lose_nothing() {
    kill(&[Rust], 150, 25_000, FUTEX);
}

#[test]
fn kills_of_spinning_ends_lose_nothing() {
    kill(&[C, Rust], 60, 20_000, SPIN);
}

#[test]
fn kills_in_all_languages_lose_nothing() {
    kill(&[C, Rust, Python], 70, 120_000, FUTEX);
}

/// Each language sends to each: whole messages, the end of the stream, and a second run over the same file.
#[test]
fn every_language_reads_every_other() {
    for sends in [C, Rust, Python] {
        for receives in [C, Rust, Python] {
            let mut lab = Lab::new();
            for wait in [FUTEX, SPIN] {
                let receiver = lab.start(receives, "receiver", 0, wait);
                lab.start(sends, "sender", 3000, wait).succeeds();
                receiver.succeeds();
                lab.assert_all_arrived();
            }
        }
    }
}

/// The end that waits says so within a second of the other one's death.
#[test]
fn a_death_is_noticed_within_a_second() {
    for (waits, dies) in [(C, Rust), (Rust, Python), (Python, C)] {
        for [role, other] in [["receiver", "sender"], ["sender", "receiver"]] {
            let mut lab = Lab::new();
            let mut other = lab.start(dies, other, 0, FUTEX);
            let mut waiting = lab.start(waits, role, 0, FUTEX);
            let deadline = Instant::now() + Duration::from_secs(10);
            while lab.noted("got").is_empty() {
                assert!(Instant::now() < deadline, "nothing arrived");
                sleep(Duration::from_millis(5));
            }
            other.0.kill().expect("to be killed");
            other.0.wait().expect("its status");
            let killed = Instant::now();
            let said = BufReader::new(waiting.0.stdout.take().expect("its output"));
            let is_noticed = said.lines().map_while(Result::ok).any(|line| line == "absent");
            let after = killed.elapsed();
            // A second is promised; a machine that is busy with other tests may run nothing for a while.
            assert!(is_noticed && after < Duration::from_secs(3), "{waits:?} {role}: {after:?}");
        }
    }
}

/// Not a test of its own: the end in Rust, which the tests above start.
#[test]
fn end_of_other_tests() {
    if std::env::var_os("RING_TEST_END").is_none() {
        return;
    }
    let words: Vec<String> = std::env::args().skip_while(|word| word != "--").skip(1).collect();
    let [role, path, id, state, count, wait] = &words[..] else { panic!("{words:?}") };
    let number = |word: &String| word.parse::<u64>().expect("a number");
    let wait = if wait == SPIN { Wait::Spin } else { Wait::Futex };
    let state = OpenOptions::new().read(true).write(true).open(state).expect("a file for notes");
    match role.as_str() {
        "sender" => send_all(path.as_ref(), number(id), number(count), &state, wait),
        _ => receive_all(path.as_ref(), &state, wait),
    }
    std::process::exit(0);
}

fn note(state: &File, id: u64, count: u64) {
    state.write_all_at(&count.to_ne_bytes(), 8 * id).expect("a note");
}

fn say(line: &str) {
    let mut to = std::io::stdout().lock();
    writeln!(to, "{line}").and_then(|()| to.flush()).expect("a reader");
}

fn words_of(number: u64) -> usize {
    if number / 8 % 61 == 5 { 300 } else { 1 + (number / 8 * 7 % 40) as usize }
}

fn message_of(id: u64, number: u64) -> Vec<u8> {
    ((id << 40) | number).to_ne_bytes().repeat(words_of(number))
}

fn send_all(path: &Path, id: u64, count: u64, state: &File, wait: Wait) {
    let mut sender = open_sender(path, CAPACITY, wait).expect("a sender");
    let mut number = 0;
    while count == 0 || number < count {
        let message = message_of(id, number);
        let (is_in_run, is_staged) = (number % 16 > 7, number % 4 == 3);
        let sent = if is_in_run {
            let written = sender.reserve_run(message.len(), 16 - number as usize % 16).map(|mut run| {
                let rooms = run.rooms().zip(number..);
                rooms.for_each(|(room, number)| room.copy_from_slice(&message_of(id, number)));
                run.count
            });
            written.inspect(|written| sender.commit_run(*written))
        } else if is_staged {
            sender.push(&message).map(|()| 1)
        } else if number % 4 == 2 {
            let room = sender.reserve(message.len() + 100);
            let written = room.map(|room| room[..message.len()].copy_from_slice(&message));
            written.map(|()| sender.commit(message.len())).map(|()| 1)
        } else {
            sender.send(&message).map(|()| 1)
        };
        match sent {
            Ok(sent) => number += sent as u64,
            Err(Error::Absent) => {
                say("absent");
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        if is_in_run || !is_staged {
            note(state, id, number);
        }
    }
    sender.publish();
    note(state, id, count);
    while sender.finish().is_err() {}
    while !sender.is_drained() && sender.port().peer_is_there() {
        sleep(Duration::from_millis(1));
    }
}

pub(crate) fn one(bytes: &[u8]) -> Run<&[u8]> {
    Run { bytes, length: bytes.len(), stride: bytes.len(), count: 1 }
}

fn receive_all(path: &Path, state: &File, wait: Wait) {
    let mut receiver = open_receiver(path, CAPACITY, wait).expect("a receiver");
    let mut known = vec![0; 8 << 12];
    state.read_at(&mut known, 0).expect("the notes");
    let mut got = words(&known);
    let (mut is_first, mut copy) = (true, [0; 2400]);
    for turn in 0.. {
        let found = match turn % 3 {
            0 => receiver.peek().map(one),
            1 => receiver.receive(&mut copy).map(|len| one(&copy[..len])),
            _ => receiver.peek_run(),
        };
        let run = match found {
            Ok(run) => run,
            Err(Error::Absent) => {
                say("absent");
                continue;
            }
            Err(Error::Ended) => return,
            Err(error) => panic!("{error}"),
        };
        for message in run.messages() {
            let word = words(&message[..8])[0];
            let (id, number) = ((word >> 40) as usize, word & ((1 << 40) - 1));
            assert!(message == message_of(id as u64, number), "message {number} of {id} is torn");
            // The message or the run that the last one had in hand comes again.
            if is_first && number < got[id] && number + 8 >= got[id] {
                continue;
            }
            assert!(number == got[id], "{number} of {id} in place of {}", got[id]);
            got[id] += 1;
            note(state, id as u64, got[id]);
            is_first = false;
        }
    }
}
