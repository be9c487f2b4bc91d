//! The second opinion: the library's parser reads the same text, and both must find the same pipelines. A text that
//! the two read differently is refused rather than run as what it may not be.

use brush_parser::ast::{self, SeparatorOperator};
use brush_parser::{ParseError, Parser, ParserOptions};

use super::grammar::{Body, Placed};
use super::{Join, SyntaxError, Timed};

/// A pipeline as both readers describe it.
#[derive(Debug, PartialEq, Eq)]
enum Shape {
    /// A list in the background, or `time` and `!` in an order of their own.
    Whole,
    /// Stages: for each whether it is a simple command.
    Stages { join: Join, last: bool, timed: Timed, negated: bool, simple: Vec<bool> },
}

/// Compares what was found with what the library finds.
///
/// # Errors
/// The library refuses the text or sees other pipelines in it.
pub(super) fn agree(text: &str, items: &[Placed]) -> Result<(), SyntaxError> {
    let program = Parser::new(text.as_bytes(), &ParserOptions::default())
        .parse_program()
        .map_err(|error| refused(text, &error))?;
    let mut theirs = shapes(&program);
    let ours: Vec<Shape> = items.iter().map(shape).collect();
    for (their, our) in theirs.iter_mut().zip(&ours) {
        if *our == Shape::Whole {
            *their = Shape::Whole;
        }
    }
    match ours.iter().zip(&theirs).position(|(our, their)| our != their) {
        None if ours.len() == theirs.len() => Ok(()),
        place => Err(unclear(place.map_or(0, |place| items[place].span.start))),
    }
}

fn shape(item: &Placed) -> Shape {
    match &item.body {
        Body::Whole => Shape::Whole,
        Body::Stages(stages) => Shape::Stages {
            join: item.join,
            last: item.last,
            timed: item.timed,
            negated: item.negated,
            simple: stages.iter().map(|stage| stage.simple.is_some()).collect(),
        },
    }
}

fn shapes(program: &ast::Program) -> Vec<Shape> {
    let lists = program.complete_commands.iter().flat_map(|command| &command.0);
    let mut shapes = Vec::new();
    for ast::CompoundListItem(list, separator) in lists {
        if matches!(separator, SeparatorOperator::Async) {
            shapes.push(Shape::Whole);
            continue;
        }
        let behind = list.additional.iter().map(|next| match next {
            ast::AndOr::And(pipeline) => (Join::IfOk, pipeline),
            ast::AndOr::Or(pipeline) => (Join::IfFailed, pipeline),
        });
        let pipelines = std::iter::once((Join::Always, &list.first)).chain(behind);
        let count = 1 + list.additional.len();
        shapes.extend(pipelines.enumerate().map(|(place, (join, pipeline))| Shape::Stages {
            join,
            last: place + 1 == count,
            timed: match pipeline.timed {
                None => Timed::No,
                Some(ast::PipelineTimed::Timed(_)) => Timed::Bash,
                Some(ast::PipelineTimed::TimedWithPosixOutput(_)) => Timed::Posix,
            },
            negated: pipeline.bang,
            simple: pipeline.seq.iter().map(|stage| matches!(stage, ast::Command::Simple(_))).collect(),
        }));
    }
    shapes
}

/// The library's refusal in our terms. What is open was found before, so nothing is incomplete here.
fn refused(text: &str, error: &ParseError) -> SyntaxError {
    let byte = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(byte, _)| byte);
    let offset = match error {
        ParseError::ParsingNear(position) => byte(position.index),
        ParseError::Tokenizing { position: Some(position), .. } => byte(position.index),
        ParseError::ParsingAtEndOfInput | ParseError::Tokenizing { position: None, .. } => text.len(),
    };
    let token = text[offset..].split_whitespace().next();
    let message = match token {
        Some(token) => format!("syntax error near `{token}'"),
        None => "syntax error at the end".into(),
    };
    SyntaxError { message, offset, incomplete: false }
}

fn unclear(offset: usize) -> SyntaxError {
    let message = "this can be read in two ways: put it into a script, or into `bash -c '...'`".into();
    SyntaxError { message, offset, incomplete: false }
}
