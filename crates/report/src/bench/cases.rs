//! The cases of bench records, divided into sets of cases that can be compared.

use std::collections::BTreeSet;

use model::{BenchRecord, CaseRecord};

use crate::document::labelled;
use crate::lists::{grouped, joined};
use crate::reason::reason;
use crate::view::{Axes, Labels, SWEEP_FROM, ranked};
use crate::{offsets, words};

/// A bench record on the page, and the label of its rows; empty if it is the only record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) label: &'a str,
    pub(crate) record: &'a BenchRecord,
}

/// A case, its name, and the record that holds it.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    pub(super) source: Source<'a>,
    pub(super) name: String,
    pub(super) case: &'a CaseRecord,
}

/// Cases that can be compared.
#[derive(Debug)]
pub(super) struct CaseSet<'a> {
    pub(super) axes: Axes,
    pub(super) entries: Vec<Entry<'a>>,
}

/// All sets, checked figures first, streams before round trips.
pub(super) fn sets<'a>(sources: &[Source<'a>]) -> Vec<CaseSet<'a>> {
    let entries = |source: &Source<'a>| {
        let source = *source;
        let beside = offsets::are_swept(source.record).then_some("align");
        let labels = Labels::without(source.record, beside);
        let cases = ranked(source.record).filter(|case| case.worker.is_none());
        cases.map(move |case| (Axes::from_case(case), Entry { source, name: labels.label(case), case }))
    };
    let sets = grouped(sources.iter().flat_map(entries)).into_iter();
    let mut sets: Vec<CaseSet<'a>> = sets.map(|(axes, entries)| CaseSet { axes, entries }).collect();
    model::sort_by_key(&mut sets, |set| set.axes.order());
    sets
}

impl<'a> CaseSet<'a> {
    /// Every block size, the smallest first.
    pub(super) fn blocks(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| entry.case.block_bytes).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Whether it is shown as lines over the block sizes, not as a ranking for each.
    pub(super) fn is_sweep(&self) -> bool {
        self.blocks().len() >= SWEEP_FROM
    }

    /// Whether it is shown as lines over the offsets of the buffers.
    pub(super) fn is_over_offsets(&self) -> bool {
        offsets::offsets(self.entries.iter().map(|entry| entry.case)).len() >= SWEEP_FROM
    }

    /// The entries of one block size.
    pub(super) fn of_block(&self, bytes: u64) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(move |entry| entry.case.block_bytes == bytes)
    }

    /// Whether any of its cases is of this record.
    pub(super) fn has(&self, source: &Source) -> bool {
        self.entries.iter().any(|entry| std::ptr::eq(entry.source.record, source.record))
    }

    /// Its conditions in words: the tasks and CPUs of the ends, what they did with the data, and the relays between them.
    fn conditions(&self) -> [String; 3] {
        let Axes { tasks, placement, data, relays, .. } = self.axes;
        let cases = || self.entries.iter().map(|entry| entry.case);
        let cpus = cases().map(|case| case.cpus.as_slice()).find(|cpus| !cpus.is_empty());
        let ends = words::ends(tasks, placement, cpus.unwrap_or_default());
        let data = words::data(data, cases().find_map(|case| case.check)).to_owned();
        [ends, data, words::relays(relays).unwrap_or_default()]
    }

    /// Its conditions as the first sentence of a caption, without the full stop.
    pub(super) fn caption(&self) -> String {
        let text = joined(self.conditions().iter().map(String::as_str));
        let first: String = text.chars().take(1).flat_map(char::to_uppercase).collect();
        first + text.chars().skip(1).collect::<String>().as_str()
    }

    /// A title with the conditions in which it differs from the other sets of its workload.
    pub(super) fn titled(&self, title: &str, sets: &[Self]) -> String {
        let own = self.conditions();
        let of_workload = sets.iter().filter(|set| set.axes.workload == self.axes.workload);
        let all: Vec<[String; 3]> = of_workload.map(Self::conditions).collect();
        let differing = (0..own.len()).filter(|at| all.iter().any(|other| other[*at] != own[*at]));
        joined(std::iter::once(title).chain(differing.map(|at| own[at].as_str())))
    }
}

impl Entry<'_> {
    /// The name, with that of the record if there are several.
    pub(super) fn full_name(&self) -> String {
        labelled(&self.name, self.source.label)
    }

    /// Why there is no figure.
    pub(super) fn why_not(&self) -> Option<String> {
        reason(self.case, self.source.record.settings.interrupted)
    }

    /// The number of its samples.
    pub(super) fn n(&self) -> Option<u32> {
        u32::try_from(self.case.samples.len()).ok()
    }
}
