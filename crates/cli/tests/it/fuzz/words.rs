//! What is typed on a command line, and the result lines of workers.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use model::{Alignment, PayloadKind, Placement, Spec, parse_duration, parse_size};
use pipeline::LineBuffered;
use pipeline::link::LinkSpec;
use study::Scale;
use worker::ResultLines;

use super::fuzz;
use super::input::corpus;

/// What is accepted is printed so that it reads as the same again.
fn same_again<T: FromStr + Display + PartialEq + Debug>(text: &str) -> Result<(), String> {
    let Ok(value) = text.parse::<T>() else { return Ok(()) };
    match value.to_string().parse::<T>() {
        Ok(again) if again == value => Ok(()),
        _ => Err(format!("{text:?} is {value:?}, printed as {value}, which reads as another")),
    }
}

#[test]
fn words_of_a_command_line() {
    fuzz("words", &corpus("words"), |input| {
        String::from_utf8_lossy(input).lines().try_for_each(|word| {
            same_again::<Spec>(word)?;
            same_again::<Placement>(word)?;
            let _ = (parse_size(word), parse_duration(word), word.parse::<Alignment>());
            let _ = (word.parse::<PayloadKind>(), word.parse::<LineBuffered>(), word.parse::<Scale>());
            let Ok(link) = LinkSpec::parse(word) else { return Ok(()) };
            match LinkSpec::parse(&link.to_string()) {
                Ok(_) => Ok(()),
                Err(error) => Err(format!("{word:?} is a link, and {link} is none: {error}")),
            }
        })
    });
}

#[test]
fn results_of_workers() {
    fuzz("results", &corpus("results"), |input| {
        let text = String::from_utf8_lossy(input);
        match ResultLines::parse(&text) {
            Err(problem) if problem.is_empty() => Err("an error without a word".to_owned()),
            Ok(lines) if lines.send.is_none() && lines.recv.is_none() && !text.is_empty() => {
                Err("text that says nothing".to_owned())
            }
            _ => Ok(()),
        }
    });
}
