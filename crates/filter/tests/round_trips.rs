//! gen into sink over every kind of descriptor that a shell may give them, and how each ends when the other fails.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use filter::{
    FilterError, GenJob, GenMethod, GenReport, SinkJob, SinkMethod, SinkReport, Verify, generate, sink,
};
use model::PayloadKind;
use payload::{Mismatch, Period, Tile};
use rustix::io::ioctl_fionbio;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size, pipe};

const SEED: u64 = 9;

fn job(bytes: u64, block: usize, payload: &PayloadKind) -> GenJob {
    let block_bytes = NonZeroUsize::new(block).expect("a block of at least one byte");
    GenJob { bytes: Some(bytes), block_bytes, payload: payload.clone(), seed: SEED }
}

fn checked(payload: Option<PayloadKind>) -> SinkJob {
    SinkJob { verify: Some(Verify { payload, seed: SEED }), bytes: None }
}

/// Runs both ends at once; each closes its descriptor when it is done.
fn couple(gen_job: GenJob, sink_job: &SinkJob, out: OwnedFd, input: OwnedFd) -> (GenReport, SinkReport) {
    let writer = thread::spawn(move || generate(&gen_job, out.as_fd()));
    let drained = sink(sink_job, input.as_fd()).expect("a readable input");
    drop(input);
    (writer.join().expect("no panic").expect("a writable output"), drained)
}

#[test]
fn every_payload_and_block_arrives_in_full_through_a_pipe() {
    let mut own = tempfile::NamedTempFile::new().expect("file");
    own.write_all(b"thirty-seven bytes do not divide 4096").expect("write");
    let file = PayloadKind::File(own.path().to_owned());
    // In a container that forbids vmsplice(2) the bytes are written.
    let is_forbidden = model::vmsplice_refusal().is_some();
    for payload in PayloadKind::NAMED.iter().chain([&file]) {
        for block in [1, 100, 4095, 4096, 65536, 65537, 4 << 20] {
            let many = if block == 1 { 5_000 } else { 20_000_001 };
            for bytes in [0, 1, 4095, 65537, many] {
                let (input, out) = pipe().expect("pipe");
                let (made, drained) =
                    couple(job(bytes, block, payload), &checked(Some(payload.clone())), out, input);
                let what = format!("{payload}, {bytes} bytes in blocks of {block}: {made:?} {drained:?}");
                assert!(made.bytes == bytes && drained.bytes == bytes && drained.verified, "{what}");
                assert!(
                    (made.method != GenMethod::Write || is_forbidden) && drained.mismatch.is_none(),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn a_payload_is_recognised() {
    for payload in PayloadKind::NAMED {
        let (input, out) = pipe().expect("pipe");
        let (_, drained) = couple(job(100_000, 65536, payload), &checked(None), out, input);
        assert_eq!(drained.payload.as_ref(), Some(payload));
    }
}

#[test]
fn sockets_and_files_are_written_and_read() {
    let (input, out) = UnixStream::pair().expect("socketpair");
    let (made, drained) =
        couple(job(3_000_001, 65537, &PayloadKind::Random), &checked(None), out.into(), input.into());
    assert_eq!((made.method, made.pipe_bytes), (GenMethod::Write, None));
    assert!(drained.verified && drained.bytes == 3_000_001 && drained.pipe_bytes.is_none());

    let mut file = tempfile::tempfile().expect("file");
    let made =
        generate(&job(1_000_001, 4096, &PayloadKind::Printable), file.as_fd()).expect("room on the disk");
    file.rewind().expect("seekable");
    let drained = sink(&checked(None), file.as_fd()).expect("readable");
    assert_eq!((made.bytes, drained.bytes, drained.verified), (1_000_001, 1_000_001, true));
}

#[test]
fn non_blocking_ends_are_waited_for() {
    for payload in [PayloadKind::Sequence, PayloadKind::Random] {
        let (input, out) = pipe().expect("pipe");
        ioctl_fionbio(&out, true).expect("FIONBIO");
        ioctl_fionbio(&input, true).expect("FIONBIO");
        let (_, drained) = couple(job(50_000_001, 65536, &payload), &checked(None), out, input);
        assert!(drained.verified && drained.bytes == 50_000_001);

        let (input, out) = UnixStream::pair().expect("socketpair");
        input.set_nonblocking(true).and_then(|()| out.set_nonblocking(true)).expect("FIONBIO");
        let (_, drained) = couple(job(5_000_001, 65536, &payload), &checked(None), out.into(), input.into());
        assert!(drained.verified && drained.bytes == 5_000_001);
    }
}

#[test]
fn a_slow_reader_loses_nothing() {
    for payload in [PayloadKind::Sequence, PayloadKind::Random] {
        let (input, out) = pipe().expect("pipe");
        let writer =
            thread::spawn(move || generate(&job(12_000_000, 65536, &payload), out.as_fd()).map(|_| payload));
        let (mut file, mut read) = (File::from(input), Vec::new());
        thread::sleep(Duration::from_millis(20));
        while (&mut file).take(1 << 20).read_to_end(&mut read).expect("readable") > 0 {
            thread::sleep(Duration::from_millis(2));
        }
        let payload = writer.join().expect("no panic").expect("a writable output");
        let mut expected = vec![0; 12_000_000];
        Tile::make(&payload, SEED, Period::Filter).expect("named").copy_from(0, &mut expected);
        assert!(read == expected, "{payload}");
    }
}

#[test]
fn a_pipe_is_enlarged_and_the_size_is_reported() {
    let (input, out) = pipe().expect("pipe");
    fcntl_setpipe_size(&out, 4096).expect("one page is always granted");
    let kept = input.try_clone().expect("dup");
    let (made, drained) = couple(job(5_000_000, 65536, &PayloadKind::Sequence), &checked(None), out, input);
    let now = fcntl_getpipe_size(&kept).expect("a pipe") as u64;
    assert_eq!((made.pipe_bytes, drained.pipe_bytes), (Some(now), Some(now)));
    assert!(drained.verified);
}

#[test]
fn unverified_pipes_are_spliced_and_files_are_read() {
    let (input, out) = pipe().expect("pipe");
    let (_, drained) = couple(job(9_000_001, 65536, &PayloadKind::Random), &SinkJob::default(), out, input);
    assert_eq!((drained.bytes, drained.method, drained.verified), (9_000_001, SinkMethod::Splice, false));
    let mut file = tempfile::tempfile().expect("file");
    file.write_all(b"not a payload").and_then(|()| file.rewind()).expect("room on the disk");
    let drained = sink(&SinkJob::default(), file.as_fd()).expect("readable");
    assert_eq!((drained.bytes, drained.method, drained.payload), (13, SinkMethod::Read, None));
}

#[test]
fn an_empty_stream_is_valid() {
    let (input, out) = pipe().expect("pipe");
    drop(out);
    let drained = sink(&checked(None), input.as_fd()).expect("readable");
    assert_eq!((drained.bytes, drained.verified, drained.payload), (0, true, None));
    assert_eq!(drained.throughput_bytes_per_s, None);
}

#[test]
fn the_sink_stops_at_the_first_wrong_byte() {
    let mut bytes = vec![0; 3_000_000];
    Tile::make(&PayloadKind::Printable, SEED, Period::Filter).expect("named").copy_from(0, &mut bytes);
    let expected = bytes[2_345_678];
    bytes[2_345_678] = 0;
    bytes[2_345_679] = 0;
    let (input, out) = pipe().expect("pipe");
    let writer = thread::spawn(move || File::from(out).write_all(&bytes));
    let drained = sink(&checked(None), input.as_fd()).expect("readable");
    drop(input);
    // The writer must not hang; whether it wrote everything before is a race.
    let _ = writer.join().expect("no panic");
    assert_eq!(drained.mismatch, Some(Mismatch { offset: 2_345_678, expected, found: 0 }));
    assert_eq!((drained.verified, drained.payload), (false, Some(PayloadKind::Printable)));
}

#[test]
fn a_reader_that_ends_is_distinguished_from_other_failures() {
    // The test harness ignores SIGPIPE, as every Rust program does, so write(2) fails with EPIPE.
    for payload in [PayloadKind::Sequence, PayloadKind::Random] {
        let (input, out) = pipe().expect("pipe");
        drop(input);
        let error = generate(&job(10, 1, &payload), out.as_fd()).expect_err("no reader");
        assert!(error.reader_is_gone(), "{error}");
    }
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let error = generate(&job(10, 1, &PayloadKind::Zero), full.as_fd()).expect_err("full");
    assert!(!error.reader_is_gone() && error.to_string().contains("at byte 0: ENOSPC"), "{error}");
}

#[test]
fn a_wrong_descriptor_is_an_error() {
    let (input, out) = pipe().expect("pipe");
    let error = generate(&job(10, 256, &PayloadKind::Zero), input.as_fd()).expect_err("a read end");
    assert!(error.to_string().contains("EBADF"), "{error}");
    let error = sink(&checked(None), out.as_fd()).expect_err("a write end");
    assert!(error.to_string().contains("EBADF"), "{error}");
    let directory = File::open("/").expect("/");
    let error = sink(&SinkJob::default(), directory.as_fd()).expect_err("a directory");
    assert!(error.to_string().contains("EISDIR"), "{error}");
    let missing = SinkJob {
        bytes: None,
        verify: Some(Verify { payload: Some(PayloadKind::File("/nonexistent/x".into())), seed: SEED }),
    };
    assert!(matches!(sink(&missing, directory.as_fd()), Err(FilterError::Payload(_))));
}

#[test]
fn the_report_is_json() {
    let (input, out) = pipe().expect("pipe");
    let (_, drained) = couple(job(1000, 256, &PayloadKind::Sequence), &checked(None), out, input);
    let json = serde_json::to_value(&drained).expect("plain data");
    assert_eq!(json["bytes"], 1000);
    assert_eq!((json["payload"].as_str(), json["method"].as_str()), (Some("sequence"), Some("read")));
    assert!(json["verified"].as_bool() == Some(true) && json["mismatch"].is_null());
}
