//! What the processes of a stage do, seen from outside (proc(5)): computing, queueing for a CPU, waiting for a disk, asleep.

use std::fs;

use nix::time::ClockId;
use nix::unistd::Pid;
use process::proc::{self, Stat};

use crate::call::Call;

/// How far down, and how many, processes of a stage are followed.
const DEPTH_MAX: usize = 4;
const PROCESSES_MAX: usize = 64;

/// What a stage's processes have done so far, and do now.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Activity {
    /// CPU time, of processes that were waited for too.
    pub cpu_ns: u64,
    /// Time ready to run without a CPU, of those that live.
    pub queued_ns: u64,
    /// One of their threads runs, or waits for nothing but a CPU: how long it has waited is told only when it has got one.
    pub is_ready: bool,
    /// One of them waits for a disk.
    pub at_disk: bool,
    /// Who they are.
    pub pids: Vec<i32>,
}

/// Looks at a process and, `with_children`, at those below it but these. `None` where it has gone.
pub fn of(pid: i32, with_children: bool, but: &[i32]) -> Option<Activity> {
    let mut activity = Activity::default();
    add(pid, if with_children { DEPTH_MAX } else { 0 }, but, &mut activity)?;
    Some(activity)
}

fn add(pid: i32, depth: usize, but: &[i32], activity: &mut Activity) -> Option<()> {
    let stat = Stat::of(pid)?;
    activity.at_disk |= stat.state == 'D';
    activity.cpu_ns += cpu_time_ns(pid).unwrap_or(0);
    if depth > 0 {
        // Of processes that were waited for.
        activity.cpu_ns += stat.children_cpu_ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second();
    }
    activity.is_ready |= stat.state == 'R';
    if stat.threads > 1 {
        for (_, thread) in proc::threads(pid) {
            activity.queued_ns += queued_ns(&thread);
            activity.is_ready |= Stat::at(&thread).is_some_and(|stat| stat.state == 'R');
        }
    } else {
        activity.queued_ns += queued_ns(&format!("/proc/{pid}"));
    }
    activity.pids.push(pid);
    if depth > 0 {
        for child in proc::children(pid) {
            if activity.pids.len() < PROCESSES_MAX && !but.contains(&child) {
                add(child, depth - 1, but, activity);
            }
        }
    }
    Some(())
}

/// CPU time of all threads of a process, to the nanosecond (clock_getcpuclockid(3)).
fn cpu_time_ns(pid: i32) -> Option<u64> {
    let time = ClockId::pid_cpu_clock_id(Pid::from_raw(pid)).and_then(ClockId::now).ok()?;
    Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Time that a thread was ready to run and did not; nothing of one that has gone.
fn queued_ns(task: &str) -> u64 {
    let text = fs::read_to_string(format!("{task}/schedstat")).unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// `VmHWM` of /proc/PID/status, in bytes.
pub fn peak_memory(pid: i32) -> Option<u64> {
    let peak = proc::value(&format!("/proc/{pid}/status"), "VmHWM")?;
    Some(peak.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// What a stage waits for at its standard input, as far as that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaits {
    /// Its standard input.
    Input,
    /// Something, and its standard input may be among it (poll(2) and its kin).
    Perhaps,
    /// Something else.
    Other,
}

/// Whether one of these processes, asleep, waits for its standard input.
pub fn awaits_input(pids: &[i32]) -> Awaits {
    let each = pids.iter().map(|pid| match Call::at(&format!("/proc/{pid}")) {
        Some(Call::Reads(Some(0)) | Call::Moves { from: 0, .. }) => Awaits::Input,
        Some(Call::Polls(Some(epoll))) => by_epoll(*pid, epoll),
        Some(Call::Polls(None) | Call::Reads(None)) => Awaits::Perhaps,
        _ => Awaits::Other,
    });
    let all: Vec<Awaits> = each.collect();
    [Awaits::Input, Awaits::Perhaps].into_iter().find(|awaits| all.contains(awaits)).unwrap_or(Awaits::Other)
}

/// An epoll descriptor says what it watches (proc_pid_fdinfo(5)).
fn by_epoll(pid: i32, epoll: i32) -> Awaits {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).unwrap_or_default();
    let watched = text.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next());
    if watched.into_iter().any(|fd| fd == "0") { Awaits::Input } else { Awaits::Other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn a_computing_grandchild_counts_for_its_stage() {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "sh -c 'while :; do :; done'; :"]).stdin(Stdio::null()).spawn();
        let mut shell = shell.expect("sh");
        let pid = shell.id() as i32;
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut seen = of(pid, true, &[]).expect("it lives");
        while seen.cpu_ns < 50_000_000 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            seen = of(pid, true, &[]).expect("it lives");
        }
        assert_eq!((seen.cpu_ns >= 50_000_000, seen.pids.len()), (true, 2));
        for pid in seen.pids {
            process::signals::send(pid, nix::sys::signal::Signal::SIGKILL);
        }
        shell.wait().expect("reaped");
        assert_eq!(of(pid, true, &[]), None);
    }

    #[test]
    fn a_reader_is_told_from_a_sleeper() {
        let wait = |program: &str, argument: &str| {
            let mut child =
                Command::new(program).arg(argument).stdin(Stdio::piped()).spawn().expect("started");
            let pid = child.id() as i32;
            let deadline = Instant::now() + Duration::from_secs(10);
            while awaits_input(&[pid]) == Awaits::Other && Instant::now() < deadline && program == "cat" {
                std::thread::sleep(Duration::from_millis(2));
            }
            let awaits = awaits_input(&[pid]);
            child.kill().and_then(|()| child.wait()).expect("ended");
            awaits
        };
        assert_ne!(wait("cat", "-"), Awaits::Other);
        assert_eq!(wait("sleep", "5"), Awaits::Other);
    }
}
