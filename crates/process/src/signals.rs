//! Signals: their dispositions when this process was started, and how they are set; signals that come while a program is waited for,
//! as readable events (signalfd(2)); and sending them.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

pub use nix::sys::signal::Signal;
use nix::sys::signal::Signal::*;
use nix::sys::signal::{SigSet, SigmaskHow, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use crate::proc::{Stat, children, was_started_before};

/// Signals that end a pipeline, and are passed on to every stage that did not get them from the terminal.
const ENDING: [Signal; 4] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP];

/// Signals whose meaning the program decides; by default they end it.
const OTHERS: [Signal; 8] = [SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT];

/// Signals below this number are handled: real-time signals beyond the C library's own (32 and 33) are never set here.
const SIGNALS: usize = 34;
/// Bytes of the kernel's sets of signals.
const SET_BYTES: usize = 8;

/// Signals that were ignored when this process was started, by number, and those that were blocked.
static AT_START: OnceLock<([bool; SIGNALS], SigSet)> = OnceLock::new();

/// Before `main`, and before the Rust runtime ignores SIGPIPE for itself.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = remember;

extern "C" fn remember() {
    let ignored = std::array::from_fn(|number| is_ignored(number as i32));
    let _ = AT_START.set((ignored, SigSet::thread_get_mask().unwrap_or(SigSet::empty())));
    // The Rust runtime gives each thread an alternate signal stack (sigaltstack(2)), to report that the first stack overflowed. If
    // there is no memory for one, it panics in the new thread, and the program cannot prevent that. It makes none if these signals
    // are handled.
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        if ignored[signal as usize] {
            continue;
        }
        // SAFETY: the handler makes only calls that are async-signal-safe (signal-safety(7)).
        unsafe { libc::signal(signal, die_of as extern "C" fn(i32) as libc::sighandler_t) };
    }
}

/// Ends this process as if the signal were not handled.
extern "C" fn die_of(signal: i32) {
    end_by(signal);
}

/// Signals that were blocked when this process was started. They are also blocked in a program that it starts.
pub(crate) fn mask_at_start() -> SigSet {
    AT_START.get().map_or(SigSet::empty(), |(_, mask)| *mask)
}

/// Whether a signal was ignored when this process was started, as nohup(1) arranges for SIGHUP.
pub fn was_ignored(signal: i32) -> bool {
    AT_START.get().is_some_and(|(ignored, _)| ignored.get(signal as usize).is_some_and(|ignored| *ignored))
}

/// Asks the kernel, because sigaction(3) refuses 32 and 33, which the C library uses itself.
fn is_ignored(signal: i32) -> bool {
    // The kernel's struct begins with the handler, and is shorter than the C library's.
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    let none = std::ptr::null::<libc::sigaction>();
    // SAFETY: asks for the action without setting one; the buffer is larger than what is filled, and its first word is valid as
    // zeros.
    unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, none, action.as_mut_ptr(), SET_BYTES) == 0
            && action.as_ptr().cast::<libc::sighandler_t>().read() == libc::SIG_IGN
    }
}

/// Signals that were not ignored when this process was started: posix_spawn(3) is to set them to their default. Without that
/// it makes the new program ignore 32 and 33. The bits are set directly because sigaddset(3) refuses these two.
pub(crate) fn not_ignored_at_start() -> SigSet {
    let bits = (1..SIGNALS as i32).filter(|signal| !was_ignored(*signal)).map(|signal| 1_u64 << (signal - 1));
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: a set is an array of words that begins with the first 64 signals, and valid as zeros.
    unsafe {
        set.as_mut_ptr().cast::<u64>().write(bits.sum());
        SigSet::from_sigset_t_unchecked(set.assume_init())
    }
}

/// Sets all signals, and the mask of this thread, to what they were when this process was started.
pub(crate) fn restore() {
    let before = std::ptr::null::<usize>();
    for signal in 1..SIGNALS as i32 {
        let action = [if was_ignored(signal) { libc::SIG_IGN } else { libc::SIG_DFL }, 0, 0, 0];
        // SAFETY: the kernel's struct of a handler, flags, and a set; neither of these handlers runs code of ours. KILL and STOP are refused.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), before, SET_BYTES) };
    }
    // It fails only for bad arguments.
    let _ = mask_at_start().thread_set_mask();
}

/// Blocks signals in this thread until it is dropped. Threads that are started meanwhile keep them blocked.
pub struct NoSignals {
    before: SigSet,
}

impl NoSignals {
    /// Blocks every signal: signals to this process are for the threads that wait for them.
    pub fn block() -> Self {
        Self::block_these(&SigSet::all())
    }

    fn block_these(signals: &SigSet) -> Self {
        // It fails only for bad arguments.
        Self { before: signals.thread_swap_mask(SigmaskHow::SIG_BLOCK).unwrap_or(mask_at_start()) }
    }
}

impl Drop for NoSignals {
    /// A signal that came meanwhile is still pending, and acts as soon as it is no longer blocked.
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

/// Starts a thread in which every signal is blocked: those to this process are for the thread that waits for them.
///
/// # Errors
/// What clone(2) answered: EAGAIN where the user has as many tasks as allowed, or memory is short.
pub fn spawn_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let _blocked = NoSignals::block();
    Builder::new().name(name.to_owned()).spawn(work)
}

/// A signal that this process got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceivedSignal {
    pub(crate) signal: Signal,
    /// Whether it is one of [`ENDING`].
    pub(crate) ends: bool,
    /// PID of the sender; `None` if the kernel sent it (a key at the terminal): then the whole process group got it.
    pub(crate) sender: Option<i32>,
}

/// Blocks SIGCHLD, the ending signals and the others, and hands them out; dropping it unblocks them.
pub(crate) struct Inbox {
    fd: SignalFd,
    _blocked: NoSignals,
}

impl Inbox {
    /// From now on the signals wait to be read. They are blocked only in the calling thread and in threads that it starts.
    pub(crate) fn open() -> io::Result<Self> {
        let wanted = ENDING.into_iter().chain(OTHERS).filter(|signal| !was_ignored(*signal as i32));
        let signals: SigSet = wanted.chain([SIGCHLD]).collect();
        let fd = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { fd, _blocked: NoSignals::block_these(&signals) })
    }

    /// The next signal that came, if one did. Does not wait.
    pub(crate) fn next(&self) -> Option<ReceivedSignal> {
        let came = self.fd.read_signal().ok()??;
        let signal = Signal::try_from(came.ssi_signo as i32).ok()?;
        let sender = (came.ssi_code != libc::SI_KERNEL).then_some(came.ssi_pid as i32);
        Some(ReceivedSignal { signal, ends: ENDING.contains(&signal), sender })
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sends a signal to a child that is not reaped yet, so that no other process has its PID, and to all its descendants: a shell that waits
/// for a program does not pass signals on. Returns the PIDs of all of them.
pub fn send(pid: i32, signal: Signal) -> Vec<i32> {
    let below = children(pid);
    send_to_one(pid, signal);
    let below = below.into_iter().flat_map(|child| send(child, signal));
    std::iter::once(pid).chain(below).collect()
}

/// The same for a process that was seen at a time of CLOCK_MONOTONIC in ns, and may have ended since: if another process has its PID now,
/// nothing is sent.
pub fn send_if_known_since(pid: i32, monotonic_ns: u64, signal: Signal) {
    if was_started_before(pid, monotonic_ns) {
        send(pid, signal);
    }
}

/// Whether a process is `ancestor`, or a descendant of it (proc_pid_stat(5)).
pub(crate) fn is_below(pid: i32, ancestor: i32) -> bool {
    let parent = |pid: &i32| Some(Stat::of(*pid)?.parent);
    std::iter::successors(Some(pid), parent).any(|pid| pid == ancestor)
}

/// Sends a signal to one process of ours.
pub(crate) fn send_to_one(pid: i32, signal: Signal) {
    // One that has just ended is no error here.
    let _ = kill(Pid::from_raw(pid), signal);
}

/// Sets signals to their default action (signal(7)).
pub fn to_default(signals: &[i32]) {
    set(signals, libc::SIG_DFL);
}

/// Ignores signals.
pub fn ignore(signals: &[i32]) {
    set(signals, libc::SIG_IGN);
}

/// Ignores what other processes and the terminal may send: signals that end a program by default, and SIGPIPE. One that is pending is discarded.
pub fn ignore_others() {
    ENDING.into_iter().chain(OTHERS).chain([SIGPIPE]).for_each(|signal| ignore(&[signal as i32]));
}

fn set(signals: &[i32], action: libc::sighandler_t) {
    for signal in signals {
        // SAFETY: neither the default action nor to ignore a signal runs code of ours.
        unsafe { libc::signal(*signal, action) };
    }
}

/// The first signal that requested the end of this program, and when it came (CLOCK_MONOTONIC); 0 if none did.
static STOP_SIGNAL: AtomicI32 = AtomicI32::new(0);
static STOP_NS: AtomicU64 = AtomicU64::new(0);
/// The last step of a program that a second signal ends.
static LAST_STEP: OnceLock<fn()> = OnceLock::new();

/// Signals that come within this time may be one request, as timeout(1) sends its signal twice: then what is asked has this long to end by itself.
const ONE_REQUEST: Duration = Duration::from_millis(100);
const GRACE: Duration = Duration::from_secs(5);

/// After which time a further signal ends what does not end by itself; `None` if it does not request that. `since` is the time since the first one.
pub(crate) fn ends_after(signal: Signal, since: Duration) -> Option<Duration> {
    let is_apart = since >= ONE_REQUEST;
    matches!(signal, SIGINT | SIGTERM).then_some(if is_apart { Duration::ZERO } else { GRACE })
}

/// From now on this signal is noted as a request to end. A second SIGINT or SIGTERM ends the program, also while it is in a system call:
/// its cleaner then removes what it leaves. A signal that was ignored at the start (nohup(1)) stays ignored.
///
/// # Errors
/// What signal(2) answered.
pub fn note_as_stop(signal: i32) -> io::Result<()> {
    if was_ignored(signal) {
        return Ok(());
    }
    // SAFETY: the handler makes only calls that are async-signal-safe (signal-safety(7)).
    let before = unsafe { libc::signal(signal, stop as extern "C" fn(i32) as libc::sighandler_t) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the function that is called before a second signal ends this program. It may only do what a signal handler may (signal-safety(7)).
pub fn set_last_step(last_step: fn()) {
    LAST_STEP.get_or_init(|| last_step);
}

/// The first signal that requested the end of this program.
pub fn stop_signal() -> Option<i32> {
    Some(STOP_SIGNAL.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
}

/// Notes a signal that a child has got as a request to end this program.
pub fn note_stop(signal: i32) {
    let _ = STOP_NS.compare_exchange(0, model::monotonic_ns(), Ordering::Relaxed, Ordering::Relaxed);
    let _ = STOP_SIGNAL.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
}

extern "C" fn stop(signal: i32) {
    let first_ns = STOP_NS.load(Ordering::Relaxed);
    let since = Duration::from_nanos(model::monotonic_ns().saturating_sub(first_ns));
    match Signal::try_from(signal).ok().filter(|_| first_ns > 0).and_then(|signal| ends_after(signal, since))
    {
        None => note_stop(signal),
        Some(Duration::ZERO) => end_now(signal),
        Some(later) => {
            // SAFETY: the handler makes only calls that are async-signal-safe (signal-safety(7)); nothing else here uses the alarm.
            unsafe {
                libc::signal(libc::SIGALRM, end_now as extern "C" fn(i32) as libc::sighandler_t);
                libc::alarm(later.as_secs() as u32);
            }
        }
    }
}

/// Ends this process by the signal that came first, after its last step.
extern "C" fn end_now(signal: i32) {
    if let Some(last_step) = LAST_STEP.get() {
        last_step();
    }
    end_by(if signal == libc::SIGALRM { stop_signal().unwrap_or(signal) } else { signal });
}

/// Ends this process by the signal, as a shell does whose command was ended by one, so that the parent sees it.
pub fn end_by(signal: i32) {
    to_default(&[signal]);
    // SAFETY: has no memory effects. nix knows no real-time signals.
    unsafe { libc::raise(signal) };
}

/// Ends the calling process at once, all its threads with it; destructors and exit handlers are not run.
pub fn leave(status: i32) -> ! {
    // SAFETY: runs no more code of this process.
    unsafe { libc::_exit(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: `timeout 2 hosepipe bench …` saves what was measured; timeout(1) sends its signal to the process and to its group.
    #[test]
    fn two_signals_at_once_may_be_one_request() {
        assert_eq!(ends_after(SIGTERM, Duration::from_millis(1)), Some(GRACE));
        assert_eq!(
            [SIGTERM, SIGINT].map(|signal| ends_after(signal, ONE_REQUEST)),
            [Some(Duration::ZERO); 2]
        );
        assert_eq!(ends_after(SIGHUP, Duration::from_secs(1)), None, "a terminal that is closed");
    }

    /// Expected: if there is no memory for what a thread needs, starting it returns an error.
    /// Happened: the runtime had no memory for the alternate signal stack and panicked in the thread; the program ended without a message.
    #[test]
    fn threads_begin_without_a_second_stack() {
        let flags = std::thread::spawn(|| {
            let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
            // SAFETY: asks for the stack without setting one; the buffer is of the type it fills, and valid as zeros.
            unsafe {
                libc::sigaltstack(std::ptr::null(), stack.as_mut_ptr());
                stack.assume_init().ss_flags
            }
        });
        assert_eq!(flags.join().expect("a thread"), libc::SS_DISABLE);
    }
}
