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

/// What other programs that compare command lines call the options of `compare`, and what to type here.
const NAMES_ELSEWHERE: [(&str, &str); 16] = [
    ("--runs", "--trials"),
    ("-r", "--trials"),
    ("--min-runs", "--trials"),
    ("-m", "--trials"),
    ("--max-runs", "--trials"),
    ("-M", "--trials"),
    ("-w", "--warmup"),
    ("-p", "--prepare"),
    ("-L", "--parameter"),
    ("--parameter-list", "--parameter"),
    ("-S", "--shell"),
    ("--command-name", "--name"),
    ("--export-json", "--json"),
    ("--export-csv", "--csv"),
    ("--export-markdown", "--md"),
    ("-i", "`(…) || true` around a command line that may fail"),
];

/// Adds the tip for an error, if there is one.
pub(crate) fn add(answer: &mut Error, command: &Command, words: &[String]) {
    let verb = words.get(1).and_then(|verb| command.find_subcommand(verb));
    let tip = other_name(answer, words)
        .or_else(|| verb.and_then(|verb| two_dashes(answer, verb, words)))
        .or_else(|| verb.and_then(|verb| equals_sign(answer, verb, words)))
        .or_else(|| verb.and_then(|verb| value_taken(answer, verb, words)))
        .or_else(|| quotes(answer, words))
        .or_else(|| verb.and_then(|verb| one_by_one(answer, verb)));
    if let Some(tip) = tip {
        answer.remove(ContextKind::SuggestedValue);
        answer.remove(ContextKind::SuggestedArg);
        answer.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    } else if unknown(answer).is_some() && takes_no_file(words) {
        // That what was typed may be a value after `--`: a pipeline or a mechanism has no such name.
        answer.remove(ContextKind::Suggested);
    }
}

fn takes_no_file(words: &[String]) -> bool {
    words.get(1).is_some_and(|verb| ["bench", "run", "compare", "top"].contains(&verb.as_str()))
}

/// The argument that is not known, where that is the error.
fn unknown(answer: &Error) -> Option<&str> {
    match answer.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(unknown)) if answer.kind() == ErrorKind::UnknownArgument => Some(unknown),
        _ => None,
    }
}

/// The tip for an option of `compare` that other programs have under another name.
fn other_name(answer: &Error, words: &[String]) -> Option<String> {
    let unknown = unknown(answer).filter(|_| words.get(1).is_some_and(|verb| verb == "compare"))?;
    let (_, here) = NAMES_ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == unknown)?;
    Some(format!("here it is {here}"))
}

/// The tip for the long name of an option that was typed with one dash.
fn two_dashes(answer: &Error, verb: &Command, words: &[String]) -> Option<String> {
    let unknown = unknown(answer)?;
    let typed = words.iter().find(|word| word.len() > 2 && word.starts_with(unknown))?;
    let name = typed.strip_prefix('-')?.split('=').next()?;
    let is_long = verb.get_arguments().any(|arg| arg.get_long() == Some(name));
    is_long.then(|| format!("two dashes: --{name}"))
}

/// The tip for a value that was typed after an option whose value follows an equals sign.
fn equals_sign(answer: &Error, verb: &Command, words: &[String]) -> Option<String> {
    unknown(answer)?;
    let needs_equals = |word: &str| {
        verb.get_arguments().any(|arg| arg.is_require_equals_set() && arg.get_long() == Some(word))
    };
    let pair = words.windows(2).find(|pair| pair[0].strip_prefix("--").is_some_and(needs_equals))?;
    let is_value = !pair[1].starts_with('-') && !pair[1].contains(' ');
    is_value.then(|| format!("the value of {0} follows an equals sign: {0}={1}", pair[0], pair[1]))
}

/// The tip where an option took the pipeline for its value.
fn value_taken(answer: &Error, verb: &Command, words: &[String]) -> Option<String> {
    let takes_a_pipeline = ["run", "compare"].contains(&verb.get_name());
    if answer.kind() != ErrorKind::MissingRequiredArgument || !takes_a_pipeline {
        return None;
    }
    let takes_a_value = |word: &str| {
        verb.get_arguments().find(|arg| arg.get_long() == Some(word) && arg.get_action().takes_values())
    };
    let pair = words.windows(2).find(|pair| pair[1].contains([' ', '|']))?;
    let option = pair[0].strip_prefix("--").and_then(takes_a_value)?;
    let value = option.get_value_names().and_then(|names| names.first())?;
    Some(format!(
        "{} takes a value before the pipeline: {0} <{value}> {}",
        pair[0],
        model::shell_quoted(pair[1].as_bytes())
    ))
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
    if words[first].contains(' ') && words[1] == "run" && words[first + 1..].contains(unknown) {
        return Some("`run` takes one pipeline; `hosepipe compare` takes several".to_owned());
    }
    let several = !words[first].contains(' ') && words[first + 1..].contains(unknown);
    // After an option it may be the option's value.
    let line = if first == 2 { words[2..].join(" ") } else { "a | b".to_owned() };
    let quoted = model::shell_quoted(line.as_bytes());
    several.then(|| format!("a pipeline is one word, in quotes: hosepipe {} {quoted}", words[1]))
}

/// The tip for several values that were typed as one.
fn one_by_one(answer: &Error, verb: &Command) -> Option<String> {
    if !matches!(answer.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
        return None;
    }
    let text = |kind| match answer.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let values = several(text(ContextKind::InvalidValue)?, |_| true)?;
    let name = text(ContextKind::InvalidArg)?.split(' ').next()?;
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
