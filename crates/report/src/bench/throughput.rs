//! Streams and round trips as charts: a ranking for each block size, or lines over many of them.

use model::{CaseRecord, Role, Workload};
use stats::bound_of;

use crate::bounds::bars_of;
use crate::chart::{
    BarGroup, Bars, Chart, ChartAxis, ChartData, Lines, Point, Reference, Scale, Series, SeriesStyle, Unit,
};
use crate::document::labelled;
use crate::estimate::{estimate_bar, estimated, quantity, speed};
use crate::groups::{ChartedCases, References, Source};
use crate::interval::{self, interval_words};
use crate::lists::{grouped, joined, joined_if_any};
use crate::sheet::col;
use crate::sweep::size_range;
use crate::table::Table;
use crate::view::{BlockSizes, RankedRow, Ranking, View};
use crate::{columns, numbers, reason, words};

/// The chart of some cases; `number` is a part of its id.
pub(super) fn chart(cases: &ChartedCases, number: usize, sources: &[Source]) -> Chart {
    if cases.is_sweep { over_blocks(cases, number, sources) } else { ranking(cases, number, sources) }
}

type Row<'v, 'a> = (&'v RankedRow<'a>, &'a CaseRecord);

fn ranking(set: &ChartedCases, number: usize, sources: &[Source]) -> Chart {
    let CaseRecord { workload, block_bytes, .. } = *set.case();
    let mut entries = set.rows.clone();
    let rank = |(_, case): &Row| speed(case).unwrap_or(f64::NEG_INFINITY);
    model::sort_by(&mut entries, |a, b| rank(b).total_cmp(&rank(a)));
    let (groups, left_out) = groups(&entries);
    let size = numbers::size(block_bytes);
    let (title, better) = match workload {
        Workload::Stream => (format!("Throughput, {size} blocks"), "Longer is better."),
        Workload::PingPong => {
            (format!("Median round trip of {size}"), "Further left is better; the axis is logarithmic.")
        }
    };
    Chart {
        id: format!("ranking-{}-{number}", workload.word()),
        title,
        caption: format!(
            "{}. {better} The mark across is {}; each dot below is one trial.{}",
            set.caption(),
            interval_words(entries.iter().map(|(_, case)| case.samples.len())),
            left_out.map(|sentence| format!(" {sentence}")).unwrap_or_default(),
        ),
        data: ChartData::Bars(Bars {
            axis: quantity(workload).axis(),
            groups,
            references: references(set, sources),
        }),
    }
}

/// One group if all entries are of one record; else one for each spec with a bar for each record, so that hosts are side by side.
/// With them a sentence on what is left out.
fn groups(entries: &[Row]) -> (Vec<BarGroup>, Option<String>) {
    let label = entries.first().map_or("", |(row, _)| row.source.label);
    let alone = entries.iter().all(|(row, _)| row.source.label == label);
    let names = |row: &RankedRow| {
        let of_source = (row.label.clone(), row.source.label.to_owned());
        if alone { (label.to_owned(), of_source.0) } else { of_source }
    };
    let (groups, left_out) = bars_of(grouped(entries.iter().map(|entry| (names(entry.0).0, *entry))));
    let bar = |(row, case): Row| {
        estimate_bar(names(row).1, case, row.source.record.settings.interrupted, note(case))
    };
    let bars = |entries: Vec<Row>| entries.into_iter().map(bar).collect();
    let groups = groups.into_iter().map(|(name, entries)| BarGroup { name, bars: bars(entries) });
    (groups.collect(), left_out)
}

/// The toolchain of a worker; what limits a stream, how its bytes are passed, and its failure.
fn note(case: &CaseRecord) -> String {
    let toolchain = case.worker.as_ref().and_then(|worker| worker.writer.toolchain.clone());
    let bound = bound_of(case).map(|bound| format!("bound by {bound}"));
    let by_reference = case.zero_copy.as_ref().map(words::by_reference);
    let failed = case.error.as_ref().map(reason::text);
    joined_if_any([toolchain, bound, by_reference, failed].into_iter().flatten(), "; ").unwrap_or_default()
}

/// The ceilings of the records, of the same block where one was measured.
fn references(set: &ChartedCases, sources: &[Source]) -> Vec<Reference> {
    let CaseRecord { data, placement, block_bytes, workload, .. } = *set.case();
    if workload == Workload::PingPong {
        return Vec::new();
    }
    let ceiling = |source: &Source| {
        let references = References::from_record(source.record);
        let blocks = BlockSizes { stream: Some(block_bytes), round_trip: None };
        let mut nearest = references.nearest(Role::Ceiling, blocks, data, placement).into_iter();
        let (case, value) = nearest.find_map(|case| Some((case, speed(case)?)))?;
        Some(Reference { name: joined([ceiling_with_block(case, set).as_str(), source.label]), value })
    };
    set.sources(sources).filter_map(ceiling).collect()
}

fn over_blocks(set: &ChartedCases, number: usize, sources: &[Source]) -> Chart {
    let workload = set.case().workload;
    let points = set.rows.iter().filter_map(|(row, case)| Some((row.full_name(), point(case)?)));
    let mut series = Series::by_name(points, SeriesStyle::Measured);
    let (what, sign) = match workload {
        Workload::Stream => ("Throughput over block size", -1.0),
        Workload::PingPong => ("Median round trip over size", 1.0),
    };
    let best = |series: &Series| series.points.iter().map(|one| sign * one.y).fold(f64::INFINITY, f64::min);
    model::sort_by(&mut series, |a, b| best(a).total_cmp(&best(b)));
    series.extend(ceilings(set, sources));
    Chart {
        id: format!("sweep-{}-{number}", workload.word()),
        title: what.to_owned(),
        caption: format!(
            "{}. Both axes are logarithmic; the shade around a line is {}.",
            set.caption(),
            interval_words(set.cases().map(|case| case.samples.len()))
        ),
        data: ChartData::Lines(Lines {
            x_axis: ChartAxis::new("block size", Unit::Bytes, Scale::Log),
            y_axis: ChartAxis { scale: Scale::Log, ..quantity(workload).axis() },
            series,
        }),
    }
}

/// "ceiling: memcpy (64 KiB blocks, data none, ±12 %)"; the data level only if it is not that of the rows.
fn ceiling_with_block(case: &CaseRecord, set: &ChartedCases) -> String {
    let text = |value| quantity(case.workload).unit.text(value);
    let interval = estimated(case).and_then(|found| interval::alone(found, case.samples.len(), text));
    let mut parts = vec![format!("{} blocks", numbers::size(case.block_bytes))];
    parts.extend((case.data != set.case().data).then(|| format!("data {}", case.data)));
    parts.extend(interval);
    format!("ceiling: {} ({})", case.spec, parts.join(", "))
}

/// The ceilings over the same block sizes, as lines of their own.
fn ceilings(set: &ChartedCases, sources: &[Source]) -> Vec<Series> {
    let mut points: Vec<(String, Point)> = Vec::new();
    for source in set.sources(sources) {
        let references = References::from_record(source.record);
        let all = || references.of_role(Role::Ceiling).filter(|case| case.workload == set.case().workload);
        let has_own_level = all().any(|case| case.data == set.case().data);
        for case in all().filter(|case| !has_own_level || case.data == set.case().data) {
            let level = if has_own_level { String::new() } else { format!(" (data {})", case.data) };
            let name = labelled(&format!("ceiling: {}{level}", case.spec), source.label);
            points.extend(point(case).map(|point| (name, point)));
        }
    }
    Series::by_name(points, SeriesStyle::Reference)
}

fn point(case: &CaseRecord) -> Option<Point> {
    Some(Point::estimated(case.block_bytes as f64, estimated(case)?, case.samples.len()))
}

/// The rows of a sweep without figures at some sizes: the sizes, and the reason.
pub(super) fn gaps(set: &ChartedCases) -> Option<Table> {
    let without = set.rows.iter().filter(|(_, case)| estimated(case).is_none());
    let gaps = without.filter_map(|(row, case)| {
        let why = reason::reason(case, row.source.record.settings.interrupted)?;
        Some((row.full_name(), (why, case.block_bytes)))
    });
    // The reasons differ at most in the size that they name: the first one is shown.
    let row = |(name, gaps): (String, Vec<(String, u64)>)| {
        let [first, last] = [gaps.first(), gaps.last()].map(|gap| gap.map_or(0, |(_, bytes)| *bytes));
        let sizes = size_range(first, last);
        let reason = gaps.into_iter().next().map(|(reason, _)| reason);
        vec![name, sizes, reason.unwrap_or_default()]
    };
    let rows: Vec<Vec<String>> = grouped(gaps).into_iter().map(row).collect();
    let columns = ["mechanism", "block size", "why"].map(|head| col(head).left());
    (!rows.is_empty()).then(|| Table::new("Not measured", columns, rows))
}

/// Every column of the rankings of one record, as on a very wide terminal.
pub(super) fn tables(source: &Source) -> Vec<Table> {
    let table = |ranking: &Ranking| {
        let table = columns::table(ranking, source.record.settings.interrupted).texts();
        let title = ranking.conditions().text();
        let label = if source.label.is_empty() { String::new() } else { format!("{}: ", source.label) };
        Table { title: label + &title, ..table }
    };
    View::from_record(source.record).rankings.iter().map(table).collect()
}
