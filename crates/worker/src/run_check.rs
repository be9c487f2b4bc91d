//! Checks that a run moved the right bytes, and finds the process that failed if not.

use std::os::unix::process::ExitStatusExt;

use model::{CaseError, ErrorKind};
use process::{Ended, describe_ending};

use crate::result_line::{RecvLine, ResultLines, SendLine};
use crate::trial_size::TrialSize;

/// The ends of the pipe that a process of a run has.
pub(crate) struct Role {
    /// Its name in messages: `the reader c:tuned`.
    pub(crate) name: String,
    pub(crate) sends: bool,
    pub(crate) receives: bool,
}

/// A process of a run that has ended.
pub(crate) struct Finished {
    pub(crate) role: Role,
    pub(crate) ended: Ended,
    /// The last lines of its standard error.
    pub(crate) said: String,
}

/// The time of a run, in nanoseconds of CLOCK_MONOTONIC.
pub(crate) struct Span {
    /// Just before the first process was started.
    pub(crate) started_ns: u64,
    /// After the last one had ended.
    pub(crate) over_ns: u64,
}

/// The two result lines of a valid run, and its time in nanoseconds; or the first failure, which may have caused others.
pub(crate) fn check_run(
    mut processes: Vec<Finished>,
    lines: &Result<ResultLines, String>,
    size: &TrialSize,
    span: &Span,
) -> Result<(SendLine, RecvLine, u64), CaseError> {
    model::sort_by_key(&mut processes, |process| (follows_from_another(&process.ended), process.ended.at));
    for process in &processes {
        examine(process, lines, size).map_err(|error| with_stderr(error, &process.said))?;
    }
    match lines {
        Ok(ResultLines { send: Some(send), recv: Some(recv) }) => {
            clock_trial(send, recv, span, size).map(|elapsed_ns| (*send, *recv, elapsed_ns))
        }
        _ => corrupt("a result line is missing".to_owned()),
    }
}

fn corrupt<T>(message: String) -> Result<T, CaseError> {
    Err(CaseError::new(ErrorKind::Corrupt, message))
}

/// The error, followed by the program's standard error, in one line.
pub(crate) fn with_stderr(error: CaseError, said: &str) -> CaseError {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = if lines.is_empty() { String::new() } else { format!("; it said: {}", lines.join(" | ")) };
    CaseError { message: error.message + &said, ..error }
}

/// Whether an end was killed because the other end had failed.
fn follows_from_another(ended: &Ended) -> bool {
    ended.by_us || ended.status.signal() == Some(libc::SIGPIPE)
}

fn examine(
    process: &Finished,
    lines: &Result<ResultLines, String>,
    size: &TrialSize,
) -> Result<(), CaseError> {
    let Role { name, sends, receives } = &process.role;
    let found = lines.as_ref().copied().unwrap_or_default();
    let (sent, received) = (found.send.map(|line| line.bytes), found.recv.map(|line| line.bytes));
    if !process.ended.status.success() {
        let count = if *receives { received } else { sent };
        let count = count.filter(|count| *count != size.total_bytes());
        let count = count.map(|count| format!(" after {count} of {} bytes", size.total_bytes()));
        let how = describe_ending(process.ended.status);
        return Err(CaseError::new(ErrorKind::Died, format!("{name} {how}{}", count.unwrap_or_default())));
    }
    if let Err(wrong) = lines {
        return corrupt(format!("{name} wrote {wrong}"));
    }
    let check_count = |end: &str, moved: &str, bytes: Option<u64>| match bytes {
        Some(bytes) if bytes == size.total_bytes() => Ok(()),
        Some(bytes) => {
            corrupt(format!("{name} says that it {moved} {bytes} of {} bytes", size.total_bytes()))
        }
        None => corrupt(format!("{name} left no `{end}` line")),
    };
    if *receives {
        check_count("recv", "received", received)?;
        let xor = found.recv.map(|line| line.xor).unwrap_or_default();
        if xor != size.xor() {
            let right = size.xor();
            return corrupt(format!(
                "{name} received other bytes than were sent: their XOR is {xor}, not {right}"
            ));
        }
    }
    if *sends { check_count("send", "sent", sent) } else { Ok(()) }
}

/// The nanoseconds from the sender's first byte after the warm-up to the receiver's last byte. Times outside of the run
/// are from another clock than CLOCK_MONOTONIC. Where nothing follows the warm-up, the receiver does not wait for the
/// sender's first clock reading: it takes 0.
fn clock_trial(send: &SendLine, recv: &RecvLine, span: &Span, size: &TrialSize) -> Result<u64, CaseError> {
    let in_order = |times: [u64; 4]| times.is_sorted();
    if in_order([span.started_ns, send.ready_ns, send.began_ns, span.over_ns])
        && in_order([span.started_ns, recv.ready_ns, recv.ended_ns, span.over_ns])
        && (size.bytes == 0 || send.began_ns <= recv.ended_ns)
    {
        return Ok(recv.ended_ns.saturating_sub(send.began_ns));
    }
    corrupt(format!(
        "the times are not of CLOCK_MONOTONIC, or out of order: started {}, send ready {} began {}, recv ready {} ended {}, over {}",
        span.started_ns, send.ready_ns, send.began_ns, recv.ready_ns, recv.ended_ns, span.over_ns
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitStatus;
    use std::sync::LazyLock;
    use std::time::{Duration, Instant};

    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

    const SIZE: TrialSize = TrialSize { bytes: 10, block_bytes: 4, warmup_bytes: 0 };
    const SPAN: Span = Span { started_ns: 100, over_ns: 200 };
    const GOOD: &str =
        "send bytes=10 ready_ns=110 began_ns=111\nrecv bytes=10 xor=1 ready_ns=105 ended_ns=120\n";

    /// An end that ended with this wait status, `after_ms` milliseconds after the first one.
    fn process(name: &str, status: i32, after_ms: u64) -> Finished {
        let status = ExitStatus::from_raw(status);
        let at = *BEGAN + Duration::from_millis(after_ms);
        let ended = Ended { status, usage: Default::default(), by_us: false, at };
        let role = Role { name: name.to_owned(), sends: name != "reader", receives: name != "writer" };
        Finished { role, ended, said: format!("{name} speaks") }
    }

    fn verdict(processes: Vec<Finished>, text: &str) -> Result<(), CaseError> {
        check_run(processes, &ResultLines::parse(text), &SIZE, &SPAN).map(|_| ())
    }

    #[test]
    fn a_valid_run_passes() {
        assert_eq!(verdict(vec![process("pair", 0, 0)], GOOD), Ok(()));
        assert_eq!(verdict(vec![process("writer", 0, 1), process("reader", 0, 0)], GOOD), Ok(()));
    }

    #[test]
    fn each_fault_has_its_message() {
        let pair = |status, text: &str| {
            let silent = Finished { said: String::new(), ..process("pair", status, 0) };
            verdict(vec![silent], text).unwrap_err()
        };
        assert_eq!(pair(11, "").message, "pair was ended by SIGSEGV");
        assert_eq!(pair(3 << 8, "").message, "pair exited with 3");
        assert_eq!(pair(0, "").message, "pair left no `recv` line");
        assert_eq!(pair(0, "hello\n").message, "pair wrote a line that is not a result line: `hello`");
        assert_eq!(
            pair(0, &GOOD.replace("recv bytes=10", "recv bytes=9")).message,
            "pair says that it received 9 of 10 bytes"
        );
        assert_eq!(
            pair(0, &GOOD.replace("xor=1", "xor=2")).message,
            "pair received other bytes than were sent: their XOR is 2, not 1"
        );
        assert!(pair(0, &GOOD.replace("began_ns=111", "began_ns=5")).message.contains("CLOCK_MONOTONIC"));
        assert!(pair(0, &GOOD.replace("ended_ns=120", "ended_ns=201")).message.contains("CLOCK_MONOTONIC"));
    }

    #[test]
    fn of_a_trial_without_bytes_either_end_may_be_first() {
        let size = TrialSize { bytes: 0, warmup_bytes: 10, ..SIZE };
        let text = "send bytes=10 ready_ns=110 began_ns=121\nrecv bytes=10 xor=1 ready_ns=105 ended_ns=120\n";
        let check = |size| check_run(vec![process("pair", 0, 0)], &ResultLines::parse(text), size, &SPAN);
        assert_eq!(check(&size).map(|(_, _, elapsed_ns)| elapsed_ns), Ok(0));
        assert!(check(&SIZE).is_err_and(|error| error.message.contains("CLOCK_MONOTONIC")));
    }

    #[test]
    fn the_first_failure_is_named_and_not_those_that_it_caused() {
        let crashed = vec![process("writer", 11, 0), process("reader", 1 << 8, 1)];
        let failure = verdict(crashed, "recv bytes=3 xor=3 ready_ns=105 ended_ns=120\n").unwrap_err();
        assert_eq!(failure.message, "writer was ended by SIGSEGV; it said: writer speaks");
        // Both ends were reaped at the same time.
        let left = vec![process("writer", libc::SIGPIPE, 0), process("reader", 4 << 8, 0)];
        assert_eq!(verdict(left, "").unwrap_err().message, "reader exited with 4; it said: reader speaks");
        // A reader that ends without an error after fewer bytes.
        let content = vec![process("writer", 1 << 8, 1), process("reader", 0, 0)];
        let failure = verdict(content, "recv bytes=3 xor=3 ready_ns=105 ended_ns=120\n").unwrap_err();
        assert_eq!(failure.message, "reader says that it received 3 of 10 bytes; it said: reader speaks");
    }

    #[test]
    fn a_programs_messages_are_shown_in_one_line() {
        let error = CaseError::new(ErrorKind::Died, "c:tuned exited with 3");
        assert_eq!(with_stderr(error.clone(), "").message, "c:tuned exited with 3");
        let said = with_stderr(error, "no luck\n\n  at all\n").message;
        assert_eq!(said, "c:tuned exited with 3; it said: no luck | at all");
    }
}
