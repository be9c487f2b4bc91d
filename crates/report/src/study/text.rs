//! A study on a terminal: sections as headings, tables as columns, figures as bars or columns of figures.

use super::StudyView;
use crate::figure::{Bars, Chart, Figure, Lines, Scale, SeriesStyle};
use crate::layout::{Line, Tone, bar, left, print, right, width, wrap};
use crate::numbers;
use crate::page::{Block, Section};
use crate::table::{Style, Table};

/// Columns of the longest bar.
const BAR_COLUMNS: usize = 24;
/// Columns of the figure before a bar.
const VALUE_COLUMNS: usize = 10;
/// Between two columns.
const GAP: &str = "  ";

/// Renders the view.
pub fn render(view: &StudyView, style: &Style) -> String {
    let mut lines = Vec::new();
    // The study's own output begins with what `uname -s -r` says: it is the first of the lead.
    let (first, rest) = view.lead.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    lines.push(Line::new(Tone::Plain, first));
    lines.extend(wrap(&view.title, style.width).into_iter().map(|line| Line::new(Tone::Bold, line)));
    rest.iter().for_each(|text| paragraph(text, style.width, &mut lines));
    for section in &view.sections {
        lines.push(Line::default());
        section_lines(section, style, &mut lines);
    }
    print(&lines, style.color, style.unicode)
}

fn paragraph(text: &str, columns: usize, lines: &mut Vec<Line>) {
    lines.extend(wrap(text, columns).into_iter().map(|line| Line::new(Tone::Dim, line)));
}

fn section_lines(section: &Section, style: &Style, lines: &mut Vec<Line>) {
    lines.extend(wrap(&section.title, style.width).into_iter().map(|line| Line::new(Tone::Bold, line)));
    for text in &section.lead {
        paragraph(text, style.width, lines);
    }
    for block in &section.blocks {
        match block {
            Block::Table(table) => table_lines(table, style, lines),
            Block::Folded(_, tables) => tables.iter().for_each(|table| table_lines(table, style, lines)),
            Block::Figure(figure) => figure_lines(figure, style, lines),
            Block::Remarks(remarks) => remarks.iter().for_each(|text| paragraph(text, style.width, lines)),
        }
    }
}

/// A table without its title: the section's heading says what it shows.
fn table_lines(table: &Table, style: &Style, lines: &mut Vec<Line>) {
    lines.push(Line::default());
    lines.extend(table.lines(style));
}

fn figure_lines(figure: &Figure, style: &Style, lines: &mut Vec<Line>) {
    lines.push(Line::default());
    let title = wrap(&figure.title, style.width.saturating_sub(1));
    lines.extend(title.into_iter().map(|line| Line::new(Tone::Dim, format!(" {line}"))));
    match &figure.chart {
        Chart::Bars(bars) => bars_lines(bars, style, lines),
        Chart::Lines(chart) => lines_lines(chart, style, lines),
        _ => table_lines(&figure.table(), style, lines),
    }
}

fn bars_lines(bars: &Bars, style: &Style, lines: &mut Vec<Line>) {
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
        paragraph(" (bars on a logarithmic scale)", style.width, lines);
    }
}

/// One row for each place on the axis, one column for each line, and a bar for the first.
fn lines_lines(chart: &Lines, style: &Style, lines: &mut Vec<Line>) {
    let shown: Vec<_> = chart.series.iter().filter(|one| one.style == SeriesStyle::Measured).collect();
    let mut places: Vec<f64> = shown.iter().flat_map(|one| one.points.iter().map(|point| point.x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let at = |series: &crate::figure::Series, x: f64| {
        series.points.iter().find(|point| point.x == x).map(|point| point.y)
    };
    let highest = shown.iter().flat_map(|one| &one.points).map(|point| point.y).fold(0.0, f64::max);
    let room = style.width.saturating_sub(60).min(BAR_COLUMNS);
    let row = |x: &f64| {
        let figure =
            |series: &&crate::figure::Series| at(series, *x).map(numbers::throughput).unwrap_or_default();
        let mut cells = vec![chart.x_axis.unit.text(*x)];
        cells.extend(shown.iter().map(figure));
        let first = shown.first().and_then(|series| at(series, *x)).unwrap_or(0.0);
        cells.push(bar(first / highest, room));
        cells
    };
    let mut columns = vec![chart.x_axis.label.clone()];
    columns.extend(shown.iter().map(|series| series.name.clone()));
    columns.push(String::new());
    let rows = places.iter().map(row);
    table_lines(&Table::new("", columns, rows), style, lines);
}
