//! How a process ended, and what it used (wait4(2)).
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::mem::MaybeUninit;

use model::{EndUsage, signal_name};
use rustix::process::Pid;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
}

impl Ending {
    /// From a status as wait(2) gives it, of a process that has ended.
    pub fn of_wait_status(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Killed(libc::WTERMSIG(status))
        } else {
            Self::Exited(libc::WEXITSTATUS(status))
        }
    }

    /// Whether it exited with 0.
    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }

    /// As a shell shows it: 128 and the signal's number for one that was killed.
    pub fn status(self) -> i32 {
        match self {
            Self::Exited(status) => status,
            Self::Killed(signal) => 128 + signal,
        }
    }
}

/// As the rest of a sentence.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exited with {status}"),
            Self::Killed(signal) => write!(f, "was ended by {}", signal_name(*signal)),
        }
    }
}

/// Waits for a child to end and reaps it. The usage holds that of its own children, as far as it has waited for them.
///
/// # Errors
/// ECHILD where it is no child of ours.
pub fn reap(pid: Pid) -> io::Result<(Ending, EndUsage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both buffers are of the types wait4 fills, and valid as zeros.
        let answer =
            unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, usage.as_mut_ptr()) };
        if answer > 0 {
            // SAFETY: valid as zeros, and wait4 has filled it.
            return Ok((Ending::of_wait_status(status), end_usage(&unsafe { usage.assume_init() })));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// What getrusage(2) and wait4(2) tell, as records have it.
pub fn end_usage(usage: &libc::rusage) -> EndUsage {
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    EndUsage {
        syscalls: None,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        minor_faults: usage.ru_minflt as u64,
        blocks_stored: usage.ru_oublock as u64,
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
    }
}
