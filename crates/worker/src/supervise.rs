//! Waiting for processes: all of them, for a limited time, and not beyond the user's patience.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::process::Process;

/// How often the supervisor looks up from waiting, at the stop flag and the clock.
const LOOK_UP: Duration = Duration::from_millis(50);

/// How long an end may go on alone after the other failed, to say in its own words what it met.
const GRACE: Duration = Duration::from_millis(500);

/// Why a wait ended before the processes did. They have been ended then.
#[derive(Debug)]
pub(crate) enum Cut {
    /// The user wants no more.
    Stopped,
    /// The time limit.
    Late,
    /// The system refused to wait.
    System(io::Error),
}

/// Waits until every process has ended. After one that failed, the others have a moment. Meanwhile `look` is called now and
/// then.
pub(crate) fn wait_for_all(
    processes: &mut [Process<'_>],
    limit: Duration,
    stop: &dyn Fn() -> bool,
    look: &mut dyn FnMut(),
) -> Result<(), Cut> {
    let began = Instant::now();
    let mut failed_at: Option<Instant> = None;
    let mut place = 0;
    let cut = loop {
        if processes.iter().all(|process| process.ended().is_some()) {
            return Ok(());
        }
        look();
        if stop() {
            break Cut::Stopped;
        }
        if began.elapsed() > limit {
            break Cut::Late;
        }
        if failed_at.is_some_and(|at| at.elapsed() > GRACE) {
            processes.iter_mut().for_each(Process::kill);
        }
        match attend(processes, LOOK_UP.min(limit), place) {
            Ok(some_failed) => {
                if some_failed {
                    failed_at.get_or_insert_with(Instant::now);
                }
                place += 1;
            }
            Err(error) => break Cut::System(error),
        }
    };
    for process in processes.iter_mut().filter(|process| process.ended().is_none()) {
        process.kill();
        let _ = process.settle(place);
    }
    Err(cut)
}

/// Waits for news and acts on it. Says whether somebody has failed.
fn attend(processes: &mut [Process<'_>], patience: Duration, place: usize) -> io::Result<bool> {
    let fds: Vec<_> = processes
        .iter()
        .enumerate()
        .flat_map(|(index, process)| process.news().map(move |fd| (index, fd)))
        .collect();
    let mut polled: Vec<PollFd<'_>> = fds.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)).collect();
    let timeout = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().max(1_000_000).into() };
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut heard: Vec<usize> = fds
        .iter()
        .zip(&polled)
        .filter(|(_, polled)| !polled.revents().is_empty())
        .map(|((index, _), _)| *index)
        .collect();
    heard.dedup();
    let mut some_failed = false;
    for index in heard {
        let process = &mut processes[index];
        process.listen();
        if process.ended().is_none() && process.has_ended()? {
            process.settle(place)?;
        }
        some_failed |= process.ended().is_some_and(|ended| !ended.status.success());
    }
    Ok(some_failed)
}
