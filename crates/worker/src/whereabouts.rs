//! Where the two ends run, seen from outside while they do: the CPU that each was last on (proc_pid_stat(5)), and what the
//! reader's standard input is. An end is a process with all it has started; of its threads the busiest counts.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

use process::proc::{self, Stat};

use crate::job::Job;

/// Looks are not closer than this: a look costs tens of microseconds for each thread.
const LOOK_AGAIN: Duration = Duration::from_millis(40);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Writer,
    Reader,
}

/// The looks at one run.
pub(crate) struct Whereabouts {
    /// The processes that hosepipe started.
    roots: Vec<(i32, End)>,
    /// Words of the reader's command line, wherever in the tree it is; and of that of a `pair`, which holds its
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
    pub(crate) fn new(processes: impl Iterator<Item = (i32, bool)>, job: &Job) -> Self {
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
        // Of each end the CPU time since the last look and of all its life, in clock ticks, and the CPU.
        let mut busiest: [Option<(u64, u64, u32)>; 2] = [None; 2];
        let mut waiting = self.roots.clone();
        while let Some((pid, end)) = waiting.pop() {
            let end = if end == End::Writer && self.is_reader(pid) { End::Reader } else { end };
            for (id, folder) in proc::threads(pid) {
                // One that has just ended says nothing any more.
                let Some(stat) = Stat::at(&folder) else { continue };
                let before = self.ticks.insert(id, stat.cpu_ticks).unwrap_or(0);
                let found = Some((stat.cpu_ticks.saturating_sub(before), stat.cpu_ticks, stat.cpu));
                busiest[end as usize] = busiest[end as usize].max(found);
                waiting.extend(proc::children_of_thread(&folder).into_iter().map(|pid| (pid, end)));
            }
        }
        if let [Some((.., writer)), Some((.., reader))] = busiest {
            self.looks.push((at_ns, writer == reader));
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

    /// Whether a writer has joined its reader by a socket; `None` where that was not seen.
    pub(crate) fn through_socket(&self) -> Option<bool> {
        self.through_socket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_looks_in_the_timed_part_count() {
        let job = Job { bytes: 1, block_bytes: 1, warmup_bytes: 0 };
        let mut seen = Whereabouts::new(std::iter::empty(), &job);
        seen.looks = vec![(5, false), (10, true), (15, true), (20, false), (25, true)];
        assert_eq!(seen.same_cpu_share(10, 20), Some(2.0 / 3.0));
        assert_eq!(seen.same_cpu_share(11, 14), None);
    }
}
