//! Many nodes compared: the speed of each node by itself and of all pairs, which of them are slow, and the facts in which nodes differ.

use std::collections::BTreeMap;

use model::{CaseRecord, Direction, FleetMeeting, FleetRecord, NoiseLevel, Role, Workload};
use stats::estimate::{ENOUGH_FOR_95_PERCENT, median};
use stats::fleet::{NODES_MIN, PairSpeed, Speed, middle, polished, slow_nodes, slow_nodes_below};

use crate::bench::{CaseRow, cases_table};
use crate::chart::{Chart, ChartCell, ChartData, Heat};
use crate::document::{Block, Context, Section};
use crate::estimate::{estimate_cell, estimated, quantity};
use crate::hosts::{self, HostFact};
use crate::interval;
use crate::layout::{Tone, shortened};
use crate::lists::{distinct, first_if_any, first_names, joined_if_any};
use crate::numbers::{percent, time};
use crate::sheet::{Sheet, col};
use crate::show::{Show, histograms, indexes};
use crate::table::{Fit, Table};
use crate::unit::Unit;
use crate::value::Value;
use crate::words::count;

/// Most nodes of a matrix in a terminal.
const MATRIX_NODES_MAX: usize = 16;
/// Most names, and most slow pairs, in a sentence.
const NAMED_MAX: usize = 5;

/// What was measured from one node to another, given by their ranks: sender and receiver, or client and server.
struct PairCase<'a> {
    from: usize,
    to: usize,
    case: &'a CaseRecord,
}

/// One kind of figures of the whole fleet.
struct WorkloadFigures<'a> {
    workload: Workload,
    cells: Vec<PairCase<'a>>,
    /// Speeds of each node by itself, and with all its partners.
    parts: Vec<NodeFigures>,
    /// Slow pairs, the slowest first, with speeds relative to those that their two nodes reach with others.
    slow_pairs: Vec<PairSpeed>,
    /// The share below which a pair would have been slow; `None` if there are too few nodes.
    pairs_below: Option<f64>,
    /// The number of figures whose intervals are too wide to judge by.
    inconclusive: usize,
    /// The number of all figures.
    figures: usize,
}

/// Speeds of nodes, relative to the median node.
struct NodeFigures {
    /// The heading of a column.
    title: &'static str,
    /// The words before the figure of a slow node.
    words: &'static str,
    /// The figures of each node.
    nodes: Vec<Vec<Speed>>,
    /// The ranks of the nodes that are slow.
    slow: Vec<usize>,
    /// The share below which a node would have been slow; `None` if there are too few nodes.
    below: Option<f64>,
}

impl NodeFigures {
    /// How many times as fast a node is; if most of its figures are inconclusive, with an upper limit.
    fn times(&self, rank: usize) -> Option<Value> {
        let own = &self.nodes[rank];
        let is_noisy = 2 * own.iter().filter(|speed| speed.is_inconclusive()).count() > own.len();
        let most = median(&own.iter().map(|speed| speed.most).collect::<Vec<f64>>());
        let times = |speed: f64| Unit::Times.of(speed.exp());
        middle(own).map(|speed| match most {
            _ if !is_noisy => times(speed),
            Some(most) => times(speed).and(" (up to ", times(most)).then(")"),
            None => times(speed).then(" (few trials)"),
        })
    }
}

/// The speed of a case as a logarithm; higher is faster.
fn speed(case: &CaseRecord) -> Option<Speed> {
    let [value, low, high] = estimated(case)?;
    let (found, most) = match case.workload {
        Workload::Stream => (value.ln(), high.ln()),
        Workload::PingPong => (-value.ln(), -low.ln()),
    };
    let few = case.samples.len() < ENOUGH_FOR_95_PERCENT;
    let most = if few { f64::INFINITY } else { most };
    let noisy = few || case.noise == Some(NoiseLevel::Wild);
    found.is_finite().then_some(Speed { found, most, noisy })
}

/// The first case of each direction of a pair.
fn directed(meeting: &FleetMeeting, workload: Workload) -> impl Iterator<Item = PairCase<'_>> {
    let FleetMeeting { from, to, cases, .. } = meeting;
    let ways = [(Direction::Peer, *from, *to), (Direction::Here, *to, *from)].into_iter();
    ways.filter_map(move |(way, from, to)| {
        let is_wanted = |case: &&CaseRecord| {
            case.workload == workload && case.role == Role::Ranked && case.direction == Some(way)
        };
        cases.iter().find(is_wanted).map(|case| PairCase { from, to, case })
    })
}

/// The speeds of each node by itself, case by case, relative to the median node.
fn by_itself(record: &FleetRecord, workload: Workload) -> Vec<Vec<Speed>> {
    let mut by_case: BTreeMap<BTreeMap<String, String>, Vec<(usize, Speed)>> = BTreeMap::new();
    for (rank, node) in record.nodes.iter().enumerate() {
        let cases = node.bench.iter().flat_map(|bench| &bench.cases);
        let cases = cases.filter(|case| case.workload == workload && case.role == Role::Ranked);
        for (case, speed) in cases.filter_map(|case| Some((case, speed(case)?))) {
            by_case.entry(case.identity()).or_default().push((rank, speed));
        }
    }
    let mut own: Vec<Vec<Speed>> = vec![Vec::new(); record.nodes.len()];
    for nodes in by_case.values() {
        let middle = middle(nodes.iter().map(|(_, speed)| speed)).unwrap_or_default();
        nodes.iter().for_each(|(rank, speed)| own[*rank].push(speed.relative_to(middle)));
    }
    own
}

impl<'a> WorkloadFigures<'a> {
    fn from_record(record: &'a FleetRecord, workload: Workload) -> Self {
        // The titles of the parts, and their words. Round trips of a pair are measured once: they cannot tell its ends apart.
        let titles: &[(&'static str, &'static str)] = match workload {
            Workload::Stream => &[
                ("own streams", "streams by itself at"),
                ("sending", "it sends at"),
                ("receiving", "it receives at"),
            ],
            Workload::PingPong => &[
                ("own round trips", "round trips by itself at"),
                ("round trips with others", "round trips with its partners at"),
            ],
        };
        let cells: Vec<_> = record.meetings.iter().flat_map(|meeting| directed(meeting, workload)).collect();
        let pair = |one: &PairCase| Some(PairSpeed { from: one.from, to: one.to, speed: speed(one.case)? });
        let pairs: Vec<PairSpeed> = cells.iter().filter_map(pair).collect();
        let fitted = polished(&pairs, record.nodes.len(), titles.len() - 1);
        let slow_pairs = fitted.slow_pairs().into_iter();
        let mut slow_pairs: Vec<PairSpeed> =
            slow_pairs.map(|at| PairSpeed { speed: fitted.pairs[at], ..pairs[at] }).collect();
        model::sort_by(&mut slow_pairs, |one, other| one.speed.found.total_cmp(&other.speed.found));
        let pairs_below = fitted.slow_pairs_below();
        let own = by_itself(record, workload);
        let usual = middle(pairs.iter().map(|pair| &pair.speed)).unwrap_or_default();
        let all = pairs.iter().map(|pair| pair.speed.relative_to(usual)).chain(own.iter().flatten().copied());
        let (inconclusive, figures) = (all.clone().filter(Speed::is_inconclusive).count(), all.count());
        let nodes = std::iter::once(own).chain(fitted.ends);
        let node_figures = titles.iter().zip(nodes).map(|((title, words), nodes)| {
            let slow = slow_nodes(&nodes);
            let below = slow_nodes_below(&nodes);
            NodeFigures { title, words, nodes, slow, below }
        });
        let parts = node_figures.collect();
        Self { workload, cells, parts, slow_pairs, pairs_below, inconclusive, figures }
    }

    /// The matrix; each cell a figure, or why there is none.
    fn matrix(&self, record: &FleetRecord, number: usize) -> Option<Chart> {
        if self.cells.is_empty() {
            return None;
        }
        let names: Vec<String> = record.nodes.iter().map(|node| node.name.clone()).collect();
        let mut cells = vec![vec![ChartCell::default(); names.len()]; names.len()];
        for one in &self.cells {
            cells[one.from][one.to] = estimate_cell(one.case, false);
        }
        for meeting in record.meetings.iter().filter(|meeting| meeting.cases.is_empty()) {
            let why_not = meeting.failure.clone().unwrap_or_default();
            cells[meeting.from][meeting.to].note = why_not.clone();
            cells[meeting.to][meeting.from].note = why_not;
        }
        let (title, rows, columns, unit) = match self.workload {
            Workload::Stream => ("Streams between nodes", "sender", "receiver", Unit::BytesPerS),
            Workload::PingPong => ("Round trips between nodes", "client", "server", Unit::Ns),
        };
        let marks = interval::legend(self.cells.iter().map(|one| one.case.samples.len()));
        let marks_text = marks.map(|marks| format!(" {marks}")).unwrap_or_default();
        let chart = Heat {
            rows_label: rows.to_owned(),
            columns_label: columns.to_owned(),
            unit,
            rows: names.clone(),
            columns: names,
            cells,
        };
        Some(Chart {
            id: format!("fleet-{number}-{}", self.workload),
            title: title.to_owned(),
            caption: format!(
                "TCP between each two nodes, the medians; each node was in one pair at a time. A slow node shows as a row or a column, a slow \
                 pair as a square.{marks_text}"
            ),
            data: ChartData::Heat(chart),
        })
    }
}

fn parts<'a>(kinds: &'a [WorkloadFigures]) -> impl Iterator<Item = &'a NodeFigures> {
    kinds.iter().flat_map(|kind| &kind.parts)
}

/// The nodes, what was measured between them, and in what they differ.
fn section(record: &FleetRecord, context: &Context) -> Section {
    let kind = |workload: &Workload| WorkloadFigures::from_record(record, *workload);
    let kinds: Vec<WorkloadFigures> = Workload::ALL.iter().map(kind).collect();
    let mut section = context.section("fleet", "The fleet");
    let matrices: Vec<Chart> = kinds.iter().filter_map(|kind| kind.matrix(record, context.number)).collect();
    let nodes = Block::Table(nodes(record, &kinds));
    if context.is_page() {
        section.blocks.extend(matrices.into_iter().map(Block::Chart).chain([nodes]));
    } else {
        section.blocks.push(Block::Heading(vec![
            count(record.nodes.len(), "node"),
            count(record.meetings.len(), "pair"),
            time(record.wall_ns as f64),
        ]));
        section.blocks.push(nodes);
        if record.nodes.len() <= MATRIX_NODES_MAX {
            section.blocks.extend(matrices.into_iter().map(|figure| Block::Table(narrow(figure))));
            let trials = kinds.iter().flat_map(|kind| &kind.cells).map(|one| one.case.samples.len());
            section.blocks.extend(interval::legend(trials).map(Block::Note));
        } else if !matrices.is_empty() {
            let remark = "--html shows what was measured between the nodes as a matrix.";
            section.blocks.push(Block::Note(remark.to_owned()));
        }
    }
    section.blocks.extend(differences(record, &kinds).map(Block::Table));
    context.conclude(&mut section, sentences(record, &kinds), Block::Paragraph);
    section
}

/// A matrix for a terminal. Its cells have no room for reasons, which are below it.
fn narrow(mut chart: Chart) -> Table {
    if let ChartData::Heat(heat) = &mut chart.data {
        heat.cells.iter_mut().flatten().for_each(|cell| cell.note.clear());
    }
    let mut table = chart.table();
    for column in table.columns.iter_mut().skip(1) {
        *column = col(&column.head).right().short(shortened(&column.head, 10));
    }
    table
}

/// A row for each node.
fn nodes(record: &FleetRecord, kinds: &[WorkloadFigures]) -> Table {
    let rows: Vec<_> = record.nodes.iter().enumerate().collect();
    let mut sheet = Sheet::new(&rows);
    sheet.add("node", |(_, node)| Some((&node.name).into()));
    for part in parts(kinds) {
        sheet.add(col(part.title).drop(1), |(rank, _)| part.times(*rank));
    }
    sheet.add(col("machine").left().drop(2).fit(Fit::Cut), |(_, node)| {
        Some(crate::words::machine(&node.bench.as_ref()?.head.host).into())
    });
    let mut table = Table { title: "The nodes, relative to the median node".to_owned(), ..sheet.table() };
    for (rank, (row, node)) in table.rows.iter_mut().zip(&record.nodes).enumerate() {
        row.reasons.extend(node.failure.clone());
        if parts(kinds).any(|part| part.slow.contains(&rank)) {
            row.tone = Tone::Bold;
        }
    }
    table
}

/// A value of a fact, and the ranks of the nodes that have it.
struct FactRow {
    fact: String,
    value: String,
    ranks: Vec<usize>,
}

/// Every fact in which nodes differ: a row for each of its values, with the speed of the nodes that have it.
fn differences(record: &FleetRecord, kinds: &[WorkloadFigures]) -> Option<Table> {
    let mut facts: BTreeMap<(usize, String), BTreeMap<String, Vec<usize>>> = BTreeMap::new();
    let mut known = 0;
    for (rank, bench) in
        record.nodes.iter().enumerate().filter_map(|(rank, node)| Some((rank, node.bench.as_ref()?)))
    {
        known += 1;
        for HostFact { place, name, value } in hosts::host_facts(&bench.head.host) {
            facts.entry((place, name)).or_default().entry(value).or_default().push(rank);
        }
    }
    facts.retain(|_, values| values.values().any(|nodes| nodes.len() < known));
    let rows_of = |((_, fact), values): ((usize, String), BTreeMap<String, Vec<usize>>)| {
        values.into_iter().map(move |(value, ranks)| FactRow { fact: fact.clone(), value, ranks })
    };
    let rows: Vec<FactRow> = facts.into_iter().flat_map(rows_of).collect();
    let mut sheet = Sheet::new(&rows);
    sheet.add("what differs", |row| Some((&row.fact).into()));
    sheet.add(col("there").left().fit(Fit::Wrap), |row| Some((&row.value).into()));
    sheet.add(col("nodes").left().fit(Fit::Wrap), |row| {
        let names: Vec<String> = row.ranks.iter().map(|rank| record.nodes[*rank].name.clone()).collect();
        Some(first_names(&names, NAMED_MAX).into())
    });
    for (at, part) in kinds.iter().flat_map(|kind| kind.parts.iter().enumerate()) {
        sheet.add(col(part.title).drop(if at == 0 { 2 } else { 1 }), |row| {
            let speeds: Vec<f64> = row.ranks.iter().filter_map(|rank| middle(&part.nodes[*rank])).collect();
            Some(median(&speeds).map_or(Value::Absent, |speed| Unit::Times.of(speed.exp())))
        });
    }
    let title = "Facts in which the nodes differ, and the speed of the nodes with each value";
    (!rows.is_empty()).then(|| Table { title: title.to_owned(), ..sheet.table() })
}

/// A row of CSV.
struct DataRow<'a> {
    node: &'a str,
    /// Empty for what the node measured by itself.
    partner: &'a str,
    failure: Option<&'a str>,
    case: Option<CaseRow<'a>>,
}

fn data_rows<'a>(
    node: &'a str,
    partner: &'a str,
    cases: &'a [CaseRecord],
    failure: Option<&'a str>,
) -> impl Iterator<Item = DataRow<'a>> {
    let why_not =
        (cases.is_empty() || failure.is_some()).then_some(DataRow { node, partner, failure, case: None });
    let row = move |case| DataRow { node, partner, failure: None, case: Some(CaseRow::of(case)) };
    cases.iter().map(row).chain(why_not)
}

impl Show for FleetRecord {
    fn sections(&self, context: &Context) -> Vec<Section> {
        vec![section(self, context)]
    }

    /// One row for each case of each node and of each pair; a node or a pair that failed or has no cases gets a row with the reason.
    fn data(&self) -> Table {
        let mut rows = Vec::new();
        for node in &self.nodes {
            let cases = node.bench.as_ref().map_or(&[][..], |bench| &bench.cases);
            rows.extend(data_rows(&node.name, "", cases, node.failure.as_deref()));
        }
        for FleetMeeting { from, to, cases, failure } in &self.meetings {
            let [node, partner] = [from, to].map(|rank| self.nodes[*rank].name.as_str());
            rows.extend(data_rows(node, partner, cases, failure.as_deref()));
        }
        let cases: Vec<_> = rows.iter().map(|row| row.case).collect();
        let mut sheet = Sheet::of_data(&rows);
        sheet.data("node", |row| Some(row.node.into()));
        sheet.data("partner", |row| Some(row.partner.into()));
        sheet.data("failure", |row| Some(row.failure?.into()));
        sheet.table().with(cases_table(&cases, true))
    }

    fn check(&self) -> Result<(), String> {
        let ranks = self.meetings.iter().flat_map(|meeting| [meeting.from, meeting.to]);
        indexes("a rank in `meetings`", 0, ranks, "nodes", self.nodes.len())?;
        let own = self.nodes.iter().filter_map(|node| Some(&node.bench.as_ref()?.cases));
        own.chain(self.meetings.iter().map(|meeting| &meeting.cases)).try_for_each(|cases| histograms(cases))
    }
}

/// Sentences: nothing is slow, what would have been slow, and what has too few trials to decide.
fn nothing_slow(kinds: &[WorkloadFigures]) -> Vec<String> {
    let nodes = parts(kinds).filter_map(|part| Some((part.title, part.below?)));
    let pairs = kinds.iter().filter_map(|kind| Some(("pairs", kind.pairs_below?)));
    let least = |all: &[(&'static str, f64)]| {
        all.iter().map(|(_, below)| *below).filter(|below| *below > 0.0).reduce(f64::min)
    };
    let (nodes, pairs): (Vec<_>, Vec<_>) = (nodes.collect(), pairs.collect());
    let seen = [
        least(&nodes).map(|below| format!("a node below {} of the median node's speed", percent(below))),
        least(&pairs)
            .map(|below| format!("a pair below {} of what its two nodes reach with others", percent(below))),
    ];
    let unknown =
        nodes.iter().chain(&pairs).filter(|(_, below)| *below == 0.0).map(|(title, _)| (*title).to_owned());
    let nothing = joined_if_any(seen.into_iter().flatten(), "; ")
        .map(|seen| format!("No node and no pair stands out as slow. This would have: {seen}."));
    let unknown_sentence = joined_if_any(distinct(unknown), ", ").map(|titles| {
        format!("Slow nodes and pairs cannot be found by: {titles}. Figures of fewer than {ENOUGH_FOR_95_PERCENT} trials have no interval.")
    });
    nothing.into_iter().chain(unknown_sentence).collect()
}

/// Which nodes are slow, or that none is, or that the figures do not say; and what failed.
fn sentences(record: &FleetRecord, kinds: &[WorkloadFigures]) -> Vec<String> {
    let mut sentences = slow_ones(record, kinds);
    let known = |part: &NodeFigures| part.nodes.iter().filter(|own| !own.is_empty()).count();
    let most_known = parts(kinds).map(known).max().unwrap_or_default();
    if most_known < NODES_MIN {
        let nodes = count(most_known, "node");
        sentences.push(format!(
            "Figures of {nodes} are too few to find slow ones: at least {NODES_MIN} nodes are needed."
        ));
    } else if sentences.is_empty() {
        sentences.extend(nothing_slow(kinds));
    }
    let inconclusive: usize = kinds.iter().map(|kind| kind.inconclusive).sum();
    if inconclusive > 0 {
        let figures = count(kinds.iter().map(|kind| kind.figures).sum(), "figure");
        sentences.push(format!(
            "{inconclusive} of {figures} cannot be distinguished from the others: their intervals are wide, or of fewer than \
             {ENOUGH_FOR_95_PERCENT} trials. More --pair-time, and more --time for the bench, make them narrower.",
        ));
    }
    sentences.extend(failed_pairs(record));
    sentences
}

/// A sentence for each slow node, and for the slow pairs of each kind.
fn slow_ones(record: &FleetRecord, kinds: &[WorkloadFigures]) -> Vec<String> {
    let name = |rank: usize| &record.nodes[rank].name;
    let mut sentences = Vec::new();
    let mut slow: Vec<Vec<String>> = vec![Vec::new(); record.nodes.len()];
    for part in parts(kinds) {
        for &rank in &part.slow {
            let share = percent(middle(&part.nodes[rank]).unwrap_or_default().exp());
            slow[rank].push(format!("{} {share}", part.words));
        }
    }
    for (rank, slow) in slow.iter().enumerate().filter(|(_, slow)| !slow.is_empty()) {
        sentences.push(format!("{} is slow: {} of the median node's speed.", name(rank), slow.join("; ")));
    }
    for kind in kinds.iter().filter(|kind| !kind.slow_pairs.is_empty()) {
        let pair = |one: &PairSpeed| {
            format!("{} → {} at {}", name(one.from), name(one.to), percent(one.speed.found.exp()))
        };
        let pairs: Vec<String> = kind.slow_pairs.iter().map(pair).collect();
        let (what, pairs) = (quantity(kind.workload).name_of_several(), first_names(&pairs, NAMED_MAX));
        sentences.push(format!("Slow pairs, {what}: {pairs} of what their two nodes reach with others."));
    }
    sentences
}

fn failed_pairs(record: &FleetRecord) -> Option<String> {
    let name = |rank: usize| &record.nodes[rank].name;
    // The reason why a failed node has no pairs is in its row.
    let is_there = |rank: usize| record.nodes[rank].failure.is_none();
    let failed = |FleetMeeting { from, to, failure, .. }: &FleetMeeting| {
        let why = failure.as_ref().filter(|_| is_there(*from) && is_there(*to))?.trim_end_matches('.');
        Some(format!("{} and {} ({why})", name(*from), name(*to)))
    };
    let failed_pairs = first_if_any(record.meetings.iter().filter_map(failed), NAMED_MAX, ", ")?;
    Some(format!("Pairs without figures: {failed_pairs}."))
}
