//! `signal`: realtime signals from task to task, sent by rt_tgsigqueueinfo(2) and received by sigwaitinfo(2), without a
//! handler. Before the barrier each task blocks the signal, and then writes its process and thread number to shared memory:
//! a signal before that would kill it.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::notify::Notification;
use crate::prelude::*;

pub(super) static SIGNAL: Mechanism = Mechanism {
    name: "signal",
    summary: "realtime signals sent to a thread and waited for, without a handler",
    man_pages: &["signal(7)", "rt_tgsigqueueinfo(2)", "sigwaitinfo(2)"],
    more_specs: &["signal"],
    ..Mechanism::notification(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    one_way(request, || {
        let memory = SharedMemory::new(size_of::<Address>());
        let address = Arc::new(memory.in_call("mmap(MAP_SHARED)")?);
        let target = address.clone();
        let notify = move || send_signal(self::address(&target)).map(|()| Some(1));
        let mut blocked: Option<Blocked> = None;
        // Blocks the signal in the waiting thread, and writes the thread's address.
        let prepare = move || {
            drop(blocked.replace(Blocked::now()?));
            let address = self::address(&address);
            address.process.store(rustix::process::getpid().as_raw_nonzero().get(), Relaxed);
            address.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Release);
            Ok(())
        };
        let waiter = Notification::new(wait_for_signal).prepared_by(prepare);
        Ok(Direction::new(Notification::new(notify), waiter))
    })
}

/// The signal: realtime ones are queued, and nothing else here uses them.
fn signal() -> libc::c_int {
    libc::SIGRTMIN()
}

/// The process and the thread to which signals are sent; zeros until it has blocked the signal.
#[repr(C)]
struct Address {
    process: AtomicI32,
    /// Written last.
    thread: AtomicI32,
}

fn address(memory: &SharedMemory) -> &Address {
    // SAFETY: the mapping is page-aligned, at least a page, zeroed (a valid Address), and only ever reached
    // through these atomics.
    unsafe { &*memory.as_ptr().cast::<Address>() }
}

fn send_signal(to: &Address) -> io::Result<()> {
    let (thread, process) = (to.thread.load(Acquire), to.process.load(Relaxed));
    if thread == 0 {
        return Err(io::Error::other("the other task has not reported its thread number"));
    }
    // SAFETY: all zeros is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { MaybeUninit::zeroed().assume_init() };
    info.si_signo = signal();
    info.si_code = libc::SI_QUEUE;
    // SAFETY: `info` is alive and initialised; the kernel checks the numbers, and delivers only if the thread belongs to the
    // process, so that no other thread gets the signal after the number was reused.
    let result = unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal(), &info) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::ESRCH) => io::Error::new(io::ErrorKind::UnexpectedEof, "the other task is gone"),
        // Without the errno: EAGAIN would be treated as a block that does not fit.
        Some(libc::EAGAIN) => io::Error::other(
            "rt_tgsigqueueinfo: EAGAIN, too many signals are pending for this user (ulimit -i)",
        ),
        _ => error,
    })
}

/// Returns the number of system calls.
fn wait_for_signal() -> io::Result<Option<u64>> {
    let set = only_our_signal();
    let mut syscalls = 0;
    loop {
        syscalls += 1;
        // SAFETY: `set` is initialised and outlives the call; no information is asked for.
        if unsafe { libc::sigwaitinfo(&set, std::ptr::null_mut()) } >= 0 {
            return Ok(Some(syscalls));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn only_our_signal() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set that sigaddset then adds a valid signal to.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal());
        set.assume_init()
    }
}

/// The signal, blocked in one thread. Dropping this restores the thread's signal mask.
struct Blocked {
    thread: rustix::process::Pid,
    before: libc::sigset_t,
}

impl Blocked {
    fn now() -> io::Result<Self> {
        let mut before = MaybeUninit::uninit();
        // SAFETY: the first set is initialised, and the call fills in the second.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &only_our_signal(), before.as_mut_ptr()) } {
            // SAFETY: filled in, since the call succeeded.
            0 => Ok(Self { thread: rustix::thread::gettid(), before: unsafe { before.assume_init() } }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // If another thread drops this, the mask is not restored; it ends with its thread.
        if rustix::thread::gettid() == self.thread {
            // SAFETY: the set is the one that this thread had.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
        }
    }
}
