//! Parsers of arguments, shared by several commands.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::builder::{
    OsStringValueParser, PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser,
};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, Error, FromArgMatches};
use model::{ByteSize, PayloadKind};
use pipeline::contest::SHELL;
use pipeline::link::LinkSpec;

/// Parses words as the arguments of a command.
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

/// An error of the parser, without the help that follows it.
pub(crate) fn first_line(error: &Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Parses a payload; the name of its file may be other than UTF-8.
pub(crate) fn payload() -> impl TypedValueParser<Value = PayloadKind> {
    OsStringValueParser::new().try_map(|typed| PayloadKind::parse(&typed))
}

/// A parser of words that begin with a known name, followed by options; help and completions list the names.
#[derive(Clone)]
pub(crate) struct Listed<T: 'static> {
    /// Parses a word; its error is printed unchanged.
    pub(crate) read: fn(&str) -> Result<T, String>,
    /// The names for help and completions.
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

/// Takes a link as text; `script::link` parses it. Help and completions list the names.
pub(crate) fn link() -> Listed<String> {
    Listed {
        read: |text| Ok(text.to_owned()),
        values: || LinkSpec::names().map(PossibleValue::new).collect(),
    }
}

/// Takes several links, separated by commas, as text; `shell` means the shell's own pipes.
pub(crate) fn links() -> Listed<String> {
    Listed { values: || LinkSpec::names().chain([SHELL]).map(PossibleValue::new).collect(), ..link() }
}

/// Parses the word of an enum's value; help and completions list them.
pub(crate) fn one_of<T: Copy + ToString + Send + Sync>(
    all: &'static [T],
) -> impl TypedValueParser<Value = T> {
    let values = PossibleValuesParser::new(all.iter().map(|one| PossibleValue::new(one.to_string())));
    values.map(|word| *all.iter().find(|one| one.to_string() == word).unwrap_or(&all[0]))
}

/// Suffixes of a number and their factors. (For bytes `k` is 1024: [`ByteSize`].)
const MULTIPLES: [(char, u64); 3] = [('k', 1_000), ('m', 1_000_000), ('g', 1_000_000_000)];

/// A number, and the factor of its suffix.
fn multiple(text: &str) -> (&str, u64) {
    let known = text.chars().next_back().and_then(|last| {
        MULTIPLES.iter().find(|(letter, _)| last.eq_ignore_ascii_case(letter)).map(|(_, factor)| *factor)
    });
    known.map_or((text, 1), |factor| (&text[..text.len() - 1], factor))
}

/// Parses a whole number within bounds, such as 9 or 50k.
pub(crate) fn whole<T>(bounds: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync
where
    T: TryFrom<u64> + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let (digits, factor) = multiple(text);
        let number = digits.parse().ok().and_then(|number: u64| number.checked_mul(factor));
        let number =
            number.and_then(|number| T::try_from(number).ok()).filter(|number| bounds.contains(number));
        number.ok_or_else(|| {
            format!("`{text}` is not a whole number from {} to {}", bounds.start(), bounds.end())
        })
    }
}

/// Parses the name of a host; ssh(1) would take one that begins with `-` for an option.
pub(crate) fn host(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('-') {
        return Err(format!("`{text}` is not a host"));
    }
    Ok(text.to_owned())
}

/// Parses a seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    whole(0..=u64::MAX)(text)
}

/// Parses a number above 0, such as 2.5 or 50k.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let (digits, factor) = multiple(text);
    above_zero(digits)
        .map(|number| number * factor as f64)
        .ok_or_else(|| format!("`{text}` is not a number above 0, such as 1000, 50k or 2.5"))
}

fn above_zero(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| *number > 0.0 && number.is_finite())
}

/// Parses a size of at least one byte.
pub(crate) fn positive_size(text: &str) -> Result<ByteSize, String> {
    match model::parse_size(text) {
        Ok(ByteSize(0)) => Err("0 bytes move nothing: give at least 1, as in 64KiB".to_owned()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// Parses a duration above 0.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    match model::parse_duration(text) {
        Ok(time) if time.is_zero() => {
            Err("a duration of 0 measures nothing: give more, for example 1s".to_owned())
        }
        other => other.map_err(|error| error.to_string()),
    }
}

/// Parses a change in percent, with or without `%`; more than 100 for values that can grow without limit.
pub(crate) fn any_percent(text: &str) -> Result<f64, String> {
    above_zero(text.trim_end_matches('%'))
        .ok_or_else(|| format!("`{text}` is not a percentage above 0, such as 2 or 0.5"))
}

/// Parses how much worse a figure may become, in percent, with or without `%`; 0 for not at all.
pub(crate) fn margin(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse().ok();
    number
        .filter(|number: &f64| *number >= 0.0 && number.is_finite())
        // -0 is 0.
        .map(f64::abs)
        .ok_or_else(|| format!("`{text}` is not a percentage of 0 or more, such as 0, 2 or 0.5"))
}

/// Parses a share in percent, with or without `%`.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    above_zero(text.trim_end_matches('%'))
        .filter(|percent| *percent <= 100.0)
        .ok_or_else(|| format!("`{text}` is not a percentage between 0 and 100, such as 2 or 0.5"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_thousands_and_say_their_bounds() {
        let read = whole(1u32..=100_000);
        assert_eq!(["1", "50k", "100K"].map(&read), [Ok(1), Ok(50_000), Ok(100_000)]);
        assert_eq!(whole(0..=u64::MAX)("18G"), Ok(18_000_000_000));
        assert_eq!(seed("18446744073709551615"), Ok(u64::MAX));
        for wrong in ["", "k", "0", "-1", "1.5", "5x", "101k", "18446744073709551616", "\u{e9}"] {
            let problem = read(wrong).expect_err(wrong);
            assert_eq!(problem, format!("`{wrong}` is not a whole number from 1 to 100000"));
        }
        assert_eq!(["2.5k", "1M", "0.5"].map(|text| rate(text).ok()), [Some(2500.0), Some(1e6), Some(0.5)]);
        for wrong in ["", "k", "0", "inf", "NaN", "-1k", "50kB"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
