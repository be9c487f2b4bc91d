//! Waiting for one child or for several at once, and asking them to end.

use std::borrow::BorrowMut;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal::SIGKILL;
use rustix::event::{PollFd, PollFlags};

use crate::child::Child;
use crate::poll::sleep_on;
use crate::signals;

/// Longest sleep of a wait: after it, time limits and requests to stop are checked.
pub const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long a child may continue after another one has failed, to report its own error.
const GRACE: Duration = Duration::from_millis(500);

/// Waits until every child has ended. After one has `failed`, the others are killed after half a second. At least every
/// [`POLL_INTERVAL`] `look` is called; when it returns an error, all are ended at once.
///
/// # Errors
/// The error of `look`, or of poll(2) or wait4(2); all children have ended then, too.
pub fn wait_for_all<E: From<io::Error>>(
    children: &mut [Child<'_>],
    failed: &dyn Fn(&Child<'_>) -> bool,
    look: &mut dyn FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let mut failed_at: Option<Instant> = None;
    let error = loop {
        let all_ended = children.iter().all(|child| child.ended().is_some());
        // Ctrl-C signals the whole group and can end all children at once. So `look` is asked whether we were interrupted
        // before their ends count as failures. The signal has reached us by then: a child can be waited for only after the
        // whole group was signalled.
        if all_ended && !children.iter().any(failed) {
            return Ok(());
        }
        if let Err(error) = look() {
            break error;
        }
        if all_ended {
            return Ok(());
        }
        if failed_at.is_none() && children.iter().any(|child| child.ended().is_some() && failed(child)) {
            failed_at = Some(Instant::now());
        }
        if failed_at.is_some_and(|at| at.elapsed() > GRACE) {
            children.iter_mut().for_each(Child::kill);
        }
        if let Err(error) = attend(children) {
            break error.into();
        }
    };
    children.iter_mut().for_each(Child::kill_and_reap);
    Err(error)
}

/// Waits at most [`POLL_INTERVAL`] for ends and output of children; reaps those that have ended and reads their output.
///
/// # Errors
/// What poll(2) or wait4(2) answered.
pub fn attend<'c, C: BorrowMut<Child<'c>>>(children: &mut [C]) -> io::Result<()> {
    attend_and_read(children, &[]).map(drop)
}

/// As [`attend`], and waits for other descriptors, too. Returns which of those can be read.
///
/// # Errors
/// As [`attend`].
pub fn attend_and_read<'c, C: BorrowMut<Child<'c>>>(
    children: &mut [C],
    others: &[BorrowedFd<'_>],
) -> io::Result<Vec<bool>> {
    let fds: Vec<_> = children.iter().map(|child| child.borrow().poll_fds()).collect();
    let all = fds.iter().flatten().flatten().chain(others);
    let mut polled: Vec<PollFd<'_>> = all.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    sleep_on(&mut polled, Some(POLL_INTERVAL))?;
    let of_others = polled[polled.len() - others.len()..].iter();
    let can_be_read = of_others.map(|polled| !polled.revents().is_empty()).collect();
    let mut ready = polled.iter().map(|polled| !polled.revents().is_empty());
    // `polled` has an entry only for each descriptor that is `Some`, in this order.
    let mut is_ready = |fd: &Option<_>| fd.is_some() && ready.next() == Some(true);
    let ready_fds: Vec<[bool; 2]> =
        fds.iter().map(|[end, output]| [is_ready(end), is_ready(output)]).collect();
    for (child, [has_ended, has_output]) in children.iter_mut().zip(ready_fds) {
        if has_ended {
            child.borrow_mut().reap()?;
        } else if has_output {
            child.borrow_mut().read_output();
        }
    }
    Ok(can_be_read)
}

/// Runs a program to its end. Once `stops` returns true it gets SIGTERM, and SIGKILL after `within`.
///
/// # Errors
/// It could not be started or waited for. It no longer runs then.
pub fn run(command: Command, within: Duration, stops: &mut dyn FnMut() -> bool) -> io::Result<ExitStatus> {
    let mut child = [Child::start(command)?];
    loop {
        if let Some(ended) = child[0].ended() {
            return Ok(ended.status);
        }
        if stops() {
            finish_all(&mut child, within)?;
        } else {
            attend(&mut child)?;
        }
    }
}

/// Runs a program to its end. Returns its status, and what it wrote to the output that is a pipe: the caller makes standard output or standard
/// error one. `Command::output` of Rust's library panics where a read fails.
///
/// # Errors
/// It could not be started or waited for, or its output could not be read.
pub fn output(command: &mut Command) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut child = command.stdin(Stdio::null()).spawn()?;
    let stdout = child.stdout.take().map(OwnedFd::from);
    let pipe = stdout.or_else(|| child.stderr.take().map(OwnedFd::from));
    let mut printed = Vec::new();
    // The pipe is closed before the wait: a program whose output is no longer read ends by SIGPIPE.
    let read = pipe.map_or(Ok(0), |pipe| File::from(pipe).read_to_end(&mut printed));
    let status = child.wait()?;
    read.map(|_| (status, printed))
}

/// Asks children to end; kills those that do not within this time, with all that they have started.
///
/// # Errors
/// What poll(2) or wait4(2) answered.
pub fn finish_all(children: &mut [Child<'_>], within: Duration) -> io::Result<()> {
    children.iter().for_each(Child::ask_to_finish);
    let asked = Instant::now();
    while children.iter().any(|child| child.ended().is_none()) {
        if asked.elapsed() > within {
            let left = children.iter().filter(|child| child.ended().is_none());
            left.for_each(|child| drop(signals::send(child.pid(), SIGKILL)));
        }
        attend(children)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    use super::*;
    use crate::child::{Capture, Captured};
    use crate::cleaner::Cleaner;

    #[test]
    fn the_output_that_is_a_pipe_is_read_and_the_status_kept() {
        let shell = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        };
        let text = "seq 50000 | tail -c 100000; echo wrong >&2; exit 3";
        let (status, printed) =
            output(shell(text).stdout(Stdio::piped()).stderr(Stdio::null())).expect("it is started");
        assert_eq!((status.code(), printed.len()), (Some(3), 100_000));
        let (_, errors) =
            output(shell(text).stdout(Stdio::null()).stderr(Stdio::piped())).expect("it is started");
        assert_eq!(errors, b"wrong\n");
    }

    /// Expected: Ctrl-C stops a run, and none of its rows counts as failed.
    /// Happened, on a busy machine: the signal had ended both ends before `look` was called, and that was reported as their failure.
    #[test]
    fn after_all_have_ended_at_once_it_is_asked_whether_the_user_stopped_them() {
        let cleaner = Cleaner::start().expect("a cleaner");
        let mark = cleaner.mark();
        let dying = |_| {
            let mut command = Command::new("sh");
            // The status of a program that handles SIGINT. A real SIGINT may be ignored in this process.
            command.args(["-c", "exit 130"]);
            Child::spawn(command, Capture::Both, Captured::all(), &cleaner, &mark).expect("a child")
        };
        let mut children: Vec<Child<'_>> = (0..2).map(dying).collect();
        let pids: Vec<Pid> = children.iter().filter_map(|child| Pid::from_raw(child.pid())).collect();
        let mut looks = 0;
        let failed = |child: &Child<'_>| child.ended().is_some_and(|ended| !ended.status.success());
        let waited = wait_for_all(&mut children, &failed, &mut || {
            looks += 1;
            if looks > 1 {
                return Err(io::Error::from(io::ErrorKind::Interrupted));
            }
            for pid in &pids {
                // It is not reaped here: it can be waited for again.
                waitid(WaitId::Pid(*pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
            }
            Ok(())
        });
        assert_eq!((waited.map_err(|error| error.kind()), looks), (Err(io::ErrorKind::Interrupted), 2));
    }
}
