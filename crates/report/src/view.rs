//! The rankings of a record. A row is one spec with its streams and its round trips. A ranking holds rows that can be compared: of
//! the same data level, tasks, placement and block. If the scheduler's choice was measured beside one pinned placement, a row has
//! both, and the figures of the scheduler's choice decide its rank, as those are what programs get.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use model::{
    BenchRecord, CaseRecord, DataLevel, Latency, Placement, Role, Spec, Tasks, Throughput, Workload,
};
use stats::TrialsByCpus;

use crate::conditions::Conditions;
use crate::document::labelled;
use crate::estimate::{figures_by_cpus, speed};
use crate::groups::{ChartedCases, Pipes, References, Source};
use crate::lists::grouped;
use crate::row_labels::RowLabels;
use crate::{languages, numbers, words};

/// Least number of block sizes, or of buffer offsets, that are shown as a sweep: in one table, and not in a table for each.
pub const SWEEP_FROM: usize = 4;

/// What all rows of a ranking have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RankingAxes {
    pub(crate) data: DataLevel,
    pub(crate) tasks: Tasks,
    pub(crate) placement: Placement,
    pub(crate) blocks: BlockSizes,
}

/// The block of a ranking's streams, and that of its round trips; `None` if it has none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlockSizes {
    pub(crate) stream: Option<u64>,
    pub(crate) round_trip: Option<u64>,
}

impl BlockSizes {
    pub(crate) fn of(self, workload: Workload) -> Option<u64> {
        match workload {
            Workload::Stream => self.stream,
            Workload::PingPong => self.round_trip,
        }
    }
}

/// Rows that can be compared, the best first.
#[derive(Debug)]
pub(crate) struct Ranking<'a> {
    pub(crate) axes: RankingAxes,
    /// The placement whose figures are beside those of the scheduler's choice.
    pub(crate) pinned: Option<Placement>,
    pub(crate) rows: Vec<RankedRow<'a>>,
    /// Whether any row other than the pipe's is compared with the pipe.
    pub(crate) against_pipe: bool,
}

/// One spec.
#[derive(Debug)]
pub(crate) struct RankedRow<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) label: String,
    /// At most one for each workload and placement: the streams, then the round trips, of each the one that ranks before the pinned one.
    cases: Vec<&'a CaseRecord>,
    /// The placement of its cases that do not rank.
    pinned: Option<Placement>,
    /// How many times as fast as the plain pipe, in the median of the rounds that both have.
    pub(crate) times_pipe: Option<f64>,
    /// Computed once, because all histograms of the case must be decoded for it.
    round_trip_by_cpus: OnceCell<Option<TrialsByCpus>>,
}

/// All rankings of a record, or of several that are shown side by side.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) rankings: Vec<Ranking<'a>>,
    /// The records, each with its floors and its ceilings.
    sources: Vec<(Source<'a>, References<'a>)>,
    /// The conditions that all rankings have in common.
    pub(crate) common: Conditions,
}

impl<'a> View<'a> {
    pub(crate) fn from_record(record: &'a BenchRecord) -> Self {
        Self::from_sources(&[Source { label: "", record }])
    }

    pub(crate) fn from_sources(sources: &[Source<'a>]) -> Self {
        let blocks = Blocks::new(sources);
        let rows = sources.iter().flat_map(|source| rows_of(*source, &blocks));
        let ranking = |(axes, rows)| Ranking::new(axes, blocks.pinned, rows);
        let mut rankings: Vec<Ranking<'a>> = grouped(rows).into_iter().map(ranking).collect();
        model::sort_by_key(&mut rankings, |ranking| ranking.axes.order());
        let conditions: Vec<Conditions> = rankings.iter().map(Ranking::conditions).collect();
        let common = Conditions::shared_by(&conditions);
        let sources = sources.iter().map(|source| (*source, References::from_record(source.record)));
        Self { sources: sources.collect(), rankings, common }
    }

    /// The record, of several the first one.
    pub(crate) fn record(&self) -> &'a BenchRecord {
        self.sources[0].0.record
    }

    /// The floors or the ceilings that belong to a ranking.
    pub(crate) fn references(&self, ranking: &Ranking, role: Role) -> Vec<&'a CaseRecord> {
        let RankingAxes { blocks, data, placement, .. } = ranking.axes;
        let nearest = |(_, all): &(_, References<'a>)| all.nearest(role, blocks, data, placement);
        self.sources.iter().flat_map(nearest).collect()
    }

    /// The rankings that are shown together, in their order: those of a sweep over many block sizes, else one alone.
    pub(crate) fn groups(&self) -> Vec<&[Ranking<'a>]> {
        let alike = |a: &Ranking, b: &Ranking| a.axes.without_sizes() == b.axes.without_sizes();
        let runs = self.rankings.chunk_by(alike);
        runs.flat_map(|run| run.chunks(if run.len() >= SWEEP_FROM { run.len() } else { 1 })).collect()
    }

    /// How the first ranking of a group differs from those of other groups, in words; empty if there are none.
    pub(crate) fn title(&self, group: &[Ranking<'a>]) -> String {
        let mut differing = group[0].conditions().without(&self.common);
        if group.len() > 1 {
            differing.blocks.clear();
        }
        differing.text()
    }

    /// What the charts of a workload show.
    pub(crate) fn charted(&self, workload: Workload) -> Vec<ChartedCases<'_, 'a>> {
        let of_groups = self.groups().into_iter();
        let all = of_groups.flat_map(|group| [false, true].map(|pinned| charted(group, workload, pinned)));
        all.filter(|one| !one.rows.is_empty()).collect()
    }
}

fn charted<'v, 'a>(rankings: &'v [Ranking<'a>], workload: Workload, pinned: bool) -> ChartedCases<'v, 'a> {
    let all_rows = rankings.iter().flat_map(|ranking| &ranking.rows);
    let rows = all_rows.filter_map(|row| Some((row, row.case(workload, pinned)?))).collect();
    ChartedCases { rows, is_sweep: rankings.len() > 1 }
}

/// The cases that are ranked: one pair of ends at its own speed.
pub(crate) fn ranked(record: &BenchRecord) -> impl Iterator<Item = &CaseRecord> {
    transports(record).filter(|case| !case.load().is_requested())
}

/// The cases that are ranked, and those under a requested load.
pub(crate) fn transports(record: &BenchRecord) -> impl Iterator<Item = &CaseRecord> {
    record.cases.iter().filter(|case| case.role == Role::Ranked)
}

impl<'a> Ranking<'a> {
    /// Sorts the rows: the fastest stream first, then the shortest round trip, then rows without figures as they were planned.
    fn new(axes: RankingAxes, pinned: Option<Placement>, mut rows: Vec<RankedRow<'a>>) -> Self {
        let speed = |row: &RankedRow, workload| {
            row.case(workload, false).and_then(speed).unwrap_or(f64::NEG_INFINITY)
        };
        let faster =
            |a: &RankedRow, b: &RankedRow, workload| speed(b, workload).total_cmp(&speed(a, workload));
        model::sort_by(&mut rows, |a, b| {
            faster(a, b, Workload::Stream).then_with(|| faster(a, b, Workload::PingPong))
        });
        let against_pipe = rows.iter().filter(|row| row.times_pipe.is_some()).count() > 1;
        Self { axes, pinned, rows, against_pipe }
    }

    pub(crate) fn conditions(&self) -> Conditions {
        let size = |workload| self.block_bytes(workload).map(numbers::size);
        let data = words::payload_remark(self.axes.data, self.cases().find_map(|case| case.check));
        Conditions {
            blocks: words::blocks(size(Workload::Stream), size(Workload::PingPong)),
            ends: self.ends(),
            data: data.to_owned(),
            ..Conditions::default()
        }
    }

    /// The CPUs of the pinned figures, in words: "CPUs 0,1".
    pub(crate) fn pinned_cpus(&self) -> Option<String> {
        let mut pinned = self.cases().filter(|case| Some(case.placement) == self.pinned);
        pinned.find(|case| !case.cpus.is_empty()).map(|case| words::cpus(&case.cpus))
    }

    /// The block of a workload; `None` if the ranking has none of its cases.
    pub(crate) fn block_bytes(&self, workload: Workload) -> Option<u64> {
        self.axes.blocks.of(workload)
    }

    /// The tasks at the ends and their CPUs, in words.
    fn ends(&self) -> String {
        let cpus = || self.cases().map(|case| case.cpus.as_slice()).find(|cpus| !cpus.is_empty());
        let shown_cpus = if self.pinned.is_some() { None } else { cpus() };
        let ends = words::describe_tasks_and_cpus(
            self.axes.tasks,
            self.axes.placement,
            shown_cpus.unwrap_or_default(),
        );
        match self.pinned_cpus() {
            Some(cpus) => format!("{ends}, and beside that pinned to {cpus}"),
            None => ends,
        }
    }

    /// The cases of all rows.
    pub(crate) fn cases(&self) -> impl Iterator<Item = &'a CaseRecord> {
        self.rows.iter().flat_map(RankedRow::cases)
    }
}

/// The rows of a record, each with the axes of its ranking. Of several cases of one name, workload and placement the first is in the
/// first row of that name, the second in the second, and so on.
fn rows_of<'a>(source: Source<'a>, blocks: &Blocks) -> Vec<(RankingAxes, RankedRow<'a>)> {
    let (labels, pipes) = (RowLabels::from_record(source.record), Pipes::from_record(source.record));
    // The pairs of a matrix have a table and a chart of their own.
    let cases = ranked(source.record).filter(|case| !languages::is_of_matrix(case));
    let of_one_name = grouped(cases.map(|case| ((blocks.axes(case), labels.label(case)), case)));
    let rows = of_one_name.into_iter().flat_map(|((axes, label), cases)| {
        let rows = one_of_each(cases).into_iter();
        rows.map(move |cases| (axes, label.clone(), cases)).collect::<Vec<_>>()
    });
    let row = |(axes, label, cases)| {
        let mut row = RankedRow {
            source,
            label,
            cases,
            pinned: blocks.pinned,
            times_pipe: None,
            round_trip_by_cpus: OnceCell::new(),
        };
        row.times_pipe = row.stream().or(row.round_trip()).and_then(|case| pipes.times(case));
        (axes, row)
    };
    rows.map(row).collect()
}

/// Lists of cases with at most one for each workload and placement.
fn one_of_each(cases: Vec<&CaseRecord>) -> Vec<Vec<&CaseRecord>> {
    let kind = |case: &CaseRecord| (case.workload, case.placement);
    let mut lists: Vec<Vec<&CaseRecord>> = Vec::new();
    for case in cases {
        match lists.iter_mut().find(|list| list.iter().all(|other| kind(other) != kind(case))) {
            Some(list) => list.push(case),
            None => lists.push(vec![case]),
        }
    }
    for list in &mut lists {
        model::sort_by_key(list, |case| (case.workload, case.placement != Placement::Any));
    }
    lists
}

impl<'a> RankedRow<'a> {
    pub(crate) fn cases(&self) -> impl Iterator<Item = &'a CaseRecord> + use<'a> {
        self.cases.clone().into_iter()
    }

    /// The case of a workload, as it ranks or with pinned ends.
    pub(crate) fn case(&self, workload: Workload, pinned: bool) -> Option<&'a CaseRecord> {
        let is_asked =
            |case: &&CaseRecord| case.workload == workload && (Some(case.placement) == self.pinned) == pinned;
        self.cases.iter().copied().find(is_asked)
    }

    /// The label, with that of the record if there are several.
    pub(crate) fn full_name(&self) -> String {
        labelled(&self.label, self.source.label)
    }

    /// Whether it is the pipe without options.
    pub(crate) fn is_plain_pipe(&self) -> bool {
        self.cases().next().is_some_and(|case| case.spec == Spec::plain("pipe"))
    }

    pub(crate) fn stream(&self) -> Option<&'a CaseRecord> {
        self.case(Workload::Stream, false)
    }

    pub(crate) fn round_trip(&self) -> Option<&'a CaseRecord> {
        self.case(Workload::PingPong, false)
    }

    pub(crate) fn throughput(&self) -> Option<&'a Throughput> {
        self.stream()?.throughput.as_ref()
    }

    pub(crate) fn latency(&self) -> Option<&'a Latency> {
        self.round_trip()?.latency_ns.as_ref()
    }

    /// The figures on one CPU and on two, if the scheduler chose.
    pub(crate) fn by_cpus(&self, workload: Workload) -> Option<TrialsByCpus> {
        match workload {
            Workload::Stream => figures_by_cpus(self.stream()?),
            Workload::PingPong => {
                *self.round_trip_by_cpus.get_or_init(|| figures_by_cpus(self.round_trip()?))
            }
        }
    }
}

impl RankingAxes {
    /// The order of the rankings: the checked figures first, streams before round trips.
    fn order(&self) -> impl Ord + use<> {
        let Self { data, tasks, placement, blocks } = *self;
        (Reverse(data), tasks, placement, blocks.stream.is_none(), blocks)
    }

    fn without_sizes(&self) -> impl PartialEq + use<> {
        let Self { data, tasks, placement, blocks } = *self;
        (data, tasks, placement, blocks.stream.is_some(), blocks.round_trip.is_some())
    }
}

/// The block sizes and placements of some records, which decide which cases share a row.
struct Blocks {
    stream_sizes: BTreeSet<u64>,
    round_trip_sizes: BTreeSet<u64>,
    /// The one pinned placement that was measured beside the scheduler's choice. In a sweep each has its own table.
    pinned: Option<Placement>,
}

impl Blocks {
    fn new(sources: &[Source]) -> Self {
        let cases = || sources.iter().flat_map(|source| ranked(source.record));
        let sizes = |workload| -> BTreeSet<u64> {
            cases().filter(|case| case.workload == workload).map(|case| case.block_bytes).collect()
        };
        let (stream_sizes, round_trip_sizes) = (sizes(Workload::Stream), sizes(Workload::PingPong));
        let mut placements: BTreeSet<Placement> = cases().map(|case| case.placement).collect();
        let both = placements.len() == 2 && placements.remove(&Placement::Any);
        let swept = stream_sizes.len().max(round_trip_sizes.len()) >= SWEEP_FROM;
        let pinned = placements.pop_first().filter(|_| both && !swept);
        Self { stream_sizes, round_trip_sizes, pinned }
    }

    /// The ranking that a case belongs to. Streams of 64 KiB and round trips of 64 B, each of one size, are in one ranking; over the same sizes
    /// those of 1 KiB are in one and those of 4 KiB in the next; over other sizes streams and round trips have rankings of their own.
    fn axes(&self, case: &CaseRecord) -> RankingAxes {
        let (streams, round_trips) = (&self.stream_sizes, &self.round_trip_sizes);
        let blocks = if streams.len() == 1 && round_trips.len() == 1 {
            BlockSizes { stream: streams.first().copied(), round_trip: round_trips.first().copied() }
        } else {
            let own =
                |workload| (streams == round_trips || case.workload == workload).then_some(case.block_bytes);
            BlockSizes { stream: own(Workload::Stream), round_trip: own(Workload::PingPong) }
        };
        let placement = if self.pinned.is_some() { Placement::Any } else { case.placement };
        RankingAxes { data: case.data, tasks: case.tasks, placement, blocks }
    }
}
