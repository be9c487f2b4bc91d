//! The record of a chain.

use std::fs;

use model::{Chain, ChainLink, ChainLinkKind, ChainProcess, ChainStage, StageActivity, monotonic_ns};

use super::ChainSampler;
use super::graph::{ChainGraph, GraphLink, LinkId};
use crate::blame::stands_out;
use crate::end::{IpcFile, ProcessFiles, nameless};
use crate::flow::{EndFlow, flow};
use crate::fullness::Fill;
use crate::sampled_process::SampledProcess;
use crate::waits::Waits;

/// Share of a CPU above which a stage counts as computing; also the share of the time above which it counts as queueing for a CPU.
const BUSY_SHARE_MIN: f64 = 0.5;
/// Smallest share of the last samples in which a stage waited for time to pass, for it to count as sleeping even if it runs in this sample.
const SLEEP_SHARE_MIN: f64 = 0.25;
/// Smallest share of a CPU of an active stage. An inactive stage with an empty input does not hold the chain up: it has nothing to do.
const ACTIVE_CPU_MIN: f64 = 0.01;

/// What a stage or a thread does, and the link for which it waits.
type Doing = (StageActivity, Option<usize>);

impl ChainSampler {
    /// The record of a chain; `None` if a stage has no process any more.
    pub(super) fn chain(&self, graph: &ChainGraph) -> Option<Chain> {
        let stages: Vec<ChainStage> = (0..graph.stages.len()).map(|at| self.stage(graph, at)).collect();
        if stages.iter().any(|stage| stage.processes.is_empty()) {
            return None;
        }
        let links: Vec<ChainLink> = graph.links.iter().map(|link| self.link(graph, link)).collect();
        let held_up_by = held_up_by(&stages, &links);
        Some(Chain { stages, links, held_up_by })
    }

    fn stage(&self, graph: &ChainGraph, at: usize) -> ChainStage {
        let group = &graph.stages[at];
        let processes = || self.processes_of(graph, at);
        let rates: Vec<_> = processes().map(|process| process.rates(self.mark_ns)).collect();
        let process = |process: &SampledProcess| ChainProcess {
            pid: process.pid,
            name: process.name.clone(),
            command: process.command.clone(),
            user: self.owners.user(process.pid),
            container: self.owners.container(process.pid),
        };
        let is_there = |pid: &&i32| self.processes.contains_key(pid);
        let (doing, waits_at) = self.doing(graph, at);
        let shares = self.shares.get(&group.pids[0]).copied().unwrap_or_default();
        // A loop of short sleeps runs in many of the samples, but uses little CPU time.
        let sleeps = doing == StageActivity::Works && shares.passed_time >= SLEEP_SHARE_MIN;
        ChainStage {
            stage: at,
            leaders: group.pids[..group.leaders].iter().filter(is_there).count(),
            processes: processes().map(process).collect(),
            read_bytes_per_s: rates.iter().map(|rates| rates.read).sum(),
            write_bytes_per_s: rates.iter().map(|rates| rates.written).sum(),
            at_most: rates.iter().any(|rates| rates.at_most),
            cpus: rates.iter().filter_map(|rates| rates.cpus).sum(),
            queued: processes().map(|process| process.slice.queued).fold(0.0, f64::max),
            doing: if sleeps { StageActivity::Sleeps } else { doing },
            waits_at,
            held_up: shares.held_up,
            read_buffer_offset: only(processes().map(|process| process.buffers.of_reads())),
            write_buffer_offset: only(processes().map(|process| process.buffers.of_writes())),
            slow_copies: None,
            held_back: group.pids.iter().find_map(|pid| self.held_back.get(pid)).cloned(),
        }
    }

    /// What a stage does, and the link that it waits for.
    pub(super) fn doing(&self, graph: &ChainGraph, at: usize) -> Doing {
        let processes = || self.processes_of(graph, at);
        if processes().map(|process| process.slice.cpu).sum::<f64>() > BUSY_SHARE_MIN {
            return (StageActivity::Computes, None);
        }
        if processes().any(|process| process.slice.queued > BUSY_SHARE_MIN) {
            return (StageActivity::Queues, None);
        }
        let each = processes().flat_map(|process| {
            let state = match process.state {
                'T' | 't' => Some((StageActivity::Stopped, None)),
                'Z' | 'X' => Some((StageActivity::Ended, None)),
                'D' => Some((StageActivity::Disk, None)),
                _ => None,
            };
            let waits = process.waits.iter().map(|waits| self.waits_at(graph, at, process.pid, waits));
            state.into_iter().chain(waits.filter(move |_| state.is_none()))
        });
        // Takes the most informative state of all processes and threads. (The order of the enum is not this order.)
        let rank = |(doing, link): &Doing| match doing {
            StageActivity::Disk => 0,
            StageActivity::WaitsToWrite if link.is_some() => 1,
            StageActivity::WaitsToRead if link.is_some() => 2,
            StageActivity::MayWait => 3,
            StageActivity::Works => 4,
            StageActivity::Sleeps => 5,
            StageActivity::Elsewhere => 6,
            StageActivity::Stopped => 7,
            StageActivity::Children => 8,
            _ => 9,
        };
        each.min_by_key(rank).unwrap_or((StageActivity::Elsewhere, None))
    }

    /// What a thread does, and the link for which it waits.
    fn waits_at(&self, graph: &ChainGraph, at: usize, pid: i32, waits: &Waits) -> Doing {
        let place = |fd: i32, writes: bool| {
            let files = self.census.files(pid)?;
            let end = files.ends.iter().chain(&files.terminals).find(|end| end.fd == fd)?;
            let is_it =
                |link: &GraphLink| is_end(link, end.ipc_file, writes) && stages(link, writes).contains(&at);
            graph.links.iter().position(is_it)
        };
        let waits_at = |fd: i32, writes: bool| {
            let doing = if writes { StageActivity::WaitsToWrite } else { StageActivity::WaitsToRead };
            place(fd, writes).map(|place| (doing, Some(place)))
        };
        let at_only_pipe = |writes: bool| {
            let fd = self.only_pipe(pid, writes);
            fd.and_then(|fd| waits_at(fd, writes)).unwrap_or((StageActivity::MayWait, None))
        };
        match waits {
            Waits::Nothing => (StageActivity::Works, None),
            Waits::For(fds) => {
                let mut directions =
                    fds.iter().flat_map(|fd| [(fd.fd, true, fd.writes), (fd.fd, false, fd.reads)]);
                directions
                    .find_map(|(fd, writes, is_awaited)| waits_at(fd, writes).filter(|_| is_awaited))
                    .unwrap_or((StageActivity::Elsewhere, None))
            }
            Waits::ToRead => at_only_pipe(false),
            Waits::ToWrite => at_only_pipe(true),
            Waits::Somewhere => (StageActivity::MayWait, None),
            Waits::Children => (StageActivity::Children, None),
            Waits::Time => (StageActivity::Sleeps, None),
            Waits::Other => (StageActivity::Elsewhere, None),
        }
    }

    /// A descriptor of the only pipe that a process can read, or write: it is the pipe for which the process waits. `None` if there are several.
    fn only_pipe(&self, pid: i32, writes: bool) -> Option<i32> {
        let ends = self.census.files(pid)?.ends.iter();
        let mut pipes = ends.filter(|end| end.ipc_file.pipe().is_some() && end.is_for(writes));
        let first = pipes.next()?;
        pipes.all(|end| end.ipc_file == first.ipc_file).then_some(first.fd)
    }

    fn link(&self, graph: &ChainGraph, link: &GraphLink) -> ChainLink {
        let fill = self.fills.get(&link.id);
        let held = |fill: Option<&Fill>| fill.map_or(0.0, |fill| fill.held_bytes as f64);
        let seconds = (monotonic_ns() - self.mark_ns) as f64 / 1e9;
        let more = held(fill) - held(self.marked_fills.get(&link.id));
        let [writers, readers] = [true, false].map(|writes| self.end_flow(graph, link, writes, seconds));
        // The kernel counts the bytes that a TCP socket has received.
        let received = match link.id {
            LinkId::Pair { to, .. } => self.pairs.get(&to).and_then(|end| Some((to, end.received?))),
            _ => None,
        };
        let counted = received.map(|(to, now)| {
            let before = self.marked_received.get(&to).copied().unwrap_or(0);
            (now.saturating_sub(before) as f64, false)
        });
        let flowed = counted.or_else(|| flow(writers, readers, more)).filter(|_| seconds > 0.0);
        let (kind, name) = self.name(graph, link);
        ChainLink {
            kind,
            name,
            writers: link.writers.clone(),
            readers: link.readers.clone(),
            bytes_per_s: flowed.map(|(bytes, _)| bytes / seconds),
            at_least: flowed.is_some_and(|(_, at_least)| at_least),
            held_bytes: fill.map(|fill| fill.held_bytes),
            capacity_bytes: fill.map(|fill| fill.capacity_bytes).filter(|bytes| *bytes > 0),
            fullness: fill.map(|fill| fill.share),
            over: fill.is_some_and(|fill| fill.over),
        }
    }

    fn end_flow(&self, graph: &ChainGraph, link: &GraphLink, writes: bool, seconds: f64) -> EndFlow {
        let stages = stages(link, writes);
        let processes = || stages.iter().flat_map(|at| self.processes_of(graph, *at));
        let rates: Vec<_> = processes().map(|process| process.rates(self.mark_ns)).collect();
        let rate =
            rates.iter().map(|rates| if writes { rates.written } else { rates.read }).sum::<Option<f64>>();
        let only_here = |files: &ProcessFiles| {
            let elsewhere = if writes { files.writes_elsewhere } else { files.reads_elsewhere };
            let mut ends = files.ends.iter().filter(|end| end.is_for(writes));
            !elsewhere && ends.all(|end| is_end(link, end.ipc_file, writes))
        };
        EndFlow {
            bytes: rate.map(|rate| rate * seconds).filter(|_| !stages.is_empty()),
            at_most: rates.iter().any(|rates| rates.at_most),
            only_here: processes().all(|process| self.census.files(process.pid).is_some_and(only_here)),
            slept: !stages.is_empty() && rates.iter().all(|rates| rates.cpus == Some(0.0)),
        }
    }

    fn name(&self, graph: &ChainGraph, link: &GraphLink) -> (ChainLinkKind, String) {
        match link.id {
            LinkId::Pair { from, to } => {
                let end = self.pairs.get(&from).filter(|end| !end.name.is_empty());
                let pair = || (ChainLinkKind::Socketpair, format!("socket:[{from}] → socket:[{to}]"));
                end.map_or_else(pair, |end| (end.kind, end.name.clone()))
            }
            LinkId::Terminal { number, .. } => (ChainLinkKind::Pty, format!("/dev/pts/{number}")),
            LinkId::Pipe(file) if Some(file.0) == nameless() => {
                (ChainLinkKind::Pipe, format!("pipe:[{}]", file.1))
            }
            LinkId::Pipe(file) => {
                let path = [true, false].into_iter().find_map(|writes| {
                    let mut pids = stages(link, writes).iter().flat_map(|at| &graph.stages[*at].pids);
                    pids.find_map(|pid| path_of(*pid, super::end_of(&self.census, *pid, file, writes)?.fd))
                });
                (ChainLinkKind::Fifo, path.unwrap_or_else(|| format!("fifo:[{}]", file.1)))
            }
        }
    }
}

/// The offset that all processes of a stage have; `None` if their offsets differ.
fn only(offsets: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let mut seen = offsets.flatten();
    let first = seen.next()?;
    seen.all(|offset| offset == first).then_some(first)
}

fn stages(link: &GraphLink, writes: bool) -> &[usize] {
    if writes { &link.writers } else { &link.readers }
}

pub(super) fn is_end(link: &GraphLink, ipc_file: IpcFile, writes: bool) -> bool {
    match (link.id, ipc_file) {
        (LinkId::Pipe(file), IpcFile::Pipe(end)) => file == end,
        (LinkId::Pair { from, to }, IpcFile::Socket(end)) => end == if writes { from } else { to },
        (LinkId::Terminal { number, namespace, written }, ipc_file) => {
            ipc_file == IpcFile::Terminal { number, namespace, is_master: written != writes }
        }
        _ => false,
    }
}

/// The path of the FIFO that a process has as this descriptor.
pub(super) fn path_of(pid: i32, fd: i32) -> Option<String> {
    Some(fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?.to_string_lossy().into_owned())
}

/// The stage that the chain waits for, unless there is nothing to do.
fn held_up_by(stages: &[ChainStage], links: &[ChainLink]) -> Option<usize> {
    let mut order: Vec<usize> = (0..stages.len()).collect();
    model::sort_by(&mut order, |one, other| stages[*other].held_up.total_cmp(&stages[*one].held_up));
    let share = |place: usize| order.get(place).map_or(0.0, |at| stages[*at].held_up);
    let first = *order.first()?;
    let flows = links.iter().any(|link| link.bytes_per_s.is_some_and(|rate| rate > 0.0));
    let is_active = stages[first].cpus > ACTIVE_CPU_MIN
        || stages[first].queued > ACTIVE_CPU_MIN
        || stages[first].doing == StageActivity::Disk;
    let waited_for = links
        .iter()
        .any(|link| link.readers.contains(&first) && link.held_bytes.is_some_and(|bytes| bytes > 0));
    (stands_out(share(0), share(1), 1.0) && (flows || is_active || waited_for)).then_some(first)
}
