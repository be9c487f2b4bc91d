//! A worker whose ends meet over iceoryx2: samples on loan in shared memory. What is asked of it is in docs/WORKERS.md.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::process::{Command, Stdio, exit};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;

const PERIOD: u64 = 256;
/// Samples that the subscriber's queue holds.
const DEPTH: usize = 16;
/// Samples that the publisher may hold on loan.
const LOANS: usize = DEPTH + 2;
/// Where iceoryx2 keeps its segments on Linux.
const SEGMENTS: &str = "/dev/shm";
/// A subscriber that finds nothing so often lets others run.
const LOOKS_BEFORE_YIELD: u32 = 1000;

type Service = PortFactory<ipc::Service, [u8], ()>;

struct Job {
    bytes: u64,
    block: u64,
    warmup: u64,
    result: String,
    child: Vec<String>,
    /// A private folder, the same for both ends.
    folder: PathBuf,
}

/// Ends the program with one sentence on standard error.
fn fail(status: i32, why: impl std::fmt::Display) -> ! {
    eprintln!("worker: {why}");
    exit(status)
}

trait OrFail<T> {
    fn or_fail(self, what: &str) -> T;
}

impl<T, E: Debug> OrFail<T> for Result<T, E> {
    fn or_fail(self, what: &str) -> T {
        self.unwrap_or_else(|error| fail(1, format!("{what}: {error:?}")))
    }
}

/// CLOCK_MONOTONIC: `Instant` hides its number, so the clock is read where the C library has it.
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

impl Job {
    fn total(&self) -> u64 {
        self.warmup + self.bytes
    }

    /// No sample is larger than the longest part of the stream.
    fn sample_bytes(&self) -> usize {
        self.block.min(self.warmup.max(self.bytes)).max(1) as usize
    }

    /// Appends the line in one write, because both ends of a pair share the file.
    fn append_result(&self, line: &str) {
        let file = OpenOptions::new().append(true).create(true).open(&self.result);
        file.and_then(|mut file| file.write_all(line.as_bytes())).or_fail(&self.result);
    }

    /// Tells the other end by a file that this one has come so far.
    fn reach(&self, step: &str) {
        File::create(self.folder.join(step)).or_fail(step);
    }

    fn wait_for(&self, step: &str) {
        while !self.folder.join(step).exists() {
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// How the names of all segments begin.
    fn prefix(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.folder.hash(&mut hasher);
        format!("hosepipe-{}-{:016x}_", hosepipe(), hasher.finish())
    }

    /// The service that both ends open. Its files lie in the folder, its segments have the prefix.
    fn service(&self) -> (Node<ipc::Service>, Service) {
        let mut config = Config::default();
        config.global.prefix = FileName::new(self.prefix().as_bytes()).or_fail("prefix");
        let root = self.folder.join("iceoryx2");
        config.global.set_root_path(&Path::new(root.as_os_str().as_encoded_bytes()).or_fail("TMPDIR"));
        let node = NodeBuilder::new()
            .config(&config)
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .create::<ipc::Service>()
            .or_fail("node");
        let service = node
            .service_builder(&"stream".try_into().or_fail("service name"))
            .publish_subscribe::<[u8]>()
            .enable_safe_overflow(false)
            .history_size(0)
            .subscriber_max_buffer_size(DEPTH)
            .subscriber_max_borrowed_samples(2)
            .max_publishers(1)
            .max_subscribers(1)
            .open_or_create()
            .or_fail("service");
        (node, service)
    }
}

/// The hosepipe that started this: the parent, or for the receiver of a pair the parent's parent, which the sender hands on.
fn hosepipe() -> String {
    let own = || std::os::unix::process::parent_id().to_string();
    std::env::var(HOSEPIPE).unwrap_or_else(|_| own())
}

const HOSEPIPE: &str = "HOSEPIPE_PEER_OF";

/// Removes segments by their names. Another user's cannot be removed.
fn remove_segments(is_ours: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(SEGMENTS).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(&is_ours) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes segments of runs that were killed: those whose hosepipe is gone.
fn remove_what_the_dead_left() {
    remove_segments(|name| {
        let owner =
            name.strip_prefix("hosepipe-").and_then(|rest| rest.split_once('-')).map(|(owner, _)| owner);
        let gone =
            |owner: &str| owner.parse::<u32>().is_ok() && !std::path::Path::new("/proc").join(owner).exists();
        owner.is_some_and(gone)
    });
}

/// Publishes `bytes` from position `from` on, each block produced in the sample that is handed over.
fn publish(publisher: &Publisher<ipc::Service, [u8], ()>, sequence: &[u8], from: u64, bytes: u64) -> u64 {
    let block = sequence.len() as u64 - PERIOD;
    let (mut position, end) = (from, from + bytes);
    while position < end {
        let len = block.min(end - position) as usize;
        let start = (position % PERIOD) as usize;
        let sample = publisher.loan_slice_uninit(len).or_fail("loan");
        let sample = sample.write_from_slice(&sequence[start..start + len]);
        if sample.send().or_fail("send") == 0 {
            fail(1, "the subscriber is gone");
        }
        position += len as u64;
    }
    position
}

fn send(job: &Job, child: Option<JoinHandle<()>>) {
    remove_what_the_dead_left();
    publish_all(job, child);
    // iceoryx2 leaves one of them.
    remove_segments(|name| name.starts_with(&job.prefix()));
}

fn publish_all(job: &Job, child: Option<JoinHandle<()>>) {
    let (_node, service) = job.service();
    let block = job.sample_bytes();
    let sequence: Vec<u8> = (0..block as u64 + PERIOD).map(|at| at as u8).collect();
    let publisher = service
        .publisher_builder()
        .initial_max_slice_len(block)
        .max_loaned_samples(LOANS)
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()
        .or_fail("publisher");
    // Every sample is written once, so that no page fault waits in it.
    let mut samples: Vec<_> =
        (0..LOANS).map(|_| publisher.loan_slice_uninit(block).or_fail("loan")).collect();
    samples.iter_mut().for_each(|sample| sample.payload_mut().fill(MaybeUninit::new(0xA5)));
    drop(samples);
    job.reach("publisher");
    job.wait_for("subscriber");
    let ready_ns = now_ns();
    let warm = publish(&publisher, &sequence, 0, job.warmup);
    let began_ns = now_ns();
    let sent = publish(&publisher, &sequence, warm, job.bytes);
    // Samples live in the publisher's memory.
    job.wait_for("received");
    if let Some(child) = child {
        child.join().or_fail("the child");
    }
    job.append_result(&format!("send bytes={sent} ready_ns={ready_ns} began_ns={began_ns}\n"));
}

fn xor_of(bytes: &[u8]) -> u8 {
    let (words, rest) = bytes.as_chunks::<8>();
    let folded = words.iter().fold(0, |sum, word| sum ^ u64::from_ne_bytes(*word));
    folded.to_ne_bytes().iter().chain(rest).fold(0, |sum, byte| sum ^ byte)
}

fn recv(job: &Job) {
    let (_node, service) = job.service();
    job.wait_for("publisher");
    let subscriber = service.subscriber_builder().buffer_size(DEPTH).create().or_fail("subscriber");
    subscriber.update_connections().or_fail("connection");
    let (mut received, mut xor, mut looks) = (0, 0, 0u32);
    let ready_ns = now_ns();
    job.reach("subscriber");
    while received < job.total() {
        match subscriber.receive().or_fail("receive") {
            Some(sample) => {
                xor ^= xor_of(sample.payload());
                received += sample.payload().len() as u64;
                looks = 0;
            }
            None if looks > LOOKS_BEFORE_YIELD => thread::yield_now(),
            None => {
                looks += 1;
                std::hint::spin_loop();
            }
        }
    }
    let ended_ns = now_ns();
    job.append_result(&format!("recv bytes={received} xor={xor} ready_ns={ready_ns} ended_ns={ended_ns}\n"));
    job.reach("received");
    if received != job.total() {
        fail(1, format!("received {received} bytes instead of {}", job.total()));
    }
}

/// Starts the receiver. Without it nothing would ever be taken: a thread waits for it, and ends this program where it fails.
fn start_child(job: &Job) -> JoinHandle<()> {
    let name = job.child[0].clone();
    let mut command = Command::new(&name);
    command.args(&job.child[1..]).stdin(Stdio::null()).env(HOSEPIPE, hosepipe());
    let mut child = command.spawn().or_fail(&name);
    let prefix = job.prefix();
    thread::spawn(move || {
        let status = child.wait().or_fail("wait");
        if !status.success() {
            remove_segments(|name| name.starts_with(&prefix));
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

fn main() {
    set_log_level(LogLevel::Fatal);
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, bytes, block, warmup, result, child @ ..] = words.as_slice() else {
        fail(2, "expected: send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]");
    };
    let job = Job {
        bytes: number("BYTES", bytes, 0),
        block: number("BLOCK", block, 1),
        warmup: number("WARMUP", warmup, 0),
        result: result.clone(),
        child: child.to_vec(),
        folder: std::env::temp_dir(),
    };
    if job.bytes.checked_add(job.warmup).is_none_or(|total| total > i64::MAX as u64) {
        fail(2, "BYTES and WARMUP together exceed 2^63 - 1");
    }
    if (role == "pair") == job.child.is_empty() {
        fail(2, "pair needs the command of its child, and nothing else has one");
    }
    match role.as_str() {
        "send" => send(&job, None),
        "recv" => recv(&job),
        "pair" => send(&job, Some(start_child(&job))),
        _ => fail(2, format!("the role is {role:?}, not send, recv or pair")),
    }
}
