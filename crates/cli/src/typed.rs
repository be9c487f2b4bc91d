//! How words of the command line are read that several commands share.

use std::ffi::OsStr;

use clap::builder::{OsStringValueParser, PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use model::PayloadKind;
use pipeline::contest::BASH;
use pipeline::link::LinkSpec;

/// A payload, whose file need not have a name that is text.
pub(crate) fn payload() -> impl TypedValueParser<Value = PayloadKind> {
    OsStringValueParser::new().try_map(|typed| PayloadKind::parse(&typed))
}

/// A link, as text; help and completions list the names, which options may follow.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Link {
    /// One.
    One,
    /// Several with commas, among which may be bash.
    Several,
}

impl TypedValueParser for Link {
    type Value = String;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let bash = matches!(self, Self::Several).then_some(BASH);
        Some(Box::new(LinkSpec::names().chain(bash).map(PossibleValue::new)))
    }
}
