//! Waiting for a program that was started: passes signals on, and says how it ended.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

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

    /// From a status as wait(2) has it.
    fn of(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Killed(libc::WTERMSIG(status))
        } else {
            Self::Left(libc::WEXITSTATUS(status))
        }
    }
}

/// A program that was started here.
pub(crate) struct Supervisor {
    inbox: Inbox,
    child: Option<i32>,
    /// Whether signals are passed on to what the child started, too.
    and_below: bool,
}

impl Supervisor {
    /// Begins to listen; to be made before the program is started, so that no signal in between is lost.
    ///
    /// # Errors
    /// No descriptor is free.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { inbox: Inbox::open()?, child: None, and_below: false })
    }

    /// Signals shall reach what the child starts, too: a shell does not pass them on.
    pub(crate) fn and_all_below(mut self) -> Self {
        self.and_below = true;
        self
    }

    /// Waits for a child to end. Signals that came to this process alone are passed on; the first one that asked for the end comes
    /// back with how the child ended.
    ///
    /// # Errors
    /// What poll(2) or waitpid(2) answered.
    pub(crate) fn wait_for(mut self, child: i32) -> io::Result<(Ending, Option<i32>)> {
        self.child = Some(child);
        let mut asked_to_end = None;
        loop {
            if let Some(ending) = reap(child)? {
                self.child = None;
                return Ok((ending, asked_to_end));
            }
            match poll(&mut [PollFd::new(&self.inbox.as_fd(), PollFlags::IN)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            while let Some(came) = self.inbox.next() {
                if came.signal == libc::SIGCHLD {
                    continue;
                }
                asked_to_end.get_or_insert(came.signal);
                if !came.to_the_group {
                    // Found before the first of them ends, and its children get another parent.
                    let below = if self.and_below { below(child) } else { Vec::new() };
                    below.into_iter().for_each(|pid| signals::send(pid, came.signal));
                    signals::send(child, came.signal);
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

/// What a process has started, and what that has (proc_tid_children(5)).
fn below(pid: i32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.flat_map(|child| std::iter::once(child).chain(below(child))).collect()
}

/// How a child ended, if it has.
fn reap(child: i32) -> io::Result<Option<Ending>> {
    let mut status = 0;
    // SAFETY: fills in the status of a child of ours.
    match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
        0 => Ok(None),
        answer if answer == child => Ok(Some(Ending::of(status))),
        _ => Err(io::Error::last_os_error()),
    }
}
