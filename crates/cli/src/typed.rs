//! How words of the command line are read that several commands share.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::builder::{
    OsStringValueParser, PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser,
};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, Error, FromArgMatches};
use model::{ByteSize, PayloadKind};
use pipeline::contest::SHELL;
use pipeline::link::LinkSpec;

/// The arguments of a command, as if these words stood behind its name.
///
/// # Errors
/// They are wrong.
pub(crate) fn arguments<A: Args + FromArgMatches>(
    command: &'static str,
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<A, Error> {
    let command = A::augment_args(Command::new(command).no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// A payload, whose file need not have a name that is text.
pub(crate) fn payload() -> impl TypedValueParser<Value = PayloadKind> {
    OsStringValueParser::new().try_map(|typed| PayloadKind::parse(&typed))
}

/// Words that are read by a function, and whose beginnings help and completions list: options may follow a name.
#[derive(Clone)]
pub(crate) struct Listed<T: 'static> {
    /// Reads a word; the error is said as it is.
    pub(crate) read: fn(&str) -> Result<T, String>,
    /// What help and completions list.
    pub(crate) values: fn() -> Vec<PossibleValue>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Listed<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        let text = StringValueParser::new().parse_ref(command, argument, value)?;
        (self.read)(&text).map_err(|problem| {
            Error::raw(ErrorKind::ValueValidation, format!("{problem}\n")).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.values)().into_iter()))
    }
}

/// A link, as text.
pub(crate) fn link() -> Listed<String> {
    Listed {
        read: |text| Ok(text.to_owned()),
        values: || LinkSpec::names().map(PossibleValue::new).collect(),
    }
}

/// Several links with commas, among which may be the shell by itself.
pub(crate) fn links() -> Listed<String> {
    Listed { values: || LinkSpec::names().chain([SHELL]).map(PossibleValue::new).collect(), ..link() }
}

/// One of the values of an enum, by its word; help and completions list them.
pub(crate) fn one_of<T: Copy + ToString + Send + Sync>(
    all: &'static [T],
) -> impl TypedValueParser<Value = T> {
    let values = PossibleValuesParser::new(all.iter().map(|one| PossibleValue::new(one.to_string())));
    values.map(|word| *all.iter().find(|one| one.to_string() == word).unwrap_or(&all[0]))
}

/// At least one byte.
pub(crate) fn positive_size(text: &str) -> Result<ByteSize, String> {
    match model::parse_size(text) {
        Ok(ByteSize(0)) => Err("0 bytes move nothing: give at least 1, as in 64KiB".to_owned()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// Any time but none.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = model::parse_duration(text).map_err(|error| error.to_string())?;
    if duration.is_zero() {
        Err("no time measures nothing: give at least 1s".to_owned())
    } else {
        Ok(duration)
    }
}

/// A change in percent, with or without the sign; more than 100 of what can grow without an end.
pub(crate) fn any_percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>();
    let above_zero = number.ok().filter(|percent| *percent > 0.0 && percent.is_finite());
    above_zero.ok_or_else(|| format!("`{text}` is no percentage above 0, as in 2 or 0.5"))
}

/// A share in percent, with or without the sign.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>();
    number
        .ok()
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .ok_or_else(|| format!("`{text}` is no percentage between 0 and 100, as in 2 or 0.5"))
}
