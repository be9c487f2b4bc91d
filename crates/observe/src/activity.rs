//! What the processes of a stage do, seen from outside (proc(5)): computing, queueing for a CPU, waiting for a disk, asleep.

use nix::time::ClockId;
use nix::unistd::Pid;
use process::proc::{self, Stat};

use crate::waits::{self, Waits, pass_time};

/// The most generations and processes of a stage that are followed.
const DEPTH_MAX: usize = 4;
const PROCESSES_MAX: usize = 64;
/// A process that computed or queued for a CPU for less than this share of the time was idle.
const IDLE_SHARE: f64 = 0.5;

/// Totals and the current state of a stage's processes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Activity {
    /// CPU time, with that of children that have ended and were waited for.
    pub cpu_ns: u64,
    /// Time of living processes in the run queue, ready but without a CPU.
    pub queued_ns: u64,
    /// One of their threads is in state R: it runs or waits for a CPU. The kernel adds that wait to the counter only when it ends.
    pub is_ready: bool,
    /// One of them waits for a disk.
    pub at_disk: bool,
    /// Their PIDs.
    pub pids: Vec<i32>,
    /// The number of their threads.
    pub threads: u64,
}

/// Samples a process and, `with_children`, its descendants except those in `but`. `None` if it has gone.
pub fn sample(pid: i32, with_children: bool, but: &[i32]) -> Option<Activity> {
    let mut activity = Activity::default();
    add(pid, if with_children { DEPTH_MAX } else { 0 }, but, &mut activity)?;
    Some(activity)
}

fn add(pid: i32, depth: usize, but: &[i32], activity: &mut Activity) -> Option<()> {
    let stat = Stat::of(pid)?;
    add_alone(pid, &stat, || queued_ns(&format!("/proc/{pid}")), activity);
    if depth > 0 {
        // Of children that have ended and were waited for.
        activity.cpu_ns += stat.children_cpu_ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second();
        for child in proc::children(pid) {
            if activity.pids.len() < PROCESSES_MAX && !but.contains(&child) {
                add(child, depth - 1, but, activity);
            }
        }
    }
    Some(())
}

fn add_alone(pid: i32, stat: &Stat, schedstat: impl FnOnce() -> u64, activity: &mut Activity) {
    activity.at_disk |= stat.state == 'D';
    activity.cpu_ns += cpu_time_ns(pid).unwrap_or(0);
    activity.is_ready |= stat.state == 'R';
    activity.threads += stat.threads;
    if stat.threads > 1 {
        for (_, thread) in proc::threads(pid) {
            activity.queued_ns += queued_ns(&thread);
            activity.is_ready |= Stat::at(&thread).is_some_and(|stat| stat.state == 'R');
        }
    } else {
        activity.queued_ns += schedstat();
    }
    activity.pids.push(pid);
}

/// The activity of one process without its children. `stat` was just read; `queued_ns` is called if it has one thread.
pub fn alone(pid: i32, stat: &Stat, queued_ns: impl FnOnce() -> u64) -> Activity {
    let mut activity = Activity::default();
    add_alone(pid, stat, queued_ns, &mut activity);
    activity
}

/// What processes did between two samples, as shares of the time between.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Slice {
    /// The time between.
    pub ns: f64,
    /// Computing, 1 at the most.
    pub cpu: f64,
    /// Ready to run without a CPU.
    pub queued: f64,
    /// One of them waits for a disk now.
    pub at_disk: bool,
    /// One of them runs now, or waits for nothing but a CPU.
    pub is_ready: bool,
    /// They hardly used a CPU or a disk, and do not now.
    pub idle: bool,
}

impl Slice {
    /// Whether they hardly used a CPU or a disk; unlike `idle`, they may be ready to run now.
    pub fn rests(&self) -> bool {
        self.cpu + self.queued < IDLE_SHARE && !self.at_disk
    }

    /// From one sample to the next, `ns` later.
    pub fn between(last: &Activity, now: &Activity, ns: u64) -> Self {
        let share = |part: u64| (part as f64 / ns.max(1) as f64).min(1.0);
        let cpu = share(now.cpu_ns.saturating_sub(last.cpu_ns));
        let queued = share(now.queued_ns.saturating_sub(last.queued_ns));
        let idle = cpu + queued < IDLE_SHARE && !now.at_disk && !now.is_ready;
        // The kernel counts a wait for a CPU when it ends.
        let waits_on = now.is_ready && cpu + queued == 0.0;
        let queued = if waits_on { 1.0 } else { queued.min(1.0 - cpu) };
        Self { ns: ns as f64, cpu, queued, at_disk: now.at_disk, is_ready: now.is_ready, idle }
    }
}

/// CPU time of all threads of a process, to the nanosecond (clock_getcpuclockid(3)).
pub(crate) fn cpu_time_ns(pid: i32) -> Option<u64> {
    let time = ClockId::pid_cpu_clock_id(Pid::from_raw(pid)).and_then(ClockId::now).ok()?;
    Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Time that a thread spent in the run queue, in nanoseconds; 0 if it has gone.
fn queued_ns(task: &str) -> u64 {
    proc::short(&format!("{task}/schedstat")).map_or(0, |bytes| queued_from(&bytes))
}

/// The same, from the bytes of `schedstat`.
pub fn queued_from(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// `VmHWM` of /proc/PID/status, in bytes.
pub fn peak_memory(pid: i32) -> Option<u64> {
    let peak = proc::value(&format!("/proc/{pid}/status"), "VmHWM")?;
    Some(peak.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Whether a stage waits for its standard input.
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
    let each = pids.iter().map(|pid| match waits::at(*pid, &format!("/proc/{pid}")) {
        Some(Waits::For(fds)) if fds.iter().any(|awaited| awaited.fd == 0 && awaited.reads) => Awaits::Input,
        Some(Waits::ToRead | Waits::Somewhere) => Awaits::Perhaps,
        _ => Awaits::Other,
    });
    let all: Vec<Awaits> = each.collect();
    [Awaits::Input, Awaits::Perhaps].into_iter().find(|awaits| all.contains(awaits)).unwrap_or(Awaits::Other)
}

impl Activity {
    /// Whether all these processes only wait for time to pass, or for a child that does. False if one has several threads.
    pub fn passes_time(&self) -> bool {
        if self.threads != self.pids.len() as u64 {
            return false;
        }
        let each = self.pids.iter().map(|pid| waits::at(*pid, &format!("/proc/{pid}")));
        each.collect::<Option<Vec<Waits>>>().is_some_and(|each| pass_time(each.iter()))
    }
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
        let mut seen = sample(pid, true, &[]).expect("it lives");
        while seen.cpu_ns < 50_000_000 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            seen = sample(pid, true, &[]).expect("it lives");
        }
        assert_eq!((seen.cpu_ns >= 50_000_000, seen.pids.len()), (true, 2));
        for pid in seen.pids {
            process::signals::send(pid, nix::sys::signal::Signal::SIGKILL);
        }
        shell.wait().expect("reaped");
        assert_eq!(sample(pid, true, &[]), None);
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

    #[test]
    fn who_lets_time_pass_is_told_from_who_waits() {
        for (text, passes) in [("sleep 100; :", true), ("cat; :", false), ("sleep 100 | cat", false)] {
            let mut command = Command::new("sh");
            let mut child = command.args(["-c", text]).stdin(Stdio::piped()).spawn().expect("started");
            let pid = child.id() as i32;
            let deadline = Instant::now() + Duration::from_secs(20);
            let mut seen = sample(pid, true, &[]).expect("it lives");
            while !(seen.pids.len() > 1 && seen.passes_time() == passes) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
                seen = sample(pid, true, &[]).expect("it lives");
            }
            assert_eq!(seen.passes_time(), passes, "{text}");
            for pid in seen.pids {
                process::signals::send(pid, nix::sys::signal::Signal::SIGKILL);
            }
            child.wait().expect("reaped");
        }
    }
}
