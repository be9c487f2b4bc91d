//! Colours and type of figures. One style sheet names its colours; a stand-alone figure has them filled in,
//! because the programs that papers are made with know no CSS variables, and a page defines them once.

/// What stands for a colour until the theme is known, and the rules that use it.
const STYLE: &str = include_str!("style.css");

/// A name of a colour, and the colour.
type Color = (&'static str, &'static str);

/// On white paper. Lines and text keep a contrast of 3 and 4.5 to it (WCAG 2.2).
const LIGHT: &[Color] = &[
    ("paper", "#ffffff"),
    ("ink", "#1a2230"),
    ("muted", "#586374"),
    ("grid", "#e2e7ee"),
    ("axis", "#9aa5b4"),
    ("fill", "#f2f5f9"),
    ("accent", "#c2410c"),
    ("c0", "#2463c8"),
    ("c1", "#c65a0b"),
    ("c2", "#0b8059"),
    ("c3", "#8440c0"),
    ("c4", "#c82c50"),
    ("c5", "#077f9c"),
    ("c6", "#85680c"),
    ("c7", "#b0348f"),
    ("h0", "#e9f2fb"),
    ("h1", "#d0e4f6"),
    ("h2", "#b2d2ee"),
    ("h3", "#8dbbe3"),
    ("h4", "#66a0d4"),
    ("h5", "#3573b1"),
    ("h6", "#235f9c"),
    ("h7", "#154a82"),
    ("h8", "#0b3666"),
];

/// On a dark screen.
const DARK: &[Color] = &[
    ("paper", "#131820"),
    ("ink", "#e7ecf3"),
    ("muted", "#9aa7b8"),
    ("grid", "#262f3b"),
    ("axis", "#586577"),
    ("fill", "#1b222c"),
    ("accent", "#ff9a5c"),
    ("c0", "#6ca6ff"),
    ("c1", "#f4a259"),
    ("c2", "#45c08c"),
    ("c3", "#bb8bf3"),
    ("c4", "#ff7b90"),
    ("c5", "#45c4dc"),
    ("c6", "#d3b44c"),
    ("c7", "#f08acb"),
    ("h0", "#16273a"),
    ("h1", "#193349"),
    ("h2", "#1d405d"),
    ("h3", "#215074"),
    ("h4", "#25618d"),
    ("h5", "#5b9bd0"),
    ("h6", "#7fb5e2"),
    ("h7", "#a5cef0"),
    ("h8", "#cde5fa"),
];

/// How many colours tell series apart before they are used again, with another mark.
pub(super) const SERIES_COLORS: usize = 8;

/// The steps of a matrix' colours.
pub(super) const HEAT_STEPS: usize = 9;

/// The colours of a stand-alone figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// For white paper.
    Light,
    /// For a dark screen.
    Dark,
    /// As the reader's screen is set (prefers-color-scheme); light where nobody says.
    Auto,
}

impl Theme {
    /// The style sheet with its colours filled in.
    pub(super) fn style(self) -> String {
        match self {
            Self::Light => filled_in(LIGHT),
            Self::Dark => filled_in(DARK),
            Self::Auto => {
                format!("{}@media (prefers-color-scheme:dark){{{}}}", filled_in(LIGHT), filled_in(DARK))
            }
        }
    }

    /// The colours as declarations of CSS variables: "--ink:#1a2230;…"; light where the theme leaves it open.
    pub(crate) fn variables(self) -> String {
        let colors = if self == Self::Dark { DARK } else { LIGHT };
        colors.iter().map(|(name, color)| format!("--{name}:{color};")).collect()
    }
}

/// The style sheet for figures on a page that defines [`Theme::variables`].
pub(crate) fn page_style() -> &'static str {
    STYLE
}

fn filled_in(colors: &[Color]) -> String {
    colors
        .iter()
        .fold(STYLE.to_owned(), |style, (name, color)| style.replace(&format!("var(--{name})"), color))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (WCAG 2.2).
    fn luminance(color: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&color[at..at + 2], 16).expect("hexadecimal")) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        if a > b { a / b } else { b / a }
    }

    #[test]
    fn both_themes_have_the_same_colours_and_can_be_read() {
        for colors in [LIGHT, DARK] {
            let color = |name: &str| colors.iter().find(|(known, _)| *known == name).expect(name).1;
            assert_eq!(
                colors.iter().map(|c| c.0).collect::<Vec<_>>(),
                LIGHT.iter().map(|c| c.0).collect::<Vec<_>>()
            );
            for text in ["ink", "muted", "accent"] {
                assert!(contrast(color(text), color("paper")) >= 4.5, "{text}");
                assert!(contrast(color(text), color("fill")) >= 4.5, "{text} on fill");
            }
            for series in 0..SERIES_COLORS {
                let name = format!("c{series}");
                assert!(contrast(color(&name), color("paper")) >= 3.0, "{name}");
            }
            for step in 0..HEAT_STEPS {
                let text = if step < 5 { "ink" } else { "paper" };
                let name = format!("h{step}");
                assert!(contrast(color(&name), color(text)) >= 4.5, "{text} on {name}");
            }
        }
    }

    #[test]
    fn a_stand_alone_style_needs_no_variables() {
        for theme in [Theme::Light, Theme::Dark, Theme::Auto] {
            assert!(!theme.style().contains("var("), "{theme:?}");
        }
    }
}
