//! Waiting for a shell or a program that was started: what is asked of this process is passed on to it, and what happens to it
//! happens to this process.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::{
    Signal::{SIGCHLD, SIGCONT, SIGHUP, SIGKILL, SIGSTOP},
    raise,
};
use nix::unistd::{Pid as Number, getpgid, getpgrp};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};

use crate::proc::Stat;
use crate::reap::reap;
use crate::signals::{self, Came, Inbox};
use crate::wait::sleep_on;

/// Whom a signal reaches that came to this process alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The child, which decides what it means for its jobs: a shell with a prompt.
    Child,
    /// The child and all that it started: a shell without one does not pass signals on.
    AllBelow,
    /// The same, for a trial of ours, which nobody needs any more once its end was asked for: asked a second time, we kill it.
    Trial,
}

/// Waits for a child. Dropped before that has ended, it ends it and all that it started.
pub struct Supervisor {
    inbox: Inbox,
    reach: Reach,
    child: Option<(Pid, OwnedFd)>,
}

impl Supervisor {
    /// Begins to listen; to be made before the program is started, so that no signal in between is lost.
    pub fn new(reach: Reach) -> io::Result<Self> {
        Ok(Self { inbox: Inbox::open()?, reach, child: None })
    }

    /// The child that was started.
    pub fn watch(&mut self, child: i32) -> io::Result<()> {
        let child = Pid::from_raw(child).ok_or(Errno::SRCH)?;
        let opened = pidfd_open(child, PidfdFlags::empty()).inspect_err(|_| end(child))?;
        self.child = Some((child, opened));
        Ok(())
    }

    /// Waits for the child to end. Signals that came to this process alone are passed on; the first one that asked for the end comes
    /// back with how the child ended. Where `server` ends before the child does, all that the child started is killed: what flowed
    /// was cut short, and must not look like a normal end.
    ///
    /// # Errors
    /// What poll(2) or waitpid(2) answered; `BrokenPipe` where the server has ended.
    pub fn wait(&mut self, server: Option<BorrowedFd<'_>>) -> io::Result<(ExitStatus, Option<i32>)> {
        self.wait_looking(server, &mut || None)
    }

    /// The same; meanwhile `look` is called again and again, and says for how long it need not be.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_looking(
        &mut self,
        server: Option<BorrowedFd<'_>>,
        look: &mut dyn FnMut() -> Option<Duration>,
    ) -> io::Result<(ExitStatus, Option<i32>)> {
        let mut asked_to_end = None;
        loop {
            let (child, ended) = self.child.as_ref().ok_or(Errno::CHILD)?;
            let child = *child;
            match waitpid(Some(child), WaitOptions::NOHANG | WaitOptions::UNTRACED)? {
                Some((_, status)) if !status.stopped() => {
                    self.child = None;
                    return Ok((ExitStatus::from_raw(status.as_raw()), asked_to_end));
                }
                Some(_) if stopped_alone(child) => {
                    // Stops this process, until somebody lets it go on.
                    raise(SIGSTOP)?;
                    signals::send_to_one(child.as_raw_pid(), SIGCONT);
                }
                _ => {}
            }
            // A thread that holds no signal back takes the one that tells of the child's end: it is not relied on.
            let mut fds = vec![PollFd::new(&self.inbox, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
            fds.extend(server.map(|server| PollFd::from_borrowed_fd(server, PollFlags::IN)));
            sleep_on(&mut fds, look())?;
            if fds.get(2).is_some_and(|server| !server.revents().is_empty()) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            while let Some(came) = self.inbox.next() {
                if came.ends && asked_to_end.is_some() && self.reach == Reach::Trial {
                    signals::send(child.as_raw_pid(), SIGKILL);
                }
                if came.ends {
                    asked_to_end.get_or_insert(came.signal as i32);
                }
                self.pass_on(came, child);
            }
        }
    }

    fn pass_on(&self, came: Came, child: Pid) {
        let pid = child.as_raw_pid();
        let to_the_group = match came.sender {
            // Of a terminal that is closed only the leader of the session hears (tty_ioctl(4), TIOCNOTTY).
            None => came.signal != SIGHUP,
            // A shell that sends one to hosepipe sends it to its group (`kill -INT 0`).
            Some(sender) => signals::is_below(sender, pid),
        };
        if came.signal == SIGCHLD || (to_the_group && is_in_our_group(child)) {
            return;
        }
        match self.reach {
            Reach::AllBelow | Reach::Trial if came.ends => signals::send(pid, came.signal),
            _ => signals::send_to_one(pid, came.signal),
        }
    }
}

impl Drop for Supervisor {
    /// Nothing is left behind: what still runs when it is given up is ended and waited for.
    fn drop(&mut self) {
        if let Some((child, _)) = self.child.take() {
            end(child);
        }
    }
}

fn end(child: Pid) {
    signals::send(child.as_raw_pid(), SIGKILL);
    // It is a child of ours that nobody else waits for.
    let _ = reap(child);
}

/// A group that was made outside of this namespace has the number 0 in it, which rustix takes for impossible.
fn is_in_our_group(child: Pid) -> bool {
    getpgid(Some(Number::from_raw(child.as_raw_pid()))) == Ok(getpgrp())
}

/// Whether a stopped child was stopped without this process: one in its group goes on with it, at once.
fn stopped_alone(child: Pid) -> bool {
    const TOGETHER: Duration = Duration::from_millis(20);
    if is_in_our_group(child) {
        std::thread::sleep(TOGETHER);
    }
    Stat::of(child.as_raw_pid()).is_some_and(|stat| stat.state == 'T')
}
