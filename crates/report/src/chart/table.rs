//! Charts as tables, for readers who cannot see a chart or want the numbers.

use super::flow::{HELD_UP, PARTS, amount};
use super::{
    Bar, BarGroup, Bars, Chart, ChartAxis, ChartCell, ChartData, Flow, FlowStage, Heat, Lines, Point,
    Reference, Series, SeriesStyle, Unit,
};
use crate::interval::{self, Estimated};
use crate::lists::joined_if_any;
use crate::sheet::{Sheet, col};
use crate::table::{Column, Table};
use crate::unit::percentile;
use crate::value::Value;

pub(super) fn table(chart: &Chart) -> Table {
    let table = match &chart.data {
        ChartData::Lines(lines) if lines.x_axis.unit == Unit::Rarity => percentile_table(lines),
        ChartData::Lines(lines) => lines_table(lines),
        ChartData::Bars(bars) => bars_table(bars),
        ChartData::Heat(heat) => heat_table(heat),
        ChartData::Flow(flow) => flow_table(flow),
    };
    Table { title: chart.title.clone(), ..table }.texts()
}

/// A number and its two names.
type NumberRow = ([Value; 2], ChartCell);

fn lines_table(lines: &Lines) -> Table {
    let (x, y) = (&lines.x_axis, &lines.y_axis);
    let of_series = |one: &Series| {
        let name = with_origin(&one.name, one.style);
        let row = |point: &Point| ([name.as_str().into(), x.unit.of(point.x)], point.cell());
        one.points.iter().map(row).collect::<Vec<NumberRow>>()
    };
    let rows: Vec<NumberRow> = lines.series.iter().flat_map(of_series).collect();
    numbers_table(["series", &x.label], y, &rows)
}

fn bars_table(bars: &Bars) -> Table {
    let all = bars.groups.iter().flat_map(|group| group.bars.iter().map(move |bar| (group, bar)));
    let row = |(group, bar): (&BarGroup, &Bar)| {
        ([(&group.name).into(), with_origin(&bar.name, bar.style).into()], bar.cell.clone())
    };
    let reference = |one: &Reference| {
        ([Value::EMPTY, (&one.name).into()], ChartCell { value: Some(one.value), ..ChartCell::default() })
    };
    let rows: Vec<NumberRow> = all.map(row).chain(bars.references.iter().map(reference)).collect();
    numbers_table(["group", "name"], &bars.axis, &rows)
}

/// A row for each number: its names, its value and interval, the number of its samples, and a remark.
fn numbers_table([first, second]: [&str; 2], axis: &ChartAxis, rows: &[NumberRow]) -> Table {
    let with_interval = rows.iter().filter(|(_, cell)| cell.low.is_some());
    let low = interval_heading(with_interval.map(|(_, cell)| cell.n));
    let mut sheet = Sheet::new(rows);
    sheet.add(first, |(names, _)| Some(names[0].clone()));
    sheet.add(second, |(names, _)| Some(names[1].clone()));
    sheet.add(col(&axis.label), |(_, cell)| Some(axis.unit.of(cell.value?)));
    sheet.add(low, |(_, cell)| Some(known(axis.unit, cell.low)));
    sheet.add("to", |(_, cell)| Some(known(axis.unit, cell.high)));
    sheet.add("n", |(_, cell)| Some(known(Unit::Count, cell.n.map(f64::from))));
    sheet.add("remark", |(_, cell)| Some((&cell.note).into()));
    sheet.table()
}

fn heat_table(heat: &Heat) -> Table {
    let cell = |cell: &ChartCell| match (cell.value, cell.low.zip(cell.high), cell.n) {
        (Some(value), Some((low, high)), Some(n)) => {
            Value::Estimate(Estimated::new(heat.unit, [value, low, high], n as usize))
        }
        (Some(value), ..) => heat.unit.of(value),
        (None, ..) if cell.note.is_empty() => Value::Absent,
        (None, ..) => (&cell.note).into(),
    };
    let rows: Vec<(&String, &Vec<ChartCell>)> = heat.rows.iter().zip(&heat.cells).collect();
    let mut sheet = Sheet::new(&rows);
    sheet
        .add(format!("{} ↓ {} →", heat.rows_label, heat.columns_label), |(name, _)| Some((*name).into()));
    for (at, name) in heat.columns.iter().enumerate() {
        sheet.add(col(name), |(_, cells)| Some(cell(&cells[at])));
    }
    sheet.table()
}

/// The columns: 100 means one in 100, the 99th percentile.
const RARITIES: [f64; 6] = [2.0, 1e1, 1e2, 1e3, 1e4, f64::INFINITY];

fn percentile_table(lines: &Lines) -> Table {
    let n = |series: &Series| f64::from(series.points.iter().find_map(|point| point.n).unwrap_or_default());
    let mut sheet = Sheet::new(&lines.series);
    sheet.add("series", |series| Some((&series.name).into()));
    sheet.add("n", |series| Some(Unit::Count.of(n(series))));
    for rarity in RARITIES {
        let head = if rarity.is_finite() { percentile(rarity) } else { "largest".to_owned() };
        sheet.add(head, |series| {
            let at = series.points.iter().find(|point| point.x >= rarity * (1.0 - 1e-9));
            // The percentile of one in 1000 needs at least 1000 values.
            let is_known = rarity.is_infinite() || n(series) >= rarity;
            Some(lines.y_axis.unit.of(at.filter(|_| is_known)?.y))
        });
    }
    sheet.table()
}

fn flow_table(flow: &Flow) -> Table {
    let remark = |stage: &FlowStage| {
        let note = stage.link.iter().map(|link| link.note.clone());
        let remarks = stage.held_up.then(|| HELD_UP.to_owned()).into_iter().chain(note);
        joined_if_any(remarks.filter(|remark| !remark.is_empty()), "; ").unwrap_or_default()
    };
    let mut sheet = Sheet::new(&flow.stages);
    sheet.add("stage", |stage| Some((&stage.command).into()));
    sheet.add("ran for", |stage| Some(Unit::Seconds.of(stage.wall_s)));
    for part in &PARTS {
        sheet.add(part.name, |stage| Some(known(Unit::Seconds, (part.time_s)(stage))));
    }
    sheet.add(Column::from("exit").right(), |stage| Some((&stage.exit).into()));
    sheet.add("passes on", |stage| Some(stage.link.as_ref().map_or(Value::EMPTY, amount)));
    sheet.add("over", |stage| Some(stage.link.as_ref().map_or(Value::EMPTY, |link| (&link.spec).into())));
    sheet.add("remark", |stage| Some(remark(stage).into()));
    sheet.table()
}

fn with_origin(name: &str, style: SeriesStyle) -> String {
    match style {
        SeriesStyle::Measured | SeriesStyle::Reference => name.to_owned(),
        SeriesStyle::Published => format!("{name} (published)"),
    }
}

fn known(unit: Unit, value: Option<f64>) -> Value {
    value.map_or(Value::EMPTY, |value| unit.of(value))
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
