//! Bench records on a page, side by side where they have cases in common: streams, round trips, their distribution, languages.

use model::{BenchRecord, Workload};

use super::cases::{self, CaseSet, Source};
use super::{recommended, round_trips, throughput};
use crate::advice::advice;
use crate::document::{Block, Section, labelled};
use crate::figure::Figure;
use crate::lists::{distinct, grouped};
use crate::view::{self, Group};
use crate::{data_costs, languages, load, remarks};

/// Streams, round trips, their distribution, languages: for what the records hold.
pub(crate) fn sections(sources: &[Source]) -> Vec<Section> {
    let sets = cases::sets(sources);
    let titled = |set: &CaseSet, mut figure: Figure| {
        figure.title.push_str(&set.title_suffix(&sets));
        Block::Figure(figure)
    };
    let figures = |workload: Workload, of: &dyn Fn(&CaseSet, usize) -> Vec<Figure>, gaps: bool| {
        let mut blocks: Vec<Block> = Vec::new();
        for (at, set) in sets.iter().enumerate().filter(|(_, set)| set.axes.workload == workload) {
            blocks.extend(of(set, at).into_iter().map(|figure| titled(set, figure)));
            if let Some(mut table) =
                throughput::costs(set).filter(|_| gaps && set.is_sweep()).map(|costs| costs.table())
            {
                table.title.push_str(&set.title_suffix(&sets));
                let notes = table.notes.clone();
                blocks.extend([Block::Table(table), Block::Remarks(notes)]);
            }
            blocks.extend(throughput::gaps(set).filter(|_| gaps && set.is_sweep()).map(Block::Table));
        }
        blocks
    };
    let rankings = |set: &CaseSet, at: usize| throughput::figures(set, at, sources);
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
    let mut sections: Vec<Section> = sources.iter().enumerate().filter_map(recommendation).collect();
    sections.extend([
        section("throughput", "Throughput", stream_findings, streams),
        section("round-trips", "Round trips", trip_findings, trips),
        section("distribution", "How round trips are distributed", Vec::new(), distributions),
    ]);
    sections.extend(
        sources
            .iter()
            .enumerate()
            .filter_map(|(at, source)| languages::page::section(source.record, source.label, at)),
    );
    for (at, source) in sources.iter().enumerate() {
        let figures = load::figures(source.record, at).into_iter().map(Block::Figure);
        let tables = load::tables(source.record).into_iter().map(Block::Table);
        let remarks =
            Some(load::remarks(source.record)).filter(|lines| !lines.is_empty()).map(Block::Remarks);
        let title = labelled("Under load", source.label);
        let blocks = figures.chain(tables).chain(remarks).collect();
        sections.push(section(&format!("under-load-{at}"), &title, Vec::new(), blocks));
        let costs = data_costs::table(source.record).into_iter().map(Block::Table).collect();
        let title = labelled("What the payload costs", source.label);
        sections.push(section(&format!("payload-costs-{at}"), &title, Vec::new(), costs));
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

/// The answer of `hosepipe recommend`, with its program.
fn recommendation((at, source): (usize, &Source<'_>)) -> Option<Section> {
    let recommendation = source.record.recommendation.as_deref()?;
    let title = labelled(&recommendation.title, source.label);
    Some(section(&format!("recommendation-{at}"), &title, Vec::new(), recommended(recommendation)))
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
    lines.splice(0..0, remarks::other_load(record));
    lines.extend(remarks::interval_legend(record));
    lines.extend(remarks::remarks(&view));
    lines
}
