//! A process and its descendants. A process whose parent has ended still belongs to them if it was seen before. (PR_SET_CHILD_SUBREAPER
//! would keep all of them, but orphans would have another parent than without it.)

use std::collections::{HashMap, HashSet};

use observe::waits::{self, Waits};
use process::proc::{Stat, children_of_thread, threads};

/// A process, with what its threads wait for.
pub(super) struct TreeProcess {
    pub(super) pid: i32,
    pub(super) waits: Vec<Waits>,
}

pub(super) struct ProcessTree {
    root: i32,
    /// By PID, when each was started, in clock ticks.
    known: HashMap<i32, u64>,
}

impl ProcessTree {
    pub(super) fn new(root: i32) -> Self {
        Self { root, known: HashMap::new() }
    }

    /// All living processes, with what they wait for.
    pub(super) fn processes(&mut self) -> Vec<TreeProcess> {
        let own = std::process::id().cast_signed();
        let mut processes = Vec::new();
        let mut met = HashSet::from([own]);
        let mut waiting = vec![self.root];
        loop {
            let Some(pid) = waiting.pop() else {
                // Processes whose parent has ended, and what they started.
                let is_there = |(pid, started): &(&i32, &u64)| {
                    Stat::of(**pid).is_some_and(|stat| stat.started_ticks == **started)
                };
                let orphans = self.known.iter().filter(|(pid, _)| !met.contains(*pid)).filter(is_there);
                waiting.extend(orphans.map(|(pid, _)| *pid));
                if waiting.is_empty() {
                    break;
                }
                continue;
            };
            if !met.insert(pid) {
                continue;
            }
            let mut process = TreeProcess { pid, waits: Vec::new() };
            for (_, folder) in threads(pid) {
                waiting.extend(children_of_thread(&folder));
                process.waits.extend(waits::at(pid, &folder));
            }
            processes.push(process);
        }
        self.known.retain(|pid, _| met.contains(pid));
        for process in &processes {
            if !self.known.contains_key(&process.pid)
                && let Some(stat) = Stat::of(process.pid)
            {
                self.known.insert(process.pid, stat.started_ticks);
            }
        }
        processes
    }
}
