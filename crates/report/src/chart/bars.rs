//! Horizontal bars with their intervals, a dot for each sample, and vertical lines of references.

use maud::{Markup, html};

use super::axis::Range;
use super::canvas::{
    Canvas, Drawing, TEXT, labels_apart, mono_width, px, sans_width, shortened, text, with_tip,
};
use super::{Bar, Bars, Palette, Reference, Scale, SeriesStyle};
use crate::layout;

/// The widest column of names on a desktop.
const NAMES_MAX: f64 = 262.0;
/// Width of the column of values.
const VALUES: f64 = 84.0;
/// Height of a bar.
const BAR: f64 = 11.0;
/// Height of a group's heading.
const HEADING: f64 = 28.0;
/// Below the bars, for ticks and the axis' label.
const FOOT: f64 = 42.0;
/// Above the bars, for each name of a reference.
const REFERENCE: f64 = 18.0;
/// A reference is drawn to scale if it is at most this many times as long as the longest bar.
const REFERENCE_REACH: f64 = 1.5;
/// From the axis to the text right of it.
const INSET: f64 = 7.0;
/// Lines of a reason why there is no figure.
const REASON_LINES: usize = 2;

/// Positions on the canvas, in pixels.
struct BarLayout {
    range: Range,
    left: f64,
    width: f64,
    row: f64,
    narrow: bool,
}

impl BarLayout {
    fn new(bars: &Bars, canvas: &Canvas) -> Self {
        let all = || bars.groups.iter().flat_map(|group| &group.bars);
        let estimates = all().flat_map(|bar| [bar.cell.value, bar.cell.low, bar.cell.high]).flatten();
        let values: Vec<f64> = estimates.chain(all().flat_map(|bar| bar.samples.iter().copied())).collect();
        let longest = values.iter().copied().fold(0.0, f64::max);
        let near = |reference: &&Reference| {
            reference.value <= longest * REFERENCE_REACH || bars.axis.scale == Scale::Log
        };
        let references = bars.references.iter().filter(near).map(|reference| reference.value);
        let range = Range::new(bars.axis.scale, bars.axis.unit, values.iter().copied().chain(references));
        let names = all().map(|bar| mono_width(&bar.name)).fold(40.0, f64::max) + 14.0;
        let narrow = canvas.narrow;
        let left = if narrow { 1.0 } else { names.min(NAMES_MAX) };
        let value_columns = if narrow { 14.0 } else { VALUES };
        let row = if narrow { 42.0 } else { 28.0 };
        Self { range: range.padded(0.03), left, width: canvas.width - left - value_columns, row, narrow }
    }

    fn x(&self, value: f64) -> Option<f64> {
        self.range.share(value).map(|share| self.left + share.clamp(0.0, 1.0) * self.width)
    }
}

pub(super) fn draw(bars: &Bars, canvas: &Canvas, palette: &Palette) -> Drawing {
    let layout = BarLayout::new(bars, canvas);
    let names: usize = bars.references.iter().map(|one| named(one, bars, &layout, canvas).len()).sum();
    let top = names as f64 * REFERENCE + 4.0;
    let mut y = top;
    let mut rows = Vec::new();
    for group in &bars.groups {
        if !group.name.is_empty() {
            rows.push(text(0.0, y + 20.0, "strong", &group.name));
            y += HEADING;
        }
        for bar in &group.bars {
            rows.push(row(bar, bars, &layout, (y, palette.color_of(bar, bars)), canvas));
            y += layout.row;
        }
    }
    let body = html! {
        (axis(bars, &layout, (top, y), canvas))
        (references(bars, &layout, (top, y), canvas))
        g { @for row in rows { (row) } }
    };
    Drawing { height: y + FOOT, body }
}

fn row(bar: &Bar, bars: &Bars, layout: &BarLayout, (y, color): (f64, usize), canvas: &Canvas) -> Markup {
    let (name_y, middle) = if layout.narrow { (y + 15.0, y + 27.0) } else { (y + 18.0, y + 13.0) };
    let value_text = bar.cell.value.map(|value| bars.axis.unit.text(value)).unwrap_or_default();
    let room = if layout.narrow { canvas.width - sans_width(&value_text) - 16.0 } else { layout.left - 14.0 };
    let class = if bar.style == SeriesStyle::Published { "row published" } else { "row" };
    let bar_end = bar.cell.value.and_then(|value| layout.x(value));
    with_tip(
        class,
        &bar.cell.tip(&bar.name, bars.axis.unit, "no figure"),
        html! {
            rect class="ring" x="0" y=(px(y + 1.0)) width=(px(canvas.width)) height=(px(layout.row - 2.0)) rx="3"
                fill="transparent" {}
            (text(if layout.narrow { INSET } else { 0.0 }, name_y, "mono", &shortened(&bar.name, room)))
            @if let Some(end) = bar_end { (bar_with_interval(bar, layout, (end, middle), color)) }
            @else { (reason(bar, layout, y, canvas)) }
            @if !value_text.is_empty() { (text(canvas.width, name_y, "end", &value_text)) }
        },
    )
}

/// The bar or the mark, its interval, and its samples below.
fn bar_with_interval(bar: &Bar, layout: &BarLayout, (end, middle): (f64, f64), color: usize) -> Markup {
    let class = format!("c{color}");
    let samples = bar.samples.iter().filter_map(|sample| layout.x(*sample));
    let specks: String = samples.map(|x| format!("M{} {}h0", px(x), px(middle + BAR / 2.0 + 4.0))).collect();
    let interval =
        bar.cell.low.zip(bar.cell.high).and_then(|(low, high)| Some((layout.x(low)?, layout.x(high)?)));
    html! {
        @if layout.range.scale == Scale::Linear {
            @let zero = layout.x(0.0).unwrap_or(layout.left);
            rect class={ "bar " (class) } x=(px(end.min(zero))) y=(px(middle - BAR / 2.0))
                width=(px((end - zero).abs().max(1.0))) height=(px(BAR)) rx="2" {}
        } @else {
            line class={ "stem " (class) } x1=(px(layout.left)) x2=(px(end)) y1=(px(middle)) y2=(px(middle)) {}
            g class=(class) { circle class="mark" cx=(px(end)) cy=(px(middle)) r="5.5" {} }
        }
        @if !specks.is_empty() { path class="specks" d=(specks) {} }
        @if let Some((low, high)) = interval { path class="whisker" d=(whisker(low, high, middle)) {} }
    }
}

fn whisker(low: f64, high: f64, y: f64) -> String {
    let (top, low, high, y) = (px(y - 3.5), px(low), px(high), px(y));
    format!("M{low} {top}v7M{high} {top}v7M{low} {y}H{high}")
}

/// Why there is no figure, in at most two lines; the tip has the full text.
fn reason(bar: &Bar, layout: &BarLayout, y: f64, canvas: &Canvas) -> Markup {
    let width = if layout.narrow { canvas.width - 2.0 * INSET } else { canvas.width - layout.left - INSET };
    let columns = (width / sans_width("n")).floor().max(10.0) as usize;
    let note = bar.cell.note.as_str();
    let mut lines = layout::wrap(if note.is_empty() { "no figure" } else { note }, columns);
    if lines.len() > REASON_LINES {
        lines.truncate(REASON_LINES);
        lines[REASON_LINES - 1].push('…');
    }
    let first = match (layout.narrow, lines.len()) {
        (true, _) => y + 27.0,
        (false, 1) => y + 18.0,
        (false, _) => y + 12.0,
    };
    html! {
        @for (at, line) in lines.iter().enumerate() {
            (text(layout.left + INSET, first + at as f64 * (TEXT + 0.5), "quiet small", line))
        }
    }
}

fn axis(bars: &Bars, layout: &BarLayout, (top, bottom): (f64, f64), canvas: &Canvas) -> Markup {
    let ticks = layout.range.ticks(if layout.narrow { 3 } else { 6 });
    let label = |value: &f64| Some((layout.x(*value)?, bars.axis.unit.tick(*value)));
    let labels = ticks.iter().filter_map(label).collect();
    html! {
        @for value in &ticks {
            @if let Some(x) = layout.x(*value) {
                line class="gridline" x1=(px(x)) x2=(px(x)) y1=(px(top)) y2=(px(bottom)) {}
            }
        }
        @for (x, words) in labels_apart(labels, canvas) {
            (text(x, bottom + 15.0, "quiet middle small", &words))
        }
        @if let Some(zero) = layout.x(0.0) {
            line class="axisline" x1=(px(zero)) x2=(px(zero)) y1=(px(top)) y2=(px(bottom)) {}
        }
        (text(layout.left + layout.width, bottom + 33.0, "quiet end", &bars.axis.label))
    }
}

/// The vertical lines of references, each with its name above.
fn references(bars: &Bars, layout: &BarLayout, (top, bottom): (f64, f64), canvas: &Canvas) -> Markup {
    let mut y = 12.0 - REFERENCE;
    let mut pieces = Vec::new();
    for reference in &bars.references {
        let x = reference_x(reference, layout);
        for words in named(reference, bars, layout, canvas) {
            y += REFERENCE;
            let (width, room) = (sans_width(&words), (canvas.width - sans_width(&words)).max(0.0));
            pieces.push(match x {
                Some(x) => text((x - width / 2.0).clamp(0.0, room), y, "quiet", &words),
                None => text(canvas.width, y, "quiet end", &words),
            });
        }
        let (y1, y2) = (px(y + 4.0), px(bottom.max(top)));
        let line = |x| html! { line class="reference" x1=(px(x)) x2=(px(x)) y1=(y1) y2=(y2) {} };
        pieces.extend(x.map(line));
    }
    html! { @for piece in pieces { (piece) } }
}

/// The position of a reference's line; `None` if it is too far away.
fn reference_x(reference: &Reference, layout: &BarLayout) -> Option<f64> {
    let within = layout.range.share(reference.value).is_some_and(|share| share <= 1.0);
    layout.x(reference.value).filter(|_| within)
}

/// The name of a reference and its figure, with an arrow if its line is too far away; wrapped at the canvas's width.
fn named(reference: &Reference, bars: &Bars, layout: &BarLayout, canvas: &Canvas) -> Vec<String> {
    let arrow = if reference_x(reference, layout).is_some() { "" } else { " →" };
    let words = format!("{} {}{arrow}", reference.name, bars.axis.unit.text(reference.value));
    layout::wrap(&words, (canvas.width / sans_width("n")).floor() as usize)
}
