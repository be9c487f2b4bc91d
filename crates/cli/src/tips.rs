//! What to type instead: tips in errors of the command line.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Command, Error};

/// What separates values where several are typed as one.
const SEPARATORS: [char; 3] = [',', ';', ' '];

/// Lets an option take the word after it if that is a negative number: then the option's own parser says what is right. To clap it is an
/// unknown option.
pub(crate) fn with_negative_values(command: Command, words: &[String]) -> Command {
    let is_negative = |word: &str| {
        word.strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit() || first == '.'))
    };
    let pairs = words.windows(2).filter(|pair| is_negative(&pair[1]));
    let longs: Vec<&str> = pairs.filter_map(|pair| pair[0].strip_prefix("--")).collect();
    if longs.is_empty() {
        return command;
    }
    command.mut_subcommands(|verb| {
        verb.mut_args(|arg| match arg.get_long().is_some_and(|long| longs.contains(&long)) {
            true if arg.get_action().takes_values() => arg.allow_hyphen_values(true),
            _ => arg,
        })
    })
}

/// Adds the tip for an error, if there is one.
pub(crate) fn add(answer: &mut Error, command: &Command, words: &[String]) {
    if let Some(tip) = quotes(answer, words).or_else(|| one_by_one(answer, command, words)) {
        answer.remove(ContextKind::SuggestedValue);
        answer.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// The tip for a pipeline that was typed without quotes, as several words.
fn quotes(answer: &clap::Error, words: &[String]) -> Option<String> {
    let is_unknown = answer.kind() == ErrorKind::UnknownArgument;
    let takes_a_pipeline = words.get(1).is_some_and(|verb| verb == "run" || verb == "compare");
    if !is_unknown || !takes_a_pipeline || answer.get(ContextKind::SuggestedArg).is_some() {
        return None;
    }
    let Some(ContextValue::String(unknown)) = answer.get(ContextKind::InvalidArg) else { return None };
    let first = words.iter().skip(2).position(|word| !word.starts_with('-'))? + 2;
    let several = !words[first].contains(' ') && words[first + 1..].contains(unknown);
    // After an option it may be the option's value.
    let line = if first == 2 { words[2..].join(" ") } else { "a | b".to_owned() };
    let line = model::shell_quoted(line.as_bytes());
    several.then(|| format!("a pipeline is one word, in quotes: hosepipe {} {line}", words[1]))
}

/// The tip for several values that were typed as one.
fn one_by_one(answer: &Error, command: &Command, words: &[String]) -> Option<String> {
    if !matches!(answer.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
        return None;
    }
    let text = |kind| match answer.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let values = several(text(ContextKind::InvalidValue)?, |_| true)?;
    let name = text(ContextKind::InvalidArg)?.split(' ').next()?;
    let verb = command.find_subcommand(words.get(1)?)?;
    let arg = verb
        .get_arguments()
        .find(|arg| arg.get_long().is_some() && name.strip_prefix("--") == arg.get_long());
    Some(match arg {
        Some(arg) if arg.get_value_delimiter().is_some() => {
            format!("several values are separated by commas: {name} {}", values.join(","))
        }
        Some(arg) if matches!(arg.get_action(), ArgAction::Append) => {
            let each: Vec<String> = values.iter().map(|value| format!("{name} {value}")).collect();
            format!("the option takes one value, and may be given several times: {}", each.join(" "))
        }
        _ => format!("{name} takes one value"),
    })
}

/// The parts of a text in which several values were typed as one; `None` if it is one, or if a part is not known.
pub(crate) fn several(text: &str, is_known: impl Fn(&str) -> bool) -> Option<Vec<&str>> {
    let parts: Vec<&str> = text.split(SEPARATORS).filter(|part| !part.is_empty()).collect();
    (parts.len() > 1 && parts.iter().all(|part| is_known(part))).then_some(parts)
}

/// What is wrong with a mechanism, and what to type instead.
pub(crate) fn of_spec(text: &str, problem: String, is_known: impl Fn(&str) -> bool) -> String {
    match several(text, is_known) {
        Some(specs) => {
            format!("`{text}` is several mechanisms: put a space between them, as in {}", specs.join(" "))
        }
        None if model::parse_size(text).is_ok() => {
            format!("{problem}; several values of an option are separated by commas, as in --block 4KiB,8KiB")
        }
        None => problem,
    }
}
