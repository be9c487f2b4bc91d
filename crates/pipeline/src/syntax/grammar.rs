//! The shape of a command line: lists of pipelines of commands, each with the bytes it takes up.

use std::ops::Range;

use super::command;
use super::heredoc::HereDoc;
use super::quote::{self, open};
use super::token::{Kind, Reader, Token};
use super::{Join, SyntaxError, Timed};

/// A pipeline where it stands in the text.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    /// How it hangs on what ran before.
    pub(super) join: Join,
    /// Whether it is the last of its `&&`/`||` list.
    pub(super) last: bool,
    /// `time`.
    pub(super) timed: Timed,
    /// Whether an odd number of `!` stand before it.
    pub(super) negated: bool,
    /// Its text, without `time` and `!`.
    pub(super) span: Range<usize>,
    /// What it is made of.
    pub(super) body: Body,
}

/// What a pipeline is made of.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// Its stages.
    Stages(Vec<PlacedStage>),
    /// Something only a shell takes as a whole: a list in the background, `time` of nothing.
    Whole,
}

/// A stage where it stands in the text.
#[derive(Debug, Clone)]
pub(super) struct PlacedStage {
    /// Its text.
    pub(super) span: Range<usize>,
    /// Whether `|&` follows.
    pub(super) stderr_too: bool,
    /// The parts of a simple command; nothing where the stage is a compound command.
    pub(super) simple: Option<Vec<Part>>,
}

/// A part of a simple command.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// A word or an assignment.
    Word(Range<usize>),
    /// A redirection.
    Redirect {
        /// The descriptor or `{name}` in front of the operator.
        fd: Option<Range<usize>>,
        /// The operator.
        op: &'static str,
        /// The word behind it.
        target: Range<usize>,
        /// Where the operator stands: how its here-document is found.
        at: usize,
    },
}

/// A whole text.
///
/// # Errors
/// It is no command line.
pub(super) fn script(text: &str) -> Result<(Vec<Placed>, Vec<HereDoc>), SyntaxError> {
    let mut reader = Reader::new(text, 0, 0);
    let items = list(&mut reader)?;
    let token = reader.peek()?;
    if token.kind != Kind::End {
        return Err(unexpected(&reader, token));
    }
    match reader.open_document() {
        Some(doc) => Err(doc.never_ended()),
        None => Ok((items, reader.docs)),
    }
}

/// The place behind the `)` that ends the substitution which starts at `start` and whose list starts at `inside`.
///
/// # Errors
/// The list is none, or the `)` is missing.
pub(super) fn substitution(
    text: &str,
    start: usize,
    inside: usize,
    depth: usize,
) -> Result<usize, SyntaxError> {
    let mut reader = Reader::new(text, inside, depth);
    list(&mut reader)?;
    let token = reader.peek()?;
    match token.kind {
        Kind::Op(")") if reader.open_document().is_none() => Ok(token.end),
        Kind::Op(")") | Kind::End if reader.open_document().is_some() => {
            Err(reader.open_document().map_or_else(|| open("the $(", start), HereDoc::never_ended))
        }
        Kind::End => Err(open(&format!("the {}", &text[start..inside]), start)),
        _ => Err(unexpected(&reader, token)),
    }
}

/// The error of a token where none of its kind can stand.
pub(super) fn unexpected(reader: &Reader, token: Token) -> SyntaxError {
    let name = match token.kind {
        Kind::End => {
            let message = "syntax error: unexpected end of file".into();
            return SyntaxError { message, offset: token.start, incomplete: true };
        }
        Kind::Newline => "newline".into(),
        Kind::Word | Kind::Op(_) => reader.plain(token),
    };
    let message = format!("syntax error near unexpected token `{name}'");
    SyntaxError { message, offset: token.start, incomplete: false }
}

/// Steps over the ends of lines.
pub(super) fn newlines(reader: &mut Reader) -> Result<(), SyntaxError> {
    while reader.peek()?.kind == Kind::Newline {
        reader.next()?;
    }
    Ok(())
}

/// Pipelines up to a token that can start none.
pub(super) fn list(reader: &mut Reader) -> Result<Vec<Placed>, SyntaxError> {
    let mut items = Vec::new();
    loop {
        newlines(reader)?;
        if !command::can_start(reader)? {
            return Ok(items);
        }
        let start = reader.peek()?.start;
        let mut and_or = and_or(reader)?;
        let token = reader.peek()?;
        match token.kind {
            Kind::Op("&") => {
                reader.next()?;
                items.push(Placed { last: true, ..whole(Join::Always, start..token.end) });
            }
            Kind::Op(";") | Kind::Newline => {
                reader.next()?;
                items.append(&mut and_or);
            }
            _ => {
                items.append(&mut and_or);
                return Ok(items);
            }
        }
    }
}

/// Pipelines joined by `&&` and `||`.
fn and_or(reader: &mut Reader) -> Result<Vec<Placed>, SyntaxError> {
    let mut items = Vec::new();
    let mut join = Join::Always;
    loop {
        items.push(pipeline(reader, join)?);
        join = match reader.peek()?.kind {
            Kind::Op("&&") => Join::IfOk,
            Kind::Op("||") => Join::IfFailed,
            _ => break,
        };
        reader.next()?;
        newlines(reader)?;
    }
    if let Some(last) = items.last_mut() {
        last.last = true;
    }
    Ok(items)
}

/// A piece of text for a shell alone.
fn whole(join: Join, span: Range<usize>) -> Placed {
    Placed { join, last: false, timed: Timed::No, negated: false, span, body: Body::Whole }
}

/// `[time [-p]] [!]... stage | stage`.
fn pipeline(reader: &mut Reader, join: Join) -> Result<Placed, SyntaxError> {
    let first = reader.peek()?;
    let mut timed = Timed::No;
    let mut bangs = 0;
    let mut odd_order = false;
    let mut end = first.start;
    loop {
        let token = reader.peek()?;
        match (token.kind, reader.plain(token).as_str()) {
            (Kind::Word, "!") => bangs += 1,
            (Kind::Word, "time") => {
                odd_order |= timed != Timed::No || bangs > 0;
                timed = Timed::Bash;
            }
            (Kind::Word, "-p") if timed == Timed::Bash && bangs == 0 => timed = Timed::Posix,
            (Kind::Word, "--") if timed != Timed::No && bangs == 0 => odd_order = true,
            _ => break,
        }
        end = token.end;
        reader.next()?;
    }
    let prefixed = timed != Timed::No || bangs > 0;
    let token = reader.peek()?;
    if prefixed && matches!(token.kind, Kind::Newline | Kind::End | Kind::Op(";")) {
        return Ok(whole(join, first.start..end));
    }
    let start = token.start;
    let stages = stages(reader)?;
    let end = stages.last().map_or(start, |stage| stage.span.end);
    if odd_order {
        return Ok(whole(join, first.start..end));
    }
    let body = Body::Stages(stages);
    Ok(Placed { join, last: false, timed, negated: bangs % 2 == 1, span: start..end, body })
}

fn stages(reader: &mut Reader) -> Result<Vec<PlacedStage>, SyntaxError> {
    let mut stages = Vec::new();
    loop {
        let mut stage = command::stage(reader)?;
        let token = reader.peek()?;
        let Kind::Op(op @ ("|" | "|&")) = token.kind else {
            stages.push(stage);
            return Ok(stages);
        };
        stage.stderr_too = op == "|&";
        stages.push(stage);
        reader.next()?;
        newlines(reader)?;
    }
}

/// A list that must hold something, one construct deeper.
pub(super) fn inner_list(reader: &mut Reader) -> Result<(), SyntaxError> {
    let outside = reader.depth;
    reader.depth = quote::deeper(outside, reader.pos)?;
    let items = list(reader)?;
    reader.depth = outside;
    if items.is_empty() {
        let token = reader.peek()?;
        return Err(unexpected(reader, token));
    }
    Ok(())
}
