//! From text to [`Script`].

use super::grammar::{self, Body, Placed, PlacedStage};
use super::heredoc::{HereDoc, cut};
use super::{Item, Pipeline, Script, Stage, Start, SyntaxError, check, direct};

/// Reads a text as bash would.
///
/// A text without commands gives a script without items.
///
/// # Errors
/// It is no command line, or one so unusual that it is not read reliably; bash may then still take it as a whole.
pub fn parse(text: &str) -> Result<Script, SyntaxError> {
    if let Some(offset) = text.find('\0') {
        return Err(SyntaxError { message: "a NUL byte".into(), offset, incomplete: false });
    }
    let (placed, docs) = grammar::script(text)?;
    check::agree(text, &placed)?;
    Ok(Script { items: placed.iter().map(|placed| item(text, placed, &docs)).collect() })
}

/// The list that a pipeline's text puts into the background: what stands before the `&` at its end. `None` where
/// there is no such `&`.
pub fn in_background(pipeline: &Pipeline) -> Option<Script> {
    let [Stage { start: Start::Shell, .. }] = pipeline.stages.as_slice() else { return None };
    let list = pipeline.text.trim_end().strip_suffix('&')?;
    let escaped = list.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
    parse(list).ok().filter(|script| !escaped && !script.items.is_empty())
}

fn item(text: &str, placed: &Placed, docs: &[HereDoc]) -> Item {
    let source = cut(text, placed.span.clone(), docs);
    let stages = match &placed.body {
        Body::Stages(stages) => stages.iter().map(|placed| stage(text, placed, docs)).collect(),
        Body::Whole => vec![Stage {
            text: source.clone(),
            line: line_of(text, placed.span.start),
            stderr_too: false,
            start: Start::Shell,
        }],
    };
    // What a shell negates inside a whole text is not known here, and a list in the background never fails.
    let negated = placed.negated || (matches!(placed.body, Body::Whole) && source.contains('!'));
    let pipeline = Pipeline { text: source, timed: placed.timed, negated: placed.negated, stages };
    Item { join: placed.join, ends_list: placed.last && !negated, offset: placed.span.start, pipeline }
}

/// The line of a text that a byte offset lies in, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count()
}

fn stage(text: &str, placed: &PlacedStage, docs: &[HereDoc]) -> Stage {
    let command = placed.simple.as_ref().and_then(|parts| direct::command(text, parts, docs));
    Stage {
        text: cut(text, placed.span.clone(), docs),
        line: line_of(text, placed.span.start),
        stderr_too: placed.stderr_too,
        start: command.map_or(Start::Shell, Start::Direct),
    }
}
