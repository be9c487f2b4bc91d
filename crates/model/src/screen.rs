//! What a terminal may be given: text that cannot steer it, and colours only where they are wanted.

use std::env::var_os;

/// The text as a terminal or a page can show it. Control characters (ESC among them) become their pictures (U+2400…),
/// a tab becomes a blank, line ends stay. Whatever comes from outside (records, programs, names, arguments) is shown
/// through this; colours of our own come after it.
pub fn visible(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' => '\n',
        '\t' => ' ',
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + character as u32).unwrap_or('\u{fffd}'),
        '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        // What turns the direction of the text around it.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        other => other,
    };
    text.chars().map(shown).collect()
}

/// The same in one line, for names and other texts in the middle of a sentence or a table: a line end becomes its picture.
pub fn one_line(text: &str) -> String {
    visible(text).replace('\n', "\u{240a}")
}

/// Whether a terminal is to show colours: not where NO_COLOR is set (no-color.org), nor where it cannot.
pub fn colours_are_wanted() -> bool {
    !is_dumb() && var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether the terminal can do no more than print lines (terminfo(5)).
pub fn is_dumb() -> bool {
    var_os("TERM").is_some_and(|name| name == "dumb")
}

#[cfg(test)]
mod tests {
    use super::{one_line, visible};

    #[test]
    fn what_steers_a_terminal_becomes_visible() {
        assert_eq!(visible("a\u{1b}[1m\0\r\tb\n"), "a\u{241b}[1m\u{2400}\u{240d} b\n");
        assert_eq!(visible("\u{9b}1m\u{7f}"), "\u{fffd}1m\u{fffd}");
        assert_eq!(visible("\u{202e}gnp.exe\u{2066}"), "\u{fffd}gnp.exe\u{fffd}");
        assert_eq!(one_line("a\nb\u{7}"), "a\u{240a}b\u{2407}");
        assert_eq!(visible("µs ± 2 % · “ok”"), "µs ± 2 % · “ok”");
    }
}
