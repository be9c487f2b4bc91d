//! A pipeline as boxes of stages from top to bottom, and arrows between them whose widths show the amount of data. Each stage has
//! a bar that divides its time; all bars have the same time axis.

use maud::{Markup, html};

use super::canvas::{Canvas, Drawing, px, sans_width, shortened, text, with_tip};
use super::{Flow, FlowLink, FlowStage, Unit};
use crate::value::Value;

/// Height of a stage and of a link.
const STAGE: f64 = 58.0;
const LINK: f64 = 38.0;
/// Between two pipelines.
const GAP: f64 = 18.0;
/// From a stage's frame to what is in it.
const INSET: f64 = 12.0;
/// Height of the bar of time.
const BAR: f64 = 11.0;
/// Centre of the arrows.
const ARROW_X: f64 = 30.0;
/// Widths of the thickest arrow and of the thinnest.
const ARROW_MAX: f64 = 20.0;
const ARROW_MIN: f64 = 2.0;
/// The label of the stage that the others waited for.
pub(super) const HELD_UP: &str = "holds the pipeline up";
/// A part of a stage's time.
pub(super) struct TimePart {
    pub(super) name: &'static str,
    class: &'static str,
    /// `None` if it was not measured.
    pub(super) time_s: fn(&FlowStage) -> Option<f64>,
}

/// The parts that are measured.
pub(super) const PARTS: [TimePart; 4] = [
    TimePart { name: "on a CPU", class: "busy", time_s: |stage| Some(stage.cpu_s) },
    TimePart { name: "waits for a CPU", class: "queued", time_s: |stage| stage.queued_s },
    TimePart { name: "waits to read", class: "reading", time_s: |stage| stage.read_wait_s },
    TimePart { name: "waits to write", class: "writing", time_s: |stage| stage.write_wait_s },
];
/// The name and the class of the rest of a stage's time.
const REST: (&str, &str) = ("else", "other");

pub(super) fn draw(flow: &Flow, canvas: &Canvas) -> Drawing {
    let (key, mut y) = key(canvas);
    let most = flow.stages.iter().filter_map(|stage| Some(stage.link.as_ref()?.bytes?.0)).max().unwrap_or(0);
    let mut pieces = vec![key];
    for (at, stage) in flow.stages.iter().enumerate() {
        pieces.push(stage_box(flow, stage, y, canvas));
        y += STAGE;
        match &stage.link {
            Some(link) => {
                pieces.push(link_arrow(link, most, y, canvas));
                y += LINK;
            }
            None if at + 1 < flow.stages.len() => y += GAP,
            None => {}
        }
    }
    Drawing { height: y + 4.0, body: html! { g { @for piece in pieces { (piece) } } } }
}

/// What the colours mean, in as many lines as it takes, and where the stages begin.
fn key(canvas: &Canvas) -> (Markup, f64) {
    let (mut x, mut y) = (0.0, 12.0);
    let mut places = Vec::new();
    for (name, class) in PARTS.iter().map(|part| (part.name, part.class)).chain([REST]) {
        let width = 18.0 + sans_width(name) + 20.0;
        if x + width - 20.0 > canvas.width {
            (x, y) = (0.0, y + 20.0);
        }
        places.push((name, class, x, y));
        x += width;
    }
    let markup = html! {
        @for (name, class, x, y) in places {
            rect class=(class) x=(px(x)) y=(px(y - 10.0)) width="12" height="12" rx="2" {}
            (text(x + 18.0, y, "quiet", name))
        }
    };
    (markup, y + 14.0)
}

fn stage_box(flow: &Flow, stage: &FlowStage, y: f64, canvas: &Canvas) -> Markup {
    let right = canvas.width - INSET;
    let wall = Unit::Seconds.text(stage.wall_s);
    let ending = if stage.exit == "0" { wall } else { format!("{wall} · exit {}", stage.exit) };
    let room = right - INSET - sans_width(&ending) - 16.0;
    with_tip(
        "stage",
        &stage_tip(stage),
        html! {
            rect class=(if stage.held_up { "box held" } else { "box" }) x="1" y=(px(y + 1.0))
                width=(px(canvas.width - 2.0)) height=(px(STAGE - 2.0)) rx="6" {}
            (text(INSET, y + 22.0, "mono", &shortened(&stage.command, room)))
            (text(right, y + 22.0, "quiet end", &ending))
            @for (class, x, width) in parts(flow, stage, right - INSET) {
                rect class=(class) x=(px(INSET + x)) y=(px(y + 33.0)) width=(px(width)) height=(px(BAR)) rx="1.5" {}
            }
            @if stage.held_up { (held_up(y, canvas)) }
        },
    )
}

/// The label of a stage, on the frame of its box.
fn held_up(y: f64, canvas: &Canvas) -> Markup {
    let width = sans_width(HELD_UP) + 12.0;
    let left = canvas.width - INSET - width;
    html! {
        rect class="paper" x=(px(left)) y=(px(y - 6.0)) width=(px(width)) height="14" {}
        text class="held middle" x=(px(left + width / 2.0)) y=(px(y + 5.0)) { (HELD_UP) }
    }
}

/// The pieces of a stage's bar: class, left end and width, on the axis of the whole run.
fn parts(flow: &Flow, stage: &FlowStage, width: f64) -> Vec<(&'static str, f64, f64)> {
    let known = PARTS.map(|part| (part.class, (part.time_s)(stage).unwrap_or(0.0)));
    let sum: f64 = known.iter().map(|(_, time_s)| time_s).sum();
    // Several threads can have more CPU time than elapsed time: the parts are shrunk to fit.
    let shrunk = if sum > stage.wall_s && sum > 0.0 { stage.wall_s / sum } else { 1.0 };
    let to_fit = known.into_iter().map(|(class, time_s)| (class, time_s * shrunk));
    let rest = (REST.1, (stage.wall_s - sum * shrunk).max(0.0));
    let whole = flow.wall_s.max(stage.wall_s).max(f64::MIN_POSITIVE);
    let mut x = 0.0;
    let mut parts = Vec::new();
    for (class, time_s) in to_fit.chain([rest]) {
        let wide = time_s / whole * width;
        if wide >= 0.05 {
            parts.push((class, x, wide));
        }
        x += wide;
    }
    parts
}

fn link_arrow(link: &FlowLink, most: u64, y: f64, canvas: &Canvas) -> Markup {
    let share = link.bytes.map_or(0.0, |(bytes, _)| bytes as f64 / most.max(1) as f64);
    let thick = (share * ARROW_MAX).max(ARROW_MIN);
    let amount = amount(link).to_string();
    let left = ARROW_X + ARROW_MAX / 2.0 + 12.0;
    let spec = shortened(&link.spec, canvas.width - left - sans_width(&amount) - 30.0);
    let tip = [link.spec.clone(), amount.clone(), link.note.clone()];
    let tip: Vec<String> = tip.into_iter().filter(|line| !line.is_empty()).collect();
    with_tip(
        "link",
        &tip.join("\n"),
        html! {
            path class="hose" d=(outline(thick, y)) {}
            text x=(px(left)) y=(px(y + 23.0)) {
                tspan class="strong" { (amount) }
                tspan class="quiet" { " over " }
                tspan class="mono" { (spec) }
            }
        },
    )
}

/// The outline of an arrow down, from one stage's frame to the next one's.
fn outline(thick: f64, y: f64) -> String {
    const HEAD: f64 = 10.0;
    const WING: f64 = 4.5;
    let [left, middle, right] = [-thick / 2.0, 0.0, thick / 2.0].map(|x| px(ARROW_X + x));
    let [top, neck, end] = [0.0, LINK - 2.0 - HEAD, LINK - 2.0].map(|down| px(y + down));
    let edge = px(ARROW_X + thick / 2.0 + WING);
    format!("M{left} {top}V{neck}h-{WING}L{middle} {end}L{edge} {neck}H{right}V{top}Z")
}

/// "≥1.00 GB", or that it was not counted.
pub(super) fn amount(link: &FlowLink) -> Value {
    match link.bytes {
        Some((bytes, is)) => Unit::Amount.of(bytes as f64).with_certainty(is),
        None => "bytes not counted".into(),
    }
}

fn stage_tip(stage: &FlowStage) -> String {
    let time = |name: &str, time_s: f64| format!("{name} {}", Unit::Seconds.text(time_s));
    let mut lines = vec![stage.command.clone()];
    lines.extend(stage.held_up.then(|| HELD_UP.to_owned()));
    lines.push(time("ran for", stage.wall_s));
    lines.extend(PARTS.iter().filter_map(|part| Some(time(part.name, (part.time_s)(stage)?))));
    lines.push(format!("exit {}", stage.exit));
    lines.join("\n")
}
