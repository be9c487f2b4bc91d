//! Which simple commands need no shell: those in which everything is literal.

use super::command::is_assignment;
use super::grammar::Part;
use super::heredoc::HereDoc;
use super::literal;
use super::{Command, Opening, Redirection};

/// Command words that bash reads the rest of the command for in another way.
const OWN_GRAMMAR: &[&str] = &["declare", "export", "local", "readonly", "time", "typeset"];

/// Variables that are more to bash than an entry of the environment: read-only, or computed.
const BASH_OWN: &[&str] = &[
    "_",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SRANDOM",
    "UID",
];

/// Files that bash opens in a way of its own when something is redirected to them.
const BASH_FILES: &[&str] =
    &["/dev/fd/", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tcp/", "/dev/udp/"];

/// The command, where it means exactly the same without a shell.
pub(super) fn command(text: &str, parts: &[Part], docs: &[HereDoc]) -> Option<Command> {
    let mut command = Command { assignments: Vec::new(), words: Vec::new(), redirections: Vec::new() };
    for part in parts {
        match part {
            Part::Word(span) => {
                let source = &text[span.clone()];
                if command.words.is_empty() && is_assignment(&source.replace("\\\n", "")) {
                    command.assignments.push(assignment(source)?);
                } else {
                    command.words.push(literal::word(source)?);
                }
            }
            Part::Redirect { fd, op, target, at } => {
                let fd = fd.as_ref().map(|span| &text[span.clone()]);
                let made = match *op {
                    "<<" | "<<-" => document(text, fd, *at, docs)?,
                    op => redirections(fd, op, &text[target.clone()])?,
                };
                for redirection in made {
                    if !source_is_known(&redirection, &command.redirections) {
                        return None;
                    }
                    command.redirections.push(redirection);
                }
            }
        }
    }
    let name = command.words.first()?;
    if name.is_empty() || OWN_GRAMMAR.contains(&name.as_str()) { None } else { Some(command) }
}

/// `NAME=VALUE`.
fn assignment(source: &str) -> Option<(String, String)> {
    let (name, value) = source.split_once('=')?;
    let plain = name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
    if !plain || name.starts_with("BASH") || BASH_OWN.contains(&name) || value.starts_with('~') {
        return None;
    }
    Some((name.to_owned(), literal::word(value)?))
}

/// The descriptor in front of an operator, or the operator's own.
fn descriptor(fd: Option<&str>, own: i32) -> Option<i32> {
    fd.map_or(Some(own), |digits| digits.parse().ok())
}

/// A here-document.
fn document(text: &str, fd: Option<&str>, at: usize, docs: &[HereDoc]) -> Option<Vec<Redirection>> {
    let place = docs.binary_search_by_key(&at, |doc| doc.operator).ok()?;
    Some(vec![Redirection::Text { fd: descriptor(fd, 0)?, text: docs[place].literal(text)? }])
}

/// What one operator and its target do.
fn redirections(fd: Option<&str>, op: &str, target: &str) -> Option<Vec<Redirection>> {
    match op {
        "<" => open(fd, 0, target, Opening::Read),
        "<>" => open(fd, 0, target, Opening::ReadWrite),
        ">" | ">|" => open(fd, 1, target, Opening::Write),
        ">>" => open(fd, 1, target, Opening::Append),
        "<&" => copy(descriptor(fd, 0)?, target),
        ">&" => match copy(descriptor(fd, 1)?, target) {
            None if fd.is_none() && names_a_file(target) => open_both(target, Opening::Write),
            made => made,
        },
        "&>" => open_both(target, Opening::Write),
        "&>>" => open_both(target, Opening::Append),
        "<<<" => {
            let text = literal::word(target)? + "\n";
            Some(vec![Redirection::Text { fd: descriptor(fd, 0)?, text }])
        }
        _ => None,
    }
}

fn open(fd: Option<&str>, own: i32, target: &str, how: Opening) -> Option<Vec<Redirection>> {
    let path = literal::word(target)?;
    if path.is_empty() || BASH_FILES.iter().any(|own| path.starts_with(own)) {
        return None;
    }
    Some(vec![Redirection::Open { fd: descriptor(fd, own)?, path, how }])
}

/// `&>FILE`: standard output to the file, and standard error to the same.
fn open_both(target: &str, how: Opening) -> Option<Vec<Redirection>> {
    let mut made = open(None, 1, target, how)?;
    made.push(Redirection::Duplicate { fd: 2, from: 1 });
    Some(made)
}

/// `N` or `-` behind `<&` or `>&`.
fn copy(fd: i32, target: &str) -> Option<Vec<Redirection>> {
    if target == "-" {
        return Some(vec![Redirection::Close { fd }]);
    }
    let digits = target.bytes().all(|b| b.is_ascii_digit());
    let from = if digits { target.parse().ok()? } else { return None };
    Some(vec![Redirection::Duplicate { fd, from }])
}

/// Whether a target of `>&` can only be a file: plain, and nothing like a number.
fn names_a_file(target: &str) -> bool {
    target.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '.' | '_'))
}

/// Whether the descriptor that is copied is one of the three standard ones or made by this command before: any
/// other would be whatever the one who starts the program has open.
fn source_is_known(redirection: &Redirection, before: &[Redirection]) -> bool {
    let Redirection::Duplicate { from, .. } = redirection else { return true };
    let made = |redirection: &Redirection| match redirection {
        Redirection::Open { fd, .. } | Redirection::Duplicate { fd, .. } | Redirection::Text { fd, .. } => {
            fd == from
        }
        Redirection::Close { .. } => false,
    };
    (0..=2).contains(from) || before.iter().any(made)
}
