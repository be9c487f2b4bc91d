//! The cases of several bench records, put together where they may be compared: one workload, one data level, the
//! same tasks, placement and relays.

use std::collections::BTreeSet;

use model::{BenchRecord, CaseRecord};

use crate::document::labelled;
use crate::lists::grouped;
use crate::reason::reason;
use crate::view::{Axes, Labels, SWEEP_FROM, ranked};
use crate::{offsets, words};

/// A bench record on the page, and what tells its rows from those of others; empty where it is the only one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) label: &'a str,
    pub(crate) record: &'a BenchRecord,
}

/// A case, its name, and where it comes from.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    pub(super) source: Source<'a>,
    pub(super) name: String,
    pub(super) case: &'a CaseRecord,
}

/// Cases that may be compared.
#[derive(Debug)]
pub(super) struct CaseSet<'a> {
    pub(super) axes: Axes,
    pub(super) entries: Vec<Entry<'a>>,
}

/// All sets, checked figures first, streams before round trips.
pub(super) fn sets<'a>(sources: &[Source<'a>]) -> Vec<CaseSet<'a>> {
    let entries = |source: &Source<'a>| {
        let source = *source;
        let are_swept = offsets::are_swept(source.record);
        let labels = if are_swept { Labels::but_for_align(source.record) } else { Labels::of(source.record) };
        let cases = ranked(source.record).filter(|case| case.worker.is_none());
        cases.map(move |case| (Axes::of(case), Entry { source, name: labels.of_case(case), case }))
    };
    let sets = grouped(sources.iter().flat_map(entries)).into_iter();
    let mut sets: Vec<CaseSet<'a>> = sets.map(|(axes, entries)| CaseSet { axes, entries }).collect();
    sets.sort_by_key(|set| set.axes.order());
    sets
}

impl<'a> CaseSet<'a> {
    /// Every block size, the smallest first.
    pub(super) fn blocks(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| entry.case.block_bytes).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Whether a line over the block sizes says more than a list for each.
    pub(super) fn is_sweep(&self) -> bool {
        self.blocks().len() >= SWEEP_FROM
    }

    /// Whether a line over the places of the buffers does.
    pub(super) fn is_over_offsets(&self) -> bool {
        offsets::places(self.entries.iter().map(|entry| entry.case)).len() >= SWEEP_FROM
    }

    /// The entries of one block size.
    pub(super) fn of_block(&self, bytes: u64) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(move |entry| entry.case.block_bytes == bytes)
    }

    /// Whether any of its cases is of this record.
    pub(super) fn has(&self, source: &Source) -> bool {
        self.entries.iter().any(|entry| std::ptr::eq(entry.source.record, source.record))
    }

    /// Who held the ends and where, and what became of the data, in words.
    pub(super) fn conditions(&self) -> String {
        let parts = [Some(self.ends()), Some(self.data()), self.relays()];
        parts.into_iter().flatten().collect::<Vec<String>>().join(" · ")
    }

    /// What sets it apart from the others of its workload, to stand behind a title; empty where there is nothing.
    pub(super) fn title_suffix(&self, sets: &[Self]) -> String {
        let others = || sets.iter().filter(|set| set.axes.workload == self.axes.workload);
        let differs = |part: &dyn Fn(&Self) -> Option<String>| {
            part(self).filter(|own| others().any(|other| part(other).as_ref() != Some(own)))
        };
        let parts = [
            differs(&|set| Some(set.ends())),
            differs(&|set| Some(set.data())),
            differs(&|set| set.relays()),
        ];
        parts.into_iter().flatten().map(|part| format!(" · {part}")).collect()
    }

    fn ends(&self) -> String {
        let cpus = self.entries.iter().map(|entry| entry.case.cpus.as_slice()).find(|cpus| !cpus.is_empty());
        words::ends(self.axes.tasks, self.axes.placement, cpus.unwrap_or_default())
    }

    fn data(&self) -> String {
        let check = self.entries.iter().find_map(|entry| entry.case.check);
        words::data(self.axes.data, check).to_owned()
    }

    fn relays(&self) -> Option<String> {
        let relays = self.axes.relays as usize;
        (relays > 0).then(|| format!("through {}", words::count(relays, "relay")))
    }
}

impl Entry<'_> {
    /// The name with the record it is from, where there are several.
    pub(super) fn full_name(&self) -> String {
        labelled(&self.name, self.source.label)
    }

    /// Why there is no figure.
    pub(super) fn why_not(&self) -> Option<String> {
        reason(self.case, self.source.record.settings.interrupted)
    }

    /// Samples the figures are made of.
    pub(super) fn n(&self) -> Option<u32> {
        u32::try_from(self.case.samples.len()).ok()
    }
}
