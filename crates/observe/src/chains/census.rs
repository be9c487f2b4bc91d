//! The processes of this machine, with what each has open. That is read only when a process is new, when something about it has changed,
//! and else once in a while.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;

use process::proc::{self, Stat};

use crate::end::{End, Holdings, holdings};

/// The descriptors of a process are read again after this many samples at the latest.
const ROUND: u64 = 16;
/// A process that is at most this many samples old may still be about to execute its program.
const YOUNG: u64 = 2;

/// A process.
pub(crate) struct Known {
    /// The look at which it was seen first.
    pub(crate) since: u64,
    pub(crate) parent: i32,
    started_ticks: u64,
    /// `None` of another user's process.
    pub(crate) holdings: Option<Holdings>,
    /// How many descriptors it had; 0 on kernels that do not tell (before Linux 6.2).
    descriptors: u64,
    /// A thread of the kernel.
    is_kernels: bool,
}

/// All processes that can be seen.
#[derive(Default)]
pub(crate) struct Census {
    pub(crate) known: HashMap<i32, Known>,
    /// How often they were looked at.
    pub(crate) looks: u64,
}

impl Census {
    /// Looks again. `active` ones are looked at more closely; whatever `doubted` has open is looked through in any case.
    /// Gives those that have ended since.
    pub(crate) fn look(&mut self, active: &HashSet<i32>, doubted: &HashSet<i32>) -> Vec<(i32, Known)> {
        self.looks += 1;
        let own = std::process::id().cast_signed();
        let alive: HashSet<i32> = proc::others().chain([own]).collect();
        let ended = self.known.extract_if(|pid, _| !alive.contains(pid)).collect();
        for pid in alive {
            let is_due = self.known.get(&pid).is_none_or(|known| {
                known.since + YOUNG > self.looks
                    || doubted.contains(&pid)
                    || (active.contains(&pid) && known.descriptors != descriptors(pid))
                    || pid.unsigned_abs() as u64 % ROUND == self.looks % ROUND
            });
            if is_due {
                self.scan(pid);
            }
        }
        ended
    }

    fn scan(&mut self, pid: i32) {
        let Some(stat) = Stat::of(pid) else {
            self.known.remove(&pid);
            return;
        };
        let holdings = match holdings(pid) {
            Ok(holdings) => Some(holdings),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
            Err(_) => {
                self.known.remove(&pid);
                return;
            }
        };
        let before = self.known.get(&pid).filter(|known| known.started_ticks == stat.started_ticks);
        let known = Known {
            since: before.map_or(self.looks, |known| known.since),
            parent: stat.parent,
            started_ticks: stat.started_ticks,
            descriptors: descriptors(pid),
            holdings,
            is_kernels: stat.is_kernels,
        };
        self.known.insert(pid, known);
    }

    /// Every end of a pipe or socket, with the process that holds it.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (i32, End)> {
        let holdings = self.known.iter().filter_map(|(pid, known)| Some((*pid, known.holdings.as_ref()?)));
        holdings.flat_map(|(pid, holdings)| holdings.ends.iter().map(move |end| (pid, *end)))
    }

    /// Every side of a pseudoterminal, with the process that holds it.
    pub(crate) fn terminals(&self) -> impl Iterator<Item = (i32, End)> {
        let holdings = self.known.iter().filter_map(|(pid, known)| Some((*pid, known.holdings.as_ref()?)));
        holdings.flat_map(|(pid, holdings)| holdings.terminals.iter().map(move |end| (pid, *end)))
    }

    /// Who has started whom.
    pub(crate) fn parents(&self) -> HashMap<i32, i32> {
        self.known.iter().map(|(pid, known)| (*pid, known.parent)).collect()
    }

    /// How many processes do not show what they have open.
    pub(crate) fn foreign(&self) -> usize {
        self.known.values().filter(|known| known.holdings.is_none() && !known.is_kernels).count()
    }
}

/// The size of the folder is how many descriptors there are (proc_pid_fd(5)).
fn descriptors(pid: i32) -> u64 {
    fs::metadata(format!("/proc/{pid}/fd")).map_or(0, |folder| folder.len())
}
