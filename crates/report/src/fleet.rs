//! Many nodes beside each other: what each does by itself, what all pairs do, who is slow, and in what they differ.

use std::collections::BTreeMap;

use model::{CaseRecord, FleetMeeting, FleetRecord, Role, Toward, Workload};
use stats::estimate::median;
use stats::fleet::{PairSpeed, VALUES_MIN, polished, slow};

use crate::figure::{Cell, Chart, Figure, Heat, Unit};
use crate::layout::{Tone, shortened};
use crate::lists::first_of;
use crate::numbers::{percent, ratio, time};
use crate::page::throughput::estimated;
use crate::page::{Block, Section, hosts};
use crate::reason::reason;
use crate::sheet::{Sheet, SheetPart};
use crate::table::{Column, Fit, Table};
use crate::words::count;

/// Of more nodes a terminal shows no matrix.
const MATRIX_NODES_MAX: usize = 16;
/// So many names, and so many slow pairs, are told.
const NAMED_MAX: usize = 5;

/// One kind of figures of the whole fleet; speeds are logarithms, and those of nodes are relative to the median node's.
struct Kind<'a> {
    workload: Workload,
    /// What each node does by itself.
    own: Vec<Option<f64>>,
    /// What was measured between nodes: sender and receiver, or who asked and who answered.
    cells: Vec<(usize, usize, &'a CaseRecord)>,
    /// What each node does with all its partners.
    between: Vec<Option<f64>>,
    /// What is left of each cell, as far as they have figures.
    pairs: Vec<PairSpeed>,
}

/// The higher, the faster.
fn log_speed(case: &CaseRecord) -> Option<f64> {
    let [value, ..] = estimated(case)?;
    let speed = if case.workload == Workload::Stream { value.ln() } else { -value.ln() };
    speed.is_finite().then_some(speed)
}

/// The cases of a pair by who sends to whom, or who asks whom: the first of each direction.
fn directed(meeting: &FleetMeeting, workload: Workload) -> impl Iterator<Item = (usize, usize, &CaseRecord)> {
    let FleetMeeting { from, to, cases, .. } = meeting;
    [(Toward::Peer, *from, *to), (Toward::Here, *to, *from)].into_iter().filter_map(move |(way, from, to)| {
        let mut cases = cases.iter().filter(|case| case.workload == workload && case.role == Role::Ranked);
        cases.find(|case| case.toward == Some(way)).map(|case| (from, to, case))
    })
}

impl<'a> Kind<'a> {
    fn of(record: &'a FleetRecord, workload: Workload) -> Self {
        let mut by_case: BTreeMap<BTreeMap<String, String>, Vec<(usize, f64)>> = BTreeMap::new();
        for (rank, bench) in
            record.nodes.iter().enumerate().filter_map(|(rank, node)| Some((rank, node.bench.as_ref()?)))
        {
            let cases =
                bench.cases.iter().filter(|case| case.workload == workload && case.role == Role::Ranked);
            for (case, speed) in cases.filter_map(|case| Some((case, log_speed(case)?))) {
                by_case.entry(case.identity()).or_default().push((rank, speed));
            }
        }
        let mut off: Vec<Vec<f64>> = vec![Vec::new(); record.nodes.len()];
        for nodes in by_case.values() {
            let middle =
                median(&nodes.iter().map(|(_, speed)| *speed).collect::<Vec<_>>()).unwrap_or_default();
            nodes.iter().for_each(|(rank, speed)| off[*rank].push(speed - middle));
        }
        let cells: Vec<_> = record.meetings.iter().flat_map(|meeting| directed(meeting, workload)).collect();
        let mut pairs: Vec<PairSpeed> =
            cells.iter().filter_map(|(from, to, case)| Some((*from, *to, log_speed(case)?))).collect();
        let apart = polished(&pairs, record.nodes.len());
        pairs.iter_mut().zip(apart.pairs).for_each(|(pair, left)| pair.2 = left);
        Self {
            workload,
            own: off.iter().map(|off| median(off)).collect(),
            cells,
            between: apart.nodes,
            pairs,
        }
    }

    fn name(&self) -> &'static str {
        match self.workload {
            Workload::Stream => "streams",
            Workload::PingPong => "round trips",
        }
    }

    /// Who is slow by itself or with all partners, and how fast beside the others.
    fn slow_nodes(&self) -> Vec<(usize, String)> {
        let mut said = Vec::new();
        for (speeds, with) in [(&self.own, "by itself"), (&self.between, "with its partners")] {
            let known: Vec<(usize, f64)> =
                speeds.iter().enumerate().filter_map(|(rank, speed)| Some((rank, (*speed)?))).collect();
            let logs: Vec<f64> = known.iter().map(|(_, speed)| *speed).collect();
            let sentence = |at: usize| {
                let (rank, speed) = known[at];
                (
                    rank,
                    format!("{} {with} at {} of the median node's speed", self.name(), percent(speed.exp())),
                )
            };
            said.extend(slow(&logs).into_iter().map(sentence));
        }
        said
    }

    /// The matrix; each cell a figure, or why there is none.
    fn matrix(&self, record: &FleetRecord, number: usize) -> Option<Figure> {
        if self.cells.is_empty() {
            return None;
        }
        let names: Vec<String> = record.nodes.iter().map(|node| node.name.clone()).collect();
        let mut cells = vec![vec![Cell::default(); names.len()]; names.len()];
        for (from, to, case) in &self.cells {
            let why_not = reason(case, false).unwrap_or_default();
            cells[*from][*to] = Cell::of(estimated(case), case.samples.len(), why_not);
        }
        for meeting in record.meetings.iter().filter(|meeting| meeting.cases.is_empty()) {
            let why_not = meeting.failure.clone().unwrap_or_default();
            cells[meeting.from][meeting.to].note = why_not.clone();
            cells[meeting.to][meeting.from].note = why_not;
        }
        let (title, rows, columns, unit) = match self.workload {
            Workload::Stream => ("Streams between nodes", "sender", "receiver", Unit::BytesPerS),
            Workload::PingPong => ("Round trips between nodes", "asks", "answers", Unit::Ns),
        };
        let chart = Heat {
            rows_label: rows.to_owned(),
            columns_label: columns.to_owned(),
            unit,
            rows: names.clone(),
            columns: names,
            cells,
        };
        Some(Figure {
            id: format!("fleet-{number}-{}", self.workload),
            title: title.to_owned(),
            caption: "TCP between each two nodes, the medians; each node was in one pair at a time. A slow node shows as a row and a column, a \
                      slow pair as a square."
                .to_owned(),
            chart: Chart::Heat(chart),
        })
    }
}

fn kinds(record: &FleetRecord) -> Vec<Kind<'_>> {
    Workload::ALL.iter().map(|workload| Kind::of(record, *workload)).collect()
}

/// The tables, and what they say.
pub(crate) fn sheet(record: &FleetRecord) -> Sheet {
    let kinds = kinds(record);
    let mut parts = vec![SheetPart::Heading(vec![
        count(record.nodes.len(), "node"),
        count(record.meetings.len(), "pair"),
        time(record.wall_ns as f64),
    ])];
    parts.push(SheetPart::Table(nodes(record, &kinds)));
    let figures: Vec<Figure> = kinds.iter().filter_map(|kind| kind.matrix(record, 0)).collect();
    if record.nodes.len() <= MATRIX_NODES_MAX {
        parts.extend(figures.into_iter().map(|figure| SheetPart::Table(narrow(figure))));
    } else if !figures.is_empty() {
        parts.push(SheetPart::Note(
            "--html shows what was measured between the nodes as a matrix.".to_owned(),
        ));
    }
    parts.extend(differences(record, &kinds).map(SheetPart::Table));
    parts.extend(sentences(record, &kinds).into_iter().map(SheetPart::Paragraph));
    Sheet { parts }
}

/// A section of a page.
pub(crate) fn section(record: &FleetRecord, label: &str, number: usize) -> Section {
    let kinds = kinds(record);
    let figures = kinds.iter().filter_map(|kind| kind.matrix(record, number)).map(Block::Figure);
    let tables =
        [Some(nodes(record, &kinds)), differences(record, &kinds)].into_iter().flatten().map(Block::Table);
    Section {
        id: format!("fleet-{number}"),
        title: if label.is_empty() { "The fleet".to_owned() } else { format!("The fleet · {label}") },
        lead: sentences(record, &kinds),
        code: None,
        blocks: figures.chain(tables).collect(),
    }
}

/// A matrix for a terminal: its cells have no room for reasons, which are said below it.
fn narrow(mut figure: Figure) -> Table {
    if let Chart::Heat(heat) = &mut figure.chart {
        heat.cells.iter_mut().flatten().for_each(|cell| cell.note.clear());
    }
    let mut table = figure.table();
    for column in table.columns.iter_mut().skip(1) {
        *column = Column::right(column.title.clone()).short(shortened(&column.title, 10));
    }
    table
}

/// A row for each node.
fn nodes(record: &FleetRecord, kinds: &[Kind]) -> Table {
    let mut table = Table { title: "The nodes, beside the median node".to_owned(), ..Table::default() };
    table.add(Column::left("node"), record.nodes.iter().map(|node| Some(node.name.clone())));
    let times = |speed: &Option<f64>| speed.map(|speed| ratio(speed.exp()));
    for kind in kinds {
        table.add(Column::right(format!("own {}", kind.name())).drop(1), kind.own.iter().map(times));
        table.add(
            Column::right(format!("{} with others", kind.name())).drop(1),
            kind.between.iter().map(times),
        );
    }
    let machine =
        |node: &model::FleetNode| node.bench.as_ref().map(|bench| crate::words::machine(&bench.host));
    table.add(Column::left("machine").drop(2).fit(Fit::Cut), record.nodes.iter().map(machine));
    let slow: Vec<usize> = kinds.iter().flat_map(Kind::slow_nodes).map(|(rank, _)| rank).collect();
    for (rank, (row, node)) in table.rows.iter_mut().zip(&record.nodes).enumerate() {
        row.reasons.extend(node.failure.clone());
        if slow.contains(&rank) {
            row.tone = Tone::Bold;
        }
    }
    table
}

/// Every fact in which nodes differ, a row for each of its values, beside the speed of the nodes that have it.
fn differences(record: &FleetRecord, kinds: &[Kind]) -> Option<Table> {
    let mut facts: BTreeMap<(usize, String), BTreeMap<String, Vec<usize>>> = BTreeMap::new();
    let mut known = 0;
    for (rank, bench) in
        record.nodes.iter().enumerate().filter_map(|(rank, node)| Some((rank, node.bench.as_ref()?)))
    {
        known += 1;
        for (place, name, value) in hosts::all(&bench.host) {
            facts.entry((place, name)).or_default().entry(value).or_default().push(rank);
        }
    }
    let speed = |speeds: &[Option<f64>], nodes: &[usize]| {
        let speeds: Vec<f64> = nodes.iter().filter_map(|rank| speeds[*rank]).collect();
        median(&speeds).map_or_else(|| crate::ABSENT.to_owned(), |speed| ratio(speed.exp()))
    };
    let mut rows = Vec::new();
    for ((_, fact), values) in
        facts.iter().filter(|(_, values)| values.values().any(|nodes| nodes.len() < known))
    {
        for (value, nodes) in values {
            let names: Vec<String> = nodes.iter().map(|rank| record.nodes[*rank].name.clone()).collect();
            let mut row = vec![fact.clone(), value.clone(), first_of(&names, NAMED_MAX, ", ")];
            row.extend(
                kinds.iter().flat_map(|kind| [&kind.own, &kind.between].map(|speeds| speed(speeds, nodes))),
            );
            rows.push(row);
        }
    }
    let mut columns = vec![
        Column::left("what differs"),
        Column::left("there").fit(Fit::Wrap),
        Column::left("nodes").fit(Fit::Wrap),
    ];
    for kind in kinds {
        columns.push(Column::right(format!("own {}", kind.name())).drop(2));
        columns.push(Column::right(format!("{} with others", kind.name())).drop(1));
    }
    (!rows.is_empty())
        .then(|| Table::new("In what the nodes differ, and how fast those are that have it", columns, rows))
}

/// Who is slow, or that nobody is, or that it cannot be told; and what failed.
fn sentences(record: &FleetRecord, kinds: &[Kind]) -> Vec<String> {
    let name = |rank: usize| record.nodes[rank].name.as_str();
    let mut said = Vec::new();
    for (rank, node) in record.nodes.iter().enumerate() {
        let slow = kinds.iter().flat_map(Kind::slow_nodes).filter(|(slow, _)| *slow == rank);
        let slow: Vec<String> = slow.map(|(_, how)| how).collect();
        if !slow.is_empty() {
            said.push(format!("{} is slow: {}.", node.name, slow.join("; ")));
        }
    }
    for kind in kinds {
        let left: Vec<f64> = kind.pairs.iter().map(|pair| pair.2).collect();
        let mut pairs: Vec<&PairSpeed> = slow(&left).into_iter().map(|at| &kind.pairs[at]).collect();
        pairs.sort_by(|one, other| one.2.total_cmp(&other.2));
        let pair = |(from, to, left): &&PairSpeed| {
            format!("{} → {} at {}", name(*from), name(*to), percent(left.exp()))
        };
        let pairs: Vec<String> = pairs.iter().map(pair).collect();
        if !pairs.is_empty() {
            said.push(format!(
                "Slow pairs, {}: {} of what their two nodes reach with others.",
                kind.name(),
                first_of(&pairs, NAMED_MAX, ", ")
            ));
        }
    }
    let measured = record.nodes.iter().filter(|node| node.bench.is_some()).count();
    if measured < VALUES_MIN {
        let known = count(measured, "node");
        said.push(format!("With figures of {known} none can be told to be slow: it takes {VALUES_MIN}."));
    } else if said.is_empty() {
        said.push("No node and no pair stands out as slow.".to_owned());
    }
    // Why a node that failed has no pairs stands beside its name.
    let is_there = |rank: usize| record.nodes[rank].failure.is_none();
    let failed: Vec<String> = record
        .meetings
        .iter()
        .filter(|meeting| is_there(meeting.from) && is_there(meeting.to))
        .filter_map(|meeting| Some((meeting, meeting.failure.as_ref()?)))
        .map(|(meeting, why)| {
            format!("{} and {} ({})", name(meeting.from), name(meeting.to), why.trim_end_matches('.'))
        })
        .collect();
    if !failed.is_empty() {
        said.push(format!("Pairs without figures: {}.", first_of(&failed, NAMED_MAX, ", ")));
    }
    said
}
