//! A process in a process group of its own: heard while it runs, and ended with all it has started.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};

use model::EndUsage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::captured::Captured;
use crate::guard::{Guard, Mark};
use crate::marked::VARIABLE;
use crate::usage::reap;

/// Reads in a row: they empty a pipe of the default size several times.
const READS_MAX: usize = 64;

/// Which of a program's outputs are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capture {
    /// Standard error; standard output is the caller's affair.
    Errors,
    /// Both, in the order in which they are written.
    Both,
}

/// How a process ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// Its exit status, or the signal.
    pub(crate) status: ExitStatus,
    /// What it used, the children that it waited for included.
    pub(crate) usage: EndUsage,
    /// True where we ended it.
    pub(crate) by_us: bool,
    /// Its place among those that ended, of those waited for together.
    pub(crate) place: usize,
}

/// A running process. Dropping it ends its process group and waits for it.
pub(crate) struct Process<'g> {
    pid: Pid,
    pidfd: OwnedFd,
    output: Option<OwnedFd>,
    said: Captured,
    ended: Option<Ended>,
    killed: bool,
    guard: &'g Guard,
}

impl<'g> Process<'g> {
    /// Starts a program with a mark; the command is used up, so that no copy of its descriptors stays with us.
    ///
    /// # Errors
    /// What the system answered; ENOENT where there is no such program.
    pub(crate) fn start(
        mut command: Command,
        capture: Capture,
        said: Captured,
        guard: &'g Guard,
        mark: &Mark,
    ) -> io::Result<Self> {
        let (output, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&output, OFlags::NONBLOCK)?;
        if capture == Capture::Both {
            command.stdout(write_end.try_clone()?);
        }
        command.env(VARIABLE, mark.value()).stderr(write_end).process_group(0);
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        guard.watch(pid);
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                end_group(pid);
                let _ = reap(pid);
                guard.forget(pid);
                return Err(error.into());
            }
        };
        Ok(Self { pid, pidfd, output: Some(output), said, ended: None, killed: false, guard })
    }

    /// Its number.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// How it ended, once it has.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    /// What it wrote, as far as it was captured.
    pub(crate) fn said(&self) -> String {
        self.said.text()
    }

    /// What to poll: readable once it has ended; readable when it says something.
    pub(crate) fn news(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let ended = self.ended.is_none().then(|| self.pidfd.as_fd());
        ended.into_iter().chain(self.output.as_ref().map(AsFd::as_fd))
    }

    /// Ends its process group.
    pub(crate) fn kill(&mut self) {
        if self.ended.is_none() {
            self.killed = true;
            end_group(self.pid);
        }
    }

    /// Takes in what it has said so far, and no more than that: a program that never stops talking must not keep us
    /// from seeing it end, and what it has started may go on writing after its end.
    pub(crate) fn listen(&mut self) {
        let mut buffer = [0u8; 16 << 10];
        for _ in 0..READS_MAX {
            let Some(output) = &self.output else { return };
            match rustix::io::read(output, &mut buffer) {
                Ok(len) if len > 0 => self.said.push(&buffer[..len]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Ok(_) | Err(_) => self.output = None,
            }
        }
    }

    /// Whether it has ended; it is not reaped by this.
    ///
    /// # Errors
    /// What poll(2) answered.
    pub(crate) fn has_ended(&self) -> io::Result<bool> {
        self.has_ended_within(Some(Timespec { tv_sec: 0, tv_nsec: 0 }))
    }

    fn has_ended_within(&self, patience: Option<Timespec>) -> io::Result<bool> {
        match poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], patience.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for its end, ends what is left of its group, and hears its last words. `place` is what
    /// [`Ended::place`] is to be.
    ///
    /// # Errors
    /// ECHILD where somebody else has reaped it.
    pub(crate) fn settle(&mut self, place: usize) -> io::Result<()> {
        while !self.has_ended_within(None)? {}
        // Until it is reaped its group's number is no other's.
        end_group(self.pid);
        let (status, usage) = reap(self.pid)?;
        self.guard.forget(self.pid);
        self.ended = Some(Ended { status, usage, by_us: self.killed, place });
        self.listen();
        Ok(())
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
            let _ = self.settle(usize::MAX);
        }
    }
}

fn end_group(leader: Pid) {
    // A group that has just ended is no error here.
    let _ = kill_process_group(leader, Signal::KILL);
}
