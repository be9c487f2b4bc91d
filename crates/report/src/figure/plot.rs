//! Lines in a frame with two axes and a legend: what figures of lines and of distributions share.
//!
//! In a page every mark carries its place in the frame as shares of it (`data-at`: across, up, and the ends of the
//! interval), so that the page's script can zoom without knowing the data.

use maud::{Markup, html};

use super::SeriesStyle;
use super::canvas::{Canvas, Drawing, labels_apart, mono_width, px, sans_width, shortened, text};
use super::scale::Range;
use super::theme::SERIES_COLORS;

/// Height of the frame on a desktop and on a phone.
const HEIGHTS: [f64; 2] = [330.0, 260.0];
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

/// An axis, ready to be drawn.
pub(super) struct PlotAxis {
    pub(super) label: String,
    pub(super) range: Range,
    /// Values and their texts.
    pub(super) ticks: Vec<(f64, String)>,
    /// How the page's script writes values: a unit's word, or `percentile`.
    pub(super) writing: &'static str,
}

/// A line with its marks.
pub(super) struct PlotSeries {
    pub(super) name: String,
    pub(super) style: SeriesStyle,
    pub(super) points: Vec<PlotPoint>,
}

/// A point, in values.
pub(super) struct PlotPoint {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) interval: Option<(f64, f64)>,
    pub(super) tip: String,
}

/// Lines, axes, and whether each point has a visible mark.
pub(super) struct Plot {
    pub(super) x: PlotAxis,
    pub(super) y: PlotAxis,
    pub(super) series: Vec<PlotSeries>,
    pub(super) marks: bool,
}

/// The frame in pixels.
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

/// A point as shares of the frame: across from the left, up from the bottom.
struct Place<'p> {
    across: f64,
    up: f64,
    interval: Option<(f64, f64)>,
    tip: &'p str,
}

impl Frame {
    fn x(&self, share: f64) -> f64 {
        self.left + share * self.width
    }

    fn y(&self, share: f64) -> f64 {
        self.top + (1.0 - share) * self.height
    }
}

/// Draws the plot; `figure` names its parts.
pub(super) fn draw(plot: &Plot, canvas: &Canvas, figure: &str) -> Drawing {
    let widest = plot.y.ticks.iter().map(|(_, words)| sans_width(words)).fold(0.0, f64::max);
    let left = (widest + 12.0).max(30.0);
    let height = HEIGHTS[usize::from(canvas.is_narrow())];
    let frame = Frame { left, top: HEAD, width: canvas.width - left - RIGHT, height };
    let clip = canvas.part(figure, "clip");
    let (legend, legend_height) = legend(plot, canvas, frame.top + frame.height + FOOT + 8.0);
    let body = html! {
        clipPath id=(clip) {
            rect x=(px(frame.left)) y=(px(frame.top)) width=(px(frame.width)) height=(px(frame.height)) {}
        }
        g class="plot" data-x=[axis_data(&plot.x, canvas)] data-y=[axis_data(&plot.y, canvas)]
            data-frame=[canvas.is_live().then(|| frame_data(&frame))]
            tabindex=[canvas.is_live().then_some("0")]
            role=[canvas.is_live().then_some("application")]
            aria-label=[canvas.is_live().then_some("Points: arrow keys walk along them; + and - zoom, 0 shows all")] {
            rect class="ground" x=(px(frame.left)) y=(px(frame.top)) width=(px(frame.width)) height=(px(frame.height)) {}
            g class="ticks" { (ticks(plot, &frame, canvas)) }
            g clip-path={ "url(#" (clip) ")" } {
                @for (index, series) in plot.series.iter().enumerate() { (line(plot, series, index, &frame, canvas)) }
            }
        }
        (text(0.0, 12.0, "quiet", &plot.y.label))
        (text(frame.x(1.0), frame.top + frame.height + FOOT - 8.0, "quiet end", &plot.x.label))
        (legend)
    };
    Drawing { height: frame.top + frame.height + FOOT + legend_height, body }
}

/// The axis for the page's script: how values are written, the scale, and the values at both ends.
fn axis_data(axis: &PlotAxis, canvas: &Canvas) -> Option<String> {
    let Range { scale, low, high, .. } = axis.range;
    canvas.is_live().then(|| format!("{} {} {low:e} {high:e}", axis.writing, scale.word()))
}

fn frame_data(frame: &Frame) -> String {
    [frame.left, frame.top, frame.width, frame.height].map(px).join(" ")
}

fn ticks(plot: &Plot, frame: &Frame, canvas: &Canvas) -> Markup {
    let (bottom, right) = (frame.y(0.0), frame.x(1.0));
    let places = |axis: &PlotAxis| -> Vec<(f64, String)> {
        let place = |(value, words): &(f64, String)| Some((axis.range.share(*value)?, words.clone()));
        axis.ticks.iter().filter_map(place).collect()
    };
    let across: Vec<(f64, String)> =
        places(&plot.x).into_iter().map(|(share, words)| (frame.x(share), words)).collect();
    html! {
        @for (share, words) in places(&plot.y) {
            line class="gridline" x1=(px(frame.left)) x2=(px(right)) y1=(px(frame.y(share))) y2=(px(frame.y(share))) {}
            (text(frame.left - 8.0, frame.y(share) + 4.0, "quiet end", &words))
        }
        @for (x, _) in &across {
            line class="gridline" x1=(px(*x)) x2=(px(*x)) y1=(px(frame.top)) y2=(px(bottom)) {}
        }
        @for (x, words) in labels_apart(across, canvas) { (text(x, bottom + 17.0, "quiet middle", &words)) }
        line class="axisline" x1=(px(frame.left)) x2=(px(right)) y1=(px(bottom)) y2=(px(bottom)) {}
    }
}

fn line(plot: &Plot, series: &PlotSeries, index: usize, frame: &Frame, canvas: &Canvas) -> Markup {
    let places: Vec<Place> = series.points.iter().filter_map(|point| place(plot, point)).collect();
    html! {
        g class={ (class(series, index)) (again(plot, index)) } data-series=[canvas.is_live().then_some(index)] {
            @if let Some(band) = band(&places, frame) { path class="band" d=(band) {} }
            path class="line" d=(path(&places, frame)) {}
            @for place in &places {
                path class=(if plot.marks { "mark" } else { "mark hidden" }) d=(mark(index))
                    visibility=[(!plot.marks && !canvas.is_live()).then_some("hidden")]
                    transform={ "translate(" (px(frame.x(place.across))) " " (px(frame.y(place.up))) ")" }
                    data-at=[canvas.is_live().then(|| at(place))] data-tip=[canvas.tip(place.tip)] {
                    (canvas.tip_inside(place.tip))
                }
            }
        }
    }
}

fn class(series: &PlotSeries, index: usize) -> String {
    match series.style {
        SeriesStyle::Measured => format!("series c{}", index % SERIES_COLORS),
        SeriesStyle::Published => format!("series c{} published", index % SERIES_COLORS),
        SeriesStyle::Reference => "series bound".to_owned(),
    }
}

/// Lines without marks are told apart by dashes once the colours have come round.
fn again(plot: &Plot, index: usize) -> &'static str {
    match index / SERIES_COLORS {
        _ if plot.marks => "",
        0 => "",
        1 => " again",
        _ => " once-more",
    }
}

fn place<'p>(plot: &Plot, point: &'p PlotPoint) -> Option<Place<'p>> {
    let up = |value| plot.y.range.share(value);
    let interval = point.interval.and_then(|(low, high)| Some((up(low)?, up(high)?)));
    Some(Place { across: plot.x.range.share(point.x)?, up: up(point.y)?, interval, tip: &point.tip })
}

fn at(place: &Place) -> String {
    match place.interval {
        Some((low, high)) => format!("{:.5} {:.5} {low:.5} {high:.5}", place.across, place.up),
        None => format!("{:.5} {:.5}", place.across, place.up),
    }
}

fn path(places: &[Place], frame: &Frame) -> String {
    joined(places.iter().map(|place| (frame.x(place.across), frame.y(place.up))))
}

/// The intervals as an area around the line; `None` where fewer than two points have one.
fn band(places: &[Place], frame: &Frame) -> Option<String> {
    let ends: Vec<(f64, f64, f64)> = places
        .iter()
        .filter_map(|place| place.interval.map(|(low, high)| (place.across, low, high)))
        .collect();
    let above = ends.iter().map(|(across, _, high)| (frame.x(*across), frame.y(*high)));
    let below = ends.iter().rev().map(|(across, low, _)| (frame.x(*across), frame.y(*low)));
    (ends.len() > 1).then(|| format!("{}Z", joined(above.chain(below))))
}

fn joined(points: impl Iterator<Item = (f64, f64)>) -> String {
    let step =
        |(at, (x, y)): (usize, (f64, f64))| format!("{}{} {}", if at == 0 { "M" } else { "L" }, px(x), px(y));
    points.enumerate().map(step).collect()
}

/// The mark of a series: colours come again after eight, the pair of colour and mark after forty.
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

/// The legend in as many lines as the sheet's width makes necessary, and its height.
fn legend(plot: &Plot, canvas: &Canvas, top: f64) -> (Markup, f64) {
    let (mut x, mut y) = (0.0, top);
    let mut keys = Vec::new();
    for (index, series) in plot.series.iter().enumerate() {
        let name = shortened(&series.name, canvas.width - KEY_TEXT);
        let width = KEY_TEXT + mono_width(&name) + 16.0;
        if x > 0.0 && x + width - 16.0 > canvas.width {
            (x, y) = (0.0, y + KEY_HEIGHT);
        }
        keys.push(key(plot, index, &name, (x, y, width), canvas));
        x += width;
    }
    let height = if keys.is_empty() { 0.0 } else { y + KEY_HEIGHT + 8.0 - top };
    (html! { g class="legend" { @for key in keys { (key) } } }, height)
}

fn key(plot: &Plot, index: usize, name: &str, (x, y, width): (f64, f64, f64), canvas: &Canvas) -> Markup {
    let series = &plot.series[index];
    let live = canvas.is_live();
    html! {
        g class={ "key " (class(series, index)) (again(plot, index)) } data-series=[live.then_some(index)] role=[live.then_some("button")]
            tabindex=[live.then_some("0")] aria-pressed=[live.then_some("true")]
            aria-label=[live.then(|| format!("Show {}", series.name))] {
            rect class="ring" x=(px(x - 2.0)) y=(px(y)) width=(px(width - 10.0)) height=(px(KEY_HEIGHT - 2.0)) rx="4"
                fill="none" stroke="none" {}
            path class="line" d={ "M" (px(x + 2.0)) " " (px(y + 10.0)) "h20" } {}
            @if plot.marks { path class="mark" d=(mark(index)) transform={ "translate(" (px(x + 12.0)) " " (px(y + 10.0)) ")" } {} }
            text class="mono" x=(px(x + KEY_TEXT)) y=(px(y + 14.0)) stroke="none" { (name) }
        }
    }
}
