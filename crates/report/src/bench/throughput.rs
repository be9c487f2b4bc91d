//! Streams and round trips as figures: a ranking for each block size, or lines over many of them.

use model::{CaseRecord, Role, Sample, Workload};
use stats::{CostModel, bound_of, figure};

use super::cases::{CaseSet, Entry, Source};
use crate::bounds::bars_of;
use crate::case_figure::{estimated, figure_cell};
use crate::costs::Costs;
use crate::figure::{
    Axis, Bar, BarGroup, Bars, Chart, Figure, Lines, Point, Reference, Scale, Series, SeriesStyle, Unit,
};
use crate::interval::plus_minus;
use crate::lists::grouped;
use crate::table::{Column, Table};
use crate::{interval, numbers, view, words};

/// Points of a model's curve for each doubling of the block.
const CURVE_STEPS: f64 = 8.0;

/// The figures of a set of cases; `number` tells its figures from those of others.
pub(super) fn figures(set: &CaseSet, number: usize, sources: &[Source]) -> Vec<Figure> {
    if set.is_over_offsets() {
        return vec![over_offsets(set, number)];
    }
    if set.is_sweep() {
        return vec![over_blocks(set, number, sources)];
    }
    let blocks = set.blocks();
    blocks.iter().enumerate().map(|(at, bytes)| ranking(set, *bytes, number * 10 + at, sources)).collect()
}

fn sample(sample: &Sample, workload: Workload) -> Option<f64> {
    match workload {
        Workload::Stream => figure::throughput_bytes_per_s(sample),
        Workload::PingPong => figure::round_trip_p50_ns(sample),
    }
}

fn axis(workload: Workload) -> Axis {
    match workload {
        Workload::Stream => {
            Axis { label: "throughput".to_owned(), unit: Unit::BytesPerS, scale: Scale::Linear }
        }
        // A spinning ring answers hundreds of times sooner than a pipe.
        Workload::PingPong => {
            Axis { label: "median round trip".to_owned(), unit: Unit::Ns, scale: Scale::Log }
        }
    }
}

fn ranking(set: &CaseSet, bytes: u64, number: usize, sources: &[Source]) -> Figure {
    let workload = set.axes.workload;
    let mut entries: Vec<&Entry> = set.of_block(bytes).collect();
    let rank = |entry: &Entry| estimated(entry.case).map(|[point, ..]| point);
    entries.sort_by(|a, b| match (rank(a), rank(b)) {
        (Some(a), Some(b)) if workload == Workload::Stream => b.total_cmp(&a),
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    let (groups, left_out) = groups(&entries);
    let title = match workload {
        Workload::Stream => format!("Throughput, {} blocks", numbers::size(bytes)),
        Workload::PingPong => format!("Median round trip of {}", numbers::size(bytes)),
    };
    let better = match workload {
        Workload::Stream => "Longer is better.",
        Workload::PingPong => "Further left is better; the axis is logarithmic.",
    };
    Figure {
        id: format!("ranking-{number}"),
        title,
        caption: format!(
            "{}. {better} The mark across is {}; each speck below is one trial.{}",
            sentence(&set.conditions()),
            interval::interval_words(entries.iter().map(|entry| entry.case.samples.len())),
            left_out.map(|sentence| format!(" {sentence}")).unwrap_or_default(),
        ),
        chart: Chart::Bars(Bars {
            axis: axis(workload),
            groups,
            references: references(set, bytes, sources),
        }),
    }
}

/// One group where all entries are of one record; else one for each spec with a bar for each record, so that hosts
/// stand side by side. With them a sentence on what is left out.
fn groups(entries: &[&Entry]) -> (Vec<BarGroup>, Option<String>) {
    let label = entries.first().map_or("", |entry| entry.source.label);
    let alone = entries.iter().all(|entry| entry.source.label == label);
    let group = |entry: &Entry| if alone { label.to_owned() } else { entry.name.clone() };
    let name = |entry: &Entry| if alone { entry.name.clone() } else { entry.source.label.to_owned() };
    let (groups, left_out) = bars_of(grouped(entries.iter().map(|entry| (group(entry), *entry))));
    let bars = |entries: Vec<&Entry>| entries.into_iter().map(|entry| bar(entry, name(entry))).collect();
    let groups = groups.into_iter().map(|(name, entries)| BarGroup { name, bars: bars(entries) });
    (groups.collect(), left_out)
}

fn bar(entry: &Entry, name: String) -> Bar {
    let case = entry.case;
    let mut cell = figure_cell(case, entry.source.record.settings.interrupted);
    if cell.value.is_some() {
        cell.note = note(case);
    }
    let samples = case.samples.iter().filter_map(|one| sample(one, case.workload)).collect();
    Bar { name, style: SeriesStyle::Measured, cell, samples }
}

/// What limits a stream, and what is to be known of it.
fn note(case: &CaseRecord) -> String {
    let bound = bound_of(case).map(|bound| format!("bound by {bound}"));
    let by_reference = case.zero_copy.as_ref().map(words::by_reference);
    let failed = case.error.as_ref().map(crate::reason::text);
    let parts: Vec<String> = [bound, by_reference, failed].into_iter().flatten().collect();
    parts.join("; ")
}

/// The ceilings of the records, of the same block where one was measured.
fn references(set: &CaseSet, bytes: u64, sources: &[Source]) -> Vec<Reference> {
    if set.axes.workload == Workload::PingPong {
        return Vec::new();
    }
    let ceiling = |source: &Source| {
        let cases = source.record.cases.iter().filter(|case| case.role == Role::Ceiling);
        let best = cases
            .filter_map(|case| Some((case, case.throughput.as_ref()?.median_bytes_per_s)))
            .min_by_key(|(case, _)| (case.block_bytes != bytes, case.data != set.axes.data))?;
        let (case, value) = best;
        let from = if source.label.is_empty() { String::new() } else { format!(" · {}", source.label) };
        Some(Reference { name: format!("{}{from}", ceiling_with_block(case, set)), value })
    };
    sources.iter().filter(|source| set.has(source)).filter_map(ceiling).collect()
}

fn over_blocks(set: &CaseSet, number: usize, sources: &[Source]) -> Figure {
    let workload = set.axes.workload;
    let points = set.entries.iter().filter_map(|entry| Some((entry.full_name(), point(entry)?)));
    let mut series = series(points, SeriesStyle::Measured);
    if let Some(costs) = costs(set) {
        for (name, model) in costs.models() {
            series
                .iter_mut()
                .filter(|one| one.name == name)
                .for_each(|one| one.model = curve(model, &one.points));
        }
    }
    let (what, best_first): (_, fn(f64) -> f64) = match workload {
        Workload::Stream => ("Throughput over block size", |figure| -figure),
        Workload::PingPong => ("Median round trip over size", |figure| figure),
    };
    let best =
        |series: &Series| series.points.iter().map(|point| best_first(point.y)).fold(f64::INFINITY, f64::min);
    series.sort_by(|a, b| best(a).total_cmp(&best(b)));
    series.extend(ceilings(set, sources));
    Figure {
        id: format!("sweep-{number}"),
        title: what.to_owned(),
        caption: format!(
            "{}. Both axes are logarithmic; the shade around a line is {}.{}",
            sentence(&set.conditions()),
            interval::interval_words(set.entries.iter().map(|entry| entry.case.samples.len())),
            if series.iter().any(|one| !one.model.is_empty()) {
                " Dotted: the cost model below."
            } else {
                ""
            }
        ),
        chart: Chart::Lines(Lines {
            x_axis: Axis { label: "block size".to_owned(), unit: Unit::Bytes, scale: Scale::Log },
            y_axis: Axis { scale: Scale::Log, ..axis(workload) },
            series,
        }),
    }
}

/// A line for each mechanism and block size over the place of the buffers.
fn over_offsets(set: &CaseSet, number: usize) -> Figure {
    let several = set.blocks().len() > 1;
    let name = |entry: &Entry| match several {
        true => format!("{}, {}", entry.full_name(), numbers::size(entry.case.block_bytes)),
        false => entry.full_name(),
    };
    let at = |entry: &Entry, point: Point| Point { x: entry.case.align.place().into(), ..point };
    let points = set.entries.iter().filter_map(|entry| Some((name(entry), at(entry, point(entry)?))));
    Figure {
        id: format!("offsets-{number}"),
        title: "Where the buffers begin".to_owned(),
        caption: format!(
            "{}. Left of 0 the sender's buffer begins that many bytes before the end of a page, right of 0 the receiver's past its \
             start; the other begins at a page. The shade around a line is {}.",
            sentence(&set.conditions()),
            interval::interval_words(set.entries.iter().map(|entry| entry.case.samples.len()))
        ),
        chart: Chart::Lines(Lines {
            x_axis: Axis {
                label: "bytes from a page's start".to_owned(),
                unit: Unit::Count,
                scale: Scale::Linear,
            },
            y_axis: axis(set.axes.workload),
            series: series(points, SeriesStyle::Measured),
        }),
    }
}

/// What a block costs, mechanism by mechanism.
pub(super) fn costs(set: &CaseSet) -> Option<Costs> {
    Costs::from_cases(set.entries.iter().map(|entry| (entry.full_name(), entry.case)))
}

/// The throughput that a model says between the first and the last of these points.
fn curve(model: &CostModel, points: &[Point]) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let steps = ((last.x / first.x).log2() * CURVE_STEPS).ceil().clamp(1.0, 1000.0) as u32;
    let at = |step: u32| (first.x * (last.x / first.x).powf(f64::from(step) / f64::from(steps))).round();
    (0..=steps).map(at).map(|bytes| (bytes, bytes * 1e9 / model.ns(bytes as u64))).collect()
}

/// "ceiling: memcpy", and how it differs from the rows.
fn ceiling_name(case: &CaseRecord, set: &CaseSet) -> String {
    let level = if case.data == set.axes.data { String::new() } else { format!(" (data {})", case.data) };
    format!("ceiling: {}{level}", case.spec)
}

/// The same of one block size: "ceiling: memcpy (64KiB blocks, data none, ±12 %)".
fn ceiling_with_block(case: &CaseRecord, set: &CaseSet) -> String {
    let level = (case.data != set.axes.data).then(|| format!("data {}", case.data));
    let block = Some(format!("{} blocks", numbers::size(case.block_bytes)));
    let spread = estimated(case).map(|found| plus_minus(found, case.samples.len()).trim_start().to_owned());
    let spread = spread.filter(|spread| !spread.is_empty());
    let parts: Vec<String> = [block, level, spread].into_iter().flatten().collect();
    format!("ceiling: {} ({})", case.spec, parts.join(", "))
}

/// The ceilings over the same block sizes, as lines of their own.
fn ceilings(set: &CaseSet, sources: &[Source]) -> Vec<Series> {
    let mut points: Vec<(String, Point)> = Vec::new();
    for source in sources.iter().filter(|source| set.has(source)) {
        let all = || {
            let cases = source.record.cases.iter().filter(|case| case.role == Role::Ceiling);
            cases.filter(|case| case.workload == set.axes.workload)
        };
        let has_own_level = all().any(|case| case.data == set.axes.data);
        for case in all().filter(|case| !has_own_level || case.data == set.axes.data) {
            let entry = Entry { source: *source, name: ceiling_name(case, set), case };
            points.extend(point(&entry).map(|point| (entry.full_name(), point)));
        }
    }
    series(points, SeriesStyle::Reference)
}

/// A line for each name, with its points from left to right.
fn series(points: impl IntoIterator<Item = (String, Point)>, style: SeriesStyle) -> Vec<Series> {
    let series = |(name, mut points): (String, Vec<Point>)| {
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Series { name, style, points, model: Vec::new() }
    };
    grouped(points).into_iter().map(series).collect()
}

fn point(entry: &Entry) -> Option<Point> {
    let [y, low, high] = estimated(entry.case)?;
    Some(Point { x: entry.case.block_bytes as f64, y, low: Some(low), high: Some(high), n: entry.n() })
}

/// The rows of a sweep that have no figure, with the sizes this is so at and the reason.
pub(super) fn gaps(set: &CaseSet) -> Option<Table> {
    let without = set.entries.iter().filter(|entry| estimated(entry.case).is_none());
    let gaps =
        without.filter_map(|entry| Some((entry.full_name(), (entry.why_not()?, entry.case.block_bytes))));
    // Reasons differ at most in the size that they name: the first one is shown.
    let row = |(name, gaps): (String, Vec<(String, u64)>)| {
        let sizes = match gaps.as_slice() {
            [(_, first), .., (_, last)] => format!("{} to {}", numbers::size(*first), numbers::size(*last)),
            one => one.iter().map(|(_, bytes)| numbers::size(*bytes)).collect(),
        };
        let reason = gaps.into_iter().next().map(|(reason, _)| reason);
        vec![name, sizes, reason.unwrap_or_default()]
    };
    let rows: Vec<Vec<String>> = grouped(gaps).into_iter().map(row).collect();
    let columns = ["mechanism", "block size", "why"].map(Column::left);
    (!rows.is_empty()).then(|| Table::new("Not measured", columns, rows))
}

/// Every column of the ranked lists of one record, as the terminal has them on a very wide screen.
pub(super) fn tables(source: &Source) -> Vec<Table> {
    let view = view::View::of(source.record);
    let table = |section: &view::Ranking| {
        let table = crate::columns::table(section, source.record.settings.interrupted);
        let (stream, round_trip) = section.blocks();
        let parts = [crate::words::blocks(stream, round_trip), section.ends(), section.data().to_owned()];
        let title = if source.label.is_empty() {
            parts.join(" · ")
        } else {
            format!("{}: {}", source.label, parts.join(" · "))
        };
        Table { title, ..table.texts() }
    };
    view.rankings.iter().map(table).collect()
}

fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + characters.as_str())
        .unwrap_or_default()
}
