//! Text that is safe for a terminal: without control characters, and with colours only if they are wanted.

use std::env::var_os;

/// Makes text from outside (records, programs, names, arguments) safe to print: control characters (such as ESC) become control
/// pictures (U+2400…), a tab becomes a space, line feeds stay. Colours of hosepipe are added after this.
pub fn visible(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' => '\n',
        '\t' => ' ',
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + character as u32).unwrap_or('\u{fffd}'),
        '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        // Characters that change the direction of the text around them.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        other => other,
    };
    text.chars().map(shown).collect()
}

/// The same in one line, for names and other texts within a sentence or a table: a line feed becomes its control picture.
pub fn one_line(text: &str) -> String {
    visible(text).replace('\n', "\u{240a}")
}

/// Whether to use colours: not if NO_COLOR is set (no-color.org), and not on a terminal without colours.
pub fn colours_are_wanted() -> bool {
    !is_dumb() && var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether the terminal can only print lines (terminfo(5)).
pub fn is_dumb() -> bool {
    var_os("TERM").is_some_and(|name| name == "dumb")
}

#[cfg(test)]
mod tests {
    use super::{one_line, visible};

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(visible("a\u{1b}[1m\0\r\tb\n"), "a\u{241b}[1m\u{2400}\u{240d} b\n");
        assert_eq!(visible("\u{9b}1m\u{7f}"), "\u{fffd}1m\u{fffd}");
        assert_eq!(visible("\u{202e}gnp.exe\u{2066}"), "\u{fffd}gnp.exe\u{fffd}");
        assert_eq!(one_line("a\nb\u{7}"), "a\u{240a}b\u{2407}");
        assert_eq!(visible("µs ± 2 % · “ok”"), "µs ± 2 % · “ok”");
    }
}
