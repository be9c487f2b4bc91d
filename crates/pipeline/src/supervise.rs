//! Waiting for stages: passes signals on, and takes each one's account before it is reaped.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::signals::{self, Inbox};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It left with this status.
    Left(i32),
    /// This signal ended it.
    Killed(i32),
}

impl Ending {
    /// As a shell shows it: 128 and the signal's number for one that was killed.
    pub fn status(self) -> i32 {
        match self {
            Self::Left(status) => status,
            Self::Killed(signal) => 128 + signal,
        }
    }
}

/// What a process used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// How it ended.
    pub(crate) ending: Ending,
    /// From its start until it was seen to have ended.
    pub(crate) wall: Duration,
    /// CPU time in user mode, its waited-for children included (wait4(2)).
    pub(crate) user: Duration,
    /// CPU time in the kernel.
    pub(crate) system: Duration,
    /// The largest resident memory of it, or of a child of it, in bytes; counts this program's own where it
    /// was larger, because a new program begins in our memory (vfork(2)).
    pub(crate) max_rss_bytes: u64,
    /// What it read and wrote through system calls, children included; `None` where the kernel does not tell us
    /// (only root is told of a process that has ended, proc(5)).
    pub(crate) io: Option<Io>,
}

/// Bytes through read(2)- and write(2)-like calls; splice(2) and sendfile(2) are not among them (proc_pid_io(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Io {
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// Stands for the number of a process where there was none; never a number to send a signal to.
const NO_PROCESS: i32 = 0;

/// A process that was started here.
#[derive(Debug)]
pub(crate) struct Child {
    /// Its number.
    pub(crate) pid: i32,
    /// When it was started.
    pub(crate) started: Instant,
    /// Its account, once it has ended.
    pub(crate) account: Option<Account>,
    /// The signal that stopped it, until it goes on.
    pub(crate) stopped_by: Option<i32>,
}

/// The stages of one pipeline that have been started.
pub(crate) struct Supervisor {
    inbox: Inbox,
    children: Vec<Child>,
    accounting: bool,
    /// Whether stages have a process group of their own, which alone is sent what the terminal sends.
    job_control: bool,
    /// The first signal that asked the pipeline to end.
    asked_to_end: Option<i32>,
}

impl Supervisor {
    /// Begins to listen; with `accounting`, bytes read and written are asked for as each stage ends.
    ///
    /// # Errors
    /// No descriptor is free.
    pub(crate) fn new(accounting: bool) -> io::Result<Self> {
        let inbox = Inbox::open()?;
        Ok(Self { inbox, children: Vec::new(), accounting, job_control: false, asked_to_end: None })
    }

    /// The same for stages with a process group of their own: they can be stopped and go on.
    pub(crate) fn with_job_control(mut self, job_control: bool) -> Self {
        self.job_control = job_control;
        self
    }

    /// Takes processes under its care that another supervisor has let go.
    pub(crate) fn take_up(&mut self, children: Vec<Child>) {
        self.children = children;
    }

    /// Lets its processes go, running or stopped as they are.
    pub(crate) fn let_go(mut self) -> Vec<Child> {
        std::mem::take(&mut self.children)
    }

    /// Takes a process that was just started under its care.
    pub(crate) fn adopt(&mut self, pid: i32) {
        self.children.push(Child { pid, started: Instant::now(), account: None, stopped_by: None });
    }

    /// Takes in a stage that is over already and needed no process.
    pub(crate) fn note(&mut self, status: i32) {
        let account = Account {
            ending: Ending::Left(status),
            wall: Duration::ZERO,
            user: Duration::ZERO,
            system: Duration::ZERO,
            max_rss_bytes: 0,
            io: None,
        };
        let started = Instant::now();
        self.children.push(Child { pid: NO_PROCESS, started, account: Some(account), stopped_by: None });
    }

    /// The processes, in the order in which they were adopted.
    pub(crate) fn children(&self) -> &[Child] {
        &self.children
    }

    /// Process numbers and accounts of all that have ended.
    pub(crate) fn accounts(&self) -> Vec<(Option<i32>, Account)> {
        let pid = |child: &Child| Some(child.pid).filter(|pid| *pid != NO_PROCESS);
        self.children.iter().filter_map(|child| Some((pid(child), child.account.clone()?))).collect()
    }

    /// The first signal that asked the pipeline to end. A key at the terminal reaches us only through what it did to
    /// the stages, where they have a process group of their own.
    pub(crate) fn asked_to_end(&self) -> Option<i32> {
        let by_key = self.children.iter().filter(|_| self.job_control).find_map(|child| {
            match child.account.as_ref()?.ending {
                Ending::Killed(signal @ (libc::SIGINT | libc::SIGQUIT)) => Some(signal),
                _ => None,
            }
        });
        self.asked_to_end.or(by_key)
    }

    /// Whether every process has ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.children.iter().all(|child| child.account.is_some())
    }

    /// The signals that stopped the processes, where every one that has not ended is stopped; else none.
    pub(crate) fn all_stopped_by(&self) -> Vec<i32> {
        let living = || self.children.iter().filter(|child| child.account.is_none());
        let signals: Vec<i32> = living().filter_map(|child| child.stopped_by).collect();
        if signals.len() == living().count() { signals } else { Vec::new() }
    }

    /// Lets every stopped process go on.
    pub(crate) fn go_on(&mut self) {
        self.pass_on(libc::SIGCONT);
        for child in &mut self.children {
            child.stopped_by = None;
        }
    }

    /// Notes who has ended or stopped, without waiting.
    ///
    /// # Errors
    /// What wait4(2) answered.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        self.reap_one_by_one()?;
        self.note_stops();
        Ok(())
    }

    /// Waits for news, at most `timeout` (for ever where there is none), and acts on it.
    ///
    /// # Errors
    /// What poll(2) or wait4(2) answered.
    pub(crate) fn attend(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut [PollFd::new(&self.inbox.as_fd(), PollFlags::IN)], timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut somebody_ended = false;
        while let Some(came) = self.inbox.next() {
            if came.signal == libc::SIGCHLD {
                somebody_ended = true;
                continue;
            }
            self.asked_to_end.get_or_insert(came.signal);
            if !came.to_the_group {
                self.pass_on(came.signal);
            }
        }
        if somebody_ended {
            self.reap()?;
            self.note_stops();
        }
        Ok(())
    }

    /// Sends a signal to every process that has not ended.
    pub(crate) fn pass_on(&self, signal: i32) {
        for child in self.children.iter().filter(|child| child.account.is_none()) {
            signals::send(child.pid, signal);
        }
    }

    /// Takes the accounts of all that have ended: one SIGCHLD may stand for many.
    fn reap(&mut self) -> io::Result<()> {
        while let Some(pid) = next_ended(libc::P_ALL, 0) {
            match self.children.iter().position(|child| child.pid == pid && child.account.is_none()) {
                Some(index) => self.settle(index)?,
                // Somebody else's child stands before ours in the queue: look at ours one by one.
                None => return self.reap_one_by_one(),
            }
        }
        Ok(())
    }

    fn note_stops(&mut self) {
        let job_control = self.job_control;
        for child in self.children.iter_mut().filter(|child| job_control && child.account.is_none()) {
            if let Some(stopped_by) = next_stop(child.pid) {
                child.stopped_by = stopped_by;
            }
        }
    }

    fn reap_one_by_one(&mut self) -> io::Result<()> {
        for index in 0..self.children.len() {
            let child = &self.children[index];
            if child.account.is_none() && next_ended(libc::P_PID, child.pid).is_some() {
                self.settle(index)?;
            }
        }
        Ok(())
    }

    /// Takes the account of a child that has ended, and reaps it.
    fn settle(&mut self, index: usize) -> io::Result<()> {
        let child = &mut self.children[index];
        let io = if self.accounting { read_io(child.pid) } else { None };
        let (ending, usage) = reap(child.pid)?;
        child.account = Some(Account {
            ending,
            wall: child.started.elapsed(),
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
            max_rss_bytes: usage.ru_maxrss as u64 * 1024,
            io,
        });
        Ok(())
    }
}

impl Drop for Supervisor {
    /// Nothing is left behind: whatever still runs when its pipeline is given up is ended and waited for.
    fn drop(&mut self) {
        self.pass_on(libc::SIGKILL);
        for child in self.children.iter().filter(|child| child.account.is_none()) {
            let mut status = 0;
            // SAFETY: waits for a child of ours.
            while unsafe { libc::waitpid(child.pid, &raw mut status, 0) } < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

/// A child that has ended, of all or of one; leaves it to be waited for.
fn next_ended(of: libc::idtype_t, pid: i32) -> Option<i32> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the buffer is of the type waitid fills and valid as zeros; si_pid is set, or still 0, on success.
    let (answer, ended) = unsafe {
        (libc::waitid(of, pid as libc::id_t, info.as_mut_ptr(), options), info.assume_init().si_pid())
    };
    (answer == 0 && ended != 0).then_some(ended)
}

/// What stopped a child, or `Some(None)` where it goes on again; `None` where there is no news of it.
fn next_stop(pid: i32) -> Option<Option<i32>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WSTOPPED | libc::WCONTINUED | libc::WNOHANG;
    // SAFETY: as in `next_ended`; si_status is set where si_pid is.
    let (answer, info) = unsafe {
        (libc::waitid(libc::P_PID, pid as libc::id_t, info.as_mut_ptr(), options), info.assume_init())
    };
    // SAFETY: waitid has filled both fields, or left them 0.
    let (child, signal) = unsafe { (info.si_pid(), info.si_status()) };
    match (answer, child, info.si_code) {
        (0, 0, _) | (-1, ..) => None,
        (_, _, libc::CLD_STOPPED | libc::CLD_TRAPPED) => Some(Some(signal)),
        _ => Some(None),
    }
}

/// Reaps a child that has ended.
fn reap(pid: i32) -> io::Result<(Ending, libc::rusage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both buffers are of the types wait4 fills, and valid as zeros.
    let (answer, usage) =
        unsafe { (libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()), usage.assume_init()) };
    if answer != pid {
        return Err(io::Error::last_os_error());
    }
    let ending = if libc::WIFSIGNALED(status) {
        Ending::Killed(libc::WTERMSIG(status))
    } else {
        Ending::Left(libc::WEXITSTATUS(status))
    };
    Ok((ending, usage))
}

/// `rchar` and `wchar` of /proc/PID/io.
pub(crate) fn read_io(pid: i32) -> Option<Io> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let figure = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse().ok())
    };
    Some(Io { read_bytes: figure("rchar")?, written_bytes: figure("wchar")? })
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
}
