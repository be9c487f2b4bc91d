//! What `top` shows: the chains of this machine, with rates since a mark and the stage for which each chain waited in the last samples. The chains are
//! those of [`crate::machine`], their samples those of [`crate::sampler`]; the flow of bytes follows from the counters of the ends (`crate::flow`).

mod owner;
mod record;
mod shares;

use std::collections::HashMap;

use model::{Chain, ChainLink, ChainLinkKind, ChainStage, StageActivity, TopSnapshot, monotonic_ns};

use crate::fullness::Fill;
use crate::machine::Machine;
use crate::quota::ChargedPipes;
use crate::sampler::process::SampledProcess;
use crate::sampler::{Sample, Sampler};
use crate::topology::{LinkId, Topology};
use owner::Owners;
use shares::StageShares;

/// Samples the chains of this machine.
#[derive(Default)]
pub struct ChainSampler {
    machine: Machine,
    sampler: Sampler,
    /// The chains of the last round, and what it showed of them.
    chains: Vec<Topology>,
    samples: Vec<Sample>,
    /// By the first process of a stage.
    shares: HashMap<i32, StageShares>,
    /// The beginning of the time for which rates are computed (CLOCK_MONOTONIC).
    mark_ns: u64,
    marked_fills: HashMap<LinkId, Fill>,
    /// Bytes that each TCP socket had received at the mark.
    marked_received: HashMap<u64, u64>,
    owners: Owners,
    charged: ChargedPipes,
}

impl ChainSampler {
    /// Takes the first sample, and starts the time for which rates are computed.
    pub fn start() -> Self {
        let mut sampler = Self { mark_ns: monotonic_ns(), ..Self::default() };
        sampler.sample();
        sampler.mark();
        sampler
    }

    /// Starts the time for which rates are computed, at the last sample.
    pub fn mark(&mut self) {
        self.mark_ns = self.machine.census.scanned_ns;
        self.marked_fills = self.links().filter_map(|(link, fill)| Some((link, fill?))).collect();
        let received = self.machine.pairs.iter().filter_map(|(inode, end)| Some((*inode, end.received?)));
        self.marked_received = received.collect();
        self.sampler.processes.values_mut().for_each(SampledProcess::mark);
    }

    /// Samples all processes and links.
    pub fn sample(&mut self) {
        self.chains = self.machine.chains(&mut self.sampler, &self.chains, self.mark_ns);
        self.samples = self.sampler.sample(&self.chains);
        let mut shares = HashMap::new();
        for (chain, sample) in self.chains.iter().zip(&self.samples) {
            let unknown = chain.links.iter().zip(&sample.fills).filter(|(_, fill)| fill.is_none());
            unknown.for_each(|(link, _)| self.machine.note_unknown(link));
            let each = sample.waiting.shares();
            for ((stage, of_stage), waited) in chain.stages.iter().zip(&sample.stages).zip(each) {
                let before = self.shares.get(&stage.pids[0]).copied().unwrap_or_default();
                shares.insert(stage.pids[0], before.with(waited, of_stage.state.passes_time));
            }
        }
        self.shares = shares;
    }

    /// Every link of every chain, and how full it is.
    fn links(&self) -> impl Iterator<Item = (LinkId, Option<Fill>)> {
        let chains = self.chains.iter().zip(&self.samples);
        chains.flat_map(|(chain, sample)| {
            chain.links.iter().map(|link| link.id).zip(sample.fills.iter().copied())
        })
    }

    /// The chains of the last sample, with rates since [`ChainSampler::mark`].
    pub fn snapshot(&mut self) -> TopSnapshot {
        let chains = self.chains.iter().zip(&self.samples);
        let mut chains: Vec<Chain> = chains.filter_map(|(chain, sample)| self.chain(chain, sample)).collect();
        // A terminal at which nothing happens is not shown; one that takes no more bytes is.
        let rests = |link: &ChainLink| link.kind == ChainLinkKind::Pty && link.bytes_per_s == Some(0.0);
        let is_full = |stage: &ChainStage| stage.doing == StageActivity::WaitsToWrite;
        chains.retain(|chain| !chain.links.iter().all(rests) || chain.stages.iter().any(is_full));
        TopSnapshot {
            elapsed_ns: monotonic_ns() - self.mark_ns,
            chains,
            foreign_processes: self.machine.census.foreign(),
            two_way_sockets: self.machine.two_way_sockets,
            jobservers: self.machine.jobservers(),
            pipe_quota: self.charged.most_charged(self.machine.census.endpoints()),
        }
    }
}
