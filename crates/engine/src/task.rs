//! A child process under supervision: started by fork(2), heard through a pipe, ended with its owner.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// A child process. Dropping it ends it and waits for it.
pub(crate) struct Task {
    pid: Pid,
    report_pipe: Option<OwnedFd>,
    report: Vec<u8>,
    ended: Option<Ending>,
    ended_by_us: bool,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It left by itself.
    Left(i32),
    /// A signal ended it.
    Killed(i32),
}

impl Task {
    /// Starts a child that does `work` and leaves; what `work` writes is the child's report.
    ///
    /// This process must have one thread only: a forked child of a threaded process may do next to nothing
    /// (fork(2)).
    pub(crate) fn start(name: &CStr, work: impl FnOnce(&mut dyn Write)) -> io::Result<Self> {
        let (report_pipe, mut writer) =
            pipe_with(PipeFlags::CLOEXEC).map(|(reader, writer)| (reader, std::fs::File::from(writer)))?;
        let parent = rustix::process::getpid();
        // SAFETY: this process has one thread (see above), so the child may go on as any process.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(report_pipe);
                become_task(name, parent);
                // A panic must not unwind into the parent's code, of which this is a copy.
                let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut writer)));
                drop(writer);
                // SAFETY: leaves at once; destructors and exit handlers belong to the parent.
                unsafe { libc::_exit(if outcome.is_ok() { 0 } else { 101 }) }
            }
            pid => Ok(Self {
                pid: Pid::from_raw(pid).ok_or(io::ErrorKind::Other)?,
                report_pipe: Some(report_pipe),
                report: Vec::new(),
                ended: None,
                ended_by_us: false,
            }),
        }
    }

    /// The child's process number.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// What to poll for news of it; `None` once it has ended.
    pub(crate) fn news(&self) -> Option<BorrowedFd<'_>> {
        self.report_pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes in what the child has written; at the end of it, waits for the child. Call when [`Task::news`]
    /// is readable.
    pub(crate) fn listen(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.report_pipe else { return Ok(()) };
        let mut buffer = [0u8; 16 << 10];
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => {
                self.report_pipe = None;
                self.ended = Some(self.wait()?);
            }
            Ok(len) => self.report.extend_from_slice(&buffer[..len]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// How it ended, once it has.
    pub(crate) fn ended(&self) -> Option<Ending> {
        self.ended
    }

    /// What it wrote.
    pub(crate) fn report(&self) -> &[u8] {
        &self.report
    }

    /// Whether it was ended by [`Task::kill`], and not by itself or by somebody else.
    pub(crate) fn ended_by_us(&self) -> bool {
        self.ended_by_us
    }

    /// Ends it, whatever it is doing.
    pub(crate) fn kill(&mut self) {
        if self.ended.is_none() {
            self.ended_by_us = true;
            // A child that has just ended is still ours to wait for, so the number is not another's.
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }

    fn wait(&self) -> io::Result<Ending> {
        loop {
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Ok(Some((_, status))) => {
                    let signal = status.terminating_signal();
                    let code = status.exit_status().unwrap_or(0);
                    return Ok(signal.map_or(Ending::Left(code), Ending::Killed));
                }
                Ok(None) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
            let _ = self.wait();
        }
    }
}

/// Ends the calling child at once, all its threads with it.
pub(crate) fn leave() -> ! {
    // SAFETY: leaves at once; destructors and exit handlers belong to the parent.
    unsafe { libc::_exit(0) }
}

/// What every child does first: it takes a name of its own, dies with its parent, and takes signals as
/// programs usually do, not as the parent has arranged for itself.
fn become_task(name: &CStr, parent: Pid) {
    let _ = rustix::thread::set_name(name);
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if rustix::process::getppid() != Some(parent) {
        // The parent died between fork and prctl.
        // SAFETY: leaves at once.
        unsafe { libc::_exit(1) };
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the default action is always a valid one.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
