//! Charts in a terminal: as bars, or as columns of numbers.

use super::wrapped;
use crate::chart::{Bar, BarGroup, Bars, Chart, ChartData, Lines, Scale, Series, SeriesStyle};
use crate::layout::{Line, Tone, bar, left, right, width, wrap};
use crate::sheet::{Sheet, col};
use crate::table::{Style, Table};
use crate::value::Value;

/// Columns of the longest bar.
const BAR_COLUMNS: usize = 24;
/// Columns of the number before a bar.
const VALUE_COLUMNS: usize = 10;
/// Between two columns.
const GAP: &str = "  ";

/// The title of a chart, and its bars or its table.
pub(super) fn lines(chart: &Chart, style: &Style) -> Vec<Line> {
    let title = wrap(&chart.title, style.width.saturating_sub(1)).into_iter();
    let title = title.map(|line| Line::new(Tone::Dim, format!(" {line}")));
    let table = match &chart.data {
        ChartData::Bars(chart) => return title.chain(bars(chart, style)).collect(),
        ChartData::Lines(chart) => columns(chart, style),
        ChartData::Heat(_) | ChartData::Flow(_) => chart.table(),
    };
    title.chain([Line::default()]).chain(table.lines(style)).collect()
}

fn bars(bars: &Bars, style: &Style) -> Vec<Line> {
    let mut named_bars: Vec<(String, &Bar)> = Vec::new();
    for BarGroup { name, bars } in &bars.groups {
        let group = if name.is_empty() { String::new() } else { format!("{name}, ") };
        named_bars.extend(bars.iter().map(|bar| (format!("{group}{}", bar.name), bar)));
    }
    let values = || named_bars.iter().filter_map(|(_, bar)| bar.cell.value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let share = |value: f64| match bars.axis.scale {
        Scale::Linear => value / most,
        // The shortest bar of a logarithmic axis is a tenth of the longest.
        Scale::Log if most > least => 0.1 + 0.9 * (value / least).ln() / (most / least).ln(),
        Scale::Log => 1.0,
    };
    let columns = named_bars.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let room = style.width.saturating_sub(columns + VALUE_COLUMNS + 2 * width(GAP) + 1).min(BAR_COLUMNS);
    let line = |(name, one): &(String, &Bar)| {
        let value = one.cell.value.map(|value| bars.axis.unit.text(value)).unwrap_or_default();
        let drawn = one.cell.value.map(|value| bar(share(value), room)).unwrap_or_default();
        let text = format!(" {}{GAP}{}{GAP}{drawn}", left(name, columns), right(&value, VALUE_COLUMNS));
        let tone = if one.style == SeriesStyle::Published { Tone::Dim } else { Tone::Plain };
        Line::new(tone, text.trim_end())
    };
    let mut lines: Vec<Line> = named_bars.iter().map(line).collect();
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
    let mut sheet = Sheet::new(&places);
    let (x_unit, y_unit) = (chart.x_axis.unit, chart.y_axis.unit);
    sheet.add(col(&chart.x_axis.label).left(), |x| Some(x_unit.of(*x)));
    for series in &shown {
        sheet.add(col(&series.name), |x| Some(at(series, *x).map_or(Value::EMPTY, |y| y_unit.of(y))));
    }
    sheet.bars(0, room, |x| Some(at(shown.first()?, *x).unwrap_or(0.0) / highest));
    sheet.table()
}
