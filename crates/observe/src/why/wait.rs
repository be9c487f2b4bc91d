//! What each thread waits for, in more detail than [`crate::waits`]: also locks, queues, connections, children, opens of FIFOs.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, UNIX_EPOCH};

use process::Pinned;
use process::proc::{self, read_short_file};

use super::scene::absolute;
use super::unseen::by_function;
use crate::waits::{Blocked, Call, WatchedFd, from_syscall, memory};

/// Longest path or address that is read from a process's memory.
const TEXT_BYTES_MAX: u64 = 256;
/// Most operations of semop(2) that are read.
const OPERATIONS_MAX: u64 = 64;
/// Most threads of a process that are looked at.
const THREADS_MAX: usize = 512;
/// How often, and after which pause, a thread is looked at again that has just woken up.
const LOOKS_MAX: u32 = 5;
const LOOK_PAUSE: Duration = Duration::from_millis(3);
/// Largest share of a CPU of a thread that only wakes up again and again.
const TICKER_CPU_MAX: f64 = 0.01;
/// `sun_path` begins after two bytes (unix(7)).
const UNIX_PATH_AT: usize = 2;
const FUTEX_PRIVATE: u64 = 128;
const FUTEX_COMMAND: u64 = 127;
const FUTEX_WAITS: [u64; 4] =
    [libc::FUTEX_WAIT as u64, libc::FUTEX_WAIT_BITSET as u64, libc::FUTEX_LOCK_PI as u64, 13];

/// A message queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Queue {
    /// Its number (msgget(2)).
    SystemV(i32),
    /// Its descriptor (mq_overview(7)).
    Posix(i32),
}

/// The address of a socket on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// The path of a UNIX socket, with `@` before an abstract name.
    Unix(String),
    /// Of an Internet socket.
    Inet(SocketAddr),
}

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wait {
    /// It runs, or is ready to.
    Runs,
    /// A disk, or another wait that no signal ends.
    Disk,
    /// It is stopped, or traced.
    Stopped,
    /// Its control group is frozen.
    Frozen,

    /// It reads or writes one of these.
    Stream(Vec<WatchedFd>),
    /// Until one of these is ready; `timed`: or until a time has passed.
    Poll {
        fds: Vec<WatchedFd>,
        timed: bool,
    },
    /// It opens a FIFO that has no other end.
    OpenFifo {
        path: Option<String>,
        writes: Option<bool>,
    },
    /// A lock of this open file.
    Lock {
        fd: i32,
    },
    /// A connection, or room for a datagram, at this address; `None` where it is in no argument, or may not be read.
    Connect {
        fd: i32,
        to: Option<Address>,
    },
    Accept {
        fd: i32,
    },
    Queue {
        queue: Queue,
        sends: bool,
    },
    /// The semaphores of a set, with what is to be added to each (semop(2)).
    Semaphore {
        id: i32,
        operations: Vec<(u16, i16)>,
        timed: bool,
    },
    /// An address of its memory; `timed` as above.
    Futex {
        address: u64,
        is_private: bool,
        timed: bool,
    },
    /// The end of a child, or of any.
    Child(Option<i32>),
    /// The end, or an execve(2), of the child that uses its memory.
    Vfork,
    /// Time to pass, if that can be read: in total, or of a time by a clock what is left.
    Time {
        ns: Option<u64>,
        is_rest: bool,
    },
    Signal,
    Other,
}

impl Wait {
    /// Whether it is not seen if it reads or writes.
    pub(super) fn is_unclear(&self) -> bool {
        matches!(self, Self::Stream(fds) if fds.iter().any(|watched| watched.reads && watched.writes))
    }

    /// Whether it ends after a time, so that a program that still needs the same waits again. (The kernel wakes those who wait for a lease.)
    fn wakes_up(&self) -> bool {
        match self {
            Self::Poll { timed, .. } | Self::Futex { timed, .. } | Self::Semaphore { timed, .. } => *timed,
            Self::Queue { .. } | Self::Lock { .. } => true,
            _ => false,
        }
    }
}

/// A thread at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thread {
    pub(super) id: i32,
    pub(super) wait: Wait,
    /// How often it has got a CPU, and for how long (proc_pid_schedstat(5)).
    turns: u64,
    run_ns: u64,
    /// How long it was ready to run and had no CPU.
    queued_ns: u64,

    /// The CPU on which it ran last.
    cpu: u32,
    /// When it ran last, on that CPU's clock of the scheduler; `None` on a kernel that does not show it (CONFIG_SCHED_DEBUG).
    ran_at_ns: Option<u64>,
}

impl Thread {
    /// Whether it has slept between two moments.
    pub(super) fn slept_since(&self, before: &Self) -> bool {
        self.id == before.id
            && self.turns == before.turns
            && self.run_ns == before.run_ns
            && self.wait != Wait::Runs
    }

    /// Whether it has only waited between two moments, for the same: it slept, or woke up after its time limit and waited again.
    pub(super) fn waits_since(&self, before: &Self, elapsed_ns: u64) -> bool {
        let again = || {
            self.id == before.id
                && (self.wait == before.wait || before.wait == Wait::Runs)
                && self.wait.wakes_up()
                && self.cpu_since(before, elapsed_ns) < TICKER_CPU_MAX
        };
        self.slept_since(before) || again()
    }

    /// Its share of a CPU since an earlier moment.
    pub(super) fn cpu_since(&self, before: &Self, elapsed_ns: u64) -> f64 {
        self.run_ns.saturating_sub(before.run_ns) as f64 / elapsed_ns.max(1) as f64
    }

    /// The share of the time for which it waited for a CPU.
    pub(super) fn queued_since(&self, before: &Self, elapsed_ns: u64) -> f64 {
        self.queued_ns.saturating_sub(before.queued_ns) as f64 / elapsed_ns.max(1) as f64
    }

    pub(super) fn turns_since(&self, before: &Self) -> u64 {
        self.turns.saturating_sub(before.turns)
    }

    /// How long it has slept; `None` if the kernel does not say it.
    pub(super) fn asleep_ns(&self) -> Option<u64> {
        // Each CPU has a clock of its own, which stands still while the CPU is stolen.
        let _pinned = Pinned::to(self.cpu).ok()?;
        ran_at_ns("/proc/thread-self")?.checked_sub(self.ran_at_ns?)
    }

    /// Whether it does nothing but wake up again and again, as the clocks of a virtual machine do.
    pub(super) fn ticks_since(&self, before: &Self, elapsed_ns: u64) -> bool {
        let is_timed = matches!(self.wait, Wait::Futex { timed: true, .. } | Wait::Time { .. });
        is_timed && self.id == before.id && self.cpu_since(before, elapsed_ns) < TICKER_CPU_MAX
    }
}

/// The threads of a process; none if it has ended.
pub(super) fn threads(pid: i32) -> Vec<Thread> {
    proc::threads(pid).take(THREADS_MAX).filter_map(|(id, folder)| thread(pid, id, &folder)).collect()
}

/// The same at a later moment. A thread that woke up to wait again is looked at until it does.
pub(super) fn threads_later(pid: i32, before: &[Thread]) -> Vec<Thread> {
    let waited = |id: i32| before.iter().any(|then| then.id == id && then.wait.wakes_up());
    for _ in 0..LOOKS_MAX {
        let now = threads(pid);
        if !now.iter().any(|thread| thread.wait == Wait::Runs && waited(thread.id)) {
            return now;
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    threads(pid)
}

fn thread(pid: i32, id: i32, folder: &str) -> Option<Thread> {
    let stat = proc::Stat::at(folder)?;
    let schedstat = read_short_file(&format!("{folder}/schedstat"));
    let schedstat = String::from_utf8_lossy(schedstat.as_deref().unwrap_or_default()).into_owned();
    let number =
        |at: usize| schedstat.split_whitespace().nth(at).and_then(|word| word.parse().ok()).unwrap_or(0);
    let wait = match stat.state {
        'R' => Wait::Runs,
        'T' | 't' => Wait::Stopped,
        'Z' | 'X' => return None,
        state => wait(pid, folder, state),
    };
    let (run_ns, queued_ns, turns, ran_at_ns) = (number(0), number(1), number(2), ran_at_ns(folder));
    Some(Thread { id, wait, turns, run_ns, queued_ns, cpu: stat.cpu, ran_at_ns })
}

/// When a thread ran last (`se.exec_start` of /proc/PID/sched, in milliseconds). On a busy machine the kernel moves some threads to another CPU as they
/// fall asleep, and sets it to 0 (seen on Linux 6.18: 3 of 60).
fn ran_at_ns(folder: &str) -> Option<u64> {
    let text = read_short_file(&format!("{folder}/sched"))?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| line.starts_with("se.exec_start"))?;
    let ms: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    (ms > 0.0).then_some((ms * 1e6) as u64)
}

fn wait(pid: i32, folder: &str, state: char) -> Wait {
    let read = |name: &str| read_short_file(&format!("{folder}/{name}"));
    let function =
        read("wchan").map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).unwrap_or_default();
    let is_in = |parts: &[&str]| parts.iter().any(|part| function.contains(part));
    let syscall = read("syscall");
    let call = syscall.as_deref().and_then(|bytes| Call::parse(&String::from_utf8_lossy(bytes)));
    let opens = is_in(&["wait_for_partner", "fifo_open"]);
    if opens || is_in(&["break_lease"]) {
        return open(pid, call.as_ref(), opens);
    }
    if is_in(&["vfork_done"]) || (state == 'D' && is_in(&["kernel_clone", "do_fork"])) {
        return Wait::Vfork;
    }
    // A stopped thread sleeps there, too, in another state.
    if is_in(&["freezer", "refrigerator"]) || function == "get_signal" {
        return Wait::Frozen;
    }
    if state == 'D' {
        return Wait::Disk;
    }
    if let Some(wait) = call.as_ref().and_then(|call| by_call(pid, call)) {
        return wait;
    }
    let call_is_shown = syscall.is_some();
    match from_syscall(pid, folder, syscall) {
        // Where the call is hidden, a sleeping thread may show no function either.
        Some(Blocked::Nothing) if call_is_shown => Wait::Runs,
        Some(Blocked::On(fds)) => match call.as_ref().filter(|call| is_poll(call.number)) {
            // Without descriptors it is a sleep.
            Some(call) if fds.is_empty() && is_timed(call) => {
                Wait::Time { ns: limit_ns(pid, call), is_rest: false }
            }
            Some(call) => Wait::Poll { fds, timed: is_timed(call) },
            None => Wait::Stream(fds),
        },
        Some(Blocked::Children) => Wait::Child(None),
        Some(Blocked::Time) => {
            Wait::Time { ns: call.as_ref().and_then(|call| limit_ns(pid, call)), is_rest: false }
        }
        // Where the arguments are hidden, the function says what kind of wait it is.
        _ if call.is_none() => by_function(pid, &function),
        _ => Wait::Other,
    }
}

fn by_call(pid: i32, call: &Call) -> Option<Wait> {
    let fd = |at: usize| call.argument(at) as i32;
    Some(match call.number {
        libc::SYS_flock => Wait::Lock { fd: fd(0) },
        libc::SYS_fcntl if [libc::F_SETLKW, libc::F_OFD_SETLKW].contains(&fd(1)) => Wait::Lock { fd: fd(0) },
        libc::SYS_connect => {
            Wait::Connect { fd: fd(0), to: address(pid, call.argument(1), call.argument(2)) }
        }
        libc::SYS_sendto if call.argument(4) != 0 => {
            Wait::Connect { fd: fd(0), to: address(pid, call.argument(4), call.argument(5)) }
        }
        libc::SYS_accept | libc::SYS_accept4 => Wait::Accept { fd: fd(0) },
        libc::SYS_msgsnd | libc::SYS_msgrcv => {
            Wait::Queue { queue: Queue::SystemV(fd(0)), sends: call.number == libc::SYS_msgsnd }
        }
        libc::SYS_mq_timedsend | libc::SYS_mq_timedreceive => {
            Wait::Queue { queue: Queue::Posix(fd(0)), sends: call.number == libc::SYS_mq_timedsend }
        }
        libc::SYS_semop | libc::SYS_semtimedop => Wait::Semaphore {
            id: fd(0),
            operations: operations(pid, call.argument(1), call.argument(2)),
            timed: call.number == libc::SYS_semtimedop && call.argument(3) != 0,
        },
        libc::SYS_futex if FUTEX_WAITS.contains(&(call.argument(1) & FUTEX_COMMAND)) => Wait::Futex {
            address: call.argument(0),
            is_private: call.argument(1) & FUTEX_PRIVATE != 0,
            timed: call.argument(3) != 0,
        },
        libc::SYS_wait4 => Wait::Child(Some(fd(0)).filter(|child| *child > 0)),
        libc::SYS_waitid => Wait::Child(Some(fd(1)).filter(|_| call.argument(0) == u64::from(libc::P_PID))),
        libc::SYS_nanosleep => Wait::Time { ns: duration(pid, call.argument(0)), is_rest: false },
        libc::SYS_clock_nanosleep => {
            let is_rest = fd(1) & libc::TIMER_ABSTIME != 0;
            let ns = duration(pid, call.argument(2));
            let until = |ns: u64| Some(ns.saturating_sub(clock_ns(fd(0))?));
            Wait::Time { ns: if is_rest { ns.and_then(until) } else { ns }, is_rest }
        }
        libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => Wait::Signal,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pause => Wait::Signal,
        _ => return None,
    })
}

fn is_poll(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    let old = [libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait].contains(&number);
    #[cfg(not(target_arch = "x86_64"))]
    let old = false;
    old || [libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2]
        .contains(&number)
}

/// Whether it ends by itself: an argument of milliseconds that is not negative, or a pointer to a time.
fn is_timed(call: &Call) -> bool {
    #[cfg(target_arch = "x86_64")]
    match call.number {
        libc::SYS_poll => return call.argument(2) as i32 >= 0,
        libc::SYS_epoll_wait => return call.argument(3) as i32 >= 0,
        libc::SYS_select => return call.argument(4) != 0,
        _ => {}
    }
    match call.number {
        libc::SYS_epoll_pwait => call.argument(3) as i32 >= 0,
        libc::SYS_epoll_pwait2 => call.argument(3) != 0,
        libc::SYS_ppoll => call.argument(2) != 0,
        libc::SYS_pselect6 => call.argument(4) != 0,
        _ => false,
    }
}

/// The time after which poll(2) or select(2) end by themselves.
fn limit_ns(pid: i32, call: &Call) -> Option<u64> {
    match call.number {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => u64::try_from(call.argument(2) as i32).ok().map(|ms| ms * 1_000_000),
        libc::SYS_ppoll => duration(pid, call.argument(2)),
        libc::SYS_pselect6 => duration(pid, call.argument(4)),
        _ => None,
    }
}

/// An open(2) that waits: the path, and for what it opens. Without the right to read the arguments the path is not known.
fn open(pid: i32, call: Option<&Call>, is_fifo: bool) -> Wait {
    let (path_at, flags_at) = match call.map(|call| call.number) {
        Some(libc::SYS_openat) => (1, 2),
        #[cfg(target_arch = "x86_64")]
        Some(libc::SYS_open | libc::SYS_creat) => (0, 1),
        _ => {
            return if is_fifo { Wait::OpenFifo { path: None, writes: None } } else { Wait::Lock { fd: -1 } };
        }
    };
    if !is_fifo {
        return Wait::Lock { fd: -1 };
    }
    let (path, flags) =
        call.map_or((None, 0), |call| (text(pid, call.argument(path_at)), call.argument(flags_at) as i32));
    let path = path.map(|path| absolute(pid, &path));
    Wait::OpenFifo { path, writes: Some(flags & libc::O_ACCMODE == libc::O_WRONLY) }
}

/// A text of a process's memory, up to its first zero. Its last page may be the last that is mapped.
fn text(pid: i32, address: u64) -> Option<String> {
    let to_page_end = 4096 - address % 4096;
    let bytes = memory(pid, address, TEXT_BYTES_MAX.min(to_page_end))
        .map(|bytes| (to_page_end < TEXT_BYTES_MAX, bytes))?;
    let (more, mut bytes) = bytes;
    if more && !bytes.contains(&0) {
        bytes.extend(memory(pid, address + to_page_end, TEXT_BYTES_MAX).unwrap_or_default());
    }
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// A socket's address in a process's memory.
fn address(pid: i32, at: u64, length: u64) -> Option<Address> {
    let bytes = memory(pid, at, length.min(TEXT_BYTES_MAX))?;
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let rest = bytes.get(UNIX_PATH_AT..)?;
    if [libc::AF_INET, libc::AF_INET6].contains(&family) {
        let port = u16::from_be_bytes(*rest.first_chunk()?);
        let address = match family == libc::AF_INET {
            true => IpAddr::from(*bytes.get(4..)?.first_chunk::<4>()?),
            false => IpAddr::from(*bytes.get(8..)?.first_chunk::<16>()?),
        };
        return Some(Address::Inet(SocketAddr::new(address.to_canonical(), port)));
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match rest {
        _ if family != libc::AF_UNIX => None,
        [0, name @ ..] => Some(Address::Unix(format!("@{}", text(name)))),
        name => Some(Address::Unix(text(name.split(|byte| *byte == 0).next()?))),
    }
}

/// Those of semop(2): `struct sembuf` has a number, a change and flags.
fn operations(pid: i32, address: u64, count: u64) -> Vec<(u16, i16)> {
    let bytes = memory(pid, address, count.min(OPERATIONS_MAX) * 6).unwrap_or_default();
    let one = |bytes: &[u8]| {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        (number(0), number(2).cast_signed())
    };
    bytes.chunks_exact(6).map(one).collect()
}

/// The time of a clock now; `None` of one that counts CPU time.
fn clock_ns(clock: i32) -> Option<u64> {
    match clock {
        libc::CLOCK_MONOTONIC => Some(model::monotonic_ns()),
        libc::CLOCK_REALTIME => Some(UNIX_EPOCH.elapsed().ok()?.as_nanos() as u64),
        _ => None,
    }
}

/// The time of a `struct timespec`.
fn duration(pid: i32, address: u64) -> Option<u64> {
    let bytes = memory(pid, address, 16)?;
    let number = |at: usize| Some(i64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    u64::try_from(number(0)?.checked_mul(1_000_000_000)?.checked_add(number(8)?)?).ok()
}
