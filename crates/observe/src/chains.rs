//! Samples all chains of processes on this machine that pipes, FIFOs, sockets and pseudoterminals connect.
//!
//! `census` remembers which files the processes have open. From these files `graph` finds the stages and the chains. Each sample reads what their
//! processes do (`crate::sampled_process`) and how full the links between them are; from this follow the flow of bytes (`crate::flow`) and
//! the stage for which the chain waits (`blame`).

mod census;
mod directions;
mod graph;
mod jobserver;
mod owner;
mod record;
mod shares;

use std::collections::{BTreeMap, HashMap, HashSet};

use model::{
    Chain, ChainLink, ChainLinkKind, ChainStage, HeldBack, StageActivity, TopSnapshot, monotonic_ns,
};

use crate::activity::Slice;
use crate::blame::{LinkState, StageState, assign_waiting};
use crate::end::{End, IpcFile, nameless};
use crate::fullness::{Fill, Gauge};
use crate::held_back::HeldBackTracker;
use crate::line_buffering::needs_all_input;
use crate::open_file::Identity;
use crate::quota::ChargedPipes;
use crate::sampled_process::SampledProcess;
use crate::sockets::{self, PairEnd};
use crate::stage_processes::KEPT_PROCESSES_MAX;
use crate::waits::{Awaited, Waits, pass_time};
use census::Census;
use directions::Directions;
use graph::{ChainGraph, GraphLink, Holder, LinkId, Side, graphs};
use owner::Owners;
use shares::StageShares;

/// Samples the chains of this machine.
#[derive(Default)]
pub struct ChainSampler {
    census: Census,
    gauge: Gauge,
    processes: HashMap<i32, SampledProcess>,
    /// Processes whose descriptors may have changed since they were read.
    outdated: HashSet<i32>,
    pairs: HashMap<u64, PairEnd>,
    fills: HashMap<LinkId, Fill>,
    graphs: Vec<ChainGraph>,
    /// By the first process of a stage.
    shares: HashMap<i32, StageShares>,
    /// The beginning of the time for which rates are computed (CLOCK_MONOTONIC).
    mark_ns: u64,
    marked_scan: u64,
    marked_fills: HashMap<LinkId, Fill>,
    two_way_sockets: usize,
    /// The pipes of jobservers; for each the make processes that have it open, with their descriptors.
    jobservers: BTreeMap<Identity, Vec<(i32, i32)>>,
    owners: Owners,
    /// Bytes that each TCP socket had received at the mark.
    marked_received: HashMap<u64, u64>,
    charged: ChargedPipes,
    buffers: HeldBackTracker,
    /// Output that processes keep in their buffers.
    held_back: HashMap<i32, HeldBack>,
}

impl ChainSampler {
    /// Takes the first sample, and starts the time for which rates are computed.
    pub fn start() -> Self {
        let mut sampler = Self { mark_ns: monotonic_ns(), ..Self::default() };
        sampler.sample();
        sampler.mark();
        sampler
    }

    /// Starts the time for which rates are computed.
    pub fn mark(&mut self) {
        self.mark_ns = monotonic_ns();
        self.marked_scan = self.census.scans;
        self.marked_fills = self.fills.clone();
        let received = self.pairs.iter().filter_map(|(inode, end)| Some((*inode, end.received?)));
        self.marked_received = received.collect();
        self.processes.values_mut().for_each(SampledProcess::mark);
    }

    /// Samples all processes and links.
    pub fn sample(&mut self) {
        let active = self.processes.iter().filter(|(_, process)| process.has_run());
        let active: HashSet<i32> = active.map(|(pid, _)| *pid).collect();
        let outdated = std::mem::take(&mut self.outdated);
        let ended = self.census.update(&active, &outdated);
        for (pid, known) in ended {
            let of_the_same_stage = self.are_one_stage(pid, known.parent);
            let child = self.processes.remove(&pid);
            let Some(parent) = self.processes.get_mut(&known.parent) else { continue };
            match child {
                Some(child) => parent.note_ended_child(&child, of_the_same_stage),
                // It was not sampled, and existed before the mark: the bytes that it has moved are not known.
                None => parent.at_most |= known.since <= self.marked_scan,
            }
        }
        let mut holders = self.holders();
        self.sample_processes(&mut holders, &active);
        for holder in &mut holders {
            let process = self.processes.get(&holder.pid);
            let waits = process.map_or(&[][..], |process| &process.waits);
            holder.waits_for_children = waits.contains(&Waits::Children);
            let fds = waits.iter().flat_map(|waits| if let Waits::For(fds) = waits { &fds[..] } else { &[] });
            let awaited: Vec<Awaited> = fds.copied().collect();
            let is_awaited = |(side, fds): &(&Side, &Vec<i32>)| {
                let is_it = |it: &Awaited| if side.writes { it.writes } else { it.reads };
                awaited.iter().any(|awaited| is_it(awaited) && fds.contains(&awaited.fd))
            };
            holder.awaited = holder.sides.iter().filter(is_awaited).map(|(side, _)| *side).collect();
        }
        self.graphs = graphs(&holders, &self.census.parents());
        self.sample_links(&active);
        self.sample_buffers();
        self.assign_waiting();
    }

    /// Finds the output that processes hold back although there is room for it in a link.
    fn sample_buffers(&mut self) {
        let now_ns = monotonic_ns();
        self.held_back.clear();
        for (graph, link) in links(&self.graphs) {
            let is_blocked = self.fills.get(&link.id).is_some_and(|fill| fill.is_full());
            if self.ends_in_all_input(graph, link) {
                continue;
            }
            for pid in link.writers.iter().flat_map(|at| &graph.stages[*at].pids) {
                let is_output = |end: &End| end.fd == 1 && record::is_end(link, end.ipc_file, true);
                if self.census.files(*pid).is_some_and(|files| files.ends.iter().any(is_output))
                    && let Some(held) = self.buffers.sample(*pid, now_ns, is_blocked)
                {
                    self.held_back.insert(*pid, held);
                }
            }
        }
        self.buffers.retain(|pid| self.processes.contains_key(&pid));
    }

    /// Whether a reader of a link, or a stage behind it where each writes one link, needs all its input: lines that come earlier change nothing
    /// there.
    fn ends_in_all_input(&self, graph: &ChainGraph, link: &GraphLink) -> bool {
        let needs_all = |pid: &i32| self.processes.get(pid).is_some_and(|one| needs_all_input(&one.command));
        let (mut behind, mut looked_at) = (link.readers.clone(), 0);
        while let Some(at) = behind.get(looked_at).copied() {
            if graph.stages[at].pids.iter().any(needs_all) {
                return true;
            }
            let mut written = graph.links.iter().filter(|next| next.writers.contains(&at));
            if let (Some(next), None) = (written.next(), written.next()) {
                let new = next.readers.iter().filter(|reader| !behind.contains(reader));
                behind.extend(new.copied().collect::<Vec<_>>());
            }
            looked_at += 1;
        }
        false
    }

    fn are_one_stage(&self, one: i32, other: i32) -> bool {
        let stages = self.graphs.iter().flat_map(|graph| &graph.stages);
        stages.into_iter().any(|stage| stage.pids.contains(&one) && stage.pids.contains(&other))
    }

    /// The sides of links that each process has open, without the links of this process and the pipes of jobservers.
    fn holders(&mut self) -> Vec<Holder> {
        let ends = || self.census.ends();
        let any_socket = ends().any(|(_, end)| matches!(end.ipc_file, IpcFile::Socket(_)));
        self.pairs = if any_socket { sockets::pairs().unwrap_or_default() } else { HashMap::new() };
        let ends = || self.census.ends().chain(self.census.terminals());
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
    fn sample_processes(&mut self, holders: &mut Vec<Holder>, active: &HashSet<i32>) {
        let mut holders_of: HashMap<LinkId, HashSet<i32>> = HashMap::new();
        for holder in holders.iter() {
            for side in holder.sides.keys() {
                holders_of.entry(side.link).or_default().insert(holder.pid);
            }
        }
        self.processes.values_mut().for_each(|process| process.is_stale = process.state != 'Z');
        holders.retain(|holder| {
            let shares = holder
                .sides
                .iter()
                .any(|(side, fds)| holders_of[&side.link].len() > 1 || fds.iter().any(|fd| *fd < 2));
            if !shares {
                return true;
            }
            let seen = match self.processes.get_mut(&holder.pid) {
                Some(process) => process.sample(active.contains(&holder.pid)),
                None => {
                    let keep = self.processes.len() < KEPT_PROCESSES_MAX;
                    let since = self.census.known.get(&holder.pid).map_or(0, |known| known.since);
                    let began_meanwhile = since > self.marked_scan && self.marked_scan > 0;
                    let process = SampledProcess::new(holder.pid, keep, began_meanwhile);
                    process.map(|process| drop(self.processes.insert(holder.pid, process)))
                }
            };
            if seen.is_none() {
                self.outdated.insert(holder.pid);
            }
            seen.is_some()
        });
    }

    fn sample_links(&mut self, active: &HashSet<i32>) {
        let mut fills = HashMap::new();
        for (graph, link) in links(&self.graphs) {
            let mut ends = [&link.writers, &link.readers].into_iter();
            let slept = |at: &usize| !graph.stages[*at].pids.iter().any(|pid| active.contains(pid));
            // If no process at its ends has run, it has not changed.
            let unchanged = ends.all(|stages| !stages.is_empty() && stages.iter().all(slept));
            let fill = match link.id {
                _ if unchanged && self.fills.contains_key(&link.id) => self.fills.get(&link.id).copied(),
                LinkId::Pipe(file) => {
                    let of = |stages: &[usize], writes| {
                        let mut pids = stages.iter().flat_map(|at| &graph.stages[*at].pids).copied();
                        pids.find_map(|pid| Some((pid, end_of(&self.census, pid, file, writes)?)))
                    };
                    // A FIFO is opened only if it has a reader: opening it would wake a writer that waits for a reader.
                    let is_fifo = Some(file.0) != nameless();
                    let at =
                        of(&link.readers, false).or_else(|| of(&link.writers, true).filter(|_| !is_fifo));
                    let fill = at.and_then(|(pid, end)| self.gauge.pipe(pid, end.fd, Some(file)));
                    if let (None, Some((pid, _))) = (fill, at) {
                        self.outdated.insert(pid);
                    }
                    fill
                }
                LinkId::Pair { from, to } => {
                    let (reader, writer) = (self.pairs.get(&to), self.pairs.get(&from));
                    reader.zip(writer).map(|(reader, writer)| sockets::fill(reader, writer))
                }
                LinkId::Terminal { .. } => None,
            };
            if let Some(fill) = fill {
                fills.insert(link.id, fill);
            }
        }
        self.fills = fills;
    }

    fn assign_waiting(&mut self) {
        let mut shares = HashMap::new();
        for graph in &self.graphs {
            let state = |at: usize| StageState {
                idle: self.processes_of(graph, at).all(|process| process.slice.idle),
                rests: self.processes_of(graph, at).all(|process| process.slice.rests()),
                // All its threads wait for time to pass, or for the end of a child.
                passes_time: pass_time(self.processes_of(graph, at).flat_map(|process| &process.waits)),
                waits_at: self.doing(graph, at).1,
                is_unread: false,
            };
            let stages: Vec<StageState> = (0..graph.stages.len()).map(state).collect();
            let link = |link: &GraphLink| LinkState {
                writers: link.writers.clone(),
                readers: link.readers.clone(),
                fill: self.fills.get(&link.id).map(|fill| self.over_time(graph, link, *fill)),
            };
            let links: Vec<LinkState> = graph.links.iter().map(link).collect();
            let waited = assign_waiting(&stages, &links).shares(&stages, &links);
            for ((stage, state), waited) in graph.stages.iter().zip(&stages).zip(waited) {
                let before = self.shares.get(&stage.pids[0]).copied().unwrap_or_default();
                shares.insert(stage.pids[0], before.with(waited, state.passes_time));
            }
        }
        self.shares = shares;
    }

    /// How full a link was since the previous sample.
    fn over_time(&self, graph: &ChainGraph, link: &GraphLink, fill: Fill) -> Fill {
        let [readers, writers] = [&link.readers, &link.writers].map(|stages| {
            let processes = stages.iter().flat_map(|at| self.processes_of(graph, *at));
            processes.map(|process| process.slice).collect::<Vec<Slice>>()
        });
        shares::over_time(fill, &readers, &writers)
    }

    /// The chains of the last sample, with rates since [`ChainSampler::mark`].
    pub fn snapshot(&mut self) -> TopSnapshot {
        let mut chains: Vec<Chain> = self.graphs.iter().filter_map(|graph| self.chain(graph)).collect();
        // A terminal at which nothing happens is not shown; one that takes no more bytes is.
        let rests = |link: &ChainLink| link.kind == ChainLinkKind::Pty && link.bytes_per_s == Some(0.0);
        let is_full = |stage: &ChainStage| stage.doing == StageActivity::WaitsToWrite;
        chains.retain(|chain| !chain.links.iter().all(rests) || chain.stages.iter().any(is_full));
        let jobservers = self.jobservers.iter().map(|(pipe, makes)| self.jobserver(*pipe, makes)).collect();
        TopSnapshot {
            elapsed_ns: monotonic_ns() - self.mark_ns,
            chains,
            foreign_processes: self.census.foreign(),
            two_way_sockets: self.two_way_sockets,
            jobservers,
            pipe_quota: self.charged.most_charged(self.census.ends()),
        }
    }

    fn processes_of(&self, graph: &ChainGraph, at: usize) -> impl Iterator<Item = &SampledProcess> + Clone {
        graph.stages[at].pids.iter().filter_map(|pid| self.processes.get(pid))
    }
}

/// Every link, with its chain.
fn links(graphs: &[ChainGraph]) -> impl Iterator<Item = (&ChainGraph, &GraphLink)> {
    graphs.iter().flat_map(|graph| graph.links.iter().map(move |link| (graph, link)))
}

/// The end of a pipe that a process has open.
fn end_of(census: &Census, pid: i32, file: Identity, writes: bool) -> Option<End> {
    let mut ends = census.files(pid)?.ends.iter().copied();
    ends.find(|end| end.ipc_file == IpcFile::Pipe(file) && end.is_for(writes))
}
