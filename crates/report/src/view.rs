//! A record as rankings of ranked rows: what stands in one list, and what must not.
//!
//! A row is one spec, with its stream and its round trips side by side. A ranking holds what may be compared:
//! the same data level, tasks, placement and block. Where the scheduler's choice was measured beside one pinned placement, both
//! stand in one row: the scheduler's choice ranks, as it is what programs get. Table and Markdown are two ways of writing this down.

use std::cell::OnceCell;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, HashMap, HashSet};

use model::{
    AXES, Axis, AxisDisplay, AxisValue, BenchRecord, CaseRecord, DataLevel, Latency, Placement, Role, Spec,
    Tasks, Throughput, Workload,
};

use stats::TrialsByCpus;

use crate::case_figure::seats_of;
use crate::references::References;
use crate::words;

/// From this many block sizes on, a sweep is shown over the sizes and not as a list for each.
pub(crate) const SWEEP_FROM: usize = 4;

/// What two cases must have in common to be compared, their block apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Axes {
    pub(crate) workload: Workload,
    pub(crate) data: DataLevel,
    pub(crate) tasks: Tasks,
    pub(crate) placement: Placement,
    pub(crate) relays: u32,
}

impl Axes {
    pub(crate) fn of(case: &CaseRecord) -> Self {
        let CaseRecord { workload, data, tasks, placement, relays, .. } = *case;
        Self { workload, data, tasks, placement, relays }
    }

    /// Streams before round trips, checked figures first.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        let Self { workload, data, tasks, placement, relays } = *self;
        (workload, Reverse(data), tasks, placement, relays)
    }
}

/// What all rows of a ranking have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RankingAxes {
    pub(crate) data: DataLevel,
    pub(crate) tasks: Tasks,
    pub(crate) placement: Placement,
    /// The block of the streams; `None` where the ranking has round trips only.
    pub(crate) stream_bytes: Option<u64>,
    /// The block of the round trips; `None` where the ranking has streams only.
    pub(crate) round_trip_bytes: Option<u64>,
}

/// Rows that may be ranked against each other, the best first.
#[derive(Debug)]
pub(crate) struct Ranking<'a> {
    pub(crate) axes: RankingAxes,
    /// The placement whose figures stand beside those of the scheduler's choice.
    pub(crate) pinned: Option<Placement>,
    pub(crate) rows: Vec<RankedRow<'a>>,
    /// Whether other rows than that of the pipe are held against it.
    pub(crate) against_pipe: bool,
}

/// One spec.
#[derive(Debug, Default)]
pub(crate) struct RankedRow<'a> {
    pub(crate) label: String,
    pub(crate) stream: Option<&'a CaseRecord>,
    pub(crate) round_trip: Option<&'a CaseRecord>,
    /// The same two with the ends pinned, where the ranking has them beside the scheduler's choice.
    pub(crate) pinned_stream: Option<&'a CaseRecord>,
    pub(crate) pinned_round_trip: Option<&'a CaseRecord>,
    /// How many times as fast as the plain pipe: the quotient of the medians shown.
    pub(crate) times_pipe: Option<f64>,
    /// Decoded once: all histograms of a case stand behind it.
    trip_seats: OnceCell<Option<TrialsByCpus>>,
}

/// How a ranking, or a row of rankings, is shown.
#[derive(Debug)]
pub(crate) enum Group<'v, 'a> {
    /// One ranked list.
    Ranked(&'v Ranking<'a>),
    /// The same over many block sizes.
    Sweep(Vec<&'v Ranking<'a>>),
}

/// All rankings of a record.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) record: &'a BenchRecord,
    pub(crate) rankings: Vec<Ranking<'a>>,
    /// The floors and the ceilings.
    references: References<'a>,
    /// Whether all rankings have the same blocks, ends and data.
    same: SameAxes,
}

#[derive(Debug)]
struct SameAxes {
    blocks: bool,
    ends: bool,
    data: bool,
}

impl<'a> View<'a> {
    pub(crate) fn of(record: &'a BenchRecord) -> Self {
        let (blocks, labels) = (Blocks::of(record), Labels::of(record));
        let pinned = blocks.pinned_beside();
        let mut rankings: Vec<Ranking<'a>> = Vec::new();
        // Where each ranking is, and in it the rows of a name: a record may have thousands of either.
        let mut known: HashMap<RankingAxes, (usize, HashMap<String, Vec<usize>>)> = HashMap::new();
        for case in ranked(record) {
            let axes = blocks.axes(case);
            let axes = RankingAxes { placement: pinned.map_or(axes.placement, |_| Placement::Any), ..axes };
            let (at, rows) = known.entry(axes).or_insert_with(|| {
                rankings.push(Ranking { axes, pinned, rows: Vec::new(), against_pipe: false });
                (rankings.len() - 1, HashMap::new())
            });
            let label = labels.of_case(case);
            rankings[*at].add(case, &label, rows.entry(label.clone()).or_default());
        }
        for ranking in &mut rankings {
            ranking.rank();
        }
        rankings.sort_by_key(|ranking| ranking.axes.order());
        let same = SameAxes {
            blocks: common(&rankings, Ranking::blocks).is_some(),
            ends: common(&rankings, Ranking::ends).is_some(),
            data: common(&rankings, |ranking| ranking.axes.data).is_some(),
        };
        Self { record, rankings, references: References::from_record(record), same }
    }

    /// The floors or the ceilings that belong to a ranking.
    pub(crate) fn references(&self, ranking: &Ranking, role: Role) -> Vec<&'a CaseRecord> {
        self.references.nearest(role, ranking.blocks(), ranking.axes.data, ranking.axes.placement)
    }

    /// What all rankings have in common; `None` where they differ.
    pub(crate) fn common<T: PartialEq>(&self, axis: impl Fn(&Ranking<'a>) -> T) -> Option<T> {
        common(&self.rankings, axis)
    }

    /// Sections in the order in which they are shown, long sweeps together.
    pub(crate) fn groups(&self) -> Vec<Group<'_, 'a>> {
        let alike = |a: &Ranking<'a>, b: &Ranking<'a>| a.axes.but_for_blocks() == b.axes.but_for_blocks();
        let mut groups = Vec::new();
        for run in self.rankings.chunk_by(alike) {
            if run.len() >= SWEEP_FROM {
                groups.push(Group::Sweep(run.iter().collect()));
            } else {
                groups.extend(run.iter().map(Group::Ranked));
            }
        }
        groups
    }

    /// What sets a ranking apart from the others, in words; empty where there is but one.
    pub(crate) fn title(&self, ranking: &Ranking<'a>, with_blocks: bool) -> String {
        let mut parts = Vec::new();
        if with_blocks && !self.same.blocks {
            parts.push(words::blocks(ranking.axes.stream_bytes, ranking.axes.round_trip_bytes));
        }
        if !self.same.ends {
            parts.push(ranking.ends());
        }
        if !self.same.data {
            parts.push(ranking.data().to_owned());
        }
        parts.join(" · ")
    }
}

fn common<'a, T: PartialEq>(rankings: &[Ranking<'a>], axis: impl Fn(&Ranking<'a>) -> T) -> Option<T> {
    let first = axis(rankings.first()?);
    rankings.iter().all(|ranking| axis(ranking) == first).then_some(first)
}

/// The cases that are ranked: one pair of ends at its own speed.
pub(crate) fn ranked(record: &BenchRecord) -> impl Iterator<Item = &CaseRecord> {
    transports(record).filter(|case| !case.load().is_asked())
}

/// These, and those under a load that somebody asked for.
pub(crate) fn transports(record: &BenchRecord) -> impl Iterator<Item = &CaseRecord> {
    record.cases.iter().filter(|case| case.role == Role::Ranked)
}

impl<'a> Ranking<'a> {
    /// Adds a case to the first of the rows of its name, `namesakes`, that has none of its kind yet.
    fn add(&mut self, case: &'a CaseRecord, label: &str, namesakes: &mut Vec<usize>) {
        let pinned = self.pinned == Some(case.placement);
        let free = namesakes.partition_point(|at| self.rows[*at].case(case.workload, pinned).is_some());
        if free == namesakes.len() {
            namesakes.push(self.rows.len());
            self.rows.push(RankedRow { label: label.to_owned(), ..RankedRow::default() });
        }
        let row = &mut self.rows[namesakes[free]];
        let slot = match (case.workload, pinned) {
            (Workload::Stream, false) => &mut row.stream,
            (Workload::PingPong, false) => &mut row.round_trip,
            (Workload::Stream, true) => &mut row.pinned_stream,
            (Workload::PingPong, true) => &mut row.pinned_round_trip,
        };
        *slot = Some(case);
    }

    /// Puts the best row first, and finds what the cells of all rows depend on.
    fn rank(&mut self) {
        let pipes = self.plain_pipes();
        let times: Vec<Option<f64>> = self.rows.iter().map(|row| times_pipe(row, &pipes)).collect();
        for (row, times) in self.rows.iter_mut().zip(times) {
            row.times_pipe = times;
        }
        self.against_pipe = self.rows.iter().filter(|row| row.times_pipe.is_some()).count() > 1;
        self.rows.sort_by(by_rank);
    }

    /// The rows of plain pipes, one for each way of waiting and each payload.
    fn plain_pipes(&self) -> Vec<&RankedRow<'a>> {
        let plain = Spec::plain("pipe");
        let mut kinds = HashSet::new();
        let mut is_new = |case: &'a CaseRecord| kinds.insert((case.wait, &case.payload));
        let is_pipe =
            |row: &&RankedRow<'a>| row.cases().next().is_some_and(|case| case.spec == plain && is_new(case));
        self.rows.iter().filter(is_pipe).collect()
    }

    /// The CPUs of the pinned figures, in words: "CPUs 0,1".
    pub(crate) fn pinned_cpus(&self) -> Option<String> {
        let mut pinned = self.cases().filter(|case| Some(case.placement) == self.pinned);
        pinned.find(|case| !case.cpus.is_empty()).map(|case| words::cpus(&case.cpus))
    }

    /// Both blocks, as one value to compare.
    pub(crate) fn blocks(&self) -> (Option<u64>, Option<u64>) {
        (self.axes.stream_bytes, self.axes.round_trip_bytes)
    }

    /// Who held the ends, and where, in words.
    pub(crate) fn ends(&self) -> String {
        let cpus = || self.cases().map(|case| case.cpus.as_slice()).find(|cpus| !cpus.is_empty());
        let cpus = if self.pinned.is_some() { None } else { cpus() };
        let ends = words::ends(self.axes.tasks, self.axes.placement, cpus.unwrap_or_default());
        match self.pinned_cpus() {
            Some(cpus) => format!("{ends}, and beside that pinned to {cpus}"),
            None => ends,
        }
    }

    /// What became of the data, in words.
    pub(crate) fn data(&self) -> &'static str {
        words::data(self.axes.data, self.cases().find_map(|case| case.check))
    }

    /// The cases of all rows.
    pub(crate) fn cases(&self) -> impl Iterator<Item = &'a CaseRecord> {
        self.rows.iter().flat_map(RankedRow::cases)
    }
}

impl<'a> RankedRow<'a> {
    /// The streams, then the round trips, where they were measured.
    pub(crate) fn cases(&self) -> impl Iterator<Item = &'a CaseRecord> + use<'a> {
        [self.stream, self.pinned_stream, self.round_trip, self.pinned_round_trip].into_iter().flatten()
    }

    pub(crate) fn throughput(&self) -> Option<&'a Throughput> {
        self.stream.and_then(|case| case.throughput.as_ref())
    }

    pub(crate) fn latency(&self) -> Option<&'a Latency> {
        self.round_trip.and_then(|case| case.latency_ns.as_ref())
    }

    /// What streams reached on one CPU and on two, where the scheduler chose.
    pub(crate) fn stream_seats(&self) -> Option<TrialsByCpus> {
        seats_of(self.stream?)
    }

    /// The same of median round trips.
    pub(crate) fn trip_seats(&self) -> Option<TrialsByCpus> {
        *self.trip_seats.get_or_init(|| seats_of(self.round_trip?))
    }

    pub(crate) fn seats(&self, workload: Workload) -> Option<TrialsByCpus> {
        match workload {
            Workload::Stream => self.stream_seats(),
            Workload::PingPong => self.trip_seats(),
        }
    }

    /// True where there is anything to show but a reason.
    pub(crate) fn has_figures(&self) -> bool {
        self.cases().any(|case| case.throughput.is_some() || case.latency_ns.is_some())
    }

    /// The case of a workload, as it ranks or with pinned ends.
    pub(crate) fn case(&self, workload: Workload, pinned: bool) -> Option<&'a CaseRecord> {
        match (workload, pinned) {
            (Workload::Stream, false) => self.stream,
            (Workload::PingPong, false) => self.round_trip,
            (Workload::Stream, true) => self.pinned_stream,
            (Workload::PingPong, true) => self.pinned_round_trip,
        }
    }
}

impl RankingAxes {
    /// The order of the rankings: the checked figures first, streams before round trips.
    fn order(&self) -> impl Ord + use<> {
        let Self { data, tasks, placement, stream_bytes, round_trip_bytes } = *self;
        (Reverse(data), tasks, placement, stream_bytes.is_none(), stream_bytes, round_trip_bytes)
    }

    fn but_for_blocks(&self) -> (DataLevel, Tasks, Placement, bool, bool) {
        let Self { data, tasks, placement, stream_bytes, round_trip_bytes } = *self;
        (data, tasks, placement, stream_bytes.is_some(), round_trip_bytes.is_some())
    }
}

/// Which blocks and placements a record has, and so what fits into one row.
struct Blocks {
    stream: BTreeSet<u64>,
    round_trip: BTreeSet<u64>,
    /// Whether streams and round trips were made of the same sizes.
    same_sizes: bool,
    placements: BTreeSet<Placement>,
}

impl Blocks {
    fn of(record: &BenchRecord) -> Self {
        let sizes = |workload| -> BTreeSet<u64> {
            ranked(record).filter(|case| case.workload == workload).map(|case| case.block_bytes).collect()
        };
        let placements = ranked(record).map(|case| case.placement).collect();
        let (stream, round_trip) = (sizes(Workload::Stream), sizes(Workload::PingPong));
        Self { same_sizes: stream == round_trip, stream, round_trip, placements }
    }

    /// The one pinned placement that was measured beside the scheduler's choice. In a sweep each has a grid of its own.
    fn pinned_beside(&self) -> Option<Placement> {
        let pinned = self.placements.iter().copied().find(|placement| *placement != Placement::Any);
        let both = self.placements.len() == 2 && self.placements.contains(&Placement::Any);
        let swept = self.stream.len().max(self.round_trip.len()) >= SWEEP_FROM;
        pinned.filter(|_| both && !swept)
    }

    fn axes(&self, case: &CaseRecord) -> RankingAxes {
        let block = Some(case.block_bytes);
        let (stream_bytes, round_trip_bytes) = match (case.workload, self.stream.len(), self.round_trip.len())
        {
            (_, 1, 1) => (self.stream.first().copied(), self.round_trip.first().copied()),
            _ if self.same_sizes => (block, block),
            (Workload::Stream, ..) => (block, None),
            (Workload::PingPong, ..) => (None, block),
        };
        let Axes { data, tasks, placement, .. } = Axes::of(case);
        RankingAxes { data, tasks, placement, stream_bytes, round_trip_bytes }
    }
}

/// What the rows of a record are called: the spec, and what tells two rows of a spec apart.
pub(crate) struct Labels<'a>(HashMap<&'a Spec, Variants>);

/// The axis that a sweep over places of buffers shows beside the names.
const ALIGN: &str = "align";

/// The value of each axis that a label may say, of the first case of a spec, and whether others have another one.
type Variants = Vec<(&'static Axis, Option<AxisValue>, bool)>;

impl<'a> Labels<'a> {
    pub(crate) fn of(record: &'a BenchRecord) -> Self {
        Self::but_for(record, None)
    }

    /// The same where the places of buffers are said beside the name.
    pub(crate) fn but_for_align(record: &'a BenchRecord) -> Self {
        Self::but_for(record, Some(ALIGN))
    }

    fn but_for(record: &'a BenchRecord, left_out: Option<&str>) -> Self {
        let mut specs: HashMap<&Spec, Variants> = HashMap::new();
        let axes = || {
            AXES.iter().filter(|axis| {
                matches!(axis.shown, AxisDisplay::Rows | AxisDisplay::LabelledRows) && axis.name != left_out
            })
        };
        for case in ranked(record) {
            let first = || axes().map(|axis| (axis, (axis.value)(case), false)).collect();
            for (axis, known, differs) in specs.entry(&case.spec).or_insert_with(first) {
                let value = (axis.value)(case);
                *differs |= known.is_some() && value.is_some() && *known != value;
                *known = known.take().or(value);
            }
        }
        Self(specs)
    }

    pub(crate) fn of_case(&self, case: &CaseRecord) -> String {
        let mut label = case.spec.to_string();
        for (axis, _, differs) in self.0.get(&case.spec).into_iter().flatten() {
            match (axis.value)(case) {
                Some(value) if axis.shown == AxisDisplay::LabelledRows => {
                    label.push_str(&format!(" {}", value.raw().replace('-', " ")));
                }
                Some(value @ AxisValue::Word(_)) if *differs => label.push_str(&format!(" ({value})")),
                Some(value) if *differs => {
                    label.push_str(&format!(" ({} {value})", axis.name.unwrap_or(axis.column)));
                }
                _ => {}
            }
        }
        label
    }
}

/// How many times as fast as the plain pipe; where there are several, the one that waits alike, then of the same payload.
fn times_pipe(row: &RankedRow, pipes: &[&RankedRow]) -> Option<f64> {
    let own = row.cases().next()?;
    let distance = |case: &CaseRecord| (case.wait != own.wait, case.payload != own.payload);
    let pipe = pipes.iter().min_by_key(|pipe| pipe.cases().next().map(distance))?;
    match row.stream {
        Some(_) => Some(row.throughput()?.median_bytes_per_s / pipe.throughput()?.median_bytes_per_s),
        None => Some(pipe.latency()?.p50 as f64 / row.latency()?.p50 as f64),
    }
    .filter(|times| times.is_finite())
}

/// Fastest stream first, then soonest round trip, then rows without figures as they were planned.
fn by_rank(a: &RankedRow, b: &RankedRow) -> Ordering {
    let speed = |row: &RankedRow| {
        row.throughput().map_or(f64::NEG_INFINITY, |throughput| throughput.median_bytes_per_s)
    };
    let trip = |row: &RankedRow| row.latency().map_or(u64::MAX, |latency| latency.p50);
    speed(b).total_cmp(&speed(a)).then_with(|| trip(a).cmp(&trip(b)))
}
