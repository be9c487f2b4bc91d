//! Where words end: quotes, escapes, expansions and substitutions are stepped over as bash does it.

use super::SyntaxError;
use super::grammar;
use super::token::MAX_DEPTH;

/// The deepest nesting of brackets in arithmetic: the parser behind takes twice as long for each.
const MAX_BRACKETS: usize = 12;

/// An error for something opened at `offset` that the text never closes.
pub(super) fn open(what: &str, offset: usize) -> SyntaxError {
    SyntaxError { message: format!("{what} is never closed"), offset, incomplete: true }
}

/// An error for constructs inside each other deeper than is read.
pub(super) fn too_deep(offset: usize) -> SyntaxError {
    let message = "too many constructs inside each other".into();
    SyntaxError { message, offset, incomplete: false }
}

/// The end of the word that starts at `start`.
///
/// # Errors
/// A quote or an expansion in it is never closed, or holds no command line.
pub(super) fn word(text: &str, start: usize, depth: usize) -> Result<usize, SyntaxError> {
    let bytes = text.as_bytes();
    let mut pos = start;
    while let Some(&byte) = bytes.get(pos) {
        let substitution = matches!(byte, b'<' | b'>') && bytes.get(pos + 1) == Some(&b'(');
        pos = match byte {
            b'<' | b'>' if substitution => command(text, pos, pos + 2, depth)?,
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
            _ => piece(text, pos, depth, false)?,
        };
    }
    odd_index(text, start, pos, depth).map_or(Ok(pos), Err)
}

/// The error of a word like `a[1 | 2]=b`: as an assignment it is one word to bash, as an argument several, and the
/// parser behind always sees several.
fn odd_index(text: &str, start: usize, end: usize, depth: usize) -> Option<SyntaxError> {
    let name = text[start..end].find(|c: char| c != '_' && !c.is_ascii_alphanumeric())?;
    let bracket = start + name;
    if name == 0 || text.as_bytes()[bracket] != b'[' {
        return None;
    }
    let line = text[end..].find('\n').map_or(text.len(), |length| end + length);
    let behind = pair(&text[..line], bracket, b'[', depth, false).ok().filter(|behind| *behind > end)?;
    let assigns = text[behind..].starts_with('=') || text[behind..].starts_with("+=");
    let message = "an index with blanks or operators in it".into();
    assigns.then_some(SyntaxError { message, offset: bracket, incomplete: false })
}

/// The end of one piece of a word: a quotation, an escape, an expansion or a single byte. Inside `"` only `$`, the
/// backquote and the backslash are anything special.
pub(super) fn piece(text: &str, pos: usize, depth: usize, in_double: bool) -> Result<usize, SyntaxError> {
    let bytes = text.as_bytes();
    match (bytes[pos], bytes.get(pos + 1)) {
        (b'\\', None) => {
            Err(SyntaxError { message: "a \\ with nothing behind it".into(), offset: pos, incomplete: true })
        }
        (b'\\', Some(_)) => Ok(pos + 2),
        (b'\'', _) if !in_double => match text[pos + 1..].find('\'') {
            Some(length) => Ok(pos + 1 + length + 1),
            None => Err(open("the ' quote", pos)),
        },
        (b'"', _) if !in_double => double(text, pos, depth),
        (b'`', _) => backquote(text, pos),
        (b'$', Some(b'\'')) if !in_double => escaped_quote(text, pos),
        (b'$', Some(b'(')) if bytes.get(pos + 2) == Some(&b'(') => {
            pair(text, pos + 1, b'(', depth, in_double)
        }
        (b'$', Some(b'(')) => command(text, pos, pos + 2, depth),
        (b'$', Some(b'[')) => pair(text, pos + 1, b'[', depth, in_double),
        (b'$', Some(b'{')) => parameter(text, pos, depth),
        _ => Ok(pos + 1),
    }
}

/// `"..."`.
fn double(text: &str, start: usize, depth: usize) -> Result<usize, SyntaxError> {
    let mut pos = start + 1;
    while let Some(&byte) = text.as_bytes().get(pos) {
        if byte == b'"' {
            return Ok(pos + 1);
        }
        pos = piece(text, pos, depth, true)?;
    }
    Err(open("the \" quote", start))
}

/// `$'...'`.
fn escaped_quote(text: &str, start: usize) -> Result<usize, SyntaxError> {
    until(text, start + 2, b'\'').ok_or_else(|| open("the $' quote", start))
}

/// Backquotes: up to the next one without a backslash before it.
fn backquote(text: &str, start: usize) -> Result<usize, SyntaxError> {
    until(text, start + 1, b'`').ok_or_else(|| open("the ` quote", start))
}

/// Behind the next `mark` that has no backslash before it.
fn until(text: &str, mut pos: usize, mark: u8) -> Option<usize> {
    loop {
        match text.as_bytes().get(pos)? {
            b'\\' => pos += 2,
            byte if *byte == mark => return Some(pos + 1),
            _ => pos += 1,
        }
    }
}

/// `$(...)`, `<(...)`, `>(...)`: a command line up to the `)` that belongs to nothing in it.
fn command(text: &str, start: usize, inside: usize, depth: usize) -> Result<usize, SyntaxError> {
    let depth = deeper(depth, start)?;
    grammar::substitution(text, start, inside, depth)
}

/// From a bracket to its partner, as bash reads arithmetic: quotes and expansions are whole, words mean nothing.
///
/// # Errors
/// The partner is missing.
pub(super) fn pair(
    text: &str,
    start: usize,
    opening: u8,
    depth: usize,
    in_double: bool,
) -> Result<usize, SyntaxError> {
    let depth = deeper(depth, start)?;
    let closing = if opening == b'(' { b')' } else { b']' };
    let mut level = 1;
    let mut pos = start + 1;
    while let Some(&byte) = text.as_bytes().get(pos) {
        if byte == opening {
            level += 1;
            if level > MAX_BRACKETS {
                return Err(too_deep(pos));
            }
        } else if byte == closing {
            level -= 1;
        }
        if level == 0 {
            return Ok(pos + 1);
        }
        pos = piece(text, pos, depth, in_double)?;
    }
    Err(open(&format!("the {}", char::from(opening)), start))
}

/// `${...}`, in which a `'` quotes even where the whole stands inside `"`.
fn parameter(text: &str, start: usize, depth: usize) -> Result<usize, SyntaxError> {
    let depth = deeper(depth, start)?;
    let mut pos = start + 2;
    while let Some(&byte) = text.as_bytes().get(pos) {
        if byte == b'}' {
            return Ok(pos + 1);
        }
        pos = piece(text, pos, depth, false)?;
    }
    Err(open("the ${", start))
}

/// One construct deeper.
///
/// # Errors
/// That is too deep.
pub(super) fn deeper(depth: usize, offset: usize) -> Result<usize, SyntaxError> {
    if depth >= MAX_DEPTH { Err(too_deep(offset)) } else { Ok(depth + 1) }
}
