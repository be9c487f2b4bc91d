//! A spec's options, checked against those that the mechanism has.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use model::{Spec, nearest, parse_size};
use thiserror::Error;

use crate::{OptionKind, OptionSpec};

/// What is wrong with a spec. Each is a mistake on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecProblem {
    /// No such mechanism.
    #[error("unknown mechanism `{name}`{} `hosepipe list` shows them all", suggestion(.nearest))]
    UnknownMechanism {
        /// What was typed.
        name: String,
        /// The known name closest to it.
        nearest: Option<String>,
    },
    /// No such option.
    #[error("`{mechanism}` has no option `{option}`{} It has: {known}", suggestion(.nearest))]
    UnknownOption {
        /// The mechanism.
        mechanism: &'static str,
        /// What was typed.
        option: String,
        /// The known option closest to it.
        nearest: Option<String>,
        /// Every option it has.
        known: String,
    },
    /// A value the option does not take.
    #[error("`{mechanism}:{option}` takes {wanted}, not `{value}`")]
    BadValue {
        /// The mechanism.
        mechanism: &'static str,
        /// The option.
        option: &'static str,
        /// What it takes.
        wanted: String,
        /// What was typed.
        value: String,
    },
}

/// The end of a sentence about an unknown word: a question if a known word is similar, else a full stop.
fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(|| ".".to_owned(), |name| format!(": did you mean `{name}`?"))
}

/// A spec's options, each of them known and well formed.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// As typed; `None` for a flag.
    values: BTreeMap<&'static str, Option<String>>,
}

impl Options {
    /// Checks a spec's options against those that the mechanism of this name has.
    ///
    /// # Errors
    /// The first option that is unknown or has a value it does not take.
    pub(crate) fn check(
        mechanism: &'static str,
        known: &'static [OptionSpec],
        spec: &Spec,
    ) -> Result<Self, SpecProblem> {
        let mut values = BTreeMap::new();
        for (name, text) in &spec.options {
            let option = known.iter().find(|option| option.name == name);
            let option = option.ok_or_else(|| unknown_option(mechanism, known, name))?;
            if !is_valid(option.kind, text.as_deref()) {
                let (wanted, value) = (wanted(option), text.clone().unwrap_or_default());
                return Err(SpecProblem::BadValue { mechanism, option: option.name, wanted, value });
            }
            values.insert(option.name, text.clone());
        }
        Ok(Self { values })
    }

    /// The size given for an option, in bytes.
    pub fn size(&self, name: &str) -> Option<u64> {
        self.word(name).and_then(positive_size)
    }

    /// The word given for an option.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_deref()
    }

    /// The value in `words` that belongs to the word given for an option; the first value if none is given.
    pub(crate) fn one_of<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> T {
        let given = self.word(name);
        words.iter().find(|(word, _)| given == Some(*word)).unwrap_or(&words[0]).1
    }

    /// The word given for an option, parsed as a `T`, such as a number or a [`model::Wait`].
    pub(crate) fn parsed<T: FromStr>(&self, name: &str) -> Option<T> {
        self.word(name)?.parse().ok()
    }

    /// Whether an option was given, such as a flag.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The folder given for an option.
    pub fn folder(&self, name: &str) -> Option<&Path> {
        self.word(name).map(Path::new)
    }
}

fn unknown_option(mechanism: &'static str, known: &'static [OptionSpec], name: &str) -> SpecProblem {
    let known: Vec<&str> = known.iter().map(|option| option.name).collect();
    SpecProblem::UnknownOption {
        mechanism,
        option: name.to_owned(),
        nearest: nearest(name, known.iter().copied()).map(str::to_owned),
        known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
    }
}

fn is_valid(kind: OptionKind, text: Option<&str>) -> bool {
    match (kind, text) {
        (OptionKind::Size, Some(text)) => positive_size(text).is_some(),
        (OptionKind::Choice(words), Some(text)) => words.contains(&text),
        (OptionKind::Folder, Some(text)) => Path::new(text).is_dir(),
        (OptionKind::Flag, text) => text.is_none(),
        (_, None) => false,
    }
}

/// A size in bytes, at least 1.
fn positive_size(text: &str) -> Option<u64> {
    parse_size(text).ok().map(|size| size.0).filter(|bytes| *bytes > 0)
}

fn wanted(option: &OptionSpec) -> String {
    match option.kind {
        OptionKind::Size => format!("a size of at least 1 byte, as in {}=64KiB", option.name),
        OptionKind::Choice(words) => format!("one of {}", words.join(", ")),
        OptionKind::Flag => "no value".to_owned(),
        OptionKind::Folder => format!("a folder that exists, as in {}=/tmp", option.name),
    }
}
