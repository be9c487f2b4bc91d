//! Figures as tables, for readers who cannot see a chart or want the numbers.

use super::axis::percentile;
use super::flow::{HELD_UP, PARTS, REST, amount, times_s};
use super::{
    Axis, Bar, BarGroup, Bars, Cell, Chart, Figure, Flow, FlowStage, Heat, Lines, Point, Reference, Series,
    SeriesStyle, Unit,
};
use crate::interval;
use crate::lists::joined_if_any;
use crate::table::{ABSENT, Table};

pub(super) fn table(figure: &Figure) -> Table {
    let table = match &figure.chart {
        Chart::Lines(lines) if lines.x_axis.unit == Unit::Rarity => percentile_table(lines),
        Chart::Lines(lines) => lines_table(lines),
        Chart::Bars(bars) => bars_table(bars),
        Chart::Heat(heat) => heat_table(heat),
        Chart::Flow(flow) => flow_table(flow),
    };
    Table { title: figure.title.clone(), ..table }.texts()
}

fn lines_table(lines: &Lines) -> Table {
    let (x, y) = (&lines.x_axis, &lines.y_axis);
    let of_series = |one: &Series| {
        let name = with_origin(&one.name, one.style);
        let row = |point: &Point| ([name.clone(), x.unit.text(point.x)], point.cell());
        one.points.iter().map(row).collect::<Vec<FigureRow>>()
    };
    let rows: Vec<FigureRow> = lines.series.iter().flat_map(of_series).collect();
    let mut table = figures_table(["series", &x.label], y, &rows);
    // A point has no remark.
    table.columns.pop();
    table
}

fn bars_table(bars: &Bars) -> Table {
    let all = bars.groups.iter().flat_map(|group| group.bars.iter().map(move |bar| (group, bar)));
    let row = |(group, bar): (&BarGroup, &Bar)| {
        ([group.name.clone(), with_origin(&bar.name, bar.style)], bar.cell.clone())
    };
    let reference = |one: &Reference| {
        ([String::new(), one.name.clone()], Cell { value: Some(one.value), ..Cell::default() })
    };
    let rows: Vec<FigureRow> = all.map(row).chain(bars.references.iter().map(reference)).collect();
    figures_table(["group", "name"], &bars.axis, &rows)
}

/// A figure and its two names.
type FigureRow = ([String; 2], Cell);

/// A row for each figure: its names, its value and interval, the number of its samples, and a remark.
fn figures_table([first, second]: [&str; 2], axis: &Axis, rows: &[FigureRow]) -> Table {
    let with_interval = rows.iter().filter(|(_, cell)| cell.low.is_some());
    let low = interval_heading(with_interval.map(|(_, cell)| cell.n));
    let text = |value: Option<f64>| known(axis.unit, value);
    let row = |(names, cell): &FigureRow| {
        let value = cell.value.map_or(ABSENT.to_owned(), |value| axis.unit.text(value));
        let n = cell.n.map(|n| n.to_string()).unwrap_or_default();
        let figures = [value, text(cell.low), text(cell.high), n, cell.note.clone()];
        names.iter().cloned().chain(figures).collect()
    };
    Table::new("", [first, second, &axis.label, low, "to", "n", "remark"], rows.iter().map(row))
}

fn heat_table(heat: &Heat) -> Table {
    let corner = format!("{} ↓ {} →", heat.rows_label, heat.columns_label);
    let text = |cell: &Cell| match cell.value {
        Some(value) => heat.unit.text(value) + &cell.spread(heat.unit),
        None if cell.note.is_empty() => ABSENT.to_owned(),
        None => cell.note.clone(),
    };
    let rows = heat.rows.iter().zip(&heat.cells);
    let rows =
        rows.map(|(name, cells)| std::iter::once(name.clone()).chain(cells.iter().map(text)).collect());
    Table::new("", std::iter::once(corner).chain(heat.columns.iter().cloned()), rows)
}

/// The columns: 100 means one in 100, the 99th percentile.
const RARITIES: [f64; 6] = [2.0, 1e1, 1e2, 1e3, 1e4, f64::INFINITY];

fn percentile_table(lines: &Lines) -> Table {
    let name = |rarity: f64| if rarity.is_finite() { percentile(rarity) } else { "largest".to_owned() };
    let columns = ["series", "n"].map(str::to_owned).into_iter().chain(RARITIES.map(name));
    let row = |series: &Series| {
        let n = series.points.iter().find_map(|point| point.n).unwrap_or_default();
        let at = |rarity: f64| series.points.iter().find(|point| point.x >= rarity * (1.0 - 1e-9));
        // The percentile of one in 1000 needs at least 1000 values.
        let is_known = |rarity: f64| rarity.is_infinite() || f64::from(n) >= rarity;
        let figure = |rarity: f64| Some(lines.y_axis.unit.text(at(rarity).filter(|_| is_known(rarity))?.y));
        let figures = RARITIES.map(|rarity| figure(rarity).unwrap_or_else(|| ABSENT.to_owned()));
        [series.name.clone(), Unit::Count.text(f64::from(n))].into_iter().chain(figures).collect()
    };
    Table::new("", columns, lines.series.iter().map(row))
}

fn flow_table(flow: &Flow) -> Table {
    let row = |stage: &FlowStage| {
        let link = stage.link.as_ref().map(|link| (amount(link), link.spec.clone(), link.note.clone()));
        let (passes_on, over, note) = link.unwrap_or_default();
        let remarks = stage.held_up.then(|| HELD_UP.to_owned()).into_iter().chain([note]);
        let remark = joined_if_any(remarks.filter(|remark| !remark.is_empty()), "; ").unwrap_or_default();
        let times = times_s(stage).map(|time_s| known(Unit::Seconds, time_s));
        let first = [stage.command.clone(), Unit::Seconds.text(stage.wall_s)];
        let last = [stage.exit.clone(), passes_on, over, remark];
        first.into_iter().chain(times).chain(last).collect()
    };
    let parts = PARTS.iter().map(|(name, _)| *name).filter(|name| *name != REST);
    let columns =
        ["stage", "ran for"].into_iter().chain(parts).chain(["exit", "passes on", "over", "remark"]);
    Table::new("", columns, flow.stages.iter().map(row))
}

fn with_origin(name: &str, style: SeriesStyle) -> String {
    match style {
        SeriesStyle::Measured | SeriesStyle::Reference => name.to_owned(),
        SeriesStyle::Published => format!("{name} (published)"),
    }
}

fn known(unit: Unit, value: Option<f64>) -> String {
    value.map(|value| unit.text(value)).unwrap_or_default()
}

/// The heading of the column of lower ends, from the number of trials of each row.
fn interval_heading(mut trials: impl Iterator<Item = Option<u32>> + Clone) -> &'static str {
    let is_range = |n: Option<u32>| n.is_some_and(|n| interval::is_range(n as usize));
    let all = trials.clone().count() > 0 && trials.clone().all(is_range);
    match (all, trials.any(is_range)) {
        (true, _) => "range from",
        (false, true) => "95 % or range from",
        (false, false) => "95 % from",
    }
}
