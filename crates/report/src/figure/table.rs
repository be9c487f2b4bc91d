//! Figures as tables, for readers who cannot see a chart or want the numbers.

use super::axis::percentile;
use super::flow::amount;
use super::{
    Bar, Bars, Cell, Chart, Figure, Flow, FlowStage, Heat, Lines, Reference, Series, SeriesStyle, Unit,
};
use crate::interval;
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
    let points: Vec<_> =
        lines.series.iter().flat_map(|one| one.points.iter().map(move |point| (one, point))).collect();
    let with_interval = points.iter().filter(|(_, point)| point.low.is_some());
    Table::from_items(
        &points,
        &[
            ("series", &|(series, _)| with_origin(&series.name, series.style)),
            (&x.label, &|(_, point)| x.unit.text(point.x)),
            (&y.label, &|(_, point)| y.unit.text(point.y)),
            (interval_heading(with_interval.map(|(_, point)| point.n)), &|(_, point)| {
                known(y.unit, point.low)
            }),
            ("to", &|(_, point)| known(y.unit, point.high)),
            ("n", &|(_, point)| number(point.n)),
        ],
    )
}

fn bars_table(bars: &Bars) -> Table {
    let unit = bars.axis.unit;
    let reference = |one: &Reference| Bar {
        name: one.name.clone(),
        style: SeriesStyle::Reference,
        cell: Cell { value: Some(one.value), ..Cell::default() },
        samples: Vec::new(),
    };
    let references: Vec<Bar> = bars.references.iter().map(reference).collect();
    let groups = bars.groups.iter().flat_map(|group| group.bars.iter().map(|bar| (group.name.as_str(), bar)));
    let all: Vec<(&str, &Bar)> = groups.chain(references.iter().map(|bar| ("", bar))).collect();
    let with_interval = all.iter().filter(|(_, bar)| bar.cell.low.is_some());
    Table::from_items(
        &all,
        &[
            ("group", &|(group, _)| (*group).to_owned()),
            ("name", &|(_, bar)| with_origin(&bar.name, bar.style)),
            (&bars.axis.label, &|(_, bar)| {
                bar.cell.value.map_or(ABSENT.to_owned(), |value| unit.text(value))
            }),
            (interval_heading(with_interval.map(|(_, bar)| bar.cell.n)), &|(_, bar)| {
                known(unit, bar.cell.low)
            }),
            ("to", &|(_, bar)| known(unit, bar.cell.high)),
            ("n", &|(_, bar)| number(bar.cell.n)),
            ("remark", &|(_, bar)| bar.cell.note.clone()),
        ],
    )
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
    let remark = |stage: &FlowStage| {
        let held_up = if stage.held_up { "holds the pipeline up" } else { "" };
        let note = stage.link.as_ref().map_or("", |link| link.note.as_str());
        [held_up, note].into_iter().filter(|text| !text.is_empty()).collect::<Vec<&str>>().join("; ")
    };
    Table::from_items(
        &flow.stages,
        &[
            ("stage", &|stage| stage.command.clone()),
            ("ran for", &|stage| Unit::Seconds.text(stage.wall_s)),
            ("on a CPU", &|stage| Unit::Seconds.text(stage.cpu_s)),
            ("waits for a CPU", &|stage| known(Unit::Seconds, stage.queued_s)),
            ("waits to read", &|stage| known(Unit::Seconds, stage.read_wait_s)),
            ("waits to write", &|stage| known(Unit::Seconds, stage.write_wait_s)),
            ("exit", &|stage| stage.exit.clone()),
            ("passes on", &|stage| stage.link.as_ref().map(amount).unwrap_or_default()),
            ("over", &|stage| stage.link.as_ref().map(|link| link.spec.clone()).unwrap_or_default()),
            ("remark", &remark),
        ],
    )
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

fn number(n: Option<u32>) -> String {
    n.map(|n| n.to_string()).unwrap_or_default()
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
