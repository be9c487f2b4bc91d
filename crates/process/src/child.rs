//! A child process whose output is captured, and which is killed when its owner is dropped.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitStatus};
use std::time::Instant;

use model::EndUsage;
use nix::unistd::{ForkResult, fork};
use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use crate::cleaner::{Cleaner, Mark};
use crate::marked::VARIABLE;
use crate::poll::ready_within;
use crate::reap::reap;
use crate::signals::{leave, to_default, was_ignored};

/// Largest number of reads in one call: enough to empty a pipe of the default size several times.
const READS_MAX: usize = 64;

/// Which of a program's outputs are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// Standard error; standard output is as the caller has set it.
    Errors,
    /// Both, in the order in which they are written.
    Both,
}

/// The output of a program, of which the first and the last bytes are kept.
#[derive(Debug, Clone)]
pub struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    head_max: usize,
    tail_max: usize,
    left_out: bool,
}

impl Captured {
    /// Keeps at most this many bytes of the beginning and of the end.
    pub fn keeping(head_max: usize, tail_max: usize) -> Self {
        Self { head: Vec::new(), tail: Vec::new(), head_max, tail_max, left_out: false }
    }

    /// Keeps all bytes.
    pub fn all() -> Self {
        Self::keeping(usize::MAX, 0)
    }

    /// Takes more of the output.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = (self.head_max - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[room..]);
        if self.tail.len() > self.tail_max {
            let too_many = self.tail.len() - self.tail_max;
            self.tail.drain(..too_many);
            self.left_out = true;
        }
    }

    /// The kept bytes as text, with `[…]` in place of the omitted bytes.
    pub fn text(&self) -> String {
        let mut bytes = self.head.clone();
        if self.left_out {
            bytes.extend_from_slice("[…]".as_bytes());
        }
        bytes.extend_from_slice(&self.tail);
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

/// How a child ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Its exit status, or the signal.
    pub status: ExitStatus,
    /// What it used, with the children that it waited for.
    pub usage: EndUsage,
    /// Whether this process sent it SIGKILL.
    pub by_us: bool,
    /// When this process noticed its end.
    pub at: Instant,
}

/// A child. Dropping it kills it, with its process group if it has one of its own, and waits for it.
pub struct Child<'c> {
    pid: Pid,
    pidfd: OwnedFd,
    output: Option<OwnedFd>,
    captured: Captured,
    ended: Option<Ended>,
    killed: bool,
    /// Kills its process group if this process is killed; `None` if it has no group of its own.
    cleaner: Option<&'c Cleaner>,
}

impl Child<'static> {
    /// Forks a child that does `work` and exits; what `work` writes is captured. It is killed if this process ends.
    ///
    /// This process must have only one thread: the forked child of a process with threads may only make async-signal-safe calls (fork(2)).
    ///
    /// # Errors
    /// An error of pipe2(2), fork(2) or pidfd_open(2).
    pub fn fork(name: &CStr, work: impl FnOnce(&mut dyn Write)) -> io::Result<Self> {
        let (output, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let parent = rustix::process::getpid();
        // SAFETY: this process has one thread (see above), so the child may go on as any process.
        match unsafe { fork() }? {
            ForkResult::Child => {
                drop(output);
                become_child(name, parent);
                let mut writer = File::from(writer);
                // A panic must not unwind into the parent's code, of which this is a copy (in a release a panic aborts anyway).
                let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut writer)));
                drop(writer);
                leave(if outcome.is_ok() { 0 } else { 101 })
            }
            ForkResult::Parent { child } => {
                let pid = Pid::from_raw(child.as_raw()).ok_or(io::ErrorKind::Other)?;
                drop(writer);
                Self::from_pid(pid, Some(output), Captured::all(), None)
            }
        }
    }

    /// Starts a program without capturing its output, in the caller's process group.
    ///
    /// # Errors
    /// An error of the system; ENOENT if there is no such program.
    pub fn start(mut command: Command) -> io::Result<Self> {
        Self::from_pid(Pid::from_child(&command.spawn()?), None, Captured::all(), None)
    }
}

impl<'c> Child<'c> {
    /// Starts a program in a process group of its own, with a mark. The command is consumed, so that no copies of its descriptors stay open in
    /// this process.
    ///
    /// # Errors
    /// An error of the system; ENOENT if there is no such program.
    pub fn spawn(
        mut command: Command,
        capture: Capture,
        captured: Captured,
        cleaner: &'c Cleaner,
        mark: &Mark,
    ) -> io::Result<Self> {
        let (output, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        if capture == Capture::Both {
            command.stdout(write_end.try_clone()?);
        }
        command.env(VARIABLE, mark.value()).stderr(write_end).process_group(0);
        let pid = Pid::from_child(&command.spawn()?);
        cleaner.watch(pid);
        Self::from_pid(pid, Some(output), captured, Some(cleaner))
    }

    fn from_pid(
        pid: Pid,
        output: Option<OwnedFd>,
        captured: Captured,
        cleaner: Option<&'c Cleaner>,
    ) -> io::Result<Self> {
        let opened = output.iter().try_for_each(|output| fcntl_setfl(output, OFlags::NONBLOCK));
        match opened.and_then(|()| pidfd_open(pid, PidfdFlags::empty())) {
            Ok(pidfd) => Ok(Self { pid, pidfd, output, captured, ended: None, killed: false, cleaner }),
            Err(error) => {
                kill(pid, cleaner.is_some());
                cleaner.into_iter().for_each(|cleaner| cleaner.forget(pid));
                let _ = reap(pid);
                Err(error.into())
            }
        }
    }

    /// Its process number.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    /// Its captured output.
    pub fn captured_output(&self) -> String {
        self.captured.text()
    }

    /// The descriptors to poll: readable once it has ended, and readable when it has written.
    pub(crate) fn poll_fds(&self) -> [Option<BorrowedFd<'_>>; 2] {
        [self.ended.is_none().then(|| self.pidfd.as_fd()), self.output.as_ref().map(AsFd::as_fd)]
    }

    /// Sends SIGTERM to the process, but not to its group: it ends its own children.
    pub fn ask_to_finish(&self) {
        if self.ended.is_none() {
            // It is no error if it has just ended.
            let _ = kill_process(self.pid, Signal::TERM);
        }
    }

    /// Kills it, with its group.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            self.killed = true;
            kill(self.pid, self.cleaner.is_some());
        }
    }

    /// Kills it and waits for it.
    pub(crate) fn kill_and_reap(&mut self) {
        if self.ended.is_none() {
            self.kill();
            // Only this process waits for it.
            let _ = self.reap();
        }
    }

    /// Reads what it has written so far, and no more: the end of a program that never stops writing must be noticed, and its children may
    /// continue to write after it.
    pub(crate) fn read_output(&mut self) {
        let mut buffer = [0u8; 16 << 10];
        for _ in 0..READS_MAX {
            let Some(output) = &self.output else { return };
            match rustix::io::read(output, &mut buffer) {
                Ok(len) if len > 0 => self.captured.push(&buffer[..len]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Ok(_) | Err(_) => self.output = None,
            }
        }
    }

    /// Waits for its end, kills the rest of its group, and reads the rest of its output.
    ///
    /// # Errors
    /// ECHILD if it was reaped elsewhere.
    pub(crate) fn reap(&mut self) -> io::Result<()> {
        ready_within(&self.pidfd, PollFlags::IN, None)?;
        if let Some(cleaner) = self.cleaner {
            // Its group number cannot be reused before it is reaped.
            kill(self.pid, true);
            cleaner.forget(self.pid);
        }
        let (status, usage) = reap(self.pid)?;
        self.ended = Some(Ended { status, usage, by_us: self.killed, at: Instant::now() });
        self.read_output();
        Ok(())
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        self.kill_and_reap();
    }
}

/// Kills a child, or its group. It must not have been reaped, because its number could then be reused. It is no error if it has just ended.
fn kill(pid: Pid, group: bool) {
    let _ = if group { kill_process_group(pid, Signal::KILL) } else { kill_process(pid, Signal::KILL) };
}

/// The first steps of every forked child: its own name, SIGKILL when its parent ends, and default actions for signals.
fn become_child(name: &CStr, parent: Pid) {
    let _ = rustix::thread::set_name(name);
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if rustix::process::getppid() != Some(parent) {
        // The parent died between fork and prctl.
        leave(1);
    }
    // A signal that was ignored at the start of hosepipe (nohup(1)) has no handler, and stays ignored.
    let ending = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
    ending.into_iter().filter(|signal| !was_ignored(*signal)).for_each(|signal| to_default(&[signal]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept() {
        let mut said = Captured::keeping(4, 3);
        assert_eq!(said.text(), "");
        said.push(b"abc");
        said.push(b"defg");
        assert_eq!(said.text(), "abcdefg");
        said.push(b"hi");
        assert_eq!(said.text(), "abcd[…]ghi");
        let mut last = Captured::keeping(0, 2);
        last.push(b"xyz\n");
        assert_eq!(last.text(), "[…]z");
    }
}
