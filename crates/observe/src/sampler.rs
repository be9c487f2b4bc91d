//! The one sampler of processes and links: `run --stats`, `run --live`, `top` and `boost` read it.
//!
//! A round of samples has three steps. First processes are sampled ([`Sampler::sample_process`], [`Sampler::sample_tree`]), and the round of processes is
//! ended. Then the caller makes the topology: which of them are stages, and which links connect them. [`Sampler::sample`] says of it how full each
//! link is, what each stage did since the last round, which output it holds back, and for which stage the others waited (`crate::blame`).

pub mod process;
pub mod stage;

use std::collections::{HashMap, HashSet};

use model::{HeldBack, StageActivity, monotonic_ns};

use crate::activity::Slice;
use crate::blame::{LinkState, StageState, Waiting, assign_waiting};
use crate::brief_pipe::is_unread;
use crate::endpoint::endpoint;
use crate::fullness::{Fill, Gauge, socket_pair_fill};
use crate::held_back::HeldBackTracker;
use crate::open_file::Identity;
use crate::topology::{FillSource, Held, Link, LinkId, Stage, Topology};
use process::{Detail, SampledProcess};
use stage::StageProcesses;

/// Largest number of processes whose files in /proc are kept open: the usual limit is 1024 descriptors.
const KEPT_PROCESSES_MAX: usize = 200;

/// Most processes of a stage that are sampled.
pub const STAGE_PROCESSES_MAX: usize = 64;

/// Samples processes and links.
#[derive(Default)]
pub struct Sampler {
    detail: Detail,
    pub(crate) processes: HashMap<i32, SampledProcess>,
    /// The number of the last round, and when it ended (CLOCK_MONOTONIC).
    pub(crate) round: u64,
    pub(crate) round_ns: u64,
    gauge: Gauge,
    fills: HashMap<LinkId, Fill>,
    held_back: HeldBackTracker,
}

/// What one round shows of a topology.
pub struct Sample {
    /// By the index of a stage.
    pub stages: Vec<StageSample>,
    /// By the index of a link; `None` if that is not known.
    pub fills: Vec<Option<Fill>>,
    pub waiting: Waiting,
}

/// What one round shows of a stage.
pub struct StageSample {
    /// What its processes did since the last round.
    pub slice: Slice,
    pub state: StageState,
    pub doing: StageActivity,
    /// Output that one of its processes holds back although there is room for it.
    pub held_back: Option<HeldBack>,
}

impl Sampler {
    pub fn new(detail: Detail) -> Self {
        Self { detail, ..Self::default() }
    }

    /// Samples all processes that are known. Returns those that have run since the last round.
    pub(crate) fn sample_known(&mut self) -> HashSet<i32> {
        let mut known: HashSet<i32> = self.processes.keys().copied().collect();
        known.retain(|pid| self.sample_process(*pid, None) && self.processes[pid].has_run);
        known
    }

    /// Samples a process, once in a round. Returns whether it is there. `began_after`: as for [`SampledProcess::new`].
    pub fn sample_process(&mut self, pid: i32, began_after: Option<u64>) -> bool {
        let round = self.round + 1;
        if let Some(process) = self.processes.get_mut(&pid) {
            let is_there = process.round == round || process.sample(process.runs_on()).is_some();
            process.round = if is_there { round } else { process.round };
            return is_there;
        }
        let keep = self.processes.len() < KEPT_PROCESSES_MAX;
        let Some(mut process) = SampledProcess::new(pid, self.detail, keep, began_after) else {
            return false;
        };
        process.round = round;
        self.processes.insert(pid, process);
        true
    }

    /// Samples a process and its descendants, `most` processes in total, except those in `except`. Returns them, the process itself first; none if it has
    /// ended.
    pub fn sample_tree(&mut self, root: i32, except: &[i32], most: usize) -> Vec<i32> {
        let is_known = self.processes.contains_key(&root);
        let mut sampled = Vec::new();
        ::process::proc::tree(&[root], |pid| {
            // A child that was not there in the last round began after it.
            let began_after = (is_known && pid != root).then_some(self.round_ns);
            if except.contains(&pid) || sampled.len() >= most || !self.sample_process(pid, began_after) {
                return Vec::new();
            }
            sampled.push(pid);
            self.processes.get_mut(&pid).map_or_else(Vec::new, |process| process.children().to_vec())
        });
        sampled
    }

    /// The processes that were sampled in the last round, not yet in this one, and are still there: their parents have ended.
    pub fn orphans(&self) -> Vec<i32> {
        let left =
            self.processes.values().filter(|process| process.round <= self.round && process.is_there());
        left.map(|process| process.pid).collect()
    }

    /// Forgets a process that has ended. Returns whether it was known; its parent now has its counters. `of_the_same_stage`: as its parent.
    pub(crate) fn forget(&mut self, pid: i32, parent: Option<i32>, of_the_same_stage: bool) -> bool {
        let Some(child) = self.processes.remove(&pid) else { return false };
        if let Some(parent) = self.processes.get_mut(&parent.unwrap_or(child.parent)) {
            parent.note_ended_child(&child, of_the_same_stage);
        }
        true
    }

    /// Forgets every process that was not sampled in this round.
    pub fn forget_others(&mut self) {
        let gone = self.processes.values().filter(|process| process.round <= self.round);
        let gone: Vec<i32> = gone.map(|process| process.pid).collect();
        for pid in gone {
            self.forget(pid, None, true);
        }
    }

    /// Ends the round of processes.
    pub fn end_round(&mut self) {
        (self.round, self.round_ns) = (self.round + 1, monotonic_ns());
        let sampled = self.processes.values_mut().filter(|process| process.round == self.round);
        sampled.for_each(SampledProcess::end_round);
        self.held_back.retain(|pid| self.processes.contains_key(&pid));
    }

    /// The processes of a stage at the last round.
    pub fn stage<'a>(&'a self, pids: &'a [i32]) -> StageProcesses<'a> {
        StageProcesses { sampler: self, pids }
    }

    /// Samples the links of topologies whose processes have just been sampled, and judges all.
    pub fn sample(&mut self, topologies: &[Topology]) -> Vec<Sample> {
        let mut known = HashMap::new();
        let samples = topologies.iter().map(|topology| self.sample_one(topology, &mut known)).collect();
        self.fills = known;
        samples
    }

    fn sample_one(&mut self, topology: &Topology, known: &mut HashMap<LinkId, Fill>) -> Sample {
        let fill = |link: &Link| {
            let fill = known.get(&link.id).copied().or_else(|| self.fill(topology, link));
            known.extend(fill.map(|fill| (link.id, fill)));
            fill
        };
        let fills: Vec<Option<Fill>> = topology.links.iter().map(fill).collect();
        let held_back = self.sample_held_back(topology, &fills);
        let held = topology.held();
        let stage = |(stage, held_back): (&Stage, Option<HeldBack>)| {
            let processes = self.stage(&stage.pids);
            let slice = processes.slice(!stage.is_shell);
            let (doing, waits_at) = processes.doing(&slice, &held, &fills);
            let passes_time = slice.is_stopped || processes.pass_time();
            let (idle, rests) = (slice.idle, slice.rests());
            let state = StageState { idle, rests, passes_time, waits_at, is_unread: false };
            StageSample { slice, state, doing, held_back }
        };
        let mut stages: Vec<StageSample> = topology.stages.iter().zip(held_back).map(stage).collect();
        for link in topology.links.iter().filter(|link| link.readers.is_empty() && link.readers_ended) {
            for at in &link.writers {
                stages[*at].state.is_unread |= is_unread(topology.stages[*at].pids[0], 1);
            }
        }
        let waiting = self.waiting(topology, &stages, &fills);
        Sample { stages, fills, waiting }
    }

    /// How full a pipe is now, as [`Gauge::pipe`].
    pub fn pipe(&mut self, pid: i32, fd: i32, expected: Option<Identity>) -> Option<Fill> {
        self.gauge.pipe(pid, fd, expected)
    }

    fn fill(&mut self, topology: &Topology, link: &Link) -> Option<Fill> {
        let slept = |at: &usize| {
            let mut processes = topology.stages[*at].pids.iter().filter_map(|pid| self.processes.get(pid));
            processes.all(|process| !process.has_run)
        };
        let unchanged =
            || [&link.writers, &link.readers].iter().all(|end| !end.is_empty() && end.iter().all(slept));
        match link.fill {
            FillSource::Known(fill) => Some(fill),
            FillSource::Unknown => None,
            // If no process at its ends has run, it has not changed, unless a relay stands between them.
            _ if link.id.given().is_none() && self.fills.contains_key(&link.id) && unchanged() => {
                self.fills.get(&link.id).copied()
            }
            FillSource::Sockets => {
                socket_pair_fill(link.held_for(false)?.pid, link.held_for(true).map(|held| held.pid))
            }
            FillSource::Pipe(_) | FillSource::AnyPipe => {
                let (held, pipe) = (link.opened_by()?, link.fill.pipe());
                self.gauge.pipe(held.pid, held.fd, pipe)
            }
        }
    }

    /// The output that each stage holds back although there is room for it.
    fn sample_held_back(&mut self, topology: &Topology, fills: &[Option<Fill>]) -> Vec<Option<HeldBack>> {
        let now_ns = monotonic_ns();
        let needs_all = |pid: &i32| self.processes.get(pid).is_some_and(|process| process.needs_all_input);
        let needs_all: Vec<bool> =
            topology.stages.iter().map(|stage| stage.pids.iter().any(needs_all)).collect();
        let mut held_back = vec![None; topology.stages.len()];
        for ((link, fill), writers) in topology.links.iter().zip(fills).zip(topology.line_writers(&needs_all))
        {
            let is_blocked = fill.is_some_and(Fill::is_full);
            for at in writers.into_iter().filter(|at| !topology.stages[*at].is_shell) {
                for pid in &topology.stages[at].pids {
                    let held = Held { pid: *pid, fd: 1, writes: true };
                    // Of what a shell has started not all descriptors are known.
                    let writes_it = || match link.id {
                        LinkId::Given(_) | LinkId::Output(_) => {
                            endpoint(*pid, 1).is_some_and(|end| end.writes)
                        }
                        _ => link.held.contains(&held),
                    };
                    let held = self.held_back.sample(*pid, now_ns, is_blocked, writes_it);
                    held_back[at] = held_back[at].take().or(held);
                }
            }
        }
        held_back
    }

    fn waiting(&self, topology: &Topology, stages: &[StageSample], fills: &[Option<Fill>]) -> Waiting {
        let states: Vec<StageState> = stages.iter().map(|stage| stage.state).collect();
        let slices = |of: &[usize]| of.iter().map(|at| stages[*at].slice).collect::<Vec<Slice>>();
        let link = |(link, fill): (&Link, &Option<Fill>)| LinkState {
            writers: link.writers.clone(),
            readers: link.readers.clone(),
            fill: fill.map(|fill| fill.over_time(&slices(&link.readers), &slices(&link.writers))),
        };
        let links: Vec<LinkState> = topology.links.iter().zip(fills).map(link).collect();
        assign_waiting(&states, &links)
    }
}
