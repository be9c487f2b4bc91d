//! Lines over an axis, as throughput over block size.

use super::canvas::{Canvas, Drawing};
use super::plot::{self, Plot, PlotAxis, PlotPoint, PlotSeries};
use super::scale::Range;
use super::{Axis, Lines, Point, Series, tip};

/// Ticks along the bottom on a desktop and on a phone, and along the left.
const TICKS: [usize; 3] = [11, 5, 6];

pub(super) fn draw(lines: &Lines, canvas: &Canvas, id: &str) -> Drawing {
    let points = || lines.series.iter().flat_map(|series| &series.points);
    let x = axis(&lines.x_axis, points().map(|point| point.x), TICKS[usize::from(canvas.is_narrow())]);
    let figures = points().flat_map(|point| [Some(point.y), point.low, point.high]).flatten();
    let y = axis(&lines.y_axis, figures, TICKS[2]);
    let series = lines.series.iter().map(|series| PlotSeries {
        name: series.name.clone(),
        style: series.style,
        points: series.points.iter().map(|point| plot_point(lines, series, point)).collect(),
    });
    plot::draw(&Plot { x, y, series: series.collect(), marks: true }, canvas, id)
}

/// An axis over some values.
pub(super) fn axis(axis: &Axis, values: impl Iterator<Item = f64>, ticks: usize) -> PlotAxis {
    let range = Range::of(axis.scale, axis.unit, values).padded(0.04);
    let ticks = range.ticks(ticks).into_iter().map(|value| (value, axis.unit.tick(value))).collect();
    PlotAxis { label: axis.label.clone(), range, ticks, writing: axis.unit.word() }
}

fn plot_point(lines: &Lines, series: &Series, point: &Point) -> PlotPoint {
    let unit = lines.y_axis.unit;
    let place = Some(lines.x_axis.unit.text(point.x));
    let tip = tip::of(&series.name, place, unit, point.y, (point.low, point.high), point.n, "");
    PlotPoint { x: point.x, y: point.y, interval: point.low.zip(point.high), tip }
}
