//! The page: records, of one host or many, as one HTML file that needs nothing else. Here it is decided what is on
//! it; the HTML, its style and its script are in `page/document.rs` and beside it.
//!
//! Records of several runs are put side by side where they have cases in common. Where they have none, each stands by
//! itself and the page says so: records of other commands are no mistake, and a reader may well want them in one file.

mod bounded;
mod cases;
mod common;
mod comparisons;
mod document;
mod highlights;
pub(crate) mod hosts;
mod labels;
mod languages;
mod method;
mod pipelines;
mod round_trips;
mod section;
pub(crate) mod throughput;

pub use highlights::Highlight;
pub use section::{Block, Section};

use model::{BenchRecord, Workload};

use crate::figure::Figure;
use crate::format::Format;
use crate::lists::{distinct, grouped};
use crate::page::cases::{Set, Source};
use crate::read::{AnyRecord, Loaded};
use crate::study::ViewOf;
use crate::view::Group;
use crate::{advice, boost, chains, difference, fleet, load, remarks, view, words};

/// The registry entry.
pub const FORMAT: Format = Format {
    name: "HTML",
    flag: "html",
    summary: "one page with charts, for a browser",
    render: |records, view_of| Ok(render(records, view_of)),
};

/// Everything on a page, before it is HTML.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Its heading.
    pub title: String,
    /// Below it: the machine, or how many there are.
    pub subtitle: String,
    /// The commands whose records it shows.
    pub commands: Vec<&'static str>,
    /// The figures a reader came for.
    pub highlights: Vec<Highlight>,
    /// What must be known before the figures are believed: records that were cut short, or have nothing in common.
    pub notices: Vec<String>,
    /// The parts, from above.
    pub sections: Vec<Section>,
}

/// Records as one page; `view_of` says what is to be shown of a study's.
pub fn render(records: &[Loaded], view_of: ViewOf) -> String {
    document::render(&page(records, view_of))
}

/// A sentence for each record that has no case in common with the others.
pub fn strangers(records: &[Loaded]) -> Vec<String> {
    let bench = records.iter().filter_map(|loaded| Some((loaded.name.as_str(), bench(&loaded.record)?)));
    common::strangers(&bench.collect::<Vec<_>>())
}

fn bench(record: &AnyRecord) -> Option<&BenchRecord> {
    match record {
        AnyRecord::Bench(record) => Some(record),
        _ => None,
    }
}

/// What is on the page of these records.
pub fn page(records: &[Loaded], view_of: ViewOf) -> Page {
    let labels = labels::labels(&records.iter().map(|loaded| loaded.name.as_str()).collect::<Vec<&str>>());
    // One record of its kind needs no name among the others.
    let kind = |at: usize| std::mem::discriminant(&records[at].record);
    let alone = |at: usize| (0..records.len()).all(|other| other == at || kind(other) != kind(at));
    let label = |at: usize| if alone(at) { "" } else { labels[at].as_str() };
    let sources: Vec<Source> = records
        .iter()
        .enumerate()
        .filter_map(|(at, loaded)| Some(Source { label: label(at), record: bench(&loaded.record)? }))
        .collect();
    let mut sections = bench_sections(&sources);
    for (at, loaded) in records.iter().enumerate() {
        match &loaded.record {
            AnyRecord::Bench(_) => {}
            AnyRecord::Run(record) => sections.push(pipelines::section(record, label(at), at)),
            AnyRecord::Compare(record) => sections.push(comparisons::section(record, label(at), at)),
            AnyRecord::Diff(record) => sections.push(difference::section(record, label(at), at)),
            AnyRecord::Boost(record) => sections.push(boost::section(record, label(at), at)),
            AnyRecord::Top(record) => sections.push(chains::section(&record.seen, label(at), at)),
            AnyRecord::Fleet(record) => sections.push(fleet::section(record, label(at), at)),
            AnyRecord::Study(record) => sections.extend(view_of(record).page_sections(label(at), at)),
        }
    }
    let named: Vec<(String, &AnyRecord)> =
        labels.iter().cloned().zip(records.iter().map(|loaded| &loaded.record)).collect();
    sections.push(hosts_section(&named));
    bounded::bounded(Page {
        title: title(records),
        subtitle: subtitle(&named),
        commands: distinct(records.iter().map(|loaded| loaded.record.command())),
        highlights: match sources.as_slice() {
            [source] => highlights::of(source.record),
            _ => Vec::new(),
        },
        notices: notices(records),
        sections,
    })
}

fn title(records: &[Loaded]) -> String {
    match records {
        [Loaded { record: AnyRecord::Study(record), .. }] => format!("hosepipe reproduce {}", record.study),
        [one] => format!("hosepipe {}", one.record.command()),
        several => format!("hosepipe: {}", words::count(several.len(), "record")),
    }
}

fn subtitle(named: &[(String, &AnyRecord)]) -> String {
    match named {
        [] => String::new(),
        _ if hosts::several(named) => "Several machines, side by side".to_owned(),
        [(_, first), ..] => words::machine(first.host()),
    }
}

fn notices(records: &[Loaded]) -> Vec<String> {
    let early = records.iter().filter_map(|loaded| {
        let sentence = remarks::interruption(&view::View::of(bench(&loaded.record)?))?;
        Some(if records.len() == 1 { sentence } else { format!("{}: {sentence}", loaded.name) })
    });
    early.chain(strangers(records)).collect()
}

/// Streams, round trips, their distribution, languages: for what the records hold.
fn bench_sections(sources: &[Source]) -> Vec<Section> {
    let sets = cases::sets(sources);
    let titled = |set: &Set, mut figure: Figure| {
        figure.title.push_str(&set.apart(&sets));
        Block::Figure(figure)
    };
    let figures = |workload: Workload, of: &dyn Fn(&Set, usize) -> Vec<Figure>, gaps: bool| {
        let mut blocks: Vec<Block> = Vec::new();
        for (at, set) in sets.iter().enumerate().filter(|(_, set)| set.axes.workload == workload) {
            blocks.extend(of(set, at).into_iter().map(|figure| titled(set, figure)));
            if let Some(mut table) =
                throughput::costs(set).filter(|_| gaps && set.is_sweep()).map(|costs| costs.table())
            {
                table.title.push_str(&set.apart(&sets));
                let notes = table.notes.clone();
                blocks.extend([Block::Table(table), Block::Remarks(notes)]);
            }
            blocks.extend(throughput::gaps(set).filter(|_| gaps && set.is_sweep()).map(Block::Table));
        }
        blocks
    };
    let rankings = |set: &Set, at: usize| throughput::figures(set, at, sources);
    let mut streams = figures(Workload::Stream, &rankings, true);
    let mut trips = figures(Workload::PingPong, &rankings, true);
    let distributions = figures(Workload::PingPong, &round_trips::figures, false);
    // Findings and remarks are of the whole record: they stand where its first figures are.
    let (mut stream_findings, mut trip_findings) = (findings(sources), Vec::new());
    if streams.is_empty() {
        std::mem::swap(&mut stream_findings, &mut trip_findings);
    }
    if let Some(first) = [&mut streams, &mut trips].into_iter().find(|blocks| !blocks.is_empty()) {
        first.extend(remarks_of(sources));
    }
    let mut sections = vec![
        section("throughput", "Throughput", stream_findings, streams),
        section("round-trips", "Round trips", trip_findings, trips),
        section("distribution", "How round trips are distributed", Vec::new(), distributions),
    ];
    sections.extend(sources.iter().enumerate().filter_map(|(at, source)| languages::section(source, at)));
    for (at, source) in sources.iter().enumerate() {
        let figures = load::figures(source.record, at).into_iter().map(Block::Figure);
        let tables = load::tables(source.record).into_iter().map(Block::Table);
        let remarks =
            Some(load::remarks(source.record)).filter(|lines| !lines.is_empty()).map(Block::Remarks);
        let title = match source.label {
            "" => "Under load".to_owned(),
            label => format!("Under load · {label}"),
        };
        let blocks = figures.chain(tables).chain(remarks).collect();
        sections.push(section(&format!("under-load-{at}"), &title, Vec::new(), blocks));
    }
    let own = |source: &&Source| view::ranked(source.record).any(|case| case.worker.is_none());
    let tables: Vec<_> = sources.iter().filter(own).flat_map(throughput::tables).collect();
    if !tables.is_empty() {
        let folded = vec![Block::Folded("All figures as tables".to_owned(), tables)];
        sections.push(section("figures", "Every figure", Vec::new(), folded));
    }
    sections.retain(|section| !section.blocks.is_empty());
    sections
}

fn section(id: &str, title: &str, lead: Vec<String>, blocks: Vec<Block>) -> Section {
    Section { id: id.to_owned(), title: title.to_owned(), lead, code: None, blocks }
}

/// What the figures say to do next.
fn findings(sources: &[Source]) -> Vec<String> {
    match sources {
        [source] => advice(source.record),
        _ => Vec::new(),
    }
}

/// What a reader must know before believing a row; what several records say is said once.
fn remarks_of(sources: &[Source]) -> Option<Block> {
    let of_one = |source: &Source<'_>| remarks_of_one(source.record).into_iter();
    let said = sources.iter().flat_map(|source| of_one(source).map(|line| (line, source.label)));
    let line = |(line, labels): (String, Vec<&str>)| {
        if labels.len() == sources.len() { line } else { format!("{}: {line}", labels.join(", ")) }
    };
    let lines: Vec<String> = grouped(said).into_iter().map(line).collect();
    (!lines.is_empty()).then_some(Block::Remarks(lines))
}

fn remarks_of_one(record: &BenchRecord) -> Vec<String> {
    let view = view::View::of(record);
    let footer = |group| match group {
        Group::Ranked(section) => remarks::footer(&view, section),
        // Over many block sizes the ceiling is a line of the figure.
        Group::Sweep(_) => None,
    };
    let mut lines = distinct(view.groups().into_iter().filter_map(footer));
    lines.extend(remarks::references(&view));
    lines.extend(remarks::noise_legend(record));
    lines.extend(remarks::remarks(&view));
    lines
}

fn hosts_section(named: &[(String, &AnyRecord)]) -> Section {
    let title = if hosts::several(named) { "The machines" } else { "The machine" };
    Section {
        id: "machines".to_owned(),
        title: title.to_owned(),
        lead: Vec::new(),
        code: None,
        blocks: vec![Block::Table(hosts::runs(named)), Block::Table(hosts::facts(named))],
    }
}
