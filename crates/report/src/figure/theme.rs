//! Colours and type of figures. One style sheet names its colours; a stand-alone figure has them filled in,
//! because the programs that papers are made with know no CSS variables, and a page defines them once.

/// The variable of a colour, for when the theme is not known, and the rules that use it.
const STYLE: &str = include_str!("style.css");

/// Names of colours; what each is on white paper, and on a dark screen. Lines and text keep a contrast of 3 and 4.5 to
/// their paper (WCAG 2.2).
const COLORS: [(&str, &str, &str); 24] = [
    ("paper", "#ffffff", "#131820"),
    ("ink", "#1a2230", "#e7ecf3"),
    ("muted", "#586374", "#9aa7b8"),
    ("grid", "#e2e7ee", "#262f3b"),
    ("axis", "#9aa5b4", "#586577"),
    ("fill", "#f2f5f9", "#1b222c"),
    ("accent", "#c2410c", "#ff9a5c"),
    ("c0", "#2463c8", "#6ca6ff"),
    ("c1", "#c65a0b", "#f4a259"),
    ("c2", "#0b8059", "#45c08c"),
    ("c3", "#8440c0", "#bb8bf3"),
    ("c4", "#c82c50", "#ff7b90"),
    ("c5", "#077f9c", "#45c4dc"),
    ("c6", "#85680c", "#d3b44c"),
    ("c7", "#b0348f", "#f08acb"),
    ("h0", "#e9f2fb", "#16273a"),
    ("h1", "#d0e4f6", "#193349"),
    ("h2", "#b2d2ee", "#1d405d"),
    ("h3", "#8dbbe3", "#215074"),
    ("h4", "#66a0d4", "#25618d"),
    ("h5", "#3573b1", "#5b9bd0"),
    ("h6", "#235f9c", "#7fb5e2"),
    ("h7", "#154a82", "#a5cef0"),
    ("h8", "#0b3666", "#cde5fa"),
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
    /// As the reader's screen is set (prefers-color-scheme); light where it has no setting.
    Auto,
}

impl Theme {
    /// The style sheet with its colours filled in.
    pub(super) fn style(self) -> String {
        let filled_in = |theme: Self| {
            let fill =
                |style: String, (name, color): (&str, &str)| style.replace(&format!("var(--{name})"), color);
            theme.colors().fold(STYLE.to_owned(), fill)
        };
        match self {
            Self::Light | Self::Dark => filled_in(self),
            Self::Auto => {
                let (light, dark) = (filled_in(Self::Light), filled_in(Self::Dark));
                format!("{light}@media (prefers-color-scheme:dark){{{dark}}}")
            }
        }
    }

    /// The colours as declarations of CSS variables: "--ink:#1a2230;…"; light where the theme leaves it open.
    pub(crate) fn variables(self) -> String {
        self.colors().map(|(name, color)| format!("--{name}:{color};")).collect()
    }

    fn colors(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        COLORS.iter().map(move |(name, light, dark)| (*name, if self == Self::Dark { *dark } else { *light }))
    }
}

/// The style sheet for figures on a page that defines [`Theme::variables`].
pub(crate) fn page_style() -> &'static str {
    STYLE
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
    fn both_themes_can_be_read() {
        for theme in [Theme::Light, Theme::Dark] {
            let color = |name: &str| theme.colors().find(|(known, _)| *known == name).expect(name).1;
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
