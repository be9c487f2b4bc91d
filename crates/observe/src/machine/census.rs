//! The processes of this machine, and the files that each has open. These are read when a process is new, when it may have changed them, and
//! otherwise every few samples.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;

use model::monotonic_ns;
use process::proc::{self, Stat};

use crate::endpoint::{Endpoint, ProcessFiles, process_files};

/// The descriptors of a process are read again after this many samples at the latest.
const ROUND: u64 = 16;
/// A process that is at most this many samples old may still be about to execute its program.
const YOUNG: u64 = 2;

/// A process, and what it has open.
pub(crate) struct KnownProcess {
    /// The scan at which it was seen first, and the time of the scan before (CLOCK_MONOTONIC), at which it did not exist.
    since: u64,
    pub(crate) after_ns: Option<u64>,
    pub(crate) parent: i32,
    started_ticks: u64,
    /// `None` of another user's process.
    pub(crate) process_files: Option<ProcessFiles>,
    /// The number of its descriptors; 0 on kernels that do not show it (before Linux 6.2).
    descriptors: u64,
    /// A thread of the kernel.
    is_kernel_thread: bool,
}

/// All processes that can be seen.
#[derive(Default)]
pub(crate) struct Census {
    pub(crate) known: HashMap<i32, KnownProcess>,
    /// The number of scans, and the times of the last one and of the one before.
    scans: u64,
    pub(crate) scanned_ns: u64,
    before_ns: Option<u64>,
}

impl Census {
    /// Scans all processes. The files of `active` ones are read if their number has changed, those of `outdated` ones always. Returns the
    /// processes that have ended.
    pub(crate) fn update(
        &mut self,
        active: &HashSet<i32>,
        outdated: &HashSet<i32>,
    ) -> Vec<(i32, KnownProcess)> {
        self.before_ns = Some(self.scanned_ns).filter(|_| self.scans > 0);
        (self.scans, self.scanned_ns) = (self.scans + 1, monotonic_ns());
        let own = std::process::id().cast_signed();
        let alive: HashSet<i32> = proc::other_processes().chain([own]).collect();
        let ended = self.known.extract_if(|pid, _| !alive.contains(pid)).collect();
        for pid in alive {
            let is_due = self.known.get(&pid).is_none_or(|known| {
                self.is_young(known)
                    || outdated.contains(&pid)
                    || (active.contains(&pid) && known.descriptors != descriptors(pid))
                    || pid.unsigned_abs() as u64 % ROUND == self.scans % ROUND
            });
            if is_due {
                self.scan(pid);
            }
        }
        ended
    }

    fn is_young(&self, known: &KnownProcess) -> bool {
        known.since + YOUNG > self.scans
    }

    /// Whether a process may have been seen between fork(2) and execve(2), with ends of its parent that it closes or replaces.
    pub(crate) fn may_hold_inherited_ends(&self, pid: i32) -> bool {
        self.known.get(&pid).is_some_and(|known| known.since > 1 && self.is_young(known))
    }

    fn scan(&mut self, pid: i32) {
        let (stat, process_files) = match Stat::of(pid).map(|stat| (stat, process_files(pid))) {
            Some((stat, Ok(process_files))) => (stat, Some(process_files)),
            Some((stat, Err(error))) if error.kind() == ErrorKind::PermissionDenied => (stat, None),
            _ => {
                self.known.remove(&pid);
                return;
            }
        };
        let before = self.known.get(&pid).filter(|known| known.started_ticks == stat.started_ticks);
        let known = KnownProcess {
            since: before.map_or(self.scans, |known| known.since),
            after_ns: before.map_or(self.before_ns, |known| known.after_ns),
            parent: stat.parent,
            started_ticks: stat.started_ticks,
            descriptors: descriptors(pid),
            process_files,
            is_kernel_thread: stat.is_kernel_thread,
        };
        self.known.insert(pid, known);
    }

    /// The open files of a process, if this user may read them.
    pub(crate) fn files(&self, pid: i32) -> Option<&ProcessFiles> {
        self.known.get(&pid)?.process_files.as_ref()
    }

    /// Every process with its open files.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = (i32, &ProcessFiles)> {
        self.known.iter().filter_map(|(pid, known)| Some((*pid, known.process_files.as_ref()?)))
    }

    /// Every end of a pipe or socket, with the process that holds it.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = (i32, Endpoint)> {
        self.all_files().flat_map(|(pid, files)| files.endpoints.iter().map(move |end| (pid, *end)))
    }

    /// Every side of a pseudoterminal, with the process that holds it.
    pub(crate) fn terminals(&self) -> impl Iterator<Item = (i32, Endpoint)> {
        self.all_files().flat_map(|(pid, files)| files.terminals.iter().map(move |end| (pid, *end)))
    }

    /// The parent of each process.
    pub(crate) fn parents(&self) -> HashMap<i32, i32> {
        self.known.iter().map(|(pid, known)| (*pid, known.parent)).collect()
    }

    /// The number of processes whose files this user may not read.
    pub(crate) fn foreign(&self) -> usize {
        self.known.values().filter(|known| known.process_files.is_none() && !known.is_kernel_thread).count()
    }
}

/// The size of the folder is how many descriptors there are (proc_pid_fd(5)).
fn descriptors(pid: i32) -> u64 {
    fs::metadata(format!("/proc/{pid}/fd")).map_or(0, |folder| folder.len())
}
