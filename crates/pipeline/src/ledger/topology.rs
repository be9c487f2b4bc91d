//! The topology of the running stages.

use std::collections::BTreeMap;

use observe::sampler::{STAGE_PROCESSES_MAX, Sampler};
use observe::topology::{self, Link, LinkId, Stage, Topology};

use super::Ledger;
use crate::stage_sampler::{FillSource, FillSources};

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
                let link = links.entry(id).or_insert_with(|| Link::new(id, topology::FillSource::Unknown));
                if writes { &mut link.writers } else { &mut link.readers }.push(at);
            }
        }
        for link in links.values_mut() {
            let first = |at: &[usize]| at.first().map(|at| self.processes[entries[*at]].pid);
            let (reader, writer) = (first(&link.readers), first(&link.writers));
            link.fill = match (link.id, reader) {
                (LinkId::Output(pid), _) => topology::FillSource::Pipe { pid, fd: 1, identity: None },
                (LinkId::Given(id), Some(reader)) => match source(id) {
                    Some(FillSource::Pipe(pipe)) => {
                        topology::FillSource::Pipe { pid: reader, fd: 0, identity: Some(pipe) }
                    }
                    Some(FillSource::Sockets) => topology::FillSource::Sockets { reader, writer },
                    Some(FillSource::Known(fill)) => topology::FillSource::Known(fill),
                    None => topology::FillSource::Unknown,
                },
                _ => topology::FillSource::Unknown,
            };
            let had_reader = |id| self.end_of(id, false).is_some();
            link.readers_ended = reader.is_none() && link.id.given().is_some_and(had_reader);
        }
        (entries, Topology { stages, links: links.into_values().collect() })
    }
}
