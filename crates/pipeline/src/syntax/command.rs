//! Commands: simple ones in parts, compound ones as a whole.

use super::SyntaxError;
use super::compound;
use super::grammar::{Part, PlacedStage, unexpected};
use super::heredoc::HereDoc;
use super::token::{Kind, Reader, Token};

/// The operators that redirect.
const REDIRECTIONS: &[&str] = &["<", ">", ">>", ">|", "<>", "<&", ">&", "&>", "&>>", "<<", "<<-", "<<<"];

/// Reserved words that end or continue something, and so start no command.
const CONTINUATIONS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "in", "}", "]]"];

/// Commands whose arguments may be assignments of arrays.
const ASSIGNING: &[&str] = &["alias", "declare", "eval", "export", "let", "local", "readonly", "typeset"];

/// Whether a pipeline can start with the token ahead.
pub(super) fn can_start(reader: &mut Reader) -> Result<bool, SyntaxError> {
    let token = reader.peek()?;
    Ok(match token.kind {
        Kind::Word => !CONTINUATIONS.contains(&reader.plain(token).as_str()),
        Kind::Op(op) => op == "(" || REDIRECTIONS.contains(&op),
        Kind::Newline | Kind::End => false,
    })
}

/// One stage of a pipeline.
pub(super) fn stage(reader: &mut Reader) -> Result<PlacedStage, SyntaxError> {
    let first = reader.peek()?;
    if !can_start(reader)? || (first.kind == Kind::Word && reader.plain(first) == "!") {
        return Err(unexpected(reader, first));
    }
    if let Some(end) = compound::command(reader)? {
        return Ok(PlacedStage { span: first.start..end, stderr_too: false, simple: None });
    }
    simple(reader, first)
}

/// Words, assignments and redirections; or a function's definition, which starts like them.
fn simple(reader: &mut Reader, first: Token) -> Result<PlacedStage, SyntaxError> {
    let mut parts = Vec::new();
    let mut words = 0;
    let mut arrays_allowed = true;
    let mut end = first.start;
    loop {
        if let Some((redirect, behind)) = redirection(reader)? {
            parts.push(redirect);
            end = behind;
            continue;
        }
        let token = reader.peek()?;
        if token.kind != Kind::Word {
            break;
        }
        reader.next()?;
        let word = reader.plain(token);
        end = token.end;
        let assignment = is_assignment(&word);
        if assignment && arrays_allowed && word.ends_with('=') && reader.byte(end) == b'(' {
            end = array(reader)?;
        } else if !assignment && words == 0 {
            words = 1;
            arrays_allowed = ASSIGNING.contains(&word.as_str());
            if parts.is_empty() && Reader::is_op(reader.peek()?, &["("]) {
                end = compound::function_behind_name(reader)?;
                return Ok(PlacedStage { span: first.start..end, stderr_too: false, simple: None });
            }
        }
        parts.push(Part::Word(token.start..end));
    }
    let token = reader.peek()?;
    if Reader::is_op(token, &["("]) {
        return Err(unexpected(reader, token));
    }
    Ok(PlacedStage { span: first.start..end, stderr_too: false, simple: Some(parts) })
}

/// Whether a word is `NAME=...`, `NAME+=...` or `NAME[...]=...`.
pub(super) fn is_assignment(word: &str) -> bool {
    let name = word.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(word.len());
    if name == 0 || word.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let behind = &word[name..];
    let behind = match behind.strip_prefix('[').and_then(|index| index.split_once(']')) {
        Some((_, behind)) => behind,
        None => behind,
    };
    behind.starts_with('=') || behind.starts_with("+=")
}

/// `(...)` of an array: words, over several lines if need be.
fn array(reader: &mut Reader) -> Result<usize, SyntaxError> {
    let opening = reader.next()?;
    loop {
        let token = reader.next()?;
        match token.kind {
            Kind::Word | Kind::Newline => {}
            Kind::Op(")") => return Ok(token.end),
            Kind::End => return Err(super::quote::open("the (", opening.start)),
            Kind::Op(_) => return Err(unexpected(reader, token)),
        }
    }
}

/// Redirections as far as they go, and the place behind the last; `end` where there are none.
pub(super) fn redirections(reader: &mut Reader, mut end: usize) -> Result<usize, SyntaxError> {
    while let Some((_, behind)) = redirection(reader)? {
        end = behind;
    }
    Ok(end)
}

/// A redirection, if the token ahead starts one, and the place behind it.
fn redirection(reader: &mut Reader) -> Result<Option<(Part, usize)>, SyntaxError> {
    let first = reader.peek()?;
    let mut fd = None;
    if first.kind == Kind::Word {
        let touches = matches!(reader.byte(first.end), b'<' | b'>');
        let word = reader.plain(first);
        if !touches || !names_descriptor(&word) {
            return Ok(None);
        }
        if word.parse::<i32>().is_err() && !word.starts_with('{') {
            let message = format!("no descriptor has the number {word}");
            return Err(SyntaxError { message, offset: first.start, incomplete: false });
        }
        reader.next()?;
        fd = Some(first.start..first.end);
    }
    let operator = reader.peek()?;
    let Kind::Op(op) = operator.kind else { return Ok(None) };
    if !REDIRECTIONS.contains(&op) || (fd.is_some() && op.starts_with('&')) {
        return if fd.is_some() { Err(unexpected(reader, operator)) } else { Ok(None) };
    }
    reader.next()?;
    let target = reader.peek()?;
    if target.kind != Kind::Word {
        let kind = if target.kind == Kind::End { Kind::Newline } else { target.kind };
        return Err(unexpected(reader, Token { kind, ..target }));
    }
    reader.next()?;
    if matches!(op, "<<" | "<<-") {
        let tag = &reader.text[target.start..target.end];
        reader.docs.push(HereDoc::new(operator.start, op == "<<-", tag));
    }
    let part = Part::Redirect { fd, op, target: target.start..target.end, at: operator.start };
    Ok(Some((part, target.end)))
}

/// `2` or `{name}`, as it stands before `<` or `>`.
fn names_descriptor(word: &str) -> bool {
    let digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let name = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let is_name = |name: &str| {
        let index = name.find('[').filter(|_| name.ends_with(']')).unwrap_or(name.len());
        let name = &name[..index];
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
    };
    digits || name.is_some_and(is_name)
}
