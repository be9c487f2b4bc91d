//! All processes of this machine at one moment, and who holds which end of what.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;

use model::NamedProcess;
use process::proc::{self, Job, Stat};

use crate::endpoint::{Endpoint, IpcFile, ProcessFiles, first_files, nameless};

/// Largest number of descriptors of one process that are read: an end that is not seen makes a wrong answer.
const DESCRIPTORS_MAX: usize = 65_536;

/// SIGINT in a mask of signals (proc_pid_status(5)).
const SIGINT_BIT: u64 = 1 << (libc::SIGINT - 1);

/// A process.
pub(super) struct Process {
    pub(super) name: String,
    pub(super) stat: Stat,
    pub(super) job: Job,
    pub(super) children: Vec<i32>,
    /// `None` if this user may not read them.
    pub(super) files: Option<ProcessFiles>,
    pub(super) uid: u32,
}

/// A process that has an end of something open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) pid: i32,
    /// The descriptor; `None` where it can act in another way.
    pub(super) fd: Option<i32>,
}

/// The processes, and the ends of pipes, FIFOs, sockets and pseudoterminals.
#[derive(Default)]
pub(super) struct Scene {
    pub(super) processes: BTreeMap<i32, Process>,
    ends: HashMap<IpcFile, Vec<(i32, Endpoint)>>,
    /// Processes whose open files may not be read.
    pub(super) unseen: usize,
}

impl Scene {
    /// Reads all processes but this one.
    pub(super) fn read() -> Self {
        let mut scene = Self::default();
        for pid in proc::other_processes() {
            let Some(bytes) = proc::read_short_file(&format!("/proc/{pid}/stat")) else { continue };
            let (Some(stat), Some(job)) = (Stat::parse(&bytes), Job::parse(&bytes)) else { continue };
            if stat.is_kernel_thread {
                continue;
            }
            let mut files = first_files(pid, DESCRIPTORS_MAX).ok();
            files.iter_mut().for_each(|files| model::sort_by_key(&mut files.endpoints, |end| end.fd));
            scene.unseen += usize::from(files.is_none() && !stat.has_ended());
            for end in files.iter().flat_map(|files| files.endpoints.iter().chain(&files.terminals)) {
                scene.ends.entry(end.ipc_file).or_default().push((pid, *end));
            }
            let name = proc::name_in_stat(&bytes);
            let uid = fs::metadata(format!("/proc/{pid}")).map_or(u32::MAX, |folder| folder.uid());
            scene.processes.insert(pid, Process { name, stat, job, children: Vec::new(), files, uid });
        }
        let parents: Vec<(i32, i32)> =
            scene.processes.iter().map(|(pid, one)| (*pid, one.stat.parent)).collect();
        for (pid, parent) in parents {
            if let Some(parent) = scene.processes.get_mut(&parent) {
                parent.children.push(pid);
            }
        }
        scene
    }

    pub(super) fn named(&self, pid: i32) -> NamedProcess {
        let known = self.processes.get(&pid).map(|process| process.name.clone());
        let command = known.or_else(|| Some(proc::named(pid)?.command)).unwrap_or_default();
        NamedProcess { pid, command }
    }

    /// A process and its descendants, the process first.
    pub(super) fn tree(&self, root: i32) -> Vec<i32> {
        proc::tree(&[root], |pid| self.processes.get(&pid).map_or_else(Vec::new, |one| one.children.clone()))
    }

    /// Its ancestors, the parent first; 0 above the first process.
    pub(super) fn ancestors(&self, pid: i32) -> impl Iterator<Item = i32> {
        std::iter::successors(Some(pid), |pid| Some(self.processes.get(pid)?.stat.parent)).skip(1).take(64)
    }

    /// The end that a process has as this descriptor.
    pub(super) fn end(&self, pid: i32, fd: i32) -> Option<Endpoint> {
        let files = self.processes.get(&pid)?.files.as_ref()?;
        let at = files.endpoints.binary_search_by_key(&fd, |end| end.fd);
        let terminal = || files.terminals.iter().find(|end| end.fd == fd);
        at.ok().map(|at| &files.endpoints[at]).or_else(terminal).copied()
    }

    /// Every descriptor for an end of a file, with its process.
    pub(super) fn ends(&self, file: IpcFile) -> &[(i32, Endpoint)] {
        self.ends.get(&file).map_or(&[], Vec::as_slice)
    }

    /// All ends of all files, with their processes.
    pub(super) fn all_ends(&self) -> impl Iterator<Item = (i32, Endpoint)> {
        self.ends.values().flatten().copied()
    }

    /// Those who can write to a pipe, or read from it, each once.
    pub(super) fn holders(&self, file: IpcFile, writes: bool) -> Vec<Holder> {
        let ends = self.ends(file).iter().filter(|(_, end)| end.is_for(writes));
        let mut holders: Vec<Holder> =
            ends.map(|(pid, end)| Holder { pid: *pid, fd: Some(end.fd) }).collect();
        holders.sort();
        holders.dedup_by_key(|holder| holder.pid);
        holders
    }

    /// Whether a program that has ended left a process behind, as seen from the reader of a pipe that it can write to: its parent now is above the one that made the pipe for the
    /// reader, which would be its parent, or one of its ancestors, else.
    pub(super) fn is_left_behind(&self, holder: i32, reader: i32, pipe: IpcFile) -> bool {
        // A FIFO is opened by its name, on purpose.
        if pipe.pipe().is_some_and(|(device, _)| Some(device) != nameless()) {
            return false;
        }
        let reads = |pid: &i32| self.ends(pipe).iter().any(|(other, end)| other == pid && end.reads);
        let top = self.ancestors(reader).take_while(reads).last().unwrap_or(reader);
        let mut above = self.ancestors(top).skip(1);
        let parent = self.processes.get(&holder).map(|holder| holder.stat.parent);
        // The way up to process 1 may be hidden (proc(5), hidepid).
        let is_init_above = self.ancestors(top).next().is_some_and(|parent| parent > 1);
        let is_relative = self.ancestors(reader).any(|ancestor| ancestor == holder);
        // The first process of a container gets what was left behind beside what it has started itself.
        let is_of_init = |parent: i32| {
            let gets_both = parent == top || self.ancestors(top).next() == Some(parent);
            gets_both && is_init(parent) && is_found(parent, reader, holder)
        };
        !is_relative
            && parent.is_some_and(|parent| {
                above.any(|ancestor| ancestor == parent)
                    || (parent == 1 && is_init_above)
                    || is_of_init(parent)
            })
    }
}

/// Whether a process is the first one of its PID namespace (pid_namespaces(7)).
fn is_init(pid: i32) -> bool {
    let numbers = proc::field_value(&format!("/proc/{pid}/status"), "NSpid");
    pid == 1 || numbers.is_some_and(|numbers| numbers.split_whitespace().next_back() == Some("1"))
}

/// Whether a child of this process was started by another one, which has ended. A shell starts the writer of a pipe before its reader, and the kernel adds the
/// children of a process that ends to the end of the list; and what a shell's script starts with `&` ignores SIGINT.
fn is_found(parent: i32, reader: i32, child: i32) -> bool {
    let children = proc::children(parent);
    let place = |pid: i32| children.iter().position(|other| *other == pid);
    let is_later = place(reader).zip(place(child)).is_some_and(|(reader, child)| reader < child);
    let ignores = |pid: i32| {
        let mask = proc::field_value(&format!("/proc/{pid}/status"), "SigIgn");
        mask.and_then(|mask| u64::from_str_radix(&mask, 16).ok()).is_some_and(|mask| mask & SIGINT_BIT != 0)
    };
    is_later || (ignores(child) && !ignores(reader))
}

/// A path as a process uses it; an abstract name as it is.
pub(super) fn absolute(pid: i32, path: &str) -> String {
    if path.is_empty() || path.starts_with(['/', '@']) {
        return path.to_owned();
    }
    let folder = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    folder.join(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: a daemon is one that was left behind also where its reader's ancestors are hidden. Happened: it was one that works.
    #[test]
    fn a_daemon_is_known_where_the_way_to_process_1_is_hidden() {
        let pipe = IpcFile::Pipe((nameless().expect("pipefs"), 7));
        let end = |fd, writes: bool| Endpoint { fd, ipc_file: pipe, reads: !writes, writes };
        let with_parents = |reader: i32, holder: i32| {
            let mut scene = Scene::default();
            for (pid, parent) in [(20, reader), (21, holder)] {
                let stat = Stat { parent, ..Stat::default() };
                let (name, job, children) = Default::default();
                scene.processes.insert(pid, Process { name, stat, job, children, files: None, uid: 0 });
            }
            scene.ends.insert(pipe, vec![(20, end(0, false)), (21, end(1, true))]);
            scene.is_left_behind(21, 20, pipe)
        };
        assert!(with_parents(10, 1));
        assert!(!with_parents(1, 1), "both were started by process 1");
        assert!(!with_parents(10, 11));
    }
}
