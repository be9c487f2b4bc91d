//! Text in a terminal: width, wrapping, tones. Knows nothing of measurements.

use model::visible;
use unicode_width::UnicodeWidthStr;

/// The emphasis of a piece of text, if colour is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// The best row.
    Bold,
    /// Headings and remarks around the figures.
    Dim,
}

/// A line of pieces, each with its tone. All text of tables passes through here, and control characters are made visible, so that none
/// reaches the terminal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Vec<(Tone, String)>);

impl Line {
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self::default().with(tone, text)
    }

    /// The line itself, or several indented lines with its words if it is too wide.
    pub(crate) fn wrapped(self, columns: usize) -> Vec<Self> {
        let text: String = self.0.iter().map(|(_, piece)| piece.as_str()).collect();
        if width(text.trim_end()) <= columns {
            return vec![self];
        }
        let tone = self.0.first().map_or(Tone::Plain, |(tone, _)| *tone);
        let lines = wrap(&text, columns.saturating_sub(1)).into_iter();
        lines.map(|line| Self::new(tone, format!(" {line}"))).collect()
    }

    pub(crate) fn with(mut self, tone: Tone, text: impl Into<String>) -> Self {
        let text = visible(&text.into());
        match self.0.last_mut() {
            Some((last, piece)) if *last == tone => piece.push_str(&text),
            _ => self.0.push((tone, text)),
        }
        self
    }
}

/// The text with `±` as `+-` if there is no Unicode. This changes the width, so that it must be done before layout.
pub(crate) fn ascii_plus_minus(text: &str, unicode: bool) -> String {
    if unicode { text.to_owned() } else { text.replace('±', "+-") }
}

/// Columns a text takes in a terminal.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The text with blanks after it, up to a width.
pub(crate) fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The text with blanks before it, up to a width.
pub(crate) fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Words in lines of at most `columns`; a word that is longer has a line of its own.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    fill(text.split_whitespace(), " ", columns)
}

/// Lines of text: the first one after `label`, the others after `indent` blanks.
pub fn hanging(label: &str, indent: usize, lines: impl IntoIterator<Item = String>) -> String {
    let blanks = " ".repeat(indent);
    let place = |at: usize| if at == 0 { label } else { &blanks };
    lines.into_iter().enumerate().map(|(at, line)| format!("{}{line}\n", place(at))).collect()
}

/// Like [`wrap`], but a line that fits is unchanged, with its double blanks.
pub(crate) fn wrap_if_wider(text: &str, columns: usize) -> Vec<String> {
    match width(text) {
        0 => Vec::new(),
        fits if fits <= columns => vec![text.to_owned()],
        _ => wrap(text, columns),
    }
}

/// Pieces in lines of at most `columns`, with a separator between the pieces of a line.
pub(crate) fn fill<'a>(
    pieces: impl IntoIterator<Item = &'a str>,
    separator: &str,
    columns: usize,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if width(line) + width(separator) + width(piece) <= columns => {
                line.push_str(separator);
                line.push_str(piece);
            }
            _ => lines.push(piece.to_owned()),
        }
    }
    lines
}

/// A command in one line of at most `columns`; what does not fit is replaced by `…`.
pub(crate) fn shortened(command: &str, columns: usize) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    if width(&line) <= columns {
        return line;
    }
    let mut kept = String::new();
    for character in line.chars() {
        if width(&kept) + 2 > columns {
            break;
        }
        kept.push(character);
    }
    kept + "…"
}

/// A command in Markdown: between more backticks than it has in a row (CommonMark, "code spans").
pub(crate) fn code(command: &str) -> String {
    let most = command.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(most + 1);
    // A blank keeps a backtick at an end apart from the fence, and is not shown.
    let blank = if most > 0 { " " } else { "" };
    format!("{fence}{blank}{}{blank}{fence}", command.replace('\n', " "))
}

/// A bar of at most `columns`, in eighths of a column, for a share of 0 to 1.
pub(crate) fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// The lines as one text: without escape sequences if `color` is false, and with ASCII instead of hosepipe's own Unicode characters if
/// `unicode` is false.
pub(crate) fn print(lines: &[Line], color: bool, unicode: bool) -> String {
    let mut text = String::new();
    for line in lines {
        let mut printed: String = line.0.iter().map(|(tone, piece)| paint(*tone, piece, color)).collect();
        printed.truncate(printed.trim_end_matches(' ').len());
        text.push_str(&printed);
        text.push('\n');
    }
    if unicode { text } else { text.chars().map(ascii).collect() }
}

fn paint(tone: Tone, text: &str, color: bool) -> String {
    let code = match tone {
        Tone::Bold => "1",
        Tone::Dim => "2",
        Tone::Plain => "",
    };
    // Blanks after the text stay outside, so that they can be trimmed from the end of the line.
    let shown = text.trim_end_matches(' ');
    if !color || code.is_empty() || shown.is_empty() {
        return text.to_owned();
    }
    format!("\u{1b}[{code}m{shown}\u{1b}[0m{}", &text[shown.len()..])
}

/// An ASCII character for each Unicode character that hosepipe itself prints (for `±` see [`ascii_plus_minus`]).
fn ascii(character: char) -> char {
    match character {
        'µ' => 'u',
        '×' => 'x',
        '–' | '—' | '─' => '-',
        '→' => '>',
        '·' => '|',
        '█' | '▉' | '▊' | '▋' | '▌' => '#',
        '▍' | '▎' | '▏' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bars_grow_by_eighths() {
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.03125, 4), "▏");
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(f64::NAN, 4), "");
    }

    #[test]
    fn commands_are_code_whatever_is_in_them() {
        let all = ["a | b", "echo `date`\nls", "``"].map(code);
        assert_eq!(all, ["`a | b`", "`` echo `date` ls ``", "``` `` ```"]);
    }

    #[test]
    fn colour_only_where_asked() {
        let lines = [Line::new(Tone::Bold, "best ").with(Tone::Dim, "µs  ")];
        assert_eq!(print(&lines, false, true), "best µs\n");
        assert_eq!(print(&lines, false, false), "best us\n");
        assert_eq!(print(&lines, true, true), "\u{1b}[1mbest\u{1b}[0m \u{1b}[2mµs\u{1b}[0m\n");
    }

    proptest! {
        #[test]
        fn wrapping_loses_no_word(text in "[a-zµ ]{0,200}", columns in 1usize..60) {
            let lines = wrap(&text, columns);
            prop_assert!(lines.iter().all(|line| width(line) <= columns || !line.contains(' ')));
            let words: Vec<&str> = lines.iter().flat_map(|line| line.split(' ')).collect();
            prop_assert_eq!(words, text.split_whitespace().collect::<Vec<_>>());
        }
    }
}
