//! Bench records on a page, side by side if they have cases in common: streams, round trips, their distribution, languages.

use std::collections::BTreeSet;

use model::{BenchRecord, Workload};

use super::{recommended, round_trips, throughput};
use crate::advice::advice;
use crate::chart::Chart;
use crate::crossings::crossings;
use crate::document::{Block, Section, labelled};
use crate::groups::{ChartedCases, Source};
use crate::lists::{distinct, grouped};
use crate::table::Table;
use crate::view::{View, ranked};
use crate::{data_costs, languages, load, offsets, remarks};

/// A section for each kind of estimates that the records hold.
pub(crate) fn sections(sources: &[Source]) -> Vec<Section> {
    let (over_offsets, others): (Vec<_>, _) =
        sources.iter().copied().partition(|source| offsets::are_swept(source.record));
    let view = View::from_sources(&others);
    let [streams, trips] = [Workload::Stream, Workload::PingPong].map(|workload| view.charted(workload));
    let blocks = |workload, charted: &[ChartedCases]| {
        let tables = offset_tables(workload, &over_offsets).into_iter().map(Block::Table);
        let charts = (0..charted.len()).flat_map(|at| case_blocks(at, charted, sources));
        tables.chain(charts).collect::<Vec<Block>>()
    };
    let trip_charts =
        trips.iter().enumerate().filter_map(|(at, one)| Some((at, round_trips::chart(one, at)?)));
    let distributions = trip_charts.map(|(at, chart)| titled(chart, at, &trips)).collect();
    let mut estimates = [
        section("throughput", "Throughput", blocks(Workload::Stream, &streams)),
        section("round-trips", "Round trips", blocks(Workload::PingPong, &trips)),
    ];
    // Findings and remarks are of the whole record: they are in its first section of estimates.
    if let Some(first) = estimates.iter_mut().find(|section| !section.blocks.is_empty()) {
        // What several records recommend together is unknown.
        if let [source] = sources
            && has_mechanisms(&source)
        {
            first.lead = advice(source.record);
        }
        let own: Vec<Source> = sources.iter().filter(has_mechanisms).copied().collect();
        first.blocks.extend(remarks_of(&own));
    }
    let mut sections: Vec<Section> = sources.iter().enumerate().filter_map(recommendation).collect();
    sections.extend(estimates);
    sections.push(section("distribution", "How round trips are distributed", distributions));
    for (at, source) in sources.iter().enumerate() {
        sections.extend(languages::section(source.record, source.label, at));
    }
    for (at, Source { record, label }) in sources.iter().enumerate() {
        let costs = data_costs::table(record).into_iter().map(Block::Table).collect();
        let costs_title = labelled("What the payload costs", label);
        sections.push(section(
            &format!("under-load-{at}"),
            &labelled("Under load", label),
            under_load(record, at),
        ));
        sections.push(section(&format!("payload-costs-{at}"), &costs_title, costs));
    }
    let tables: Vec<_> = sources.iter().filter(has_mechanisms).flat_map(throughput::tables).collect();
    if !tables.is_empty() {
        let folded = vec![Block::Folded("All figures as tables".to_owned(), tables)];
        sections.push(section("figures", "Every figure", folded));
    }
    sections.retain(|section| !section.blocks.is_empty());
    sections
}

/// The charts and tables under a load, and their remarks.
fn under_load(record: &BenchRecord, at: usize) -> Vec<Block> {
    let charts = load::charts(record, at).into_iter().map(Block::Chart);
    let tables = load::tables(record);
    let mut known = BTreeSet::new();
    let legends = tables.iter().filter_map(|table| table.legend(&mut known, |_| true));
    let remarks: Vec<String> = load::remarks(record).into_iter().chain(legends).collect();
    let remark_block = (!remarks.is_empty()).then_some(Block::Remarks(remarks));
    charts.chain(tables.into_iter().map(Block::Table)).chain(remark_block).collect()
}

/// Whether a record has rows that are no programs of other languages.
fn has_mechanisms(source: &&Source) -> bool {
    ranked(source.record).any(|case| case.worker.is_none())
}

fn section(id: &str, title: &str, blocks: Vec<Block>) -> Section {
    Section { id: id.to_owned(), title: title.to_owned(), blocks, ..Section::default() }
}

/// A chart with a title that distinguishes it from others of its workload.
fn titled(chart: Chart, at: usize, all: &[ChartedCases]) -> Block {
    Block::Chart(Chart { title: all[at].titled(&chart.title, all), ..chart })
}

/// The chart of some cases; of a sweep also where mechanisms cross, and the sizes without figures.
fn case_blocks(at: usize, all: &[ChartedCases], sources: &[Source]) -> Vec<Block> {
    let cases = &all[at];
    let mut blocks = vec![titled(throughput::chart(cases, at, sources), at, all)];
    if cases.is_sweep {
        let crossings = crossings(cases.rows.iter().map(|(row, case)| (row.full_name(), *case)));
        blocks.extend((!crossings.is_empty()).then_some(Block::Remarks(crossings)));
        blocks.extend(throughput::gaps(cases).map(Block::Table));
    }
    blocks
}

/// The tables of the records whose buffers begin at many offsets.
fn offset_tables(workload: Workload, sources: &[Source]) -> Vec<Table> {
    let all = sources.iter().flat_map(|source| {
        let cases = offsets::labelled_cases(source.record).filter(|(_, case)| case.workload == workload);
        cases.map(|(name, case)| (labelled(&name, source.label), case))
    });
    offsets::tables(all.collect::<Vec<_>>().into_iter())
}

/// The answer of `hosepipe recommend`, with its program.
fn recommendation((at, source): (usize, &Source<'_>)) -> Option<Section> {
    let recommendation = source.record.recommendation.as_deref()?;
    let title = labelled(&recommendation.title, source.label);
    Some(section(&format!("recommendation-{at}"), &title, recommended(recommendation)))
}

/// The remarks of all records; one that several records have is shown once.
fn remarks_of(sources: &[Source]) -> Option<Block> {
    let remarks = sources
        .iter()
        .flat_map(|source| remarks_of_one(source.record).into_iter().map(|line| (line, source.label)));
    let line = |(line, labels): (String, Vec<&str>)| {
        if labels.len() == sources.len() { line } else { format!("{}: {line}", labels.join(", ")) }
    };
    let lines: Vec<String> = grouped(remarks).into_iter().map(line).collect();
    (!lines.is_empty()).then_some(Block::Remarks(lines))
}

fn remarks_of_one(record: &BenchRecord) -> Vec<String> {
    let view = View::from_record(record);
    // In a sweep the ceiling is a line of the chart.
    let single = view.groups().into_iter().filter(|group| group.len() == 1);
    let footers = distinct(single.filter_map(|group| remarks::footer(&view, &group[0])));
    let mut lines: Vec<String> = remarks::other_load(record).into_iter().chain(footers).collect();
    lines.extend(remarks::references(record));
    lines.extend(remarks::interval_legend(record));
    lines.extend(remarks::remarks(&view));
    lines
}
