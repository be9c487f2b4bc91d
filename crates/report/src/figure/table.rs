//! Figures as tables, for readers who cannot see a chart or want the numbers.

use super::axis::percentile;
use super::flow::amount;
use super::{Bars, Cell, Chart, Figure, Flow, Heat, Lines, Series, SeriesStyle, Unit};
use crate::interval;
use crate::table::{ABSENT, Table};

pub(super) fn table(figure: &Figure) -> Table {
    let (columns, rows) = match &figure.chart {
        Chart::Lines(lines) if lines.x_axis.unit == Unit::Rarity => of_percentiles(lines),
        Chart::Lines(lines) => of_lines(lines),
        Chart::Bars(bars) => of_bars(bars),
        Chart::Heat(heat) => of_heat(heat),
        Chart::Flow(flow) => of_flow(flow),
    };
    Table::new(&figure.title, columns, rows).texts()
}

type Parts = (Vec<String>, Vec<Vec<String>>);

fn of_lines(lines: &Lines) -> Parts {
    let (x, y) = (&lines.x_axis, &lines.y_axis);
    let points = lines.series.iter().flat_map(|series| &series.points);
    let interval = interval_heading(points.filter(|point| point.low.is_some()).map(|point| point.n));
    let columns = ["series", x.label.as_str(), y.label.as_str(), interval, "to", "n"];
    let rows = lines.series.iter().flat_map(|series| {
        series.points.iter().map(|point| {
            let name = with_origin(&series.name, series.style);
            let figures = interval_cells(y.unit, point.low, point.high, point.n);
            [name, x.unit.text(point.x), y.unit.text(point.y)].into_iter().chain(figures).collect()
        })
    });
    (columns.map(str::to_owned).to_vec(), rows.collect())
}

fn of_bars(bars: &Bars) -> Parts {
    let unit = bars.axis.unit;
    let all = bars.groups.iter().flat_map(|group| &group.bars);
    let interval =
        interval_heading(all.map(|bar| &bar.cell).filter(|cell| cell.low.is_some()).map(|cell| cell.n));
    let columns = ["group", "name", bars.axis.label.as_str(), interval, "to", "n", "remark"];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for group in &bars.groups {
        rows.extend(group.bars.iter().map(|bar| {
            let Cell { value, low, high, n, note, .. } = &bar.cell;
            let value = value.map_or(ABSENT.to_owned(), |value| unit.text(value));
            let names = [group.name.clone(), with_origin(&bar.name, bar.style), value].into_iter();
            names.chain(interval_cells(unit, *low, *high, *n)).chain([note.clone()]).collect()
        }));
    }
    rows.extend(bars.references.iter().map(|reference| {
        let mut row = vec![String::new(), reference.name.clone(), unit.text(reference.value)];
        row.resize(columns.len(), String::new());
        row
    }));
    (columns.map(str::to_owned).to_vec(), rows)
}

fn of_heat(heat: &Heat) -> Parts {
    let mut columns = vec![format!("{} ↓ {} →", heat.rows_label, heat.columns_label)];
    columns.extend(heat.columns.iter().cloned());
    let text = |cell: &Cell| match cell.value {
        Some(value) => heat.unit.text(value) + &cell.spread(),
        None if cell.note.is_empty() => ABSENT.to_owned(),
        None => cell.note.clone(),
    };
    let rows = heat.rows.iter().zip(&heat.cells);
    let rows =
        rows.map(|(name, cells)| std::iter::once(name.clone()).chain(cells.iter().map(text)).collect());
    (columns, rows.collect())
}

/// The columns: 100 means one in 100, the 99th percentile.
const RARITIES: [f64; 6] = [2.0, 1e1, 1e2, 1e3, 1e4, f64::INFINITY];

fn of_percentiles(lines: &Lines) -> Parts {
    let name = |rarity: f64| if rarity.is_finite() { percentile(rarity) } else { "largest".to_owned() };
    let columns = ["series", "n"].map(str::to_owned).into_iter().chain(RARITIES.map(name)).collect();
    let row = |series: &Series| {
        let n = series.points.iter().find_map(|point| point.n).unwrap_or_default();
        let at = |rarity: f64| series.points.iter().find(|point| point.x >= rarity * (1.0 - 1e-9));
        // The percentile of one in 1000 needs at least 1000 values.
        let known = |rarity: f64| rarity.is_infinite() || f64::from(n) >= rarity;
        let figure = |rarity: f64| Some(lines.y_axis.unit.text(at(rarity).filter(|_| known(rarity))?.y));
        let figures = RARITIES.map(|rarity| figure(rarity).unwrap_or_else(|| ABSENT.to_owned()));
        [series.name.clone(), Unit::Count.text(f64::from(n))].into_iter().chain(figures).collect()
    };
    (columns, lines.series.iter().map(row).collect())
}

fn of_flow(flow: &Flow) -> Parts {
    let columns = [
        "stage",
        "ran for",
        "on a CPU",
        "waits for a CPU",
        "waits to read",
        "waits to write",
        "exit",
        "passes on",
        "over",
        "remark",
    ];
    let rows = flow.stages.iter().map(|stage| {
        let link = stage.link.as_ref();
        let note = link.map(|link| link.note.clone()).unwrap_or_default();
        let remark = if stage.held_up { "holds the pipeline up".to_owned() } else { String::new() };
        vec![
            stage.command.clone(),
            Unit::Seconds.text(stage.wall_s),
            Unit::Seconds.text(stage.cpu_s),
            optional(Unit::Seconds, stage.queued_s),
            optional(Unit::Seconds, stage.read_wait_s),
            optional(Unit::Seconds, stage.write_wait_s),
            stage.exit.clone(),
            link.map(amount).unwrap_or_default(),
            link.map(|link| link.spec.clone()).unwrap_or_default(),
            [remark, note].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; "),
        ]
    });
    (columns.map(str::to_owned).to_vec(), rows.collect())
}

fn with_origin(name: &str, style: SeriesStyle) -> String {
    match style {
        SeriesStyle::Measured | SeriesStyle::Reference => name.to_owned(),
        SeriesStyle::Published => format!("{name} (published)"),
    }
}

fn optional(unit: Unit, value: Option<f64>) -> String {
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

fn interval_cells(unit: Unit, low: Option<f64>, high: Option<f64>, n: Option<u32>) -> [String; 3] {
    [optional(unit, low), optional(unit, high), n.map(|n| n.to_string()).unwrap_or_default()]
}
