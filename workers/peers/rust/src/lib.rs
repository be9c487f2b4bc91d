//! The common code of the Rust peers: command line, stream, check and result lines. See docs/WORKERS.md.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio, exit};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const PERIOD: u64 = 256;
/// Largest size of an element of a queue. The sequence is longer than a block by this, so that a whole element can be copied.
pub const ELEMENT_MAX: usize = 64;
/// Number of times that an end finds its queue empty or full before it yields the CPU.
const TRIES_BEFORE_YIELD: u32 = 1000;

/// The sending side of one direction.
pub trait Sender {
    /// Sends the first `length` bytes; the other bytes only fill an element.
    fn send(&mut self, bytes: &[u8], length: usize);
}

/// The receiving side of one direction.
pub trait Receiver {
    /// The next message, which has `length` bytes; an element may be longer.
    fn receive(&mut self, length: usize) -> &[u8];
}

/// The command line, parsed.
#[derive(Clone)]
pub struct Job {
    pub role: String,
    pub bytes: u64,
    pub block: u64,
    pub warmup: u64,
    pub result: String,
    pub child: Vec<String>,
    /// A private folder, the same for both ends.
    pub folder: PathBuf,
}

/// Ends the program with one sentence on standard error.
pub fn fail(status: i32, why: impl std::fmt::Display) -> ! {
    eprintln!("worker: {why}");
    exit(status)
}

pub trait OrFail<T> {
    fn or_fail(self, what: &str) -> T;
}

impl<T, E: Debug> OrFail<T> for Result<T, E> {
    fn or_fail(self, what: &str) -> T {
        self.unwrap_or_else(|error| fail(1, format!("{what}: {error:?}")))
    }
}

/// Nanoseconds of CLOCK_MONOTONIC, by clock_gettime(2), because `Instant` does not give its value.
fn now_ns() -> u64 {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: room for a timespec of a 64-bit Linux; 1 is CLOCK_MONOTONIC.
    unsafe { clock_gettime(1, &mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

/// Busy waiting, for queues that cannot block: it spins at first, then yields the CPU.
#[derive(Default)]
pub struct Backoff(u32);

impl Backoff {
    pub fn pause(&mut self) {
        if self.0 > TRIES_BEFORE_YIELD {
            thread::yield_now();
        } else {
            self.0 += 1;
            std::hint::spin_loop();
        }
    }
}

/// The number of bytes, and their XOR in words, which are reduced to a byte at the end.
#[derive(Default)]
struct Arrived {
    bytes: u64,
    folded: u64,
}

impl Arrived {
    fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let (halves, rest) = rest.as_chunks::<4>();
        let folded = words.iter().fold(0, |sum, word| sum ^ u64::from_ne_bytes(*word));
        let folded = halves.iter().fold(folded, |sum, half| sum ^ u64::from(u32::from_ne_bytes(*half)));
        self.folded ^= rest.iter().fold(folded, |sum, byte| sum ^ u64::from(*byte));
        self.bytes += bytes.len() as u64;
    }

    /// Appends the receiver's line.
    fn report(&self, job: &Job, ready_ns: u64, ended_ns: u64) {
        let xor = self.folded.to_ne_bytes().iter().fold(0, |sum, byte| sum ^ byte);
        job.append_result(&format!(
            "recv bytes={} xor={xor} ready_ns={ready_ns} ended_ns={ended_ns}\n",
            self.bytes
        ));
    }
}

impl Job {
    /// Reads ROLE BYTES BLOCK WARMUP RESULT [CHILD...]; `alone`: both ends are threads of this program.
    pub fn parse(alone: bool) -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let [role, bytes, block, warmup, result, child @ ..] = words.as_slice() else {
            fail(2, "expected: send|recv|pair|trip|echo BYTES BLOCK WARMUP RESULT [CHILD...]");
        };
        let job = Self {
            role: role.clone(),
            bytes: number("BYTES", bytes, 1),
            block: number("BLOCK", block, 1),
            warmup: number("WARMUP", warmup, 0),
            result: result.clone(),
            child: child.to_vec(),
            folder: std::env::temp_dir(),
        };
        if job.bytes.checked_add(job.warmup).is_none_or(|total| total > i64::MAX as u64) {
            fail(2, "BYTES and WARMUP together exceed 2^63 - 1");
        }
        let starts_other = role == "pair" || role == "trip";
        if !starts_other && (alone || !["send", "recv", "echo"].contains(&role.as_str())) {
            fail(2, format!("the role is {role:?}, not {}", if alone { "pair or trip" } else { "send, recv, pair, trip or echo" }));
        }
        if (starts_other && !alone) == job.child.is_empty() {
            fail(2, "only pair and trip have a CHILD, and only if the other end is not a thread of this program");
        }
        job
    }

    fn total(&self) -> u64 {
        self.warmup + self.bytes
    }

    pub fn is_round_trips(&self) -> bool {
        self.role == "trip" || self.role == "echo"
    }

    /// Whether this is the end that sends first.
    pub fn is_first(&self) -> bool {
        self.role != "recv" && self.role != "echo"
    }

    /// Length of the longest message.
    pub fn message_max(&self) -> usize {
        self.block.min(self.warmup.max(self.bytes)).max(1) as usize
    }

    /// Messages that a queue holds: 1 MiB of them, at least 16 and at most 1024.
    pub fn depth(&self) -> usize {
        ((1 << 20) / self.message_max()).clamp(16, 1024)
    }

    /// Appends the line in one write, because both ends share the file.
    fn append_result(&self, line: &str) {
        let file = OpenOptions::new().append(true).create(true).open(&self.result);
        file.and_then(|mut file| file.write_all(line.as_bytes())).or_fail(&self.result);
    }

    /// Creates a file by which the other end sees that this end has reached the step.
    pub fn reach(&self, step: &str) {
        File::create(self.folder.join(step)).or_fail(step);
    }

    pub fn wait_for(&self, step: &str) {
        while !self.folder.join(step).exists() {
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// Calls `each` with the position and the length of every block of the `bytes` bytes from position `from` on; returns the new position.
    fn for_blocks(&self, from: u64, bytes: u64, mut each: impl FnMut(u64, usize)) -> u64 {
        let (mut position, end) = (from, from + bytes);
        while position < end {
            let length = self.block.min(end - position);
            each(position, length as usize);
            position += length;
        }
        position
    }

    fn check_count(&self, arrived: &Arrived) {
        if arrived.bytes != self.total() {
            fail(1, format!("received {} bytes instead of {}", arrived.bytes, self.total()));
        }
    }
}

/// The end that sends the stream; in round trips it also receives and checks each answer.
pub fn send(job: &Job, out: &mut impl Sender, back: &mut impl Receiver, child: Option<JoinHandle<()>>) {
    let room = job.message_max() + PERIOD as usize + ELEMENT_MAX;
    let sequence: Vec<u8> = (0..room).map(|at| at as u8).collect();
    let mut arrived = Arrived::default();
    let comes_back = job.is_round_trips();
    let mut one = |position: u64, length: usize| {
        let start = (position % PERIOD) as usize;
        out.send(&sequence[start..start + length.max(ELEMENT_MAX)], length);
        if comes_back {
            arrived.add(&back.receive(length)[..length]);
        }
    };
    let ready_ns = now_ns();
    let warm = job.for_blocks(0, job.warmup, &mut one);
    let began_ns = now_ns();
    let sent = job.for_blocks(warm, job.bytes, &mut one);
    let ended_ns = now_ns();
    if comes_back {
        arrived.report(job, ready_ns, ended_ns);
        job.check_count(&arrived);
        job.reach("received");
    }
    // Messages in this process's memory must be received before it ends.
    job.wait_for("received");
    if let Some(child) = child {
        child.join().or_fail("the other end");
    }
    job.append_result(&format!("send bytes={sent} ready_ns={ready_ns} began_ns={began_ns}\n"));
}

/// The end that receives the stream and checks it; in round trips it sends every message back.
pub fn receive(job: &Job, out: &mut impl Sender, input: &mut impl Receiver) {
    let mut arrived = Arrived::default();
    let goes_back = job.is_round_trips();
    let ready_ns = now_ns();
    let mut one = |_, length: usize| {
        let message = input.receive(length);
        if goes_back {
            out.send(message, length);
        } else {
            arrived.add(&message[..length]);
        }
    };
    let warm = job.for_blocks(0, job.warmup, &mut one);
    job.for_blocks(warm, job.bytes, &mut one);
    let ended_ns = now_ns();
    if goes_back {
        job.wait_for("received");
        return;
    }
    arrived.report(job, ready_ns, ended_ns);
    job.reach("received");
    job.check_count(&arrived);
}

/// Both ends as threads of this process, over a queue for each direction.
pub fn run_threads<S: Sender + Send + 'static, R: Receiver + Send + 'static>(job: &Job, queue: impl Fn(&Job) -> (S, R)) {
    let ((mut there, mut arriving), (mut back, mut answers)) = (queue(job), queue(job));
    let other = job.clone();
    let far = thread::spawn(move || receive(&other, &mut back, &mut arriving));
    send(job, &mut there, &mut answers, Some(far));
}

/// Starts the other end. A thread waits for it; if it fails, the thread calls `clean` and ends this program, because its messages would never be
/// received.
pub fn start_child(job: &Job, variable: (&str, String), clean: impl Fn() + Send + 'static) -> JoinHandle<()> {
    let name = job.child[0].clone();
    let mut command = Command::new(&name);
    command.args(&job.child[1..]).stdin(Stdio::null()).env(variable.0, variable.1);
    let mut child = command.spawn().or_fail(&name);
    thread::spawn(move || {
        let status = child.wait().or_fail("wait");
        if !status.success() {
            clean();
            fail(1, format!("{name}: {status}"));
        }
    })
}

fn number(name: &str, text: &str, smallest: u64) -> u64 {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value =
        text.parse::<u64>().ok().filter(|value| digits && (smallest..=i64::MAX as u64).contains(value));
    value.unwrap_or_else(|| {
        fail(2, format!("{name} is {text:?}, not a whole number from {smallest} to 2^63 - 1"))
    })
}
