//! Sizes and counts as the studies write them, kept with their spelling: it decides how often a block is sent.

use model::parse_size;
use serde::{Deserialize, Deserializer};

/// A number with its spelling: `3k` and `3584` are different to one of the studies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Size {
    /// As written.
    pub(crate) text: String,
    /// What it means; `k` is 1024.
    pub(crate) value: u64,
}

impl Size {
    /// Whether it is written with one to three digits and nothing else.
    pub(crate) fn is_short(&self) -> bool {
        self.text.len() <= 3 && self.text.bytes().all(|byte| byte.is_ascii_digit())
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let value = parse_size(&text).map_err(serde::de::Error::custom)?.0;
        Ok(Self { text, value })
    }
}
