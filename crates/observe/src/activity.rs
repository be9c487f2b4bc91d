//! What the processes of a stage do, seen from outside (proc(5)): computing, queueing for a CPU, waiting for a disk, asleep.

use nix::time::ClockId;
use nix::unistd::Pid;
use process::proc::{self, Stat};

/// A process that computed or queued for a CPU for less than this share of the time was idle.
const IDLE_SHARE: f64 = 0.5;

/// Totals and the current state of one process.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// CPU time.
    pub cpu_ns: u64,
    /// CPU time of children that have ended and were waited for.
    pub(crate) children_cpu_ns: u64,
    /// Time in the run queue, ready but without a CPU.
    pub queued_ns: u64,
    /// One of the threads is in state R: it runs or waits for a CPU. The kernel adds that wait to the counter only when it ends.
    pub is_ready: bool,
    /// It waits for a disk.
    pub at_disk: bool,
    /// It was stopped by a signal.
    pub is_stopped: bool,
    /// The number of threads.
    pub threads: u64,
}

impl Activity {
    /// The activity of one process. `stat` was just read; `threads` are the folders of its threads, and `queued_ns` is called if there is one.
    pub(crate) fn read(pid: i32, stat: &Stat, threads: &[String], queued_ns: impl FnOnce() -> u64) -> Self {
        let ticks_per_s = rustix::param::clock_ticks_per_second();
        let mut activity = Self {
            cpu_ns: cpu_time_ns(pid).unwrap_or(0),
            children_cpu_ns: stat.children_cpu_ticks * 1_000_000_000 / ticks_per_s,
            queued_ns: 0,
            is_ready: stat.state == 'R',
            at_disk: stat.state == 'D',
            is_stopped: stat.state == 'T',
            threads: stat.threads,
        };
        if stat.threads > 1 {
            for thread in threads {
                let schedstat = proc::read_short_file(&format!("{thread}/schedstat"));
                activity.queued_ns += schedstat.map_or(0, |bytes| queued_from(&bytes));
                activity.is_ready |= Stat::at(thread).is_some_and(|stat| stat.state == 'R');
            }
        } else {
            activity.queued_ns = queued_ns();
        }
        activity
    }
}

/// What processes did between two samples, as shares of the time between.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Slice {
    /// The time between.
    pub ns: f64,
    /// Computing, 1 at the most.
    pub cpu: f64,
    /// The same of children that have ended since, as far as it was not seen before.
    pub(crate) children_cpu: f64,
    /// Ready to run without a CPU.
    pub queued: f64,
    /// One of them waits for a disk now.
    pub at_disk: bool,
    /// One of them is stopped now.
    pub is_stopped: bool,
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

    /// What a process did from one sample to the next, `ns` later.
    pub fn between(last: &Activity, now: &Activity, ns: u64) -> Self {
        let share = |part: u64| (part as f64 / ns.max(1) as f64).min(1.0);
        let cpu = share(now.cpu_ns.saturating_sub(last.cpu_ns));
        let queued = share(now.queued_ns.saturating_sub(last.queued_ns));
        // The kernel counts a wait for a CPU when it ends. One that slept at the last sample may have become ready just now.
        let waits_on = ns > 0 && last.is_ready && now.is_ready && cpu + queued == 0.0;
        let queued = if waits_on { 1.0 } else { queued };
        let children_cpu = share(now.children_cpu_ns.saturating_sub(last.children_cpu_ns));
        let (at_disk, is_stopped, is_ready) = (now.at_disk, now.is_stopped, now.is_ready);
        let slice = Self { ns: ns as f64, cpu, queued, at_disk, is_stopped, is_ready, ..Self::default() };
        Self { children_cpu, ..slice }.bounded()
    }

    /// What several processes did together; `with_children`: what their ended children computed is theirs, too.
    pub(crate) fn of_all(slices: impl Iterator<Item = Self>, with_children: bool) -> Self {
        let all = slices.fold(Self::default(), |all, one| Self {
            ns: all.ns.max(one.ns),
            cpu: all.cpu + one.cpu + if with_children { one.children_cpu } else { 0.0 },
            children_cpu: 0.0,
            queued: all.queued + one.queued,
            at_disk: all.at_disk || one.at_disk,
            is_stopped: all.is_stopped || one.is_stopped,
            is_ready: all.is_ready || one.is_ready,
            idle: false,
        });
        all.bounded()
    }

    fn bounded(self) -> Self {
        let cpu = self.cpu.min(1.0);
        let queued = self.queued.min(1.0 - cpu);
        Self { cpu, queued, idle: cpu + queued < IDLE_SHARE && !self.at_disk && !self.is_ready, ..self }
    }
}

/// CPU time of all threads of a process, to the nanosecond (clock_getcpuclockid(3)).
pub(crate) fn cpu_time_ns(pid: i32) -> Option<u64> {
    let time = ClockId::pid_cpu_clock_id(Pid::from_raw(pid)).and_then(ClockId::now).ok()?;
    Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Time that a thread spent in the run queue, in nanoseconds, from the bytes of its `schedstat`.
pub(crate) fn queued_from(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// `VmHWM` of /proc/PID/status, in bytes.
pub fn peak_memory(pid: i32) -> Option<u64> {
    let peak = proc::field_value(&format!("/proc/{pid}/status"), "VmHWM")?;
    Some(peak.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Whether a stage waits for its standard input; the most certain answer first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StdinWait {
    /// It does.
    Certain,
    /// It waits for something, and its standard input may be among it (poll(2) and its like).
    Possible,
    /// It does not.
    No,
}
