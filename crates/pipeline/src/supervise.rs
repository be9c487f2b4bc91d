//! Waiting for a shell or a program that was started: what is asked of this process is passed on to it, and what happens to it
//! happens to this process.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::activity;
use crate::signals::{self, Inbox};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It left with this status.
    Left(i32),
    /// This signal ended it.
    Killed(i32),
}

impl Ending {
    /// As a shell shows it: 128 and the signal's number for one that was killed.
    pub fn status(self) -> i32 {
        match self {
            Self::Left(status) => status,
            Self::Killed(signal) => 128 + signal,
        }
    }
}

/// Whom a signal reaches that came to this process alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The child, which decides what it means for its jobs: a shell with a prompt.
    Child,
    /// The child and all that it started: a shell without one does not pass signals on.
    AllBelow,
}

/// Waits for a child.
pub(crate) struct Supervisor {
    inbox: Inbox,
    reach: Reach,
    child: Option<i32>,
}

/// What happened to a child.
enum News {
    Stopped,
    Ended(Ending),
}

impl Supervisor {
    /// Begins to listen; to be made before the program is started, so that no signal in between is lost.
    ///
    /// # Errors
    /// No descriptor is free.
    pub(crate) fn new(reach: Reach) -> io::Result<Self> {
        Ok(Self { inbox: Inbox::open()?, reach, child: None })
    }

    /// The child that was started.
    pub(crate) fn watch(&mut self, child: i32) {
        self.child = Some(child);
    }

    /// Waits for the child to end. Signals that came to this process alone are passed on; the first one that asked for the end comes
    /// back with how the child ended. Where `server` ends before the child does, all that the child started is killed: what flowed
    /// was cut short, and must not look like a normal end.
    ///
    /// # Errors
    /// What poll(2) or waitpid(2) answered; `BrokenPipe` where the server has ended.
    pub(crate) fn wait(mut self, server: Option<BorrowedFd<'_>>) -> io::Result<(Ending, Option<i32>)> {
        let child = self.child.ok_or(io::ErrorKind::NotFound)?;
        let mut asked_to_end = None;
        loop {
            match news(child)? {
                Some(News::Ended(ending)) => {
                    self.child = None;
                    return Ok((ending, asked_to_end));
                }
                Some(News::Stopped) if stopped_alone(child) => {
                    // SAFETY: stops this process, until somebody lets it go on.
                    unsafe { libc::raise(libc::SIGSTOP) };
                    signals::send_to_one(child, libc::SIGCONT);
                }
                _ => {}
            }
            let mut fds = vec![PollFd::from_borrowed_fd(self.inbox.as_fd(), PollFlags::IN)];
            fds.extend(server.map(|server| PollFd::from_borrowed_fd(server, PollFlags::IN)));
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if fds.get(1).is_some_and(|server| !server.revents().is_empty()) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            while let Some(came) = self.inbox.next() {
                if came.signal == libc::SIGCHLD {
                    continue;
                }
                let to_the_group = match came.sender {
                    // Of a terminal that is closed only the leader of the session hears (tty_ioctl(4), TIOCNOTTY).
                    None => came.signal != libc::SIGHUP,
                    // A shell that sends one to hosepipe sends it to its group (`kill -INT 0`).
                    Some(sender) => signals::is_below(sender, child),
                };
                let ends = signals::ENDING.contains(&came.signal);
                if ends {
                    asked_to_end.get_or_insert(came.signal);
                }
                if to_the_group && is_in_our_group(child) {
                    continue;
                }
                match self.reach {
                    Reach::AllBelow if ends => signals::send(child, came.signal),
                    _ => signals::send_to_one(child, came.signal),
                }
            }
        }
    }
}

impl Drop for Supervisor {
    /// Nothing is left behind: what still runs when it is given up is ended and waited for.
    fn drop(&mut self) {
        let Some(child) = self.child else { return };
        signals::send(child, libc::SIGKILL);
        let mut status = 0;
        // SAFETY: waits for a child of ours.
        while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}

fn is_in_our_group(child: i32) -> bool {
    // SAFETY: both only ask.
    unsafe { libc::getpgid(child) == libc::getpgrp() }
}

/// Whether a stopped child was stopped without this process: one in its group goes on with it, at once.
fn stopped_alone(child: i32) -> bool {
    const TOGETHER: Duration = Duration::from_millis(20);
    if is_in_our_group(child) {
        std::thread::sleep(TOGETHER);
    }
    activity::fields(child).is_some_and(|fields| fields.first().is_some_and(|state| state == "T"))
}

/// What happened to a child since this was last asked.
fn news(child: i32) -> io::Result<Option<News>> {
    let mut status = 0;
    // SAFETY: fills in the status of a child of ours.
    match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG | libc::WUNTRACED) } {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ if libc::WIFSTOPPED(status) => Ok(Some(News::Stopped)),
        _ if libc::WIFSIGNALED(status) => Ok(Some(News::Ended(Ending::Killed(libc::WTERMSIG(status))))),
        _ => Ok(Some(News::Ended(Ending::Left(libc::WEXITSTATUS(status))))),
    }
}
