//! Colours for a line while it is typed: commands that would be found and not, quotes, operators, errors.

use model::visible;
use nu_ansi_term::{Color, Style};
use pipeline::syntax::parse;
use reedline::{Highlighter, StyledText};

use crate::tokens::{Kind, pieces};
use crate::words::Words;

/// Above this a line was pasted, not typed: it is shown as it is, so that each key stays quick.
const BYTES_MAX: usize = 8192;

pub(crate) struct Colours(pub(crate) Words);

impl Highlighter for Colours {
    fn highlight(&self, line: &str, cursor: usize) -> StyledText {
        let mut text = StyledText::new();
        text.push((Style::new(), line.chars().map(harmless).collect()));
        if line.is_empty() || line.len() > BYTES_MAX {
            return text;
        }
        for piece in pieces(line) {
            let word = &line[piece.range.clone()];
            let style = match piece.kind {
                Kind::Command if self.0.is_command(word) || is_expanded(word) => Color::Green.normal(),
                // A name that is being typed is not wrong yet.
                Kind::Command if piece.range.end == cursor => Style::new(),
                Kind::Command => Color::Red.normal(),
                Kind::Reserved => Color::Green.bold(),
                Kind::Operator => Color::Cyan.normal(),
                Kind::Comment => Style::new().dimmed(),
                Kind::Word => Style::new(),
            };
            text.style_range(piece.range.start, piece.range.end, style);
            for quoted in piece.quoted {
                text.style_range(quoted.start, quoted.end, Color::Yellow.normal());
            }
        }
        if let Err(error) = parse(line)
            && !error.incomplete
        {
            let start = (0..=error.offset.min(line.len())).rev().find(|place| line.is_char_boundary(*place));
            text.style_range(start.unwrap_or(0), line.len(), Color::Red.underline());
        }
        text
    }
}

/// What stands for a pasted character that would steer the terminal: as long in UTF-8, as the editor counts in bytes.
fn harmless(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        _ if visible(character.encode_utf8(&mut [0; 4])).starts_with(character) => character,
        _ => ['?', '¿', '\u{fffd}'][character.len_utf8() - 1],
    }
}

/// Whether a name only comes to be when it is run.
fn is_expanded(word: &str) -> bool {
    word.contains(['$', '`', '*', '?', '~', '\'', '"', '\\', '{'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styled(line: &str) -> String {
        Colours(Words::default()).highlight(line, 0).render_simple()
    }

    #[test]
    fn the_text_stays_the_same() {
        for line in ["", "echo 'é' | nothing_here >x # c", "a |", "a | | b", "echo \"open", ") ö"] {
            let text = Colours(Words::default()).highlight(line, 0);
            assert_eq!(text.raw_string(), line);
        }
    }

    #[test]
    fn a_command_that_is_not_there_is_red_and_a_builtin_green() {
        assert!(styled("no_such_command x").contains("\x1b[31m"));
        assert!(styled("echo x").contains("\x1b[32m"));
        assert!(styled("echo x | | y").contains("\x1b[4;31m"), "{:?}", styled("echo x | | y"));
    }
}
