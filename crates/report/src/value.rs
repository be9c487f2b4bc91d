//! What a cell of a table is: words, a number with its unit, an estimate, a bar. It becomes a text when the table is rendered, for
//! people by its `Display`, for programs by [`Value::raw`].

use std::fmt::{self, Display, Formatter};

use model::Certainty;

use crate::interval::Estimated;
use crate::layout;
use crate::unit::Unit;

/// The mark of an absent number.
pub const ABSENT: &str = "–";

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number that is missing; in data an empty cell.
    Absent,
    /// Words; none for an empty cell.
    Text(String),
    /// A number.
    Number(Unit, f64),
    /// A median with its interval.
    Estimate(Estimated),
    /// Several values, and the words between them.
    Joined(Vec<Value>),
    /// A bar for the number beside it, which only terminals show: its share of the longest one, and the columns of that.
    Bar(f64, usize),
}

impl Value {
    /// An empty cell.
    pub const EMPTY: Self = Self::Text(String::new());

    /// A number of things.
    pub fn count(number: u64) -> Self {
        Unit::Count.of(number as f64)
    }

    /// A value after the sign of its certainty: `≥1.00 GB`.
    pub(crate) fn with_certainty(self, certainty: Certainty) -> Self {
        Self::Joined(vec![certainty.sign().into(), self])
    }

    /// This value, some words, and another one: "1.00 s ± 20.0 ms".
    pub fn and(self, words: &str, other: Self) -> Self {
        Self::Joined(vec![self, words.into(), other])
    }

    /// This value with words after it.
    pub fn then(self, words: impl Into<String>) -> Self {
        Self::Joined(vec![self, words.into().into()])
    }

    /// Whether it is a number, with words or without.
    pub(crate) fn is_number(&self) -> bool {
        match self {
            Self::Number(..) | Self::Estimate(_) => true,
            Self::Joined(parts) => parts.iter().any(Self::is_number),
            Self::Absent | Self::Text(_) | Self::Bar(..) => false,
        }
    }

    /// Whether nothing is shown in its cell.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    /// The text for programs: of an estimate the median, and no unit.
    pub(crate) fn raw(&self) -> String {
        match self {
            Self::Absent | Self::Bar(..) => String::new(),
            Self::Text(text) => text.clone(),
            Self::Number(unit, value) => unit.raw(*value),
            Self::Estimate(found) => found.unit.raw(found.median()),
            Self::Joined(parts) => {
                parts.iter().find(|part| part.is_number()).map(Self::raw).unwrap_or_else(|| self.to_string())
            }
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str(ABSENT),
            Self::Text(text) => f.write_str(text),
            Self::Number(unit, value) => f.write_str(&unit.text(*value)),
            Self::Estimate(found) => found.fmt(f),
            Self::Joined(parts) => parts.iter().try_for_each(|part| part.fmt(f)),
            Self::Bar(share, columns) => f.write_str(&layout::bar(*share, *columns)),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}
