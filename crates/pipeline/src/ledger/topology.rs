//! The topology of the running stages.

use std::collections::BTreeMap;

use observe::sampler::{STAGE_PROCESSES_MAX, Sampler};
use observe::topology::{FillSource, Held, Link, LinkId, Stage, Topology};

use super::Ledger;
use crate::history::FillSources;

impl Ledger {
    /// Samples the processes of the running stages, and returns the topology of those that have not ended, with the entry of each stage. A stage
    /// without a link behind it has what its standard output is instead.
    pub(crate) fn topology(&self, sampler: &mut Sampler, source: &FillSources<'_>) -> (Vec<usize>, Topology) {
        let (mut entries, mut stages) = (Vec::new(), Vec::new());
        for index in self.running() {
            let process = &self.processes[index];
            let (pid, is_shell) = (process.pid, self.is_shell(process));
            let pids = match is_shell {
                true => Vec::from_iter(sampler.sample_process(pid, None).then_some(pid)),
                false => sampler.sample_tree(pid, &process.earlier_children, STAGE_PROCESSES_MAX),
            };
            if !pids.is_empty() {
                entries.push(index);
                stages.push(Stage { pids, leaders: 1, is_shell });
            }
        }
        sampler.forget_others();
        sampler.end_round();
        let mut links: BTreeMap<LinkId, Link> = BTreeMap::new();
        for (at, index) in entries.iter().enumerate() {
            let process = &self.processes[*index];
            let written = process.writes.map_or(LinkId::Output(process.pid), LinkId::Given);
            for (id, writes) in [(Some(written), true), (process.reads.map(LinkId::Given), false)] {
                let Some(id) = id else { continue };
                let link = links.entry(id).or_insert_with(|| Link::new(id, FillSource::AnyPipe));
                if writes { &mut link.writers } else { &mut link.readers }.push(at);
                link.held.push(Held { pid: process.pid, fd: i32::from(writes), writes });
            }
        }
        for link in links.values_mut() {
            let (Some(id), has_reader) = (link.id.given(), !link.readers.is_empty()) else { continue };
            link.fill = source(id).filter(|_| has_reader).unwrap_or(FillSource::Unknown);
            link.readers_ended = !has_reader && self.end_of(id, false).is_some();
        }
        (entries, Topology { stages, links: links.into_values().collect() })
    }
}
