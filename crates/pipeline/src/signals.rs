//! Signals: how they were to this process when it was started; those that come while a shell runs, as readable events (signalfd(2))
//! and not as interruptions; and those that are sent.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use nix::sys::signal::Signal::*;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::proc;

/// Signals that end a pipeline, and are passed on to every stage that has not had them from the terminal.
const ENDING: [Signal; 4] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP];

/// Signals that mean what the program they are sent to makes of them; who does nothing about them ends.
const OTHERS: [Signal; 8] = [SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT];

/// Signals that were ignored when this process was started, by number, and those that were held back.
static AT_START: OnceLock<([bool; 32], SigSet)> = OnceLock::new();

/// Before `main`, and before the Rust runtime ignores SIGPIPE for itself.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = remember;

extern "C" fn remember() {
    let ignored = std::array::from_fn(|number| is_ignored(number as i32));
    let _ = AT_START.set((ignored, SigSet::thread_get_mask().unwrap_or(SigSet::empty())));
}

/// Signals that were held back when this process was started; a program that it starts has them so.
pub(crate) fn mask_at_start() -> SigSet {
    AT_START.get().map_or(SigSet::empty(), |(_, mask)| *mask)
}

/// Whether a signal was ignored when this process was started, as nohup(1) arranges for SIGHUP.
pub fn was_ignored(signal: i32) -> bool {
    AT_START.get().is_some_and(|(ignored, _)| ignored.get(signal as usize).is_some_and(|ignored| *ignored))
}

fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the action without setting one; the buffer is of the type it fills, and valid as zeros.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Holds signals back from this thread, and from threads it starts meanwhile for as long as they live; until it is dropped.
pub struct NoSignals {
    before: SigSet,
}

impl NoSignals {
    /// Holds every signal back: one to this process is for those who wait for it, and never for a relay.
    pub fn hold() -> Self {
        Self::hold_these(&SigSet::all())
    }

    fn hold_these(signals: &SigSet) -> Self {
        // It fails only for bad arguments.
        Self { before: signals.thread_swap_mask(SigmaskHow::SIG_BLOCK).unwrap_or(mask_at_start()) }
    }
}

impl Drop for NoSignals {
    /// What came while nobody looked is not lost: a signal still pending acts as soon as it is let through.
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Came {
    /// Its number.
    pub(crate) signal: i32,
    /// Whether it asks for the end.
    pub(crate) ends: bool,
    /// Who sent it; `None` where the kernel did (a key at the terminal): then the whole process group has it.
    pub(crate) sender: Option<i32>,
}

/// Holds SIGCHLD, the ending signals and the others back and hands them out; dropping it lets them through again.
pub(crate) struct Inbox {
    fd: SignalFd,
    _held: NoSignals,
}

impl Inbox {
    /// From now on the signals wait to be read. Only the calling thread, and threads it starts, hold them back.
    pub(crate) fn open() -> io::Result<Self> {
        let wanted = ENDING.into_iter().chain(OTHERS).filter(|signal| !was_ignored(*signal as i32));
        let signals: SigSet = wanted.chain([SIGCHLD]).collect();
        let fd = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { fd, _held: NoSignals::hold_these(&signals) })
    }

    /// The next signal that came, if one did. Does not wait.
    pub(crate) fn next(&self) -> Option<Came> {
        let came = self.fd.read_signal().ok()??;
        let signal = came.ssi_signo as i32;
        let sender = (came.ssi_code != libc::SI_KERNEL).then_some(came.ssi_pid as i32);
        Some(Came { signal, ends: ENDING.iter().any(|ending| *ending as i32 == signal), sender })
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sends a signal to a process that is ours to wait for, so that the number is not another's, and to what it has
/// started: a shell that waits for a program does not hand on what comes to itself alone.
pub(crate) fn send(pid: i32, signal: i32) {
    let below = proc::children(pid);
    send_to_one(pid, signal);
    below.into_iter().for_each(|child| send(child, signal));
}

/// Whether a process is another one, or has come from it (proc_pid_stat(5)).
pub(crate) fn is_below(pid: i32, ancestor: i32) -> bool {
    let parent = |pid: &i32| proc::fields(*pid)?.get(1)?.parse().ok();
    std::iter::successors(Some(pid), parent).any(|pid| pid == ancestor)
}

/// Sends a signal to one process of ours.
pub(crate) fn send_to_one(pid: i32, signal: i32) {
    // SAFETY: has no memory effects; a process that has just ended is no error here.
    unsafe { libc::kill(pid, signal) };
}

/// Ends this process by the signal, as a shell does whose command was ended by one: who waits for us sees it.
pub fn end_by(signal: i32) {
    // SAFETY: the default action is always a valid one; the signal is then ours and unblocked.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
