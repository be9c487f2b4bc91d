//! Lines in a frame with two axes and a legend. Over an axis of rarities each line is how a quantity is distributed, its
//! tail with as much room as its middle.

use maud::{Markup, html};

use super::axis::Range;
use super::canvas::{Canvas, Drawing, labels_apart, mono_width, px, sans_width, shortened, text};
use super::theme::SERIES_COLORS;
use super::{ChartAxis, Lines, Palette, Point, Scale, Series, SeriesStyle, Unit};

/// Height of the frame on a desktop and on a phone.
const HEIGHTS: [f64; 2] = [330.0, 260.0];
/// Ticks along the bottom on a desktop and on a phone.
const TICKS_ACROSS: [usize; 2] = [11, 5];
/// Ticks along the left.
const TICKS_UP: usize = 6;
/// Above the frame, for the label of the axis along its left.
const HEAD: f64 = 26.0;
/// Below the frame, for ticks and the label of the axis along the bottom.
const FOOT: f64 = 44.0;
/// Height of a line of the legend.
const KEY_HEIGHT: f64 = 22.0;
/// From the left of a key to its text.
const KEY_TEXT: f64 = 30.0;
/// Space for the widest tick's last letters at the right.
const RIGHT: f64 = 18.0;

/// The frame in pixels, and the axes that are drawn to it.
struct Frame<'a> {
    lines: &'a Lines,
    canvas: &'a Canvas,
    palette: &'a Palette,
    x: Range,
    y: Range,
    left: f64,
    width: f64,
    height: f64,
}

/// A point in pixels.
struct PlottedPoint<'a> {
    x: f64,
    y: f64,
    /// The ends of its interval.
    ends: Option<(f64, f64)>,
    point: &'a Point,
}

/// Draws the lines; `id` names the parts.
pub(super) fn draw(lines: &Lines, canvas: &Canvas, (id, palette): (&str, &Palette)) -> Drawing {
    let frame = Frame::new(lines, canvas, palette);
    let (left, right, top, bottom) = (frame.left, frame.left + frame.width, HEAD, HEAD + frame.height);
    let clip = canvas.part(id, "clip");
    let (legend, legend_height) = frame.legend(bottom + FOOT + 8.0);
    let body = html! {
        clipPath id=(clip) { rect x=(px(left)) y=(px(top)) width=(px(frame.width)) height=(px(frame.height)) {} }
        g class="plot" data-x=[finer_ticks(frame.x, canvas)] data-y=[finer_ticks(frame.y, canvas)] {
            rect class="ground" x=(px(left)) y=(px(top)) width=(px(frame.width)) height=(px(frame.height)) {}
            g class="ticks" { (frame.ticks()) }
            g clip-path={ "url(#" (clip) ")" } {
                @for series in &lines.series { (frame.line(series, palette.place(&series.name))) }
            }
        }
        (text(0.0, 12.0, "quiet", &lines.y_axis.label))
        (text(right, bottom + FOOT - 8.0, "quiet end", &lines.x_axis.label))
        (legend)
    };
    Drawing { height: bottom + FOOT + legend_height, body }
}

/// Lists of ticks for the page's script, each finer than the one before: "position text;position text|…", the position from 0 to 1.
fn finer_ticks(range: Range, canvas: &Canvas) -> Option<String> {
    let tick = |value: f64| Some(format!("{:.4} {}", range.share(value)?, range.unit.tick(value)));
    let list = |list: Vec<f64>| list.into_iter().filter_map(tick).collect::<Vec<String>>().join(";");
    let lists = || range.ever_finer_ticks().into_iter().map(list).collect::<Vec<String>>().join("|");
    canvas.has_finer_ticks().then(lists)
}

impl<'a> Frame<'a> {
    fn new(lines: &'a Lines, canvas: &'a Canvas, palette: &'a Palette) -> Self {
        let points = || lines.series.iter().flat_map(|series| &series.points);
        let range = |axis: &ChartAxis, values: &mut dyn Iterator<Item = f64>| {
            let range = Range::new(axis.scale, axis.unit, values);
            if axis.unit == Unit::Rarity {
                Range { low: 1.0, high: range.high.max(10.0) * 1.1, ..range }
            } else {
                range.padded(0.04)
            }
        };
        let x = range(&lines.x_axis, &mut points().map(|point| x_of(lines, point)));
        let values = points().flat_map(|point| [Some(point.y), point.low, point.high]);
        let y = range(&lines.y_axis, &mut values.flatten());
        let widest = y.ticks(TICKS_UP).into_iter().map(|value| sans_width(&y.unit.tick(value)));
        let left = (widest.fold(0.0, f64::max) + 12.0).max(30.0);
        let height = HEIGHTS[usize::from(canvas.narrow)];
        Self { lines, canvas, palette, x, y, left, width: canvas.width - left - RIGHT, height }
    }

    fn x(&self, value: f64) -> Option<f64> {
        self.x.share(value).map(|share| self.left + share * self.width)
    }

    fn y(&self, value: f64) -> Option<f64> {
        self.y.share(value).map(|share| HEAD + (1.0 - share) * self.height)
    }

    /// Whether the marks of points are visible. There are too many percentiles for that.
    fn has_marks(&self) -> bool {
        self.lines.x_axis.unit != Unit::Rarity
    }

    fn ticks(&self) -> Markup {
        let (left, right, top, bottom) = (self.left, self.left + self.width, HEAD, HEAD + self.height);
        let up = self.y.ticks(TICKS_UP).into_iter();
        let ticks_up = up.filter_map(|value| Some((self.y(value)?, self.y.unit.tick(value))));
        let across = self.places_across(TICKS_ACROSS[usize::from(self.canvas.narrow)]).into_iter();
        let ticks_across: Vec<(f64, String)> =
            across.filter_map(|value| Some((self.x(value)?, self.x.unit.tick(value)))).collect();
        html! {
            @for (y, words) in ticks_up {
                line class="gridline" x1=(px(left)) x2=(px(right)) y1=(px(y)) y2=(px(y)) {}
                // The lowest one stays above the first one along the bottom.
                (text(left - 8.0, (y + 4.0).min(bottom + 2.0), "quiet end", &words))
            }
            @for (x, _) in &ticks_across {
                line class="gridline" x1=(px(*x)) x2=(px(*x)) y1=(px(top)) y2=(px(bottom)) {}
            }
            @for (x, words) in labels_apart(ticks_across, self.canvas) { (text(x, bottom + 17.0, "quiet middle", &words)) }
            line class="axisline" x1=(px(left)) x2=(px(right)) y1=(px(bottom)) y2=(px(bottom)) {}
        }
    }

    /// The values with a tick along the bottom: about as many round ones; on a logarithmic axis those that were measured if they are not
    /// more, as few of them are round.
    fn places_across(&self, about: usize) -> Vec<f64> {
        let points = self.lines.series.iter().flat_map(|series| &series.points);
        let mut measured: Vec<f64> = points.map(|point| point.x).collect();
        measured.sort_unstable_by(f64::total_cmp);
        measured.dedup();
        let is_listed = self.x.scale == Scale::Log && self.x.unit != Unit::Rarity && measured.len() <= about;
        if is_listed { measured } else { self.x.ticks(about) }
    }

    fn line(&self, series: &Series, index: usize) -> Markup {
        let places: Vec<PlottedPoint> = series.points.iter().filter_map(|point| self.place(point)).collect();
        html! {
            g class=(self.class(series, index)) {
                @if let Some(band) = band(&places) { path class="band" d=(band) {} }
                path class="line" d=(path_through(places.iter().map(|place| (place.x, place.y)))) {}
                @for place in &places {
                    path class=(if self.has_marks() { "mark" } else { "mark hidden" }) d=(mark(index))
                        visibility=[(!self.has_marks()).then_some("hidden")]
                        transform={ "translate(" (px(place.x)) " " (px(place.y)) ")" } {
                        title { (self.tip(series, place.point)) }
                    }
                }
            }
        }
    }

    fn place(&self, point: &'a Point) -> Option<PlottedPoint<'a>> {
        let ends = point.low.zip(point.high).and_then(|(low, high)| Some((self.y(low)?, self.y(high)?)));
        Some(PlottedPoint { x: self.x(x_of(self.lines, point))?, y: self.y(point.y)?, ends, point })
    }

    fn tip(&self, series: &Series, point: &Point) -> String {
        let name = format!("{} · {}", series.name, self.x.unit.text(point.x));
        point.cell().tip(&name, self.y.unit, "")
    }

    /// Lines without marks differ by dashes once the colours repeat.
    fn class(&self, series: &Series, index: usize) -> String {
        let again = match index / SERIES_COLORS {
            _ if self.has_marks() => "",
            0 => "",
            1 => " again",
            _ => " once-more",
        };
        match series.style {
            SeriesStyle::Measured => format!("series c{}{again}", index % SERIES_COLORS),
            SeriesStyle::Published => format!("series c{} published{again}", index % SERIES_COLORS),
            SeriesStyle::Reference => format!("series bound{again}"),
        }
    }

    /// The legend, broken into lines at the width of the canvas, and its height.
    fn legend(&self, top: f64) -> (Markup, f64) {
        let (mut x, mut y) = (0.0, top);
        let mut keys = Vec::new();
        for series in &self.lines.series {
            let index = self.palette.place(&series.name);
            let name = shortened(&series.name, self.canvas.width - KEY_TEXT);
            let width = KEY_TEXT + mono_width(&name) + 16.0;
            if x > 0.0 && x + width - 16.0 > self.canvas.width {
                (x, y) = (0.0, y + KEY_HEIGHT);
            }
            keys.push(html! {
                g class={ "key " (self.class(series, index)) } {
                    rect class="ring" x=(px(x - 2.0)) y=(px(y)) width=(px(width - 10.0)) height=(px(KEY_HEIGHT - 2.0))
                        rx="4" fill="none" stroke="none" {}
                    path class="line" d={ "M" (px(x + 2.0)) " " (px(y + 10.0)) "h20" } {}
                    @if self.has_marks() {
                        path class="mark" d=(mark(index)) transform={ "translate(" (px(x + 12.0)) " " (px(y + 10.0)) ")" } {}
                    }
                    text class="mono" x=(px(x + KEY_TEXT)) y=(px(y + 14.0)) stroke="none" { (name) }
                }
            });
            x += width;
        }
        let height = if keys.is_empty() { 0.0 } else { y + KEY_HEIGHT + 8.0 - top };
        (html! { g class="legend" { @for key in keys { (key) } } }, height)
    }
}

/// The value of a point on the axis along the bottom. The rarity of the largest of n values is infinite, so it is drawn at n.
fn x_of(lines: &Lines, point: &Point) -> f64 {
    let most = f64::from(point.n.unwrap_or(u32::MAX).max(2));
    if lines.x_axis.unit == Unit::Rarity { point.x.min(most) } else { point.x }
}

/// The intervals as an area around the line; `None` where fewer than two points have one.
fn band(places: &[PlottedPoint]) -> Option<String> {
    let ends = || places.iter().filter_map(|place| Some((place.x, place.ends?)));
    let above = ends().map(|(x, (_, high))| (x, high));
    let below = ends().map(|(x, (low, _))| (x, low)).collect::<Vec<_>>();
    (below.len() > 1).then(|| format!("{}Z", path_through(above.chain(below.into_iter().rev()))))
}

/// Straight lines from point to point, as the `d` of an SVG path: "M0 10L5 20".
fn path_through(points: impl Iterator<Item = (f64, f64)>) -> String {
    let step =
        |(at, (x, y)): (usize, (f64, f64))| format!("{}{} {}", if at == 0 { "M" } else { "L" }, px(x), px(y));
    points.enumerate().map(step).collect()
}

/// The mark of a series: colours repeat after eight, pairs of colour and mark after forty.
fn mark(index: usize) -> &'static str {
    const MARKS: [&str; 5] = [
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
        "M-3.5 -3.5H3.5V3.5H-3.5Z",
        "M0 -4.8L4.6 3.6H-4.6Z",
        "M0 -5L5 0L0 5L-5 0Z",
        "M0 4.8L4.6 -3.6H-4.6Z",
    ];
    MARKS[index % MARKS.len()]
}
