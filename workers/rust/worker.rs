//! A worker in Rust: one end of a pipe, or both. docs/WORKERS.md describes its arguments and results, README.md its two
//! variants.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// The byte at position `i` of the stream is `i % PERIOD`.
const PERIOD: u64 = 256;
const PAGE: usize = 4096;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Idiomatic,
    Tuned,
}

struct Job {
    way: Way,
    bytes: u64,
    block: usize,
    warmup: u64,
    result: PathBuf,
    child: Vec<OsString>,
}

/// Why a worker ends early: its exit status and its message.
struct Failure(u8, String);

impl Failure {
    fn arguments(sentence: impl Into<String>) -> Failure {
        Failure(2, sentence.into())
    }

    fn run(sentence: impl Into<String>) -> Failure {
        Failure(1, sentence.into())
    }

    fn io(what: &str) -> impl FnOnce(io::Error) -> Failure + '_ {
        move |error| Failure::run(format!("{what}: {error}"))
    }
}

/// Nanoseconds of CLOCK_MONOTONIC. `std::time::Instant` reads the same clock, but does not give its value.
fn now_ns() -> u64 {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    const CLOCK_MONOTONIC: i32 = 1;
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` is a timespec of 64-bit Linux, is written by the call and outlives it.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

// ---- the ends ----

/// A buffer of zeros; in the tuned variant it begins at a page boundary, so that vectors and copies are aligned.
struct Buffer {
    memory: Vec<u8>,
    start: usize,
}

impl Buffer {
    fn new(way: Way, bytes: usize) -> Result<Buffer, Failure> {
        let spare = if way == Way::Tuned { PAGE } else { 0 };
        let mut memory = Vec::new();
        memory
            .try_reserve_exact(bytes.saturating_add(spare))
            .map_err(|_| Failure::run("no memory for the block"))?;
        // Allocated again, by calloc(3), which does not touch the pages: the first allocation only found out whether there is memory.
        drop(memory);
        memory = vec![0; bytes + spare];
        let start = if way == Way::Tuned { memory.as_ptr().align_offset(PAGE) } else { 0 };
        Ok(Buffer { memory, start })
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..]
    }
}

struct Sent {
    bytes: u64,
    ready_ns: u64,
    began_ns: u64,
}

fn send_stream(job: &Job, output: &mut impl Write) -> Result<Sent, Failure> {
    let block = (job.block as u64).min(job.warmup.max(job.bytes));
    let mut buffer = Buffer::new(job.way, (block + PERIOD) as usize)?;
    let sequence = buffer.bytes();
    for (position, byte) in sequence.iter_mut().enumerate() {
        *byte = position as u8;
    }
    let ready_ns = now_ns();
    let warmed = send_part(output, sequence, block, 0, job.warmup)?;
    let began_ns = now_ns();
    let bytes = send_part(output, sequence, block, warmed, job.bytes)?;
    Ok(Sent { bytes, ready_ns, began_ns })
}

/// Writes `bytes` bytes from position `from` on in blocks, of which the last may be shorter; returns the new position.
fn send_part(
    output: &mut impl Write,
    sequence: &[u8],
    block: u64,
    from: u64,
    bytes: u64,
) -> Result<u64, Failure> {
    let end = from + bytes;
    let mut position = from;
    while position < end {
        let length = block.min(end - position);
        let phase = (position % PERIOD) as usize;
        output.write_all(&sequence[phase..phase + length as usize]).map_err(Failure::io("write"))?;
        position += length;
    }
    output.flush().map_err(Failure::io("write"))?;
    Ok(position)
}

struct Received {
    bytes: u64,
    xor: u8,
    ready_ns: u64,
    ended_ns: u64,
}

fn receive_stream(
    job: &Job,
    input: &mut impl Read,
    xor_of: impl Fn(&[u8]) -> u8,
) -> Result<Received, Failure> {
    let expected = job.warmup + job.bytes;
    let mut buffer = Buffer::new(job.way, job.block)?;
    let block = &mut buffer.bytes()[..job.block];
    let mut bytes = 0;
    let mut xor = 0;
    let mut ended_ns = None;
    let ready_ns = now_ns();
    loop {
        let got = match input.read(block) {
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io("read")(error)),
        };
        xor ^= xor_of(&block[..got]);
        bytes += got as u64;
        if got == 0 || bytes >= expected {
            ended_ns.get_or_insert_with(now_ns);
        }
        if let (0, Some(ended_ns)) = (got, ended_ns) {
            return Ok(Received { bytes, xor, ready_ns, ended_ns });
        }
    }
}

fn xor_idiomatic(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |xor, byte| xor ^ byte)
}

/// Words of 64 bits, which the compiler vectorises; the remaining bytes one by one.
fn xor_tuned(bytes: &[u8]) -> u8 {
    let (words, rest) = bytes.as_chunks::<8>();
    let folded = words.iter().fold(0, |xor, word| xor ^ u64::from_ne_bytes(*word));
    xor_idiomatic(&folded.to_ne_bytes()) ^ xor_idiomatic(rest)
}

// ---- the roles ----

/// Appends the line in one write, because the two ends of a pair share the file.
fn append_result(job: &Job, line: &str) -> Result<(), Failure> {
    let append = || {
        let mut result = OpenOptions::new().append(true).create(true).open(&job.result)?;
        result.write_all(line.as_bytes())
    };
    append().map_err(Failure::io(&job.result.to_string_lossy()))
}

fn append_sent(job: &Job, sent: &Sent) -> Result<(), Failure> {
    let Sent { bytes, ready_ns, began_ns } = sent;
    append_result(job, &format!("send bytes={bytes} ready_ns={ready_ns} began_ns={began_ns}\n"))
}

/// A descriptor without the buffers of `Stdin` and `Stdout`.
fn unbuffered(end: impl AsFd) -> Result<File, Failure> {
    end.as_fd().try_clone_to_owned().map(File::from).map_err(Failure::io("dup"))
}

fn run_send(job: &Job) -> Result<(), Failure> {
    let sent = match job.way {
        Way::Idiomatic => send_stream(job, &mut io::stdout().lock())?,
        Way::Tuned => send_stream(job, &mut unbuffered(io::stdout())?)?,
    };
    append_sent(job, &sent)
}

fn run_recv(job: &Job) -> Result<(), Failure> {
    let received = match job.way {
        Way::Idiomatic => receive_stream(job, &mut io::stdin().lock(), xor_idiomatic)?,
        Way::Tuned => receive_stream(job, &mut unbuffered(io::stdin())?, xor_tuned)?,
    };
    let Received { bytes, xor, ready_ns, ended_ns } = received;
    append_result(job, &format!("recv bytes={bytes} xor={xor} ready_ns={ready_ns} ended_ns={ended_ns}\n"))?;
    let expected = job.warmup + job.bytes;
    if bytes != expected {
        return Err(Failure::run(format!("received {bytes} bytes instead of {expected}")));
    }
    Ok(())
}

fn run_pair(job: &Job) -> Result<(), Failure> {
    let program = job.child[0].to_string_lossy();
    let mut child = Command::new(&job.child[0])
        .args(&job.child[1..])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(Failure::io(&program))?;
    let mut input = child.stdin.take().ok_or_else(|| Failure::run("the child has no standard input"))?;
    // ChildStdin has no buffer: the variants differ only in the memory from which they write.
    let sent = send_stream(job, &mut input)?;
    drop(input);
    let status = child.wait().map_err(Failure::io("wait"))?;
    append_sent(job, &sent)?;
    if !status.success() {
        return Err(Failure::run(format!("{program}: {status}")));
    }
    Ok(())
}

// ---- the command line ----

fn number(name: &str, text: &OsStr, smallest: u64) -> Result<u64, Failure> {
    text.to_str()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok())
        .filter(|value| (smallest..=i64::MAX as u64).contains(value))
        .ok_or_else(|| {
            Failure::arguments(format!("{name} is {text:?}, not a whole number from {smallest} to 2^63 - 1"))
        })
}

fn work() -> Result<(), Failure> {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let [way, role, bytes, block, warmup, result, child @ ..] = arguments.as_slice() else {
        let usage = "expected: idiomatic|tuned send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]";
        return Err(Failure::arguments(usage));
    };
    let way = match way.to_str() {
        Some("idiomatic") => Way::Idiomatic,
        Some("tuned") => Way::Tuned,
        _ => return Err(Failure::arguments(format!("the way is {way:?}, not idiomatic or tuned"))),
    };
    let job = Job {
        way,
        bytes: number("BYTES", bytes, 0)?,
        block: number("BLOCK", block, 1)? as usize,
        warmup: number("WARMUP", warmup, 0)?,
        result: result.into(),
        child: child.to_vec(),
    };
    if job.bytes + job.warmup > i64::MAX as u64 {
        return Err(Failure::arguments("BYTES and WARMUP together exceed 2^63 - 1"));
    }
    match (role.to_str(), child) {
        (Some("pair"), []) => Err(Failure::arguments("pair needs the command of its child")),
        (Some("pair"), _) => run_pair(&job),
        (Some("send"), []) => run_send(&job),
        (Some("recv"), []) => run_recv(&job),
        (Some("send" | "recv"), [surplus, ..]) => {
            Err(Failure::arguments(format!("{surplus:?} is an argument too many")))
        }
        _ => Err(Failure::arguments(format!("the role is {role:?}, not send, recv or pair"))),
    }
}

fn main() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(status, sentence)) => {
            eprintln!("worker: {sentence}");
            ExitCode::from(status)
        }
    }
}
