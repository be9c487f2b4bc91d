//! Figures in a terminal: as bars, or as columns of figures.

use super::wrapped;
use crate::figure::{Bars, Chart, Figure, Lines, Scale, Series, SeriesStyle};
use crate::layout::{Line, Tone, bar, left, right, width, wrap};
use crate::numbers;
use crate::table::{Style, Table};

/// Columns of the longest bar.
const BAR_COLUMNS: usize = 24;
/// Columns of the figure before a bar.
const VALUE_COLUMNS: usize = 10;
/// Between two columns.
const GAP: &str = "  ";

/// The title of a figure, and its bars or its table.
pub(super) fn lines(figure: &Figure, style: &Style) -> Vec<Line> {
    let title = wrap(&figure.title, style.width.saturating_sub(1)).into_iter();
    let title = title.map(|line| Line::new(Tone::Dim, format!(" {line}")));
    let table = match &figure.chart {
        Chart::Bars(chart) => return title.chain(bars(chart, style)).collect(),
        Chart::Lines(chart) => columns(chart, style),
        Chart::Heat(_) | Chart::Flow(_) => figure.table(),
    };
    title.chain([Line::default()]).chain(table.lines(style)).collect()
}

fn bars(bars: &Bars, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let all = || bars.groups.iter().flat_map(|group| &group.bars);
    let most = all().filter_map(|bar| bar.cell.value).fold(0.0, f64::max);
    let least = all().filter_map(|bar| bar.cell.value).fold(f64::INFINITY, f64::min);
    let share = |value: f64| match bars.axis.scale {
        Scale::Linear => value / most,
        // The shortest bar of a logarithmic axis is a tenth of the longest.
        Scale::Log if most > least => 0.1 + 0.9 * (value / least).ln() / (most / least).ln(),
        Scale::Log => 1.0,
    };
    let name =
        |group: &str, bar: &str| if group.is_empty() { bar.to_owned() } else { format!("{group}, {bar}") };
    let names =
        bars.groups.iter().flat_map(|group| group.bars.iter().map(|bar| name(&group.name, &bar.name)));
    let columns = names.map(|name| width(&name)).max().unwrap_or(0);
    let room = style.width.saturating_sub(columns + VALUE_COLUMNS + 2 * width(GAP) + 1).min(BAR_COLUMNS);
    for group in &bars.groups {
        for one in &group.bars {
            let value = one.cell.value.map(|value| bars.axis.unit.text(value)).unwrap_or_default();
            let drawn = one.cell.value.map(|value| bar(share(value), room)).unwrap_or_default();
            let label = left(&name(&group.name, &one.name), columns);
            let text = format!(" {label}{GAP}{}{GAP}{drawn}", right(&value, VALUE_COLUMNS));
            let tone = if one.style == SeriesStyle::Published { Tone::Dim } else { Tone::Plain };
            lines.push(Line::new(tone, text.trim_end()));
        }
    }
    if bars.axis.scale == Scale::Log {
        lines.extend(wrapped(Tone::Dim, "(bars on a logarithmic scale)", style));
    }
    lines
}

/// One row for each place on the axis, one column for each line, and a bar for the first.
fn columns(chart: &Lines, style: &Style) -> Table {
    let shown: Vec<_> = chart.series.iter().filter(|one| one.style == SeriesStyle::Measured).collect();
    let mut places: Vec<f64> = shown.iter().flat_map(|one| one.points.iter().map(|point| point.x)).collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let at = |series: &Series, x: f64| series.points.iter().find(|point| point.x == x).map(|point| point.y);
    let highest = shown.iter().flat_map(|one| &one.points).map(|point| point.y).fold(0.0, f64::max);
    let room = style.width.saturating_sub(60).min(BAR_COLUMNS);
    let row = |x: &f64| {
        let figure = |series: &&Series| at(series, *x).map(numbers::throughput).unwrap_or_default();
        let mut cells = vec![chart.x_axis.unit.text(*x)];
        cells.extend(shown.iter().map(figure));
        let first = shown.first().and_then(|series| at(series, *x)).unwrap_or(0.0);
        cells.push(bar(first / highest, room));
        cells
    };
    let mut columns = vec![chart.x_axis.label.clone()];
    columns.extend(shown.iter().map(|series| series.name.clone()));
    columns.push(String::new());
    Table::new("", columns, places.iter().map(row))
}
