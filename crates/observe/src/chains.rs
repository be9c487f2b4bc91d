//! Every chain of processes that pipes, FIFOs and socket pairs join on this machine, sampled from outside.
//!
//! What processes have open is remembered (`census`), and with it which of them make a stage and which stages a chain (`graph`); each sample
//! asks what those processes do (`process`) and how full the links between them are, and from that what flows (`crate::flow`) and for which stage
//! the chain waits (`blame`).

mod census;
mod graph;
mod process;
mod record;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use model::{Chain, TopSnapshot};

use crate::blame::{LinkState, StageState, assign_waiting};
use crate::end::{End, Joint, nameless};
use crate::fullness::{Fill, Gauge};
use crate::quota::ChargedPipes;
use crate::sockets::{self, PairEnd};
use crate::waits::{Waits, pass_time};
use census::Census;
use graph::{ChainGraph, GraphLink, Holder, LinkId, Side, graphs};
use process::SampledProcess;

/// The most processes whose files in /proc are kept open: a program may have 1024 descriptors, as a rule.
const KEPT_PROCESSES_MAX: usize = 200;
/// The weight of all earlier samples beside the latest one: some four samples count.
const REMEMBERED: f64 = 0.6;

/// Samples the chains of this machine.
pub struct ChainSampler {
    census: Census,
    gauge: Gauge,
    processes: HashMap<i32, SampledProcess>,
    /// Processes whose descriptors have changed since they were read.
    doubted: HashSet<i32>,
    pairs: HashMap<u64, PairEnd>,
    fills: HashMap<LinkId, Fill>,
    graphs: Vec<ChainGraph>,
    /// For what share of the last samples the chain waited for a stage, by its first process.
    held_up: HashMap<i32, f64>,
    /// The beginning of the time that rates are of.
    mark: Instant,
    marked_look: u64,
    marked_fills: HashMap<LinkId, Fill>,
    two_way_sockets: usize,
    charged: ChargedPipes,
}

impl Default for ChainSampler {
    fn default() -> Self {
        let mut sampler = Self {
            census: Census::default(),
            gauge: Gauge::default(),
            processes: HashMap::new(),
            doubted: HashSet::new(),
            pairs: HashMap::new(),
            fills: HashMap::new(),
            graphs: Vec::new(),
            held_up: HashMap::new(),
            mark: Instant::now(),
            marked_look: 0,
            marked_fills: HashMap::new(),
            two_way_sockets: 0,
            charged: ChargedPipes::default(),
        };
        sampler.sample();
        sampler.mark();
        sampler
    }
}

impl ChainSampler {
    /// Begins anew the time that rates are of.
    pub fn mark(&mut self) {
        self.mark = Instant::now();
        self.marked_look = self.census.looks;
        self.marked_fills = self.fills.clone();
        self.processes.values_mut().for_each(SampledProcess::mark);
    }

    /// Takes a sample of everything.
    pub fn sample(&mut self) {
        let active = self.processes.iter().filter(|(_, process)| process.has_run());
        let active: HashSet<i32> = active.map(|(pid, _)| *pid).collect();
        let doubted = std::mem::take(&mut self.doubted);
        let ended = self.census.look(&active, &doubted);
        for (pid, known) in ended {
            let of_the_same_stage = self.are_one_stage(pid, known.parent);
            let child = self.processes.remove(&pid);
            let Some(parent) = self.processes.get_mut(&known.parent) else { continue };
            match child {
                Some(child) => parent.has_lost(&child, of_the_same_stage),
                // It was not sampled, and was there before: how much it has moved is not known.
                None => parent.at_most |= known.since <= self.marked_look,
            }
        }
        let mut holders = self.holders();
        self.sample_processes(&mut holders, &active);
        let waits_for_children = |pid: i32| {
            self.processes.get(&pid).is_some_and(|process| process.waits.contains(&Waits::Children))
        };
        let holders: Vec<Holder> = holders
            .into_iter()
            .map(|holder| Holder { waits_for_children: waits_for_children(holder.pid), ..holder })
            .collect();
        self.graphs = graphs(&holders, &self.census.parents());
        self.sample_links(&active);
        self.assign_waiting();
    }

    fn are_one_stage(&self, one: i32, other: i32) -> bool {
        let stages = self.graphs.iter().flat_map(|graph| &graph.stages);
        stages.into_iter().any(|stage| stage.pids.contains(&one) && stage.pids.contains(&other))
    }

    /// Which process holds which sides of which links, without the links of this process.
    fn holders(&mut self) -> Vec<Holder> {
        let ends = || self.census.ends();
        let any_socket = ends().any(|(_, end)| matches!(end.joint, Joint::Socket(_)));
        self.pairs = if any_socket { sockets::pairs().unwrap_or_default() } else { HashMap::new() };
        let mut fds: HashMap<u64, Vec<(i32, i32)>> = HashMap::new();
        for (pid, end) in ends() {
            if let Joint::Socket(inode) = end.joint {
                fds.entry(inode).or_default().push((pid, end.fd));
            }
        }
        let ways = Ways { pairs: &self.pairs, fds: &fds };
        self.two_way_sockets = ways.undirected();
        let own = std::process::id().cast_signed();
        let ours: HashSet<LinkId> = ends()
            .filter(|(pid, _)| *pid == own)
            .flat_map(|(_, end)| ways.sides(&end))
            .map(|side| side.link)
            .collect();
        let mut holders: BTreeMap<i32, Holder> = BTreeMap::new();
        for (pid, end) in ends() {
            for side in ways.sides(&end).into_iter().filter(|side| !ours.contains(&side.link)) {
                let holder = holders.entry(pid).or_insert_with(|| Holder { pid, ..Holder::default() });
                holder.sides.entry(side).or_default().push(end.fd);
            }
        }
        holders.into_values().collect()
    }

    /// Samples the processes that share a link, or have one as a standard stream; those that have ended are dropped.
    fn sample_processes(&mut self, holders: &mut Vec<Holder>, active: &HashSet<i32>) {
        let mut who: HashMap<LinkId, HashSet<i32>> = HashMap::new();
        for holder in holders.iter() {
            for side in holder.sides.keys() {
                who.entry(side.link).or_default().insert(holder.pid);
            }
        }
        self.processes.values_mut().for_each(|process| process.is_stale = process.state != 'Z');
        holders.retain(|holder| {
            let shares = holder
                .sides
                .iter()
                .any(|(side, fds)| who[&side.link].len() > 1 || fds.iter().any(|fd| *fd < 2));
            if !shares {
                return true;
            }
            let seen = match self.processes.get_mut(&holder.pid) {
                Some(process) => process.look(active.contains(&holder.pid)),
                None => {
                    let keep = self.processes.len() < KEPT_PROCESSES_MAX;
                    let since = self.census.known.get(&holder.pid).map_or(0, |known| known.since);
                    let process = SampledProcess::new(
                        holder.pid,
                        keep,
                        since > self.marked_look && self.marked_look > 0,
                    );
                    process.map(|process| drop(self.processes.insert(holder.pid, process)))
                }
            };
            if seen.is_none() {
                self.doubted.insert(holder.pid);
            }
            seen.is_some()
        });
    }

    fn sample_links(&mut self, active: &HashSet<i32>) {
        let links: Vec<_> =
            self.graphs.iter().flat_map(|graph| graph.links.iter().map(move |link| (graph, link))).collect();
        let mut fills = HashMap::new();
        for (graph, link) in links {
            let mut ends = [&link.writers, &link.readers].into_iter();
            let slept = |at: &usize| !graph.stages[*at].pids.iter().any(|pid| active.contains(pid));
            // Where no process at its ends has run it has not changed.
            let unchanged = ends.all(|stages| !stages.is_empty() && stages.iter().all(slept));
            let fill = match link.id {
                _ if unchanged && self.fills.contains_key(&link.id) => self.fills.get(&link.id).copied(),
                LinkId::Pipe(file) => {
                    let of = |stages: &[usize], writes| {
                        let mut pids = stages.iter().flat_map(|at| &graph.stages[*at].pids).copied();
                        pids.find_map(|pid| Some((pid, end_of(&self.census, pid, file, writes)?)))
                    };
                    // A writer that waits for a FIFO's reader would take us for one.
                    let is_fifo = Some(file.0) != nameless();
                    let at =
                        of(&link.readers, false).or_else(|| of(&link.writers, true).filter(|_| !is_fifo));
                    let fill = at.and_then(|(pid, end)| self.gauge.pipe(pid, end.fd, Some(file)));
                    if let (None, Some((pid, _))) = (fill, at) {
                        self.doubted.insert(pid);
                    }
                    fill
                }
                LinkId::Pair { from, to } => {
                    let (reader, writer) = (self.pairs.get(&to), self.pairs.get(&from));
                    reader.zip(writer).map(|(reader, writer)| sockets::fill(reader, writer))
                }
            };
            if let Some(fill) = fill {
                fills.insert(link.id, fill);
            }
        }
        self.fills = fills;
    }

    fn assign_waiting(&mut self) {
        let mut held_up = HashMap::new();
        for graph in &self.graphs {
            let state = |at: usize| StageState {
                idle: self.processes_of(graph, at).all(|process| process.slice.idle),
                rests: self.processes_of(graph, at).all(|process| process.slice.rests()),
                passes_time: self.passes_time(graph, at),
                waits_at: self.doing(graph, at).1,
            };
            let stages: Vec<StageState> = (0..graph.stages.len()).map(state).collect();
            let link = |link: &GraphLink| LinkState {
                writers: link.writers.clone(),
                readers: link.readers.clone(),
                fill: self.fills.get(&link.id).copied(),
            };
            let links: Vec<LinkState> = graph.links.iter().map(link).collect();
            let shares = assign_waiting(&stages, &links).shares(&stages, &links);
            for (stage, share) in graph.stages.iter().zip(shares) {
                let before = self.held_up.get(&stage.pids[0]).copied().unwrap_or(0.0);
                held_up.insert(stage.pids[0], before * REMEMBERED + share * (1.0 - REMEMBERED));
            }
        }
        self.held_up = held_up;
    }

    /// Whether all threads of a stage sleep until time has passed, or until a child ends.
    fn passes_time(&self, graph: &ChainGraph, at: usize) -> bool {
        pass_time(self.processes_of(graph, at).flat_map(|process| &process.waits))
    }

    /// Everything that was seen since [`ChainSampler::mark`].
    pub fn seen(&mut self) -> TopSnapshot {
        let chains: Vec<Chain> = self.graphs.iter().filter_map(|graph| self.chain(graph)).collect();
        TopSnapshot {
            elapsed_ns: self.mark.elapsed().as_nanos() as u64,
            chains,
            foreign_processes: self.census.foreign(),
            two_way_sockets: self.two_way_sockets,
            pipe_quota: self.charged.most_charged(self.census.ends()),
        }
    }

    fn processes_of(&self, graph: &ChainGraph, at: usize) -> impl Iterator<Item = &SampledProcess> + Clone {
        graph.stages[at].pids.iter().filter_map(|pid| self.processes.get(pid))
    }
}

/// The end of a pipe that a process holds.
fn end_of(census: &Census, pid: i32, file: crate::open_file::Identity, writes: bool) -> Option<End> {
    let ends = &census.known.get(&pid)?.holdings.as_ref()?.ends;
    ends.iter()
        .copied()
        .find(|end| end.joint == Joint::Pipe(file) && if writes { end.writes } else { end.reads })
}

/// Which way bytes go between sockets of a pair: the way that shutdown(2) has left, or that standard streams say.
struct Ways<'a> {
    pairs: &'a HashMap<u64, PairEnd>,
    /// Who holds which socket, and as which descriptors.
    fds: &'a HashMap<u64, Vec<(i32, i32)>>,
}

impl Ways<'_> {
    fn goes(&self, from: u64, to: u64) -> bool {
        let [Some(writer), Some(reader)] = [from, to].map(|inode| self.pairs.get(&inode)) else {
            return false;
        };
        let shut = |writer: &PairEnd, reader: &PairEnd| writer.no_writing || reader.no_reading;
        let is = |inode: u64, standard: &[i32]| {
            self.fds.get(&inode).is_some_and(|fds| fds.iter().any(|(_, fd)| standard.contains(fd)))
        };
        let said = is(from, &[1, 2]) || is(to, &[0]);
        !shut(writer, reader) && (said || shut(reader, writer))
    }

    /// Pairs between processes that do not say so.
    fn undirected(&self) -> usize {
        let between = |one: &u64, other: &u64| {
            let holders = |inode| self.fds.get(inode).into_iter().flatten().map(|(pid, _)| pid);
            holders(one).any(|pid| holders(other).any(|other| other != pid))
        };
        let undirected = |(one, end): &(&u64, &PairEnd)| {
            **one < end.peer
                && between(one, &end.peer)
                && !self.goes(**one, end.peer)
                && !self.goes(end.peer, **one)
        };
        self.pairs.iter().filter(undirected).count()
    }

    fn sides(&self, end: &End) -> Vec<Side> {
        match end.joint {
            Joint::Pipe(file) => {
                let side = |writes| Side { link: LinkId::Pipe(file), writes };
                [(end.reads, side(false)), (end.writes, side(true))]
                    .into_iter()
                    .filter(|(is, _)| *is)
                    .map(|(_, side)| side)
                    .collect()
            }
            Joint::Socket(inode) => {
                let Some(peer) = self.pairs.get(&inode).map(|end| end.peer) else { return Vec::new() };
                let ways = [(inode, peer, true), (peer, inode, false)].into_iter();
                ways.filter(|(from, to, _)| self.goes(*from, *to))
                    .map(|(from, to, writes)| Side { link: LinkId::Pair { from, to }, writes })
                    .collect()
            }
        }
    }
}
