//! A line cut up for the eye: where words, commands, quotes, operators and comments are, also while it is not yet a
//! command line. What runs is decided by [`pipeline::syntax`], never by this.

use std::ops::Range;

/// Words after which a command follows.
const BEFORE_COMMANDS: &[&str] = &["!", "do", "elif", "else", "if", "then", "time", "until", "while", "{"];

/// What a piece of a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word where a command's name stands.
    Command,
    /// A word that the grammar reserves.
    Reserved,
    /// Any other word.
    Word,
    /// `|`, `&&`, `>` and the like.
    Operator,
    /// From `#` to the end of the line.
    Comment,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    /// Its bytes.
    pub(crate) range: Range<usize>,
    /// The quoted parts of a word, quotes included.
    pub(crate) quoted: Vec<Range<usize>>,
}

/// Cuts a line into pieces; blanks fall between them.
pub(crate) fn pieces(line: &str) -> Vec<Piece> {
    let bytes = line.as_bytes();
    let mut pieces = Vec::new();
    let mut place = 0;
    let mut command = true;
    let mut target = false;
    while let Some(&byte) = bytes.get(place) {
        let start = place;
        let (kind, quoted) = match byte {
            b'\n' => {
                (command, target) = (true, false);
                place += 1;
                continue;
            }
            _ if byte.is_ascii_whitespace() => {
                place += 1;
                continue;
            }
            b'#' => {
                place = line[place..].find('\n').map_or(line.len(), |length| place + length);
                (Kind::Comment, Vec::new())
            }
            b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>' => {
                place += 1;
                let redirects = matches!(byte, b'<' | b'>');
                while bytes
                    .get(place)
                    .is_some_and(|next| redirects && b"<>&|".contains(next) || *next == byte)
                {
                    place += 1;
                }
                (command, target) = if redirects { (command, true) } else { (byte != b')', false) };
                (Kind::Operator, Vec::new())
            }
            _ => {
                let quoted = word(bytes, &mut place);
                let text = &line[start..place];
                let kind = match (target, command) {
                    (true, _) | (_, false) => Kind::Word,
                    _ if BEFORE_COMMANDS.contains(&text) => Kind::Reserved,
                    _ if is_assignment(text) => Kind::Word,
                    _ => Kind::Command,
                };
                command &= target || kind != Kind::Command;
                target = false;
                (kind, quoted)
            }
        };
        pieces.push(Piece { kind, range: start..place, quoted });
    }
    pieces
}

/// Steps over a word and gives its quoted parts.
fn word(bytes: &[u8], place: &mut usize) -> Vec<Range<usize>> {
    let mut quoted = Vec::new();
    while let Some(&byte) = bytes.get(*place) {
        match byte {
            b'\\' => *place += 2,
            b'\'' | b'"' | b'`' => {
                let start = *place;
                quote(bytes, place, byte);
                quoted.push(start..*place);
            }
            b'$' if bytes.get(*place + 1) == Some(&b'(') => parentheses(bytes, place),
            _ if byte.is_ascii_whitespace() || b"|&;()<>".contains(&byte) => break,
            _ => *place += 1,
        }
    }
    *place = (*place).min(bytes.len());
    quoted
}

/// Steps over a quote to the mark that ends it, or to the end.
fn quote(bytes: &[u8], place: &mut usize, mark: u8) {
    *place += 1;
    while let Some(&byte) = bytes.get(*place) {
        *place += if byte == b'\\' && mark != b'\'' { 2 } else { 1 };
        if byte == mark {
            break;
        }
    }
    *place = (*place).min(bytes.len());
}

/// Steps over `$(...)`.
fn parentheses(bytes: &[u8], place: &mut usize) {
    let mut depth = 0;
    while let Some(&byte) = bytes.get(*place) {
        match byte {
            b'\\' => *place += 1,
            b'\'' | b'"' => {
                quote(bytes, place, byte);
                continue;
            }
            b'(' => depth += 1,
            b')' if depth == 1 => {
                *place += 1;
                return;
            }
            b')' => depth -= 1,
            _ => {}
        }
        *place += 1;
    }
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.trim_end_matches('+').chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(line: &str) -> Vec<(Kind, &str)> {
        pieces(line).into_iter().map(|piece| (piece.kind, &line[piece.range])).collect()
    }

    #[test]
    fn commands_stand_where_commands_stand() {
        use Kind::{Command, Comment, Operator, Reserved, Word};
        assert_eq!(
            seen("A=1 cat <in -n | sort&&time wc # all"),
            [
                (Word, "A=1"),
                (Command, "cat"),
                (Operator, "<"),
                (Word, "in"),
                (Word, "-n"),
                (Operator, "|"),
                (Command, "sort"),
                (Operator, "&&"),
                (Reserved, "time"),
                (Command, "wc"),
                (Comment, "# all"),
            ]
        );
        assert_eq!(seen(">x cat y"), [(Operator, ">"), (Word, "x"), (Command, "cat"), (Word, "y")]);
    }

    #[test]
    fn quotes_hold_a_word_together_also_when_open() {
        let piece = pieces("echo 'a | b'c \"open | x").swap_remove(1);
        assert_eq!((piece.range, piece.quoted.first().cloned(), piece.quoted.len()), (5..13, Some(5..12), 1));
        assert_eq!(seen("echo 'a | b'c \"open | x").len(), 3);
        assert_eq!(seen("echo $(a | b) \\").len(), 3);
        assert_eq!(seen("a\\"), [(Kind::Command, "a\\")]);
        assert_eq!(seen("é | ö"), [(Kind::Command, "é"), (Kind::Operator, "|"), (Kind::Command, "ö")]);
    }
}
