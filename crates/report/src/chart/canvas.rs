//! The canvas a chart is drawn on: how wide it is, whether it is a file of its own or in a page, and the pieces of SVG
//! that all charts share. Control characters in texts of records are made visible at the end, by [`visible`].

use maud::{Markup, PreEscaped, html};
use model::visible;
use unicode_width::UnicodeWidthStr;

use super::{Chart, Theme};

/// Width of a column of text in a fixed pitch, as a share of its size; no common font is wider.
const MONO_ADVANCE: f64 = 0.603;
/// Mean width of a character of running text, as a share of its size.
const SANS_ADVANCE: f64 = 0.56;
/// The size of text.
pub(super) const TEXT: f64 = 12.0;

/// Least gap between the labels of two ticks.
const LABEL_GAP: f64 = 6.0;

/// The canvas: a file of its own if it has a theme, else a part of a page, for a desktop or for a phone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Canvas {
    theme: Option<Theme>,
    pub(super) narrow: bool,
    pub(super) width: f64,
}

/// What a chart draws: its height and its contents.
pub(super) struct Drawing {
    pub(super) height: f64,
    pub(super) body: Markup,
}

impl Canvas {
    pub(super) fn stand_alone(theme: Theme) -> Self {
        Self { theme: Some(theme), ..Self::in_page(false) }
    }

    pub(super) fn in_page(narrow: bool) -> Self {
        Self { theme: None, narrow, width: if narrow { 340.0 } else { 760.0 } }
    }

    /// Whether this is the drawing from which the page's script zooms: the other one has the same axes.
    pub(super) fn has_finer_ticks(&self) -> bool {
        self.theme.is_none() && !self.narrow
    }

    /// A name for a part of a chart, once on a page.
    pub(super) fn part(&self, chart: &str, part: &str) -> String {
        let place = match (self.theme, self.narrow) {
            (Some(_), _) => "alone",
            (None, false) => "wide",
            (None, true) => "narrow",
        };
        format!("{chart}-{place}-{part}")
    }

    /// The drawing as an `svg` element.
    pub(super) fn frame(&self, chart: &Chart, drawing: Drawing) -> Markup {
        let Some(theme) = self.theme else { return self.frame_in_page(chart, &drawing) };
        const MARGIN: f64 = 16.0;
        const HEAD: f64 = 34.0;
        let (width, height) = (self.width + 2.0 * MARGIN, drawing.height + HEAD + 2.0 * MARGIN);
        let (title, caption) = (self.part(&chart.id, "title"), self.part(&chart.id, "caption"));
        html! {
            svg xmlns="http://www.w3.org/2000/svg" class="figure" width=(px(width)) height=(px(height))
                viewBox={ "0 0 " (px(width)) " " (px(height)) } role="img" aria-labelledby={ (title) " " (caption) } {
                title id=(title) { (chart.title) }
                desc id=(caption) { (chart.caption) }
                style { (PreEscaped(theme.style())) }
                rect class="paper" width="100%" height="100%" {}
                (text(MARGIN, MARGIN + 14.0, "title", &chart.title))
                g transform={ "translate(" (px(MARGIN)) " " (px(MARGIN + HEAD)) ")" } { (drawing.body) }
            }
        }
    }

    fn frame_in_page(&self, chart: &Chart, drawing: &Drawing) -> Markup {
        let class = if self.narrow { "figure narrow" } else { "figure wide" };
        html! {
            svg xmlns="http://www.w3.org/2000/svg" class=(class)
                viewBox={ "0 0 " (px(self.width)) " " (px(drawing.height)) }
                role="group" aria-label=(chart.title) { (drawing.body) }
        }
    }
}

/// A group with a tooltip. A browser shows the title; the page's script shows it as a tip of its own.
pub(super) fn with_tip(class: &str, tip: &str, pieces: Markup) -> Markup {
    html! { g class=(class) { title { (tip) } (pieces) } }
}

/// A line of text.
pub(super) fn text(x: f64, y: f64, class: &str, words: &str) -> Markup {
    html! { text x=(px(x)) y=(px(y)) class=(class) { (words) } }
}

/// A coordinate with one decimal at most.
pub(super) fn px(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    // Negative zero is zero.
    format!("{}", tenths + 0.0)
}

/// Width of a text in a fixed pitch.
pub(super) fn mono_width(text: &str) -> f64 {
    UnicodeWidthStr::width(text) as f64 * TEXT * MONO_ADVANCE
}

/// Width of running text, about.
pub(super) fn sans_width(text: &str) -> f64 {
    UnicodeWidthStr::width(text) as f64 * TEXT * SANS_ADVANCE
}

/// Least distance of a label from the edges of the canvas.
const EDGE: f64 = 6.0;

/// The labels of ticks that have room, each centred on its place or as near to it as the canvas' edges allow. Where two would
/// touch, the one further right stays: of percentiles the rarest says most.
pub(super) fn labels_apart(ticks: Vec<(f64, String)>, canvas: &Canvas) -> Vec<(f64, String)> {
    let mut free = f64::INFINITY;
    let mut kept = Vec::new();
    for (place, words) in ticks.into_iter().rev() {
        let half = sans_width(&words) / 2.0;
        // The width of running text is only about right, and figures are wider than most letters.
        let x = place.min(canvas.width - half - EDGE).max(half + EDGE);
        if x + half <= free {
            free = x - half - LABEL_GAP;
            kept.push((x, words));
        }
    }
    kept.reverse();
    kept
}

/// A text in a fixed pitch, cut in the middle where it is wider: its beginning and its end tell most.
pub(super) fn shortened(text: &str, width: f64) -> String {
    let text = visible(text).replace('\n', " ");
    let room = (width / (TEXT * MONO_ADVANCE)).floor().max(3.0) as usize;
    let characters: Vec<char> = text.chars().collect();
    if UnicodeWidthStr::width(text.as_str()) <= room {
        return text;
    }
    let kept = room.min(characters.len()) - 1;
    let tail = kept / 3;
    let head = characters[..kept - tail].iter().collect::<String>();
    head + "…" + &characters[characters.len() - tail..].iter().collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_on_the_canvas_and_apart() {
        let canvas = Canvas::in_page(true);
        let ticks = [(40.0, "50 %"), (50.0, "90 %"), (200.0, "99.9999 %"), (335.0, "99.99999 %")];
        let kept = labels_apart(ticks.map(|(place, words)| (place, words.to_owned())).to_vec(), &canvas);
        let words: Vec<&str> = kept.iter().map(|(_, words)| words.as_str()).collect();
        assert_eq!(words, ["90 %", "99.9999 %", "99.99999 %"]);
        let right = kept.iter().map(|(x, words)| x + sans_width(words) / 2.0).fold(0.0, f64::max);
        assert!(right <= canvas.width, "{right}");
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(
            text(1.0, -0.01, "", "<script>&").into_string(),
            r#"<text x="1" y="0" class="">&lt;script&gt;&amp;</text>"#
        );
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("pipe", 100.0), "pipe");
        let short = shortened("pipe:send=vmsplice,recv=splice,size=1MiB", 20.0 * TEXT * MONO_ADVANCE + 0.1);
        assert_eq!(short.chars().count(), 20);
        assert!(short.starts_with("pipe:send") && short.ends_with("1MiB"));
    }
}
