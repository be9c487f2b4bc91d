//! A process and its descendants. A process whose parent has ended still belongs to them if an earlier search found it.
//! (PR_SET_CHILD_SUBREAPER would find all of them, but would change the parent that orphans get.)

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
    /// The start time of each process, in clock ticks, by PID.
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
        let mut visited = HashSet::from([own]);
        let mut unvisited = vec![self.root];
        loop {
            let Some(pid) = unvisited.pop() else {
                // Processes whose parent has ended; their descendants follow.
                let is_there = |(pid, started): &(&i32, &u64)| {
                    Stat::of(**pid).is_some_and(|stat| stat.started_ticks == **started)
                };
                let orphans = self.known.iter().filter(|(pid, _)| !visited.contains(*pid)).filter(is_there);
                unvisited.extend(orphans.map(|(pid, _)| *pid));
                if unvisited.is_empty() {
                    break;
                }
                continue;
            };
            if !visited.insert(pid) {
                continue;
            }
            let mut process = TreeProcess { pid, waits: Vec::new() };
            for (_, folder) in threads(pid) {
                unvisited.extend(children_of_thread(&folder));
                process.waits.extend(waits::at(pid, &folder));
            }
            processes.push(process);
        }
        self.known.retain(|pid, _| visited.contains(pid));
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
