//! The only grouping of cases: those of a group have the same values on some axes of [`AXES`]. With it, the cases that one chart
//! shows, and those that others are compared with: the plain pipe of a case, and the floors and ceilings of a ranking.

use std::cmp::Reverse;
use std::collections::HashMap;

use model::{AXES, AxisValue, BenchRecord, CaseRecord, DataLevel, Placement, Ratio, Role, Spec};
use stats::estimate::median;
use stats::ratio_of;

use crate::conditions::Conditions;
use crate::estimate::paired_speeds;
use crate::lists::{grouped, joined};
use crate::view::{BlockSizes, RankedRow, transports};

/// The axes, by their columns in CSV, on which cases are equal that are shown in one table.
pub(crate) const OF_ONE_BLOCK: &[&str] = &["workload", "data", "tasks", "placement", "relays", "block_bytes"];
/// Those on which cases are equal that are ranked against each other, whatever waits or spins.
pub(crate) const OF_ONE_LOAD: &[&str] = &[
    "workload",
    "data",
    "tasks",
    "placement",
    "relays",
    "block_bytes",
    "pairs",
    "senders",
    "receivers",
    "rate_per_s",
];
/// The CPUs of both ends.
pub(crate) const PLACED: &[&str] = &["placement", "cpus"];

/// The values of a case on some axes.
pub(crate) type Key = Vec<Option<AxisValue>>;

pub(crate) fn key(case: &CaseRecord, axes: &[&str]) -> Key {
    let axes = AXES.iter().filter(|axis| axes.contains(&axis.column));
    axes.map(|axis| (axis.value)(case)).collect()
}

/// Cases, or what has a case, in groups that are equal on these axes, in the order of their first cases.
pub(crate) fn groups<'a, T>(
    items: impl IntoIterator<Item = T>,
    case_of: impl Fn(&T) -> &'a CaseRecord,
    axes: &[&str],
) -> Vec<Vec<T>> {
    let keyed = items.into_iter().map(|item| (key(case_of(&item), axes), item));
    grouped(keyed).into_iter().map(|(_, items)| items).collect()
}

/// The order of groups: streams before round trips, checked cases first.
pub(crate) fn order(case: &CaseRecord) -> impl Ord + use<> {
    (case.workload, Reverse(case.data), case.tasks, case.placement, case.relays)
}

/// A bench record on the page, and the label of its rows; empty if it is the only record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) label: &'a str,
    pub(crate) record: &'a BenchRecord,
}

/// What one chart shows: cases of one workload, and of one placement, of a ranking or of those of a sweep.
#[derive(Debug)]
pub(crate) struct ChartedCases<'v, 'a> {
    pub(crate) rows: Vec<(&'v RankedRow<'a>, &'a CaseRecord)>,
    /// Whether they are shown as lines over the block sizes.
    pub(crate) is_sweep: bool,
}

impl<'a> ChartedCases<'_, 'a> {
    /// The first case, which has the axes of all.
    pub(crate) fn case(&self) -> &'a CaseRecord {
        self.rows[0].1
    }

    pub(crate) fn cases(&self) -> impl Iterator<Item = &'a CaseRecord> + Clone {
        self.rows.iter().map(|(_, case)| *case)
    }

    /// The records of its cases among these.
    pub(crate) fn sources<'s>(&self, all: &'s [Source<'a>]) -> impl Iterator<Item = &'s Source<'a>> {
        let has = |source: &&Source| {
            self.rows.iter().any(|(row, _)| std::ptr::eq(row.source.record, source.record))
        };
        all.iter().filter(has)
    }

    /// Its conditions as the first sentence of a caption, without the full stop.
    pub(crate) fn caption(&self) -> String {
        let text = Conditions::of_cases(self.cases()).text();
        let first: String = text.chars().take(1).flat_map(char::to_uppercase).collect();
        first + text.chars().skip(1).collect::<String>().as_str()
    }

    /// A title with the conditions in which it differs from the other charts of its workload.
    pub(crate) fn titled(&self, title: &str, all: &[Self]) -> String {
        let conditions: Vec<Conditions> = all.iter().map(|one| Conditions::of_cases(one.cases())).collect();
        let differing = Conditions::of_cases(self.cases()).without(&Conditions::shared_by(&conditions));
        joined([title, &differing.text()])
    }
}

/// The plain pipes of a record. Their way of waiting may differ from that of a case that is compared with them: a ring can spin, a pipe
/// cannot.
pub(crate) struct Pipes<'a>(HashMap<Key, Vec<&'a CaseRecord>>);

impl<'a> Pipes<'a> {
    pub(crate) fn from_record(record: &'a BenchRecord) -> Self {
        let plain = Spec::plain("pipe");
        let pipes = transports(record).filter(|case| case.spec == plain);
        Self(grouped(pipes.map(|case| (key(case, OF_ONE_LOAD), case))).into_iter().collect())
    }

    /// How many times as fast a ranked case is as its plain pipe, in the rounds that both have, with bounds. `None` if there is no pipe.
    pub(crate) fn against(&self, case: &CaseRecord) -> Option<Ratio> {
        ratio_of(&paired_speeds(case, self.pipe(case)?))
    }

    /// The same in the median round, without bounds.
    pub(crate) fn times(&self, case: &CaseRecord) -> Option<f64> {
        median(&paired_speeds(case, self.pipe(case)?)).filter(|times| times.is_finite())
    }

    /// The pipe to compare a case with. Of several, one that waits in the same way is preferred, then one with the same payload.
    pub(crate) fn pipe(&self, case: &CaseRecord) -> Option<&'a CaseRecord> {
        let is_ranked = case.role == Role::Ranked && case.worker.is_none();
        let pipes = self.0.get(&key(case, OF_ONE_LOAD)).filter(|_| is_ranked)?.iter().copied();
        pipes.min_by_key(|pipe| (pipe.wait != case.wait, pipe.payload != case.payload))
    }
}

/// All floors and ceilings of a record that were measured, in groups of one role, spec and workload.
#[derive(Debug)]
pub(crate) struct References<'a>(Vec<ReferenceGroup<'a>>);

#[derive(Debug)]
struct ReferenceGroup<'a> {
    by_block: HashMap<u64, Vec<&'a CaseRecord>>,
    all: Vec<&'a CaseRecord>,
}

impl<'a> References<'a> {
    pub(crate) fn from_record(record: &'a BenchRecord) -> Self {
        let cases = record.cases.iter().filter(|case| case.role != Role::Ranked && !case.samples.is_empty());
        let group = |all: Vec<&'a CaseRecord>| {
            let by_block = grouped(all.iter().map(|case| (case.block_bytes, *case)));
            ReferenceGroup { by_block: by_block.into_iter().collect(), all }
        };
        Self(groups(cases, |case| case, &["role", "spec", "workload"]).into_iter().map(group).collect())
    }

    /// The cases of a role.
    pub(crate) fn of_role(&self, role: Role) -> impl Iterator<Item = &'a CaseRecord> {
        self.0.iter().flat_map(|group| &group.all).copied().filter(move |case| case.role == role)
    }

    /// The cases of a role that share most with a ranking of these blocks, in their order in the record.
    pub(crate) fn nearest(
        &self,
        role: Role,
        blocks: BlockSizes,
        data: DataLevel,
        placement: Placement,
    ) -> Vec<&'a CaseRecord> {
        let mut found: Vec<&CaseRecord> = Vec::new();
        for group in self.0.iter().filter(|group| group.all[0].role == role) {
            let Some(block) = blocks.of(group.all[0].workload) else { continue };
            let distance = |case: &CaseRecord| (case.data != data, case.placement != placement);
            let cases = group.by_block.get(&block).unwrap_or(&group.all);
            let least = cases.iter().map(|case| distance(case)).min();
            found.extend(cases.iter().filter(|case| Some(distance(case)) == least));
        }
        // They are in one list, so that their addresses have its order.
        found.sort_unstable_by_key(|case| std::ptr::from_ref(*case));
        found
    }
}
