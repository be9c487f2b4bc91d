//! Waiting for several children at once.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::child::Child;

/// How often whoever waits looks up: at the clock, at whether the user wants to stop.
pub const LOOK_UP: Duration = Duration::from_millis(50);

/// How long a child may go on alone after another failed, to say in its own words what it met.
const GRACE: Duration = Duration::from_millis(500);

/// Waits until every child has ended. After one that `failed`, the others have a moment before they are ended. Every
/// [`LOOK_UP`] `look` is called; where it gives an error, all are ended at once.
///
/// # Errors
/// What `look` gave, or the system's refusal to wait; all have ended then, too.
pub fn wait_for_all<E: From<io::Error>>(
    children: &mut [Child<'_>],
    failed: &dyn Fn(&Child<'_>) -> bool,
    look: &mut dyn FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let mut failed_at: Option<Instant> = None;
    let cut = loop {
        if children.iter().all(|child| child.ended().is_some()) {
            return Ok(());
        }
        if let Err(cut) = look() {
            break cut;
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
    children.iter_mut().for_each(Child::end);
    Err(cut)
}

/// Waits for news, not longer than [`LOOK_UP`], and acts on it.
fn attend(children: &mut [Child<'_>]) -> io::Result<()> {
    let fds: Vec<_> = children.iter().map(Child::news).collect();
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().flatten().flatten().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK_UP.subsec_nanos().into() };
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut ready = polled.iter().map(|polled| !polled.revents().is_empty());
    let mut is_ready = |fd: &Option<_>| fd.is_some() && ready.next() == Some(true);
    let news: Vec<[bool; 2]> = fds.iter().map(|[end, output]| [is_ready(end), is_ready(output)]).collect();
    for (child, [has_ended, speaks]) in children.iter_mut().zip(news) {
        if has_ended {
            child.settle()?;
        } else if speaks {
            child.listen();
        }
    }
    Ok(())
}
