//! Waits for a shell or a program that was started. Signals to this process are passed on to it, and if it is stopped, this process stops, too.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::signal::{
    Signal::{self, SIGCHLD, SIGCONT, SIGHUP, SIGKILL, SIGSTOP},
    raise,
};
use nix::unistd::{Pid as Number, getpgid, getpgrp};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions, getpid, pidfd_open, set_child_subreaper, waitpid};

use crate::poll::sleep_on;
use crate::proc::{Stat, children};
use crate::reap::{end_usage, reap, wait4};
use crate::signals::{self, Inbox, ReceivedSignal};

/// The processes that get a signal that came to this process alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The child, which decides what it means for its jobs: `hosepipe sh`.
    Child,
    /// The child and all that it started, so that nothing is left of a run: a shell does not pass signals on.
    AllBelow,
    /// The same, for a trial of hosepipe's own: a second signal that requests the end kills them at once.
    Trial,
}

/// What a child that has ended used, with the processes that it waited for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// The largest resident set of one of them.
    pub max_rss_bytes: u64,
    /// Their CPU time in user mode.
    pub user_ns: u64,
    /// Their CPU time in the kernel.
    pub system_ns: u64,
}

/// Longest wait for the end of orphans that were asked to end.
const ORPHANS_WAIT: Duration = Duration::from_millis(500);
/// Longest wait for the end of killed processes, on a busy machine.
const KILLED_WAIT: Duration = Duration::from_secs(5);
const POLL_PAUSE: Duration = Duration::from_millis(2);

/// Waits for a child. Dropped before the child has ended, it kills the child and all that it started.
pub struct Supervisor {
    inbox: Inbox,
    reach: Reach,
    child: Option<(Pid, OwnedFd)>,
    /// The first signal that requested the end, and when it came.
    asked_to_end: Option<(Signal, Instant)>,
    /// When all is killed that has not ended by then, as a further signal requested.
    kill_at: Option<Instant>,
    /// Processes that were asked to end, and this process's children at that time.
    asked: Vec<i32>,
    children: Vec<i32>,
    used: Used,
}

impl Supervisor {
    /// Begins to receive signals; to be made before the program is started, so that no signal is lost.
    pub fn new(reach: Reach) -> io::Result<Self> {
        let (child, asked_to_end, kill_at, asked, children) = Default::default();
        let (inbox, used) = (Inbox::open()?, Used::default());
        Ok(Self { inbox, reach, child, asked_to_end, kill_at, asked, children, used })
    }

    /// What the child that has ended has used.
    pub fn used(&self) -> Used {
        self.used
    }

    /// Sets the child that is waited for. If it cannot be watched, it is killed.
    ///
    /// # Errors
    /// What pidfd_open(2) answered.
    pub fn watch(&mut self, child: i32) -> io::Result<()> {
        let child = Pid::from_raw(child).ok_or(Errno::SRCH)?;
        let opened = pidfd_open(child, PidfdFlags::empty()).inspect_err(|_| end(child))?;
        self.child = Some((child, opened));
        Ok(())
    }

    /// Whether the child ends within this time. `false` at once if a signal comes, which [`Supervisor::wait`] passes on.
    ///
    /// # Errors
    /// What poll(2) answered.
    pub fn ends_within(&self, time: Duration) -> io::Result<bool> {
        let (_, ended) = self.child.as_ref().ok_or(Errno::CHILD)?;
        let mut fds = [PollFd::new(ended, PollFlags::IN), PollFd::new(&self.inbox, PollFlags::IN)];
        sleep_on(&mut fds, Some(time))?;
        Ok(!fds[0].revents().is_empty())
    }

    /// Waits for the child to end; meanwhile `look` is called repeatedly, and returns the longest time until its next call. Signals that came to
    /// this process alone are passed on. Returns how the child ended, and the first signal that requested the end. If `server` ends before the
    /// child does, all that the child started is killed: its data was cut short, and that must not look like a normal end.
    ///
    /// # Errors
    /// An error of poll(2) or waitpid(2); `BrokenPipe` if the server has ended.
    pub fn wait(
        &mut self,
        server: Option<BorrowedFd<'_>>,
        look: &mut dyn FnMut() -> Option<Duration>,
    ) -> io::Result<(ExitStatus, Option<i32>)> {
        loop {
            let (child, ended) = self.child.as_ref().ok_or(Errno::CHILD)?;
            let child = *child;
            match wait4(child, libc::WNOHANG | libc::WUNTRACED)? {
                Some((status, usage)) if status.stopped_signal().is_none() => {
                    self.child = None;
                    let model::EndUsage { user_ns, system_ns, .. } = end_usage(&usage);
                    self.used = Used { max_rss_bytes: usage.ru_maxrss as u64 * 1024, user_ns, system_ns };
                    self.end_orphans();
                    return Ok((status, self.asked_to_end.map(|(signal, _)| signal as i32)));
                }
                Some(_) if stopped_alone(child) => {
                    // Stops this process until it gets a SIGCONT.
                    raise(SIGSTOP)?;
                    signals::send_to_one(child.as_raw_pid(), SIGCONT);
                }
                _ => {}
            }
            // SIGCHLD is not relied on: a thread that does not block it may take it.
            let mut fds = vec![PollFd::new(&self.inbox, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
            fds.extend(server.map(|server| PollFd::from_borrowed_fd(server, PollFlags::IN)));
            sleep_on(&mut fds, look().into_iter().chain(self.left()).min())?;
            if fds.get(2).is_some_and(|server| !server.revents().is_empty()) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if self.left().is_some_and(|left| left.is_zero()) {
                signals::send(child.as_raw_pid(), SIGKILL);
                self.kill_at = None;
            }
            while let Some(came) = self.inbox.next() {
                if self.asked_to_end.is_none() || self.is_from_outside(came, child) {
                    self.note(came);
                }
                self.pass_on(came, child);
            }
        }
    }

    /// After the child has ended: waits until another process has written to `data`, or has closed it. `false` if a second signal requested the end
    /// of this program before that.
    ///
    /// # Errors
    /// What poll(2) answered.
    pub fn wait_for_data(&mut self, data: BorrowedFd<'_>) -> io::Result<bool> {
        loop {
            let mut fds =
                [PollFd::new(&self.inbox, PollFlags::IN), PollFd::from_borrowed_fd(data, PollFlags::IN)];
            sleep_on(&mut fds, self.left())?;
            if !fds[1].revents().is_empty() {
                return Ok(true);
            }
            self.note_all();
            if self.left().is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
        }
    }

    /// Notes all signals that came.
    fn note_all(&mut self) {
        while let Some(came) = self.inbox.next() {
            self.note(came);
        }
    }

    /// Notes a signal. A further one that requests the end sets when that comes.
    fn note(&mut self, came: ReceivedSignal) {
        let Some((_, first)) = self.asked_to_end else {
            self.asked_to_end = came.ends.then(|| (came.signal, Instant::now()));
            return;
        };
        if let Some(later) = signals::ends_after(came.signal, first.elapsed()) {
            let at = Instant::now() + if self.reach == Reach::Trial { Duration::ZERO } else { later };
            self.kill_at = Some(self.kill_at.map_or(at, |before| before.min(at)));
        }
    }

    /// The time until the end that a further signal has requested.
    fn left(&self) -> Option<Duration> {
        self.kill_at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether a signal may be a further request of the end of the child and all below it. What a key at a terminal means is for the user's
    /// program to decide, as in a shell.
    fn is_from_outside(&self, came: ReceivedSignal, child: Pid) -> bool {
        match self.reach {
            Reach::Child => false,
            Reach::AllBelow => came.sender.is_some_and(|pid| !signals::is_below(pid, child.as_raw_pid())),
            Reach::Trial => true,
        }
    }

    fn pass_on(&mut self, came: ReceivedSignal, child: Pid) {
        let pid = child.as_raw_pid();
        let to_the_group = match came.sender {
            // When a terminal is closed, only the leader of the session gets SIGHUP (tty_ioctl(4), TIOCNOTTY).
            None => came.signal != SIGHUP,
            // If the shell below hosepipe sends it, it sends it to the whole group (`kill -INT 0`).
            Some(sender) => signals::is_below(sender, pid),
        };
        if came.signal == SIGCHLD || (to_the_group && is_in_our_group(child)) {
            return;
        }
        match self.reach {
            Reach::AllBelow | Reach::Trial if came.ends => {
                // A process that the child starts just now becomes a child of ours once the child has ended.
                let _ = set_child_subreaper(Some(getpid()));
                if self.asked.is_empty() {
                    self.children = children(getpid().as_raw_pid());
                }
                self.asked.extend(signals::send(pid, came.signal));
            }
            _ => signals::send_to_one(pid, came.signal),
        }
    }

    /// Waits for some time for processes whose parent has ended. Those that were being started when the others were asked to end are asked now.
    fn end_orphans(&mut self) {
        let began = Instant::now();
        let Some((signal, _)) = self.asked_to_end.filter(|_| !self.asked.is_empty()) else { return };
        while began.elapsed() < ORPHANS_WAIT {
            // The second signal of timeout(1), which would look like a later request if it was read after this wait.
            self.note_all();
            let mut orphans = reap_children_except(&self.children);
            if orphans.is_empty() {
                return;
            }
            orphans.retain(|pid| !self.asked.contains(pid));
            self.asked.extend(orphans.into_iter().flat_map(|orphan| signals::send(orphan, signal)));
            std::thread::sleep(POLL_PAUSE);
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Some((child, _)) = self.child.take() {
            end(child);
        }
        // timeout(1) sends its signal twice, to its child and to its group. The second one, blocked until the inbox is closed, must not end this
        // process before it has shown what it saw.
        while !self.asked.is_empty() && self.inbox.next().is_some() {}
    }
}

/// From now on orphaned descendants become children of this process. Returns the children that it already has.
///
/// # Errors
/// What prctl(2) answered.
pub fn adopt_orphans() -> io::Result<Vec<i32>> {
    set_child_subreaper(Some(getpid()))?;
    Ok(children(getpid().as_raw_pid()))
}

/// Reaps the children of this process that have ended, and returns those that still run; ignores those in `kept`.
pub fn reap_children_except(kept: &[i32]) -> Vec<i32> {
    let mut orphans = children(getpid().as_raw_pid());
    orphans.retain(|pid| !kept.contains(pid) && !has_ended(*pid));
    orphans
}

/// Kills the children of this process except those in `kept`, with all that they have started.
pub fn kill_children_except(kept: &[i32]) {
    let began = Instant::now();
    while began.elapsed() < KILLED_WAIT {
        let orphans = reap_children_except(kept);
        if orphans.is_empty() {
            return;
        }
        orphans.iter().for_each(|orphan| drop(signals::send(*orphan, SIGKILL)));
        std::thread::sleep(POLL_PAUSE);
    }
}

/// Reaps a child of this process if it has ended; returns whether it has.
fn has_ended(pid: i32) -> bool {
    matches!(waitpid(Pid::from_raw(pid), WaitOptions::NOHANG), Ok(Some(_)))
}

fn end(child: Pid) {
    signals::send(child.as_raw_pid(), SIGKILL);
    // Only this process waits for it.
    let _ = reap(child);
}

/// Uses nix: a process group from outside of this PID namespace has the number 0 here, which rustix takes for impossible.
fn is_in_our_group(child: Pid) -> bool {
    getpgid(Some(Number::from_raw(child.as_raw_pid()))) == Ok(getpgrp())
}

/// Whether a stopped child was stopped alone. If it is in the group of this process, both may have been stopped and continued together: then
/// it runs again within a short time.
fn stopped_alone(child: Pid) -> bool {
    const TOGETHER: Duration = Duration::from_millis(20);
    if is_in_our_group(child) {
        std::thread::sleep(TOGETHER);
    }
    Stat::of(child.as_raw_pid()).is_some_and(|stat| stat.state == 'T')
}
