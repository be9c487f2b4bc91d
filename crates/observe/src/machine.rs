//! The topology of this machine, from /proc: every chain of processes that pipes, FIFOs, sockets and pseudoterminals connect.
//!
//! `census` remembers which files the processes have open; `directions` says in which direction bytes go through each. Processes that hold a side of a
//! link that others hold, too, are sampled: what they wait for shows which of several inherited ends they use ([`crate::topology::grouping`]).

mod census;
mod directions;
pub(crate) mod jobserver;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::endpoint::{Endpoint, IpcFile, ProcessFiles};
use crate::open_file::Identity;
use crate::sampler::Sampler;
use crate::sockets::{self, PairedSocket};
use crate::topology::grouping::{Holder, Side, chains_of};
use crate::topology::{FillSource, Link, LinkId, Topology};
use crate::waits::{Blocked, WatchedFd};
use census::Census;
use directions::Directions;

/// The processes of this machine and their open files.
#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) census: Census,
    /// Processes whose descriptors may have changed since they were read.
    outdated: HashSet<i32>,
    pub(crate) pairs: HashMap<u64, PairedSocket>,
    pub(crate) two_way_sockets: usize,
    /// The pipes of jobservers; for each the make processes that have it open, with their descriptors.
    jobservers: BTreeMap<Identity, Vec<(i32, i32)>>,
}

impl Machine {
    /// Samples the processes that links connect, and returns the chains. `before` are the chains of the last round; rates are computed since `mark_ns`
    /// (CLOCK_MONOTONIC).
    pub(crate) fn chains(
        &mut self,
        sampler: &mut Sampler,
        before: &[Topology],
        mark_ns: u64,
    ) -> Vec<Topology> {
        self.forget_ended(sampler, before, mark_ns);
        let mut holders = self.holders();
        self.sample_processes(sampler, &mut holders, mark_ns);
        sampler.end_round();
        self.note_waits(sampler, &mut holders);
        let mut chains = chains_of(&holders, &self.census.parents());
        for link in chains.iter_mut().flat_map(|chain| &mut chain.links) {
            link.fill = self.fill_source(link);
        }
        chains
    }

    /// Forgets the processes that have ended. A parent now has the counters of a child that it has waited for (proc_pid_io(5)), so that its
    /// rates are upper bounds if it is not known what that child had moved before the mark.
    fn forget_ended(&mut self, sampler: &mut Sampler, before: &[Topology], mark_ns: u64) {
        let outdated = std::mem::take(&mut self.outdated);
        let active = sampler.sample_known();
        for (pid, ended) in self.census.update(&active, &outdated) {
            let was_sampled =
                sampler.forget(pid, Some(ended.parent), are_one_stage(before, pid, ended.parent));
            let existed_before_mark = ended.after_ns.is_none_or(|ns| ns < mark_ns);
            if !was_sampled && let Some(parent) = sampler.processes.get_mut(&ended.parent) {
                parent.at_most |= existed_before_mark;
            }
        }
    }

    /// Notes in each holder the sides for which one of its threads waits, and whether one waits for a child.
    fn note_waits(&self, sampler: &mut Sampler, holders: &mut [Holder]) {
        for holder in holders {
            let Some(process) = sampler.processes.get_mut(&holder.pid) else { continue };
            if let Some(files) = self.census.files(holder.pid) {
                process.waits.iter_mut().for_each(|waits| resolve(waits, files));
            }
            holder.waits_for_children = process.waits.contains(&Blocked::Children);
            for watched in process.waits.iter().flat_map(Blocked::watched_fds) {
                let is_awaited = |(side, held): &(&Side, &Vec<i32>)| {
                    let is_watched = if side.writes { watched.writes } else { watched.reads };
                    is_watched && held.contains(&watched.fd)
                };
                holder.awaited.extend(holder.sides.iter().filter(is_awaited).map(|(side, _)| *side));
            }
        }
    }

    /// The sides of links that each process has open, without the links of this process and the pipes of jobservers.
    fn holders(&mut self) -> Vec<Holder> {
        let sockets = || self.census.endpoints();
        let any_socket = sockets().any(|(_, end)| matches!(end.ipc_file, IpcFile::Socket(_)));
        self.pairs = if any_socket { sockets::pairs().unwrap_or_default() } else { HashMap::new() };
        let ends = || self.census.endpoints().chain(self.census.terminals());
        let directions = Directions::new(&self.pairs, ends());
        self.two_way_sockets = directions.undirected();
        let own = std::process::id().cast_signed();
        self.jobservers = jobserver::find(&self.census);
        let ours: HashSet<LinkId> = ends()
            .filter(|(pid, _)| *pid == own)
            .flat_map(|(_, end)| directions.sides(&end))
            .map(|side| side.link)
            .chain(self.jobservers.keys().copied().map(LinkId::Pipe))
            .collect();
        let mut holders: BTreeMap<i32, Holder> = BTreeMap::new();
        for (pid, end) in ends() {
            for side in directions.sides(&end).into_iter().filter(|side| !ours.contains(&side.link)) {
                let is_young = self.census.may_hold_inherited_ends(pid);
                let holder =
                    holders.entry(pid).or_insert_with(|| Holder { pid, is_young, ..Holder::default() });
                holder.sides.entry(side).or_default().push(end.fd);
            }
        }
        holders.into_values().collect()
    }

    /// Samples the processes that share a link, or have one as a standard stream, and removes those that have ended.
    fn sample_processes(&mut self, sampler: &mut Sampler, holders: &mut Vec<Holder>, mark_ns: u64) {
        let mut holders_of: HashMap<LinkId, HashSet<i32>> = HashMap::new();
        for holder in holders.iter() {
            for side in holder.sides.keys() {
                holders_of.entry(side.link).or_default().insert(holder.pid);
            }
        }
        holders.retain(|holder| {
            let shares = holder
                .sides
                .iter()
                .any(|(side, fds)| holders_of[&side.link].len() > 1 || fds.iter().any(|fd| *fd < 2));
            let after_ns = self.census.known.get(&holder.pid).and_then(|known| known.after_ns);
            let is_there =
                !shares || sampler.sample_process(holder.pid, after_ns.filter(|ns| *ns >= mark_ns));
            if !is_there {
                self.outdated.insert(holder.pid);
            }
            is_there
        });
    }

    /// How it is found out how full a link is.
    fn fill_source(&self, link: &Link) -> FillSource {
        match link.id {
            LinkId::Pipe(file) => FillSource::Pipe(file),
            LinkId::Pair { from, to } => {
                let (reader, writer) = (self.pairs.get(&to), self.pairs.get(&from));
                let fill = reader.zip(writer).map(|(reader, writer)| sockets::fill(reader, writer));
                fill.map_or(FillSource::Unknown, FillSource::Known)
            }
            _ => FillSource::Unknown,
        }
    }

    /// Notes that a link could not be opened: the process through which that was tried has other descriptors by now.
    pub(crate) fn note_unknown(&mut self, link: &Link) {
        self.outdated.extend(link.opened_by().filter(|_| link.fill.pipe().is_some()).map(|held| held.pid));
    }
}

fn are_one_stage(chains: &[Topology], one: i32, other: i32) -> bool {
    let mut stages = chains.iter().flat_map(|chain| &chain.stages);
    stages.any(|stage| stage.pids.contains(&one) && stage.pids.contains(&other))
}

/// Of a thread that is blocked in a read or a write of some pipe: if the process has only one for this direction, it is that one.
fn resolve(waits: &mut Blocked, files: &ProcessFiles) {
    let writes = match waits {
        Blocked::InRead => false,
        Blocked::InWrite => true,
        _ => return,
    };
    let is_pipe = |end: &&Endpoint| end.ipc_file.pipe().is_some() && end.is_for(writes);
    let mut pipes = files.endpoints.iter().filter(is_pipe);
    if let Some(first) = pipes.next()
        && pipes.all(|end| end.ipc_file == first.ipc_file)
    {
        *waits = Blocked::On(vec![WatchedFd { fd: first.fd, reads: !writes, writes }]);
    }
}
