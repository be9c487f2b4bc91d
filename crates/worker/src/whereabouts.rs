//! Where the two ends run, seen from outside while they do: the CPU that each was last on (proc_pid_stat(5)), and what the
//! reader's standard input is. An end is a process with all it has started; of its threads the busiest counts.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

use crate::job::Job;

/// Looks are not closer than this: a look costs tens of microseconds for each thread.
const LOOK_AGAIN: Duration = Duration::from_millis(40);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Writer,
    Reader,
}

/// What a thread's line in /proc says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    /// CPU time, in clock ticks.
    ticks: u64,
    id: i32,
    /// The CPU it was last on.
    cpu: u32,
}

/// The looks at one run.
pub(crate) struct Whereabouts {
    /// The processes that hosepipe started.
    roots: Vec<(i32, End)>,
    /// What stands on the reader's command line, wherever in the tree it is; and what on that of a `pair`, which holds its
    /// child's command, too.
    reader_words: Vec<u8>,
    pair_words: Vec<u8>,
    ticks: HashMap<i32, u64>,
    last: Instant,
    looks: Vec<(u64, bool)>,
    through_socket: Option<bool>,
}

impl Whereabouts {
    /// Looks at processes by the ends they hold: one that holds both starts its reader itself.
    pub(crate) fn of(processes: impl Iterator<Item = (i32, bool)>, job: &Job) -> Self {
        let end = |sends| if sends { End::Writer } else { End::Reader };
        let words = |role: &str| {
            let words = std::iter::once(role.to_owned()).chain(job.arguments());
            words.map(|word| format!("{word}\0")).collect::<String>().into_bytes()
        };
        Self {
            roots: processes.map(|(pid, sends)| (pid, end(sends))).collect(),
            reader_words: words("recv"),
            pair_words: words("pair"),
            ticks: HashMap::new(),
            last: Instant::now(),
            looks: Vec::new(),
            through_socket: None,
        }
    }

    /// Looks, unless that was a moment ago.
    pub(crate) fn look(&mut self) {
        if self.last.elapsed() < LOOK_AGAIN {
            return;
        }
        self.last = Instant::now();
        let at_ns = model::monotonic_ns();
        let mut busiest: [Option<(u64, Thread)>; 2] = [None; 2];
        let mut waiting = self.roots.clone();
        while let Some((pid, end)) = waiting.pop() {
            let end = if end == End::Writer && self.is_reader(pid) { End::Reader } else { end };
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
                // One that has just ended says nothing any more.
                let Some(thread) = Thread::read(&read("stat")) else { continue };
                let before = self.ticks.insert(thread.id, thread.ticks).unwrap_or(0);
                let found = Some((thread.ticks.saturating_sub(before), thread));
                busiest[end as usize] = busiest[end as usize].max(found);
                let children = read("children");
                waiting.extend(children.split_whitespace().filter_map(|pid| Some((pid.parse().ok()?, end))));
            }
        }
        if let [Some((_, writer)), Some((_, reader))] = busiest {
            self.looks.push((at_ns, writer.cpu == reader.cpu));
        }
    }

    /// Whether this is the receiver that a `pair` has started; then its input is looked at, too.
    fn is_reader(&mut self, pid: i32) -> bool {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let has = |words: &[u8]| line.windows(words.len()).any(|part| part == words);
        let is_one = has(&self.reader_words) && !has(&self.pair_words);
        if is_one && self.through_socket.is_none() {
            let input = fs::metadata(format!("/proc/{pid}/fd/0"));
            self.through_socket = input.ok().map(|input| input.file_type().is_socket());
        }
        is_one
    }

    /// The share of the looks in the timed part of a run at which both ends were last on one CPU; `None` without a look.
    pub(crate) fn same_cpu_share(&self, began_ns: u64, ended_ns: u64) -> Option<f64> {
        let timed = || self.looks.iter().filter(|(at_ns, _)| (began_ns..=ended_ns).contains(at_ns));
        let (looks, together) = (timed().count(), timed().filter(|(_, same)| *same).count());
        (looks > 0).then(|| together as f64 / looks as f64)
    }

    /// Whether a writer has joined its reader by a socket; `None` where nobody has seen it.
    pub(crate) fn through_socket(&self) -> Option<bool> {
        self.through_socket
    }
}

impl Thread {
    fn read(stat: &str) -> Option<Self> {
        // The name may hold anything, parentheses too. What follows it begins with the third field.
        let (id, rest) = (stat.split_once(' ')?.0.parse().ok()?, stat.rsplit_once(')')?.1);
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self { ticks: number(14)? + number(15)?, id, cpu: u32::try_from(number(39)?).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_reads_whatever_its_name() {
        let rest = (4..=52).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        let thread = Thread::read(&format!("7 (a) b (c) R {rest}\n"));
        assert_eq!(thread, Some(Thread { ticks: 14 + 15, id: 7, cpu: 39 }));
        assert_eq!(Thread::read(""), None);
    }

    #[test]
    fn only_looks_in_the_timed_part_count() {
        let job = Job { bytes: 1, block_bytes: 1, warmup_bytes: 0 };
        let mut seen = Whereabouts::of(std::iter::empty(), &job);
        seen.looks = vec![(5, false), (10, true), (15, true), (20, false), (25, true)];
        assert_eq!(seen.same_cpu_share(10, 20), Some(2.0 / 3.0));
        assert_eq!(seen.same_cpu_share(11, 14), None);
    }
}
