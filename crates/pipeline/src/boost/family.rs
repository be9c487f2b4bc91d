//! The processes whose pipes are watched: one, and whatever has come from it. One whose parent has ended belongs to it still, if it
//! was seen before that: nobody else's child is taken over (PR_SET_CHILD_SUBREAPER), which orphans could see.

use std::collections::{HashMap, HashSet};

use observe::call::Call;
use process::proc::{Stat, children_of_thread, threads};

/// What the threads of a process do.
pub(super) struct Member {
    pub(super) pid: i32,
    pub(super) calls: Vec<Call>,
}

/// The processes.
pub(super) struct Family {
    root: i32,
    /// When each was started.
    known: HashMap<i32, u64>,
}

impl Family {
    pub(super) fn new(root: i32) -> Self {
        Self { root, known: HashMap::new() }
    }

    /// Everybody who lives, and what they do at this moment.
    pub(super) fn look(&mut self) -> Vec<Member> {
        let own = std::process::id().cast_signed();
        let mut members = Vec::new();
        let mut met = HashSet::from([own]);
        let mut waiting = vec![self.root];
        loop {
            let Some(pid) = waiting.pop() else {
                // Whoever has been left by its parent, and what it started.
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
            let mut member = Member { pid, calls: Vec::new() };
            for (_, folder) in threads(pid) {
                waiting.extend(children_of_thread(&folder));
                member.calls.extend(Call::at(&folder));
            }
            members.push(member);
        }
        self.known.retain(|pid, _| met.contains(pid));
        for member in &members {
            if !self.known.contains_key(&member.pid)
                && let Some(stat) = Stat::of(member.pid)
            {
                self.known.insert(member.pid, stat.started_ticks);
            }
        }
        members
    }
}
