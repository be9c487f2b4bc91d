//! Colours and fonts of charts. One style sheet names its colours. A page defines them once as CSS variables; in an SVG file they
//! are replaced by their values, because many programs for papers do not support CSS variables.

/// The rules; colours are CSS variables in them.
const STYLE: &str = include_str!("style.css");

/// A colour in each line: its name, its value on white paper and on a dark screen. Lines and text have a contrast of at least 3 and
/// 4.5 to their background (WCAG 2.2).
const COLORS: &str = include_str!("colors.txt");

/// Colours of series; after the last one the first is used again, with another mark.
pub(super) const SERIES_COLORS: usize = 8;

/// Colours of the cells of a matrix.
pub(super) const HEAT_STEPS: usize = 9;

/// The colours of an SVG file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// For white paper.
    Light,
    /// For a dark screen.
    Dark,
    /// As the reader's screen is set (prefers-color-scheme); light without a setting.
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

    /// The colours as declarations of CSS variables: "--ink:#1a2230;…". Those of [`Self::Auto`] are light.
    pub(crate) fn variables(self) -> String {
        self.colors().map(|(name, color)| format!("--{name}:{color};")).collect()
    }

    /// The name of each colour and its value.
    fn colors(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let values_before = usize::from(self == Self::Dark);
        COLORS.lines().filter_map(move |line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.nth(values_before)?))
        })
    }
}

/// The style sheet for charts on a page that defines [`Theme::variables`].
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
