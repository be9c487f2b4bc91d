//! Reads processes and their threads from /proc (proc(5)).

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::LazyLock;

use model::NamedProcess;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::{ClockId, clock_gettime};

/// The bytes of a file of /proc, at most 4096. Makes few system calls, because these files are read often.
pub fn read_short_file(path: &str) -> Option<Vec<u8>> {
    read_at(&File::open(path).ok()?)
}

/// As [`read_short_file`], from a file that stays open.
pub fn read_at(file: &File) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 4096];
    let length = file.read_at(&mut bytes, 0).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

/// The entries of a folder that are numbers; none if it cannot be read, because the process has ended or is another user's.
fn numbers(folder: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Every process but this one.
pub fn other_processes() -> impl Iterator<Item = i32> {
    let own = std::process::id().cast_signed();
    numbers("/proc").filter(move |pid| *pid != own)
}

/// The descriptors of a process.
pub fn descriptors(pid: i32) -> impl Iterator<Item = i32> {
    numbers(&format!("/proc/{pid}/fd"))
}

/// The folders of a process's threads, by their numbers.
pub fn threads(pid: i32) -> impl Iterator<Item = (i32, String)> {
    numbers(&format!("/proc/{pid}/task")).map(move |thread| (thread, format!("/proc/{pid}/task/{thread}")))
}

/// The children of a thread, by its folder (proc_tid_children(5)). On a kernel without such files (CONFIG_PROC_CHILDREN) the first thread of a
/// process has the children of all its threads.
pub fn children_of_thread(folder: &str) -> Vec<i32> {
    static LISTED: LazyLock<bool> = LazyLock::new(|| Path::new("/proc/thread-self/children").exists());
    children_in(folder, *LISTED)
}

fn children_in(folder: &str, are_listed: bool) -> Vec<i32> {
    if are_listed {
        let list = fs::read_to_string(format!("{folder}/children")).unwrap_or_default();
        return list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    }
    let mut parts = folder.rsplit('/');
    let (thread, process) = (parts.next(), parts.nth(1));
    let Some(parent) = process.filter(|_| thread == process).and_then(|pid| pid.parse::<i32>().ok()) else {
        return Vec::new();
    };
    numbers("/proc").filter(|pid| Stat::of(*pid).is_some_and(|stat| stat.parent == parent)).collect()
}

/// The children of all threads of a process.
pub fn children(pid: i32) -> Vec<i32> {
    threads(pid).flat_map(|(_, folder)| children_of_thread(&folder)).collect()
}

/// Processes and what is below them, each once, the nearest first.
pub fn tree(roots: &[i32], mut children: impl FnMut(i32) -> Vec<i32>) -> Vec<i32> {
    let mut tree = roots.to_vec();
    let mut seen: HashSet<i32> = roots.iter().copied().collect();
    let mut at = 0;
    while let Some(pid) = tree.get(at).copied() {
        // A number that was used again while they were read may be below itself.
        tree.extend(children(pid).into_iter().filter(|child| seen.insert(*child)));
        at += 1;
    }
    tree
}

/// A process with its name; `None` if it has ended.
pub fn named(pid: i32) -> Option<NamedProcess> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(NamedProcess { pid, command: String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned() })
}

/// The command line of a process, with spaces between the arguments; empty if the process has cleared it.
pub fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end().to_owned()
}

/// The program of a process with this name. One that runs a script, which the kernel has started by its first line (execve(2)), has the name of the script.
pub fn program(pid: i32, name: &str) -> String {
    let line = command_line(pid);
    let mut files = line.split(' ').map(|word| word.rsplit('/').next().unwrap_or_default());
    let first = files.next().filter(|first| !first.is_empty());
    // The kernel cuts names.
    let is_cut = name.len() == 15;
    let is_script = |file: &str| file == name || (is_cut && file.starts_with(name));
    first.filter(|_| files.take(2).any(is_script)).unwrap_or(name).to_owned()
}

/// Fields of the file `stat` of a process or of a thread (proc_pid_stat(5)).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// `R` for one that runs or is ready to, `D` for one that waits for a disk, `T` for a stopped one, and so on.
    pub state: char,
    /// The parent's number.
    pub parent: i32,
    /// CPU time, in clock ticks.
    pub cpu_ticks: u64,
    /// CPU time of children that were waited for, in clock ticks.
    pub children_cpu_ticks: u64,
    /// Threads of the process.
    pub threads: u64,
    /// When it was started, in clock ticks since the boot; a later process with the same number has another time.
    pub started_ticks: u64,
    /// The CPU on which it ran last.
    pub cpu: u32,
    /// Whether it is a kernel thread.
    pub is_kernel_thread: bool,
    /// Whether its first thread has begun to exit. While it does, most of its files in /proc become root's.
    pub is_exiting: bool,
}

/// `PF_KTHREAD` and `PF_EXITING` of the kernel's include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;
const EXITING: u64 = 0x4;

impl Stat {
    pub fn of(pid: i32) -> Option<Self> {
        Self::at(&format!("/proc/{pid}"))
    }

    /// Whether nothing of the process runs any more: it is a zombie, or about to be one. A process whose first thread has ended
    /// may have others.
    pub fn has_ended(&self) -> bool {
        self.is_exiting && self.threads <= 1
    }

    /// When the process was started, in ns of CLOCK_MONOTONIC, exact to a clock tick.
    pub fn started_ns(&self) -> u64 {
        let ns = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
        };
        // The start times are of CLOCK_BOOTTIME, which also advances while the machine is suspended.
        let asleep_ns = ns(ClockId::Boottime).saturating_sub(ns(ClockId::Monotonic));
        let tick_ns = 1_000_000_000 / clock_ticks_per_second();
        (self.started_ticks * tick_ns).saturating_sub(asleep_ns)
    }

    /// Reads the `stat` of the process or thread with this folder.
    pub fn at(folder: &str) -> Option<Self> {
        Self::parse(&read_short_file(&format!("{folder}/stat"))?)
    }

    /// Parses the bytes of such a file. Allocates no memory.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let fields = stat_fields(bytes)?;
        let field = |field: usize| fields.split_ascii_whitespace().nth(field - 3);
        let number = |number: usize| field(number)?.parse::<u64>().ok();
        Some(Self {
            state: field(3)?.chars().next()?,
            parent: i32::try_from(number(4)?).ok()?,
            cpu_ticks: number(14)? + number(15)?,
            children_cpu_ticks: number(16)? + number(17)?,
            threads: number(20)?,
            started_ticks: number(22)?,
            cpu: u32::try_from(number(39)?).ok()?,
            is_kernel_thread: number(9)? & KERNEL_THREAD != 0,
            is_exiting: number(9)? & EXITING != 0,
        })
    }
}

/// The job to which a process belongs (credentials(7)).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    pub group: i32,
    /// The group of its terminal that is in the foreground; `None` without a terminal.
    pub foreground: Option<i32>,
    /// The signal that has stopped it, if its parent has not asked for it yet; 0 if that is not known (proc_pid_stat(5), `exit_code`).
    pub stopped_by: i32,
}

impl Job {
    /// From the bytes of the file `stat` of a process.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let fields: Vec<&str> = stat_fields(bytes)?.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<i32>().ok();
        let has_terminal = number(7)? != 0;
        let foreground = number(8).filter(|_| has_terminal);
        Some(Self { group: number(5)?, foreground, stopped_by: number(52).unwrap_or(0) })
    }
}

/// Whether there is no process with this number, or only a zombie.
pub fn has_ended(pid: i32) -> bool {
    Stat::of(pid).map_or_else(|| !is_listed(pid), |stat| stat.has_ended())
}

/// Whether there is a process with this number. With hidepid=1 that can be seen of another user's process, and nothing else (proc(5)).
pub fn is_listed(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The name of a process in such a file: the second field, in parentheses. It may hold anything, parentheses too.
pub fn name_in_stat(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let name = text.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
    name.map_or_else(String::new, |(name, _)| name.to_owned())
}

/// The fields of such a file from the third one on: the second one, the name, may hold anything, parentheses too.
pub(crate) fn stat_fields(bytes: &[u8]) -> Option<&str> {
    let name_end = bytes.iter().rposition(|byte| *byte == b')')?;
    std::str::from_utf8(&bytes[name_end + 1..]).ok()
}

/// The value after `name:` in a file of lines such as /proc/PID/status.
pub fn field_value(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    values.next().map(|value| value.trim().to_owned())
}

/// Whether this process has CAP_SYS_PTRACE: bit 19 of the effective set (capabilities(7), proc_pid_status(5)).
pub fn has_ptrace_capability() -> bool {
    let effective = field_value("/proc/self/status", "CapEff");
    effective.and_then(|set| u64::from_str_radix(&set, 16).ok()).is_some_and(|set| set >> 19 & 1 == 1)
}

/// Whether the process with this number was started before a time of CLOCK_MONOTONIC, in ns. If not, the process that had the number at that
/// time has ended, and a new process has the number.
pub fn was_started_before(pid: i32, monotonic_ns: u64) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.started_ns() <= monotonic_ns)
}

/// Sends a signal to a process if `is_meant` returns true. Errors, such as EPERM, are ignored.
pub fn signal_if(pid: i32, signal: Signal, is_meant: impl FnOnce() -> bool) {
    // A number can be reused by another process; a pidfd refers to the same process always.
    let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    if let Some(process) = process.filter(|_| is_meant()) {
        let _ = pidfd_send_signal(&process, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: a signal reaches all children. Happened: where the kernel has no lists of them it reached only the shell.
    #[test]
    fn children_are_found_without_the_kernels_lists() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("sleep runs");
        let own = std::process::id().cast_signed();
        let found: Vec<Vec<i32>> = [true, false]
            .map(|are_listed| threads(own).flat_map(|(_, folder)| children_in(&folder, are_listed)).collect())
            .into();
        let pid = child.id().cast_signed();
        let times = found.iter().map(|pids| pids.iter().filter(|found| **found == pid).count());
        assert_eq!(times.collect::<Vec<_>>(), [1, 1], "{found:?}");
        child.kill().expect("it runs");
        child.wait().expect("waited for");
    }

    /// Expected: a process that others have waited for is not mistaken for a later one with its number.
    #[test]
    fn a_process_is_known_by_when_it_was_started() {
        let own = std::process::id().cast_signed();
        assert!(was_started_before(own, model::monotonic_ns()));
        assert!(!was_started_before(own, 0), "the machine is older than this process");
        assert!(!was_started_before(i32::MAX, model::monotonic_ns()), "there is none");
    }

    #[test]
    fn a_stat_reads_whatever_the_name() {
        let rest = (4..=52).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        let stat = Stat::parse(format!("7 (a) b (c) R {rest}\n").as_bytes());
        let (cpu_ticks, children_cpu_ticks) = (14 + 15, 16 + 17);
        let partial =
            Stat { state: 'R', parent: 4, cpu_ticks, children_cpu_ticks, threads: 20, ..Stat::default() };
        let expected = Stat { cpu: 39, started_ticks: 22, ..partial };
        assert_eq!(stat, Some(expected));
        let exiting = rest.replacen(" 9 ", " 4 ", 1);
        let stat = Stat::parse(format!("7 (a) Z {exiting}\n").as_bytes());
        assert_eq!(stat, Some(Stat { state: 'Z', is_exiting: true, ..expected }));
        assert_eq!(Stat::parse(b""), None);
        let bytes = [b"7 (\xff\xfe) S ", rest.as_bytes()].concat();
        assert_eq!(Stat::parse(&bytes), Some(Stat { state: 'S', ..expected }), "a name need not be text");
    }
}
