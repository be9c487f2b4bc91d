//! The topology of a tree of processes with only the links that may be full: the pipes to which they can write, and the one that the first process
//! reads. What a process waits for usually shows whether its pipe can be full: if it sleeps in a write, the pipe is full, and if it waits for something
//! else, none is. So only the descriptors of processes that run, or watch several files, are read.

use std::collections::{BTreeSet, HashSet};
use std::io::ErrorKind;

use crate::endpoint::{Endpoint, IpcFile, endpoint, endpoints, nameless};
use crate::fullness::Fill;
use crate::open_file::Identity;
use crate::sampler::Sampler;
use crate::sampler::process::SampledProcess;
use crate::topology::{FillSource, Held, Link, LinkId, Stage, Topology};
use crate::waits::{Blocked, WatchedFd};

/// Largest number of descriptors of one process that are read.
const ENDPOINTS_MAX: usize = 32;

/// A process and its descendants. One whose parent has ended still belongs to them if it was found earlier. (PR_SET_CHILD_SUBREAPER would find all of
/// them, but would change the parent that orphans get.)
pub struct WriterTree {
    root: i32,
    /// The standard input of the first process, if that is a pipe without a name: its writers may be outside the tree.
    input: Option<Identity>,
    /// Processes whose descriptors may not be read.
    pub unseen: BTreeSet<i32>,
}

impl WriterTree {
    pub fn new(root: i32) -> Self {
        let input = endpoint(root, 0).filter(|end| end.reads).and_then(|end| end.ipc_file.pipe());
        let input = input.filter(|pipe| Some(pipe.0) == nameless());
        Self { root, input, unseen: BTreeSet::new() }
    }

    /// Samples the processes; each is a stage. The links are in the order in which they may be full: first those that are known to be.
    pub fn topology(&mut self, sampler: &mut Sampler) -> Topology {
        let own = [std::process::id().cast_signed()];
        let mut pids = BTreeSet::from_iter(sampler.sample_tree(self.root, &own, usize::MAX));
        for orphan in sampler.orphans() {
            pids.extend(sampler.sample_tree(orphan, &own, usize::MAX));
        }
        sampler.forget_others();
        sampler.end_round();
        let processes = || pids.iter().filter_map(|pid| sampler.processes.get(pid));
        let mut links: Vec<Link> = Vec::new();
        for (at, process) in processes().enumerate() {
            links.extend(self.written_by(process).into_iter().map(|link| Link { writers: vec![at], ..link }));
        }
        links.extend(self.read_first(processes()));
        model::sort_by_key(&mut links, |link| link.fill.is_sampled());
        let mut visited = HashSet::new();
        links.retain(|link| visited.insert(link.id));
        let stage = |process: &SampledProcess| Stage { pids: vec![process.pid], leaders: 1, is_shell: false };
        Topology { stages: processes().map(stage).collect(), links }
    }

    /// The pipes to which a process can write, and that may be full.
    fn written_by(&mut self, process: &SampledProcess) -> Vec<Link> {
        let pid = process.pid;
        let pipe = |end: Endpoint, asleep| {
            let held = Held { pid, fd: end.fd, writes: true };
            Some(link(held, end.ipc_file.pipe().filter(|_| end.writes)?, asleep))
        };
        let mut links = Vec::new();
        let mut any = false;
        for waits in &process.waits {
            match waits {
                Blocked::On(fds) => {
                    let written = fds.iter().filter(|watched| watched.writes);
                    links.extend(written.filter_map(|watched| {
                        pipe(endpoint(pid, watched.fd)?, only_descriptor(waits) == Some(*watched))
                    }));
                }
                Blocked::Nothing | Blocked::InWrite | Blocked::InPoll => any = true,
                Blocked::InRead | Blocked::Children | Blocked::Time | Blocked::Other => {}
            }
        }
        if any {
            match endpoints(pid) {
                Ok(all) => links.extend(all.take(ENDPOINTS_MAX).filter_map(|end| pipe(end, false))),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => drop(self.unseen.insert(pid)),
                Err(_) => {}
            }
        }
        // Opening a FIFO for reading would wake a writer that waits for a reader. A FIFO with a writer that sleeps in a write already has a reader.
        links.retain(|link| {
            !link.fill.is_sampled() || matches!(link.id, LinkId::Pipe(pipe) if Some(pipe.0) == nameless())
        });
        links
    }

    /// The pipe that the first process reads, unless a process waits for data in it.
    fn read_first<'a>(&self, mut processes: impl Iterator<Item = &'a SampledProcess>) -> Option<Link> {
        let pipe = self.input?;
        let is_awaited = |process: &SampledProcess| {
            let read = process.waits.iter().filter_map(only_descriptor).filter(|watched| watched.reads);
            let mut ends = read.filter_map(|watched| endpoint(process.pid, watched.fd));
            ends.any(|end| end.ipc_file == IpcFile::Pipe(pipe))
        };
        let held = Held { pid: self.root, fd: 0, writes: false };
        (!processes.any(is_awaited)).then(|| link(held, pipe, false))
    }
}

/// A pipe that a process holds; `asleep`: a thread sleeps in a write to it, so that it is full.
fn link(held: Held, pipe: Identity, asleep: bool) -> Link {
    let fill = if asleep { FillSource::Known(Fill::NO_ROOM) } else { FillSource::Pipe(pipe) };
    Link { held: vec![held], ..Link::new(LinkId::Pipe(pipe), fill) }
}

/// The descriptor for which a thread waits, if there is only one.
fn only_descriptor(waits: &Blocked) -> Option<WatchedFd> {
    match waits {
        Blocked::On(fds) => <[WatchedFd; 1]>::try_from(&fds[..]).ok().map(|[only]| only),
        _ => None,
    }
}
