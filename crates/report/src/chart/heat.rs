//! A matrix whose cells are coloured by their values; a value is printed in its cell if there is room.

use maud::{Markup, html};
use stats::estimate::median;

use super::axis::{Range, can_show};
use super::canvas::{Canvas, Drawing, mono_width, px, sans_width, shortened, text, with_tip};
use super::theme::HEAT_STEPS;
use super::{ChartCell, Heat, Scale, Unit};
use crate::numbers::three_digits;
use crate::unit::ShownUnit;

/// The widest column of names on a desktop and on a phone.
const NAMES_MAX: [f64; 2] = [190.0, 96.0];
/// Smallest and largest width of a cell; a matrix with very many columns is wider than the canvas.
const CELL_MIN: f64 = 11.0;
const CELL_MAX: f64 = 92.0;
/// Angle of columns' names that are wider than a cell, on a desktop and on a phone.
const TURNED: [f64; 2] = [48.0, 90.0];
/// Height of a cell.
const ROW: f64 = 28.0;
/// The colours span at least this factor, around the median.
const FACTOR_MIN: f64 = 1.5;
/// Values that differ by more than this factor are coloured on a logarithmic scale.
const FACTOR_OF_LOG: f64 = 8.0;
/// Smallest value in the common unit; smaller ones have a unit of their own.
const SMALLEST: f64 = 0.095;
/// From this colour on the text of a cell is light.
const LIGHT_TEXT_FROM: usize = 5;

struct Grid {
    left: f64,
    top: f64,
    cell: f64,
    /// Angle of the columns' names, in degrees.
    turned: f64,
    common_unit: ShownUnit,
}

pub(super) fn draw(heat: &Heat, canvas: &Canvas) -> Drawing {
    let values = heat.cells.iter().flatten().filter_map(|cell| cell.value);
    let shown: Vec<f64> = values.filter(|value| can_show(Scale::Linear, *value)).collect();
    let grid = layout(heat, shown.iter().copied().fold(0.0, f64::max), canvas);
    let range = colour_range(&shown, heat.unit);
    let bottom = grid.top + heat.rows.len() as f64 * ROW;
    let body = html! {
        (names(heat, &grid, canvas))
        g class="cells" {
            @for (row, cells) in heat.cells.iter().enumerate() {
                @for (column, cell) in cells.iter().enumerate() {
                    (square(heat, (row, column), cell, &range, &grid))
                }
            }
        }
        (key(heat.unit, &range, (grid.left, bottom + 16.0), canvas))
    };
    Drawing { height: bottom + 58.0, body }
}

/// The values of the first and the last colour of those that are shown; without any the first is the larger one. Values that hardly differ get
/// similar colours: the range is at least [`FACTOR_MIN`] wide.
fn colour_range(shown: &[f64], unit: Unit) -> Range {
    let smallest = shown.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = shown.iter().copied().fold(0.0, f64::max);
    let reach = FACTOR_MIN.sqrt();
    let (low, high) = match median(shown) {
        Some(middle) if largest < smallest * FACTOR_MIN => {
            (smallest.min(middle / reach), largest.max(middle * reach))
        }
        _ => (smallest, largest),
    };
    let scale = if low > 0.0 && high / low > FACTOR_OF_LOG { Scale::Log } else { Scale::Linear };
    Range { scale, unit, low, high }
}

fn layout(heat: &Heat, largest: f64, canvas: &Canvas) -> Grid {
    let narrow = usize::from(canvas.narrow);
    let names_max = NAMES_MAX[narrow];
    let widest =
        |names: &[String]| names.iter().map(|name| mono_width(name)).fold(0.0, f64::max).min(names_max);
    let left = (widest(&heat.rows) + 12.0).max(sans_width(&heat.rows_label) + 24.0);
    let columns = heat.columns.len().max(1) as f64;
    let name = widest(&heat.columns);
    let fits = (canvas.width - left) / columns >= name + 8.0;
    let turned = if fits { 0.0 } else { TURNED[narrow] };
    let (rise, run) = f64::to_radians(turned).sin_cos();
    // The last turned name is wider than its column.
    let room = canvas.width - left - if fits { 0.0 } else { (name * run - 4.0).max(0.0) };
    Grid {
        left,
        top: if fits { 44.0 } else { name * rise + 38.0 },
        cell: (room / columns).clamp(CELL_MIN, CELL_MAX),
        turned,
        common_unit: heat.unit.shown_unit(largest),
    }
}

fn names(heat: &Heat, grid: &Grid, canvas: &Canvas) -> Markup {
    let names_max = NAMES_MAX[usize::from(canvas.narrow)];
    html! {
        (text(0.0, grid.top - 8.0, "quiet", &format!("{} ↓", heat.rows_label)))
        (text(grid.left, 12.0, "quiet", &format!("{} →", heat.columns_label)))
        (text(canvas.width, 12.0, "quiet end", &grid.common_unit.name))
        @for (at, name) in heat.rows.iter().enumerate() {
            (text(0.0, grid.top + at as f64 * ROW + 18.0, "mono", &shortened(name, grid.left - 12.0)))
        }
        @for (at, name) in heat.columns.iter().enumerate() {
            @let x = grid.left + (at as f64 + 0.5) * grid.cell;
            @if grid.turned > 0.0 {
                text class="mono" transform={ "translate(" (px(x + 4.0)) " " (px(grid.top - 7.0)) ") rotate(-" (px(grid.turned)) ")" } {
                    (shortened(name, names_max))
                }
            } @else {
                (text(x, grid.top - 8.0, "mono middle", name))
            }
        }
    }
}

fn square(
    heat: &Heat,
    (row, column): (usize, usize),
    cell: &ChartCell,
    range: &Range,
    grid: &Grid,
) -> Markup {
    let (x, y) = (grid.left + column as f64 * grid.cell, grid.top + row as f64 * ROW);
    let colour = cell.value.map(|value| colour(range, value));
    let class = colour.map_or("ground".to_owned(), |colour| format!("h{colour}"));
    let words = cell.value.map_or("–".to_owned(), |value| match value / grid.common_unit.factor {
        common if common >= SMALLEST => three_digits(common),
        _ => heat.unit.text(value),
    });
    let fits = |words: &String| sans_width(words) <= grid.cell - 2.0;
    let shown = [format!("{words}{}", cell.spread(heat.unit)), words].into_iter().find(fits);
    let name = |names: &[String], at: usize| names.get(at).cloned().unwrap_or_default();
    let pair = format!("{} → {}", name(&heat.rows, row), name(&heat.columns, column));
    let text_class = match colour {
        Some(colour) if colour >= LIGHT_TEXT_FROM => "middle light",
        Some(_) => "middle",
        None => "middle quiet",
    };
    with_tip(
        "cell",
        &cell.tip(&pair, heat.unit, "not measured"),
        html! {
            rect class=(class) x=(px(x + 0.5)) y=(px(y + 0.5)) width=(px(grid.cell - 1.0)) height=(px(ROW - 1.0)) rx="2" {}
            @if let Some(shown) = shown { (text(x + grid.cell / 2.0, y + 18.0, text_class, &shown)) }
        },
    )
}

/// The colour of a value; the middle one if all values are equal.
fn colour(range: &Range, value: f64) -> usize {
    let share = range.share(value).unwrap_or(0.5).clamp(0.0, 1.0);
    ((share * HEAT_STEPS as f64) as usize).min(HEAT_STEPS - 1)
}

/// The legend: the colours, and the smallest and largest value.
fn key(unit: Unit, range: &Range, (x, y): (f64, f64), canvas: &Canvas) -> Markup {
    let width = (canvas.width - x).min(252.0) / HEAT_STEPS as f64;
    html! {
        @if range.low <= range.high {
            @for colour in 0..HEAT_STEPS {
                rect class={ "h" (colour) } x=(px(x + colour as f64 * width)) y=(px(y)) width=(px(width)) height="10" {}
            }
            (text(x, y + 26.0, "quiet small", &unit.text(range.low)))
            (text(x + width * HEAT_STEPS as f64, y + 26.0, "quiet small end", &unit.text(range.high)))
        }
    }
}
