//! The record of a chain.

use model::{Chain, ChainLink, ChainLinkKind, ChainProcess, ChainStage, StageActivity, monotonic_ns};

use super::ChainSampler;
use crate::blame::stands_out;
use crate::endpoint::{ProcessFiles, nameless, path_of};
use crate::flow::{SideFlow, flow};
use crate::fullness::Fill;
use crate::sampler::process::SampledProcess;
use crate::sampler::{Sample, StageSample};
use crate::topology::{Link, LinkId, Topology};

/// Smallest share of the last samples in which a stage waited for time to pass, for it to count as sleeping even if it runs in this sample.
const SLEEP_SHARE_MIN: f64 = 0.25;
/// Smallest share of a CPU of an active stage. An inactive stage with an empty input does not hold the chain up: it has nothing to do.
const ACTIVE_CPU_MIN: f64 = 0.01;

impl ChainSampler {
    /// The record of a chain; `None` if a stage has no process any more.
    pub(super) fn chain(&self, chain: &Topology, sample: &Sample) -> Option<Chain> {
        let stages = sample.stages.iter().enumerate();
        let stages: Vec<ChainStage> = stages.map(|(at, of_stage)| self.stage(chain, at, of_stage)).collect();
        if stages.iter().any(|stage| stage.processes.is_empty()) {
            return None;
        }
        let links = chain.links.iter().zip(&sample.fills);
        let links: Vec<ChainLink> = links.map(|(link, fill)| self.link(chain, link, fill.as_ref())).collect();
        let held_up_by = find_bottleneck(&stages, &links);
        Some(Chain { stages, links, held_up_by, why: None })
    }

    /// The record of the stage at index `at`. Rates are those since the mark.
    fn stage(&self, chain: &Topology, at: usize, sample: &StageSample) -> ChainStage {
        let group = &chain.stages[at];
        let processes = || self.sampler.stage(&group.pids).each();
        let rates: Vec<_> = processes().map(|process| process.rates(self.mark_ns)).collect();
        let process = |process: &SampledProcess| ChainProcess {
            pid: process.pid,
            name: process.name.clone(),
            command: process.command.clone(),
            user: self.owners.user(process.pid),
            container: self.owners.container(process.pid),
        };
        let is_there = |pid: &&i32| self.sampler.processes.contains_key(pid);
        let shares = self.shares.get(&group.pids[0]).copied().unwrap_or_default();
        // A loop of short sleeps runs in many of the samples, but uses little CPU time.
        let sleeps = sample.doing == StageActivity::Works && shares.passed_time >= SLEEP_SHARE_MIN;
        ChainStage {
            stage: at,
            leaders: group.pids[..group.leaders].iter().filter(is_there).count(),
            processes: processes().map(process).collect(),
            read_bytes_per_s: rates.iter().map(|rates| rates.read).sum(),
            write_bytes_per_s: rates.iter().map(|rates| rates.written).sum(),
            at_most: rates.iter().any(|rates| rates.at_most),
            cpus: rates.iter().filter_map(|rates| rates.cpus).sum(),
            queued: processes().map(|process| process.slice.queued).fold(0.0, f64::max),
            doing: if sleeps { StageActivity::Sleeps } else { sample.doing },
            waits_at: sample.state.waits_at,
            held_up: shares.held_up,
            read_buffer_offset: common(processes().map(|process| process.buffers.of_reads())),
            write_buffer_offset: common(processes().map(|process| process.buffers.of_writes())),
            slow_copies: None,
            held_back: sample.held_back.clone(),
        }
    }

    /// The record of a link. Its rate is the bytes that have gone through since the mark ([`flow`]), or of a TCP socket those received.
    fn link(&self, chain: &Topology, link: &Link, fill: Option<&Fill>) -> ChainLink {
        let held_bytes = |fill: Option<&Fill>| fill.map_or(0.0, |fill| fill.held_bytes as f64);
        let seconds = (monotonic_ns() - self.mark_ns) as f64 / 1e9;
        let more_bytes = held_bytes(fill) - held_bytes(self.marked_fills.get(&link.id));
        let [writers, readers] = [true, false].map(|writes| self.side_flow(chain, link, writes, seconds));
        // The kernel counts the bytes that a TCP socket has received: the rate is exact.
        let received = match link.id {
            LinkId::Pair { to, .. } => self.machine.pairs.get(&to).and_then(|end| Some((to, end.received?))),
            _ => None,
        };
        let counted = received.map(|(to, now)| {
            let before = self.marked_received.get(&to).copied().unwrap_or(0);
            let is_lower_bound = false;
            (now.saturating_sub(before) as f64, is_lower_bound)
        });
        let flowed = counted.or_else(|| flow(writers, readers, more_bytes)).filter(|_| seconds > 0.0);
        let (kind, name) = self.name(link);
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

    /// What the processes at the writing (`writes`) or reading end of a link have moved in the last `seconds`.
    fn side_flow(&self, chain: &Topology, link: &Link, writes: bool, seconds: f64) -> SideFlow {
        let stages = link.stages(writes);
        let processes = || stages.iter().flat_map(|at| self.sampler.stage(&chain.stages[*at].pids).each());
        let rates: Vec<_> = processes().map(|process| process.rates(self.mark_ns)).collect();
        let rate =
            rates.iter().map(|rates| if writes { rates.written } else { rates.read }).sum::<Option<f64>>();
        let only_here = |files: &ProcessFiles| {
            let has_other_files = if writes { files.writes_elsewhere } else { files.reads_elsewhere };
            let mut ends = files.endpoints.iter().filter(|end| end.is_for(writes));
            !has_other_files && ends.all(|end| link.id.has_end(end.ipc_file, writes))
        };
        SideFlow {
            bytes: rate.map(|rate| rate * seconds).filter(|_| !stages.is_empty()),
            at_most: rates.iter().any(|rates| rates.at_most),
            only_here: processes()
                .all(|process| self.machine.census.files(process.pid).is_some_and(only_here)),
            slept: !stages.is_empty() && rates.iter().all(|rates| rates.cpus == Some(0.0)),
        }
    }

    /// The kind of a link, and its name: of a socket its address, of a file its path, else its inode.
    fn name(&self, link: &Link) -> (ChainLinkKind, String) {
        match link.id {
            LinkId::Pair { from, to } => {
                let end = self.machine.pairs.get(&from).filter(|end| !end.name.is_empty());
                let pair = || (ChainLinkKind::Socketpair, format!("socket:[{from}] → socket:[{to}]"));
                end.map_or_else(pair, |end| (end.kind, end.name.clone()))
            }
            LinkId::Terminal { number, .. } => (ChainLinkKind::Pty, format!("/dev/pts/{number}")),
            LinkId::Pipe(file) if Some(file.0) == nameless() => {
                (ChainLinkKind::Pipe, format!("pipe:[{}]", file.1))
            }
            // Only the ledger of a shell has these links.
            LinkId::Given(_) | LinkId::Output(_) => (ChainLinkKind::Pipe, String::new()),
            LinkId::Pipe(file) => {
                let mut held = [true, false].into_iter().filter_map(|writes| link.held_for(writes));
                let path = held.find_map(|held| path_of(held.pid, held.fd));
                (ChainLinkKind::Fifo, path.unwrap_or_else(|| format!("fifo:[{}]", file.1)))
            }
        }
    }
}

/// The offset that all processes of a stage have; `None` if their offsets differ.
fn common(offsets: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let mut seen = offsets.flatten();
    let first = seen.next()?;
    seen.all(|offset| offset == first).then_some(first)
}

/// The stage that the chain waits for, unless there is nothing to do.
fn find_bottleneck(stages: &[ChainStage], links: &[ChainLink]) -> Option<usize> {
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
