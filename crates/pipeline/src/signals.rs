//! Signals while a pipeline runs: the death of a stage, and those that ask the whole pipeline to end, come as
//! readable events (signalfd(2)) and not as interruptions.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

use crate::activity;

/// Signals that end a pipeline, and are passed on to every stage that has not had them from the terminal.
pub(crate) const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Signals that mean what the program they are sent to makes of them; who does nothing about them ends.
const OTHERS: [i32; 8] = [
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
];

/// Signals that were ignored when this process was started, by number.
static IGNORED_AT_START: OnceLock<[bool; 32]> = OnceLock::new();

/// Signals that were held back then.
static MASK_AT_START: OnceLock<libc::sigset_t> = OnceLock::new();

/// Before `main`, and before the Rust runtime ignores SIGPIPE for itself.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_THE_START: extern "C" fn() = remember_dispositions;

extern "C" fn remember_dispositions() {
    IGNORED_AT_START.get_or_init(|| std::array::from_fn(|number| is_ignored(number as i32)));
    MASK_AT_START.get_or_init(|| {
        let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: only asks; the set is valid as zeros.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
            mask.assume_init()
        }
    });
}

/// Signals that were held back when this process was started; a program that it starts has them so.
pub(crate) fn mask_at_start() -> Option<libc::sigset_t> {
    MASK_AT_START.get().copied()
}

/// Whether a signal was ignored when this process was started, as nohup(1) arranges for SIGHUP.
pub fn was_ignored(signal: i32) -> bool {
    IGNORED_AT_START.get().is_some_and(|ignored| ignored.get(signal as usize).is_some_and(|ignored| *ignored))
}

fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the action without setting one; the buffer is of the type it fills, and valid as zeros.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Holds every signal back from this thread, and from threads it starts meanwhile for as long as they live; until it
/// is dropped. A signal to this process is for those who wait for it, and never for a relay.
pub struct NoSignals {
    before: libc::sigset_t,
}

impl NoSignals {
    /// Begins to hold them back.
    pub fn hold() -> Self {
        let mut every = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: both sets are valid as zeros and large enough; neither call keeps a reference. They fail only for
        // bad arguments.
        unsafe {
            libc::sigfillset(every.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, every.as_ptr(), before.as_mut_ptr());
            Self { before: before.assume_init() }
        }
    }
}

impl Drop for NoSignals {
    fn drop(&mut self) {
        // SAFETY: the set is one that the kernel filled.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Came {
    /// Its number.
    pub(crate) signal: i32,
    /// Who sent it; `None` where the kernel did (a key at the terminal): then the whole process group has it.
    pub(crate) sender: Option<i32>,
}

/// Holds SIGCHLD, the ending signals and the others back and hands them out; dropping it lets them through again.
pub(crate) struct Inbox {
    fd: OwnedFd,
    before: libc::sigset_t,
}

impl Inbox {
    /// From now on the signals wait to be read. Only the calling thread, and threads it starts, hold them back.
    ///
    /// # Errors
    /// No descriptor is free.
    pub(crate) fn open() -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: the sets are initialised by sigemptyset and pthread_sigmask before they are read, and
        // signalfd's answer is checked before it is owned.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
            for signal in ENDING.into_iter().chain(OTHERS).filter(|signal| !was_ignored(*signal)) {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            Ok(Self { fd: OwnedFd::from_raw_fd(fd), before: before.assume_init() })
        }
    }

    /// The next signal that came, if one did. Does not wait.
    pub(crate) fn next(&self) -> Option<Came> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer is of the size given, and its type is valid as zeros or as whatever the kernel writes.
        let (len, info) =
            unsafe { (libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size), info.assume_init()) };
        let sender = (info.ssi_code != libc::SI_KERNEL).then_some(info.ssi_pid as i32);
        let came = Came { signal: info.ssi_signo as i32, sender };
        (len == size as isize).then_some(came)
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // What came while nobody looked is not lost: a signal still pending acts as soon as it is let through.
        // SAFETY: `before` is the mask pthread_sigmask gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// Sends a signal to a process that is ours to wait for, so that the number is not another's, and to what it has
/// started: a shell that waits for a program does not hand on what comes to itself alone.
pub(crate) fn send(pid: i32, signal: i32) {
    let below = children(pid);
    send_to_one(pid, signal);
    below.into_iter().for_each(|child| send(child, signal));
}

/// Whether a process is another one, or has come from it (proc_pid_stat(5)).
pub(crate) fn is_below(pid: i32, ancestor: i32) -> bool {
    let parent = |pid: &i32| activity::fields(*pid)?.get(1)?.parse().ok();
    std::iter::successors(Some(pid), parent).any(|pid| pid == ancestor)
}

/// The children of all threads of a process (proc_pid_task_children(5)).
fn children(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        .collect()
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
