//! The share of a study's amounts that is run, and amounts as the studies write them.

use std::fmt;
use std::str::FromStr;

use model::parse_size;
use serde::{Deserialize, Deserializer};

/// A share (or a multiple) of a study's amounts: bytes, counts, lines, files. The number of trials is multiplied by its square root,
/// and is at least two, so that a spread can be shown, and at most that of the study.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale(f64);

/// The largest multiple.
const SCALE_MAX: f64 = 1000.0;
/// The smallest share.
const SCALE_MIN: f64 = 1e-4;

impl Scale {
    /// The study's own size.
    pub const FULL: Self = Self(1.0);

    /// The share as a number.
    pub fn share(self) -> f64 {
        self.0
    }

    /// An amount; at least 1.
    pub fn amount(self, full: u64) -> u64 {
        ((full as f64 * self.0).round() as u64).max(1)
    }

    /// Bytes in whole blocks; at least one block.
    pub fn bytes(self, full: u64, block_bytes: u64) -> u64 {
        (self.amount(full) / block_bytes).max(1) * block_bytes
    }

    /// Trials: at least two, at most the study's number.
    pub fn trials(self, full: u32) -> u32 {
        let scaled = (f64::from(full) * self.0.sqrt()).ceil() as u32;
        scaled.clamp(full.min(2), full)
    }
}

impl FromStr for Scale {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let share: f64 = text.parse().map_err(|_| format!("`{text}` is not a number, as in 0.1"))?;
        let refused =
            || format!("{share} is not a scale: give a number from {SCALE_MIN} to {SCALE_MAX}, as in 0.1");
        (SCALE_MIN..=SCALE_MAX).contains(&share).then_some(Self(share)).ok_or_else(refused)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A number as a study writes it, such as `500k`; `k` is 1024.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) value: u64,
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let value = parse_size(&text).map_err(serde::de::Error::custom)?.0;
        Ok(Self { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_scaled_and_trials_are_at_least_two() {
        let tenth: Scale = "0.1".parse().expect("a scale");
        assert_eq!((tenth.amount(1000), tenth.amount(1)), (100, 1));
        assert_eq!(tenth.bytes(10_000, 64), 960);
        assert_eq!((tenth.trials(8), tenth.trials(3), tenth.trials(1)), (3, 2, 1));
        assert_eq!((Scale::FULL.trials(8), Scale::FULL.amount(234_570)), (8, 234_570));
        let tenfold: Scale = "10".parse().expect("a scale");
        assert_eq!((tenfold.trials(8), tenfold.amount(5)), (8, 50));
    }

    #[test]
    fn the_error_of_a_wrong_scale_names_the_range() {
        for text in ["0", "-1", "x", "", "1e9", "nan", "inf"] {
            let error = text.parse::<Scale>().expect_err(text);
            assert!(error.contains("as in 0.1"), "{error}");
        }
    }
}
