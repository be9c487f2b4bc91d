//! Compound commands: groups, loops, conditions, function definitions. Only where they end matters here.

use super::SyntaxError;
use super::command::{self, redirections};
use super::grammar::{inner_list, newlines, unexpected};
use super::quote::{self, open};
use super::token::{Kind, Reader, Token};

/// How many levels a `(` counts for besides its own: the parser behind takes twice as long for each.
const BRACKET_DEPTH: usize = 2;

/// A compound command with its redirections, if the token ahead starts one: the place behind it.
pub(super) fn command(reader: &mut Reader) -> Result<Option<usize>, SyntaxError> {
    let first = reader.peek()?;
    if Reader::is_op(first, &["("]) {
        let end = parenthesis(reader)?;
        return redirections(reader, end).map(Some);
    }
    if first.kind != Kind::Word {
        return Ok(None);
    }
    let end = match reader.plain(first).as_str() {
        "{" => between(reader, "{", "}")?,
        "if" => condition(reader)?,
        "while" | "until" => {
            reader.next()?;
            part(reader, first)?;
            do_group(reader, first)?
        }
        "for" | "select" => loop_over(reader)?,
        "case" => case(reader)?,
        "[[" => test(reader)?,
        "function" => return function(reader).map(Some),
        "coproc" => return coprocess(reader).map(Some),
        _ => return Ok(None),
    };
    redirections(reader, end).map(Some)
}

/// A list inside a construct, whose opening is blamed where the text ends in it.
fn part(reader: &mut Reader, opening: Token) -> Result<(), SyntaxError> {
    let result = inner_list(reader);
    blame(reader, opening, result)
}

/// Turns "unexpected end of file" into the name of what is open.
fn blame<T>(reader: &Reader, opening: Token, result: Result<T, SyntaxError>) -> Result<T, SyntaxError> {
    result.map_err(|error| match error.message.as_str() {
        "syntax error: unexpected end of file" => {
            open(&format!("`{}'", reader.plain(opening)), opening.start)
        }
        _ => error,
    })
}

/// Takes a reserved word.
fn expect(reader: &mut Reader, opening: Token, word: &str) -> Result<usize, SyntaxError> {
    let token = reader.peek()?;
    if token.kind == Kind::Word && reader.plain(token) == word {
        reader.next()?;
        return Ok(token.end);
    }
    let error = Err(unexpected(reader, token));
    blame(reader, opening, error)
}

/// Whether the token ahead is this word.
fn ahead(reader: &mut Reader, word: &str) -> Result<bool, SyntaxError> {
    let token = reader.peek()?;
    Ok(token.kind == Kind::Word && reader.plain(token) == word)
}

/// `{ LIST }` and `do LIST done`.
fn between(reader: &mut Reader, opening: &str, closing: &str) -> Result<usize, SyntaxError> {
    let first = reader.peek()?;
    expect(reader, first, opening)?;
    part(reader, first)?;
    expect(reader, first, closing)
}

fn do_group(reader: &mut Reader, loop_word: Token) -> Result<usize, SyntaxError> {
    expect(reader, loop_word, "do")?;
    part(reader, loop_word)?;
    expect(reader, loop_word, "done")
}

/// `(( EXPRESSION ))` where the brackets pair off that way, else `( LIST )`.
fn parenthesis(reader: &mut Reader) -> Result<usize, SyntaxError> {
    if let Some(end) = arithmetic(reader)? {
        return Ok(end);
    }
    let opening = reader.next()?;
    let outside = reader.depth;
    reader.depth += BRACKET_DEPTH;
    part(reader, opening)?;
    reader.depth = outside;
    let token = reader.peek()?;
    if Reader::is_op(token, &[")"]) {
        reader.next()?;
        return Ok(token.end);
    }
    let error = Err(unexpected(reader, token));
    blame(reader, opening, error)
}

/// `((...))`, if that is what stands ahead.
fn arithmetic(reader: &mut Reader) -> Result<Option<usize>, SyntaxError> {
    let opening = reader.peek()?;
    if !Reader::is_op(opening, &["("]) || reader.byte(opening.end) != b'(' {
        return Ok(None);
    }
    let end = quote::pair(reader.text, opening.end, b'(', reader.depth, false);
    match end {
        Ok(end) if reader.byte(end) == b')' => {
            reader.jump(end + 1);
            Ok(Some(end + 1))
        }
        Ok(_) => Ok(None),
        Err(error) if error.incomplete => Err(open("the ((", opening.start)),
        Err(error) => Err(error),
    }
}

fn condition(reader: &mut Reader) -> Result<usize, SyntaxError> {
    let first = reader.next()?;
    loop {
        part(reader, first)?;
        expect(reader, first, "then")?;
        part(reader, first)?;
        if !ahead(reader, "elif")? {
            break;
        }
        reader.next()?;
    }
    if ahead(reader, "else")? {
        reader.next()?;
        part(reader, first)?;
    }
    expect(reader, first, "fi")
}

/// `for` and `select`, over words, over the arguments or by arithmetic.
fn loop_over(reader: &mut Reader) -> Result<usize, SyntaxError> {
    let first = reader.next()?;
    if arithmetic(reader)?.is_none() {
        word(reader, first)?;
        let before_lines = reader.peek()?.kind;
        newlines(reader)?;
        if ahead(reader, "in")? {
            reader.next()?;
            while reader.peek()?.kind == Kind::Word {
                reader.next()?;
            }
            let end = reader.peek()?;
            if end.kind != Kind::Newline && end.kind != Kind::Op(";") {
                let error = Err(unexpected(reader, end));
                return blame(reader, first, error);
            }
        } else if before_lines == Kind::Newline {
            return do_or_braces(reader, first);
        }
    }
    if Reader::is_op(reader.peek()?, &[";"]) {
        reader.next()?;
    }
    newlines(reader)?;
    do_or_braces(reader, first)
}

fn do_or_braces(reader: &mut Reader, first: Token) -> Result<usize, SyntaxError> {
    if ahead(reader, "{")? { between(reader, "{", "}") } else { do_group(reader, first) }
}

/// Takes any word.
fn word(reader: &mut Reader, opening: Token) -> Result<usize, SyntaxError> {
    let token = reader.peek()?;
    if token.kind == Kind::Word {
        reader.next()?;
        return Ok(token.end);
    }
    let error = Err(unexpected(reader, token));
    blame(reader, opening, error)
}

fn case(reader: &mut Reader) -> Result<usize, SyntaxError> {
    let first = reader.next()?;
    word(reader, first)?;
    newlines(reader)?;
    expect(reader, first, "in")?;
    loop {
        newlines(reader)?;
        if ahead(reader, "esac")? {
            break;
        }
        if Reader::is_op(reader.peek()?, &["("]) {
            reader.next()?;
        }
        word(reader, first)?;
        while Reader::is_op(reader.peek()?, &["|"]) {
            reader.next()?;
            word(reader, first)?;
        }
        let token = reader.peek()?;
        if !Reader::is_op(token, &[")"]) {
            let error = Err(unexpected(reader, token));
            return blame(reader, first, error);
        }
        reader.next()?;
        newlines(reader)?;
        if command::can_start(reader)? {
            part(reader, first)?;
        }
        if !Reader::is_op(reader.peek()?, &[";;", ";&", ";;&"]) {
            break;
        }
        reader.next()?;
    }
    expect(reader, first, "esac")
}

/// `[[ ... ]]`: operators are its own, patterns hold brackets, so only words and quotes are looked at.
fn test(reader: &mut Reader) -> Result<usize, SyntaxError> {
    let first = reader.next()?;
    let text = reader.text;
    let depth = quote::deeper(reader.depth, first.start)?;
    let mut pos = first.end;
    let mut starts_word = false;
    loop {
        if starts_word && text[pos..].starts_with("]]") && ends_word(reader.byte(pos + 2)) {
            reader.jump(pos + 2);
            return Ok(pos + 2);
        }
        let byte = reader.byte(pos);
        pos = match byte {
            0 if pos >= text.len() => return Err(open("`[['", first.start)),
            b'#' if starts_word => text[pos..].find('\n').map_or(text.len(), |length| pos + length),
            _ => quote::piece(text, pos, depth, false)?,
        };
        starts_word = matches!(byte, b' ' | b'\t' | b'\n' | b')');
    }
}

/// Whether a word ends before this byte (0: the end of the text).
fn ends_word(byte: u8) -> bool {
    matches!(byte, 0 | b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

/// `function NAME [()] COMMAND`.
fn function(reader: &mut Reader) -> Result<usize, SyntaxError> {
    let first = reader.next()?;
    word(reader, first)?;
    if Reader::is_op(reader.peek()?, &["("]) && arithmetic_is_not_ahead(reader)? {
        return function_behind_name(reader);
    }
    body(reader)
}

/// Whether `()` stands ahead, and not a body in brackets.
fn arithmetic_is_not_ahead(reader: &mut Reader) -> Result<bool, SyntaxError> {
    let opening = reader.peek()?;
    let mut ahead = Reader::new(reader.text, opening.end, reader.depth);
    Ok(Reader::is_op(ahead.peek()?, &[")"]))
}

/// The rest of `NAME () COMMAND`: the place behind it.
pub(super) fn function_behind_name(reader: &mut Reader) -> Result<usize, SyntaxError> {
    let opening = reader.next()?;
    let token = reader.next()?;
    if token.kind == Kind::End {
        return Err(open("the (", opening.start));
    }
    if !Reader::is_op(token, &[")"]) {
        return Err(unexpected(reader, token));
    }
    body(reader)
}

/// The compound command that is a function's body.
fn body(reader: &mut Reader) -> Result<usize, SyntaxError> {
    newlines(reader)?;
    let token = reader.peek()?;
    no_second(reader)?;
    let outside = reader.depth;
    reader.depth = quote::deeper(outside, token.start)?;
    let end = command(reader)?;
    reader.depth = outside;
    end.ok_or_else(|| unexpected(reader, token))
}

/// `coproc [NAME] COMMAND`.
fn coprocess(reader: &mut Reader) -> Result<usize, SyntaxError> {
    let first = reader.next()?;
    let outside = reader.depth;
    reader.depth = quote::deeper(outside, first.start)?;
    let name = reader.peek()?;
    no_second(reader)?;
    let mut end = command(reader)?;
    if end.is_none() {
        let mut behind = Reader::new(reader.text, name.end, reader.depth);
        if name.kind == Kind::Word && starts_compound(&mut behind)? {
            reader.next()?;
            end = command(reader)?;
        }
    }
    let end = match end {
        Some(end) => end,
        None => command::stage(reader)?.span.end,
    };
    reader.depth = outside;
    Ok(end)
}

/// Refuses what can be neither a function's body nor a coprocess.
fn no_second(reader: &mut Reader) -> Result<(), SyntaxError> {
    let token = reader.peek()?;
    if token.kind == Kind::Word && matches!(reader.plain(token).as_str(), "coproc" | "function") {
        return Err(unexpected(reader, token));
    }
    Ok(())
}

/// Whether the token ahead starts a compound command.
fn starts_compound(reader: &mut Reader) -> Result<bool, SyntaxError> {
    const WORDS: &[&str] = &["{", "if", "while", "until", "for", "select", "case", "[["];
    let token = reader.peek()?;
    Ok(Reader::is_op(token, &["("])
        || (token.kind == Kind::Word && WORDS.contains(&reader.plain(token).as_str())))
}
