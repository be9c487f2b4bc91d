//! Sizes and durations: parsing what users type, and printing.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A number of bytes, typed as `64KiB`, `64k` (64 × 1024), `64kB` (64 × 1000), `1MiB` or plain bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ByteSize(pub u64);

/// What is wrong with a size or a duration, with examples of what is right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` {wrong}")]
pub struct QuantityError {
    text: String,
    wrong: Cow<'static, str>,
}

impl QuantityError {
    const NOT_A_SIZE: &str =
        "is not a size: write bytes or a unit, as in 4096, 64KiB, 64k (=1024), 64kB (=1000), 1.5MiB";
    const TOO_LARGE: &str = "is larger than this machine can count (16 EiB)";

    fn new(text: &str, wrong: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.to_owned(), wrong: wrong.into() }
    }
}

/// The units in which sizes are printed, each 1024 or 1000 times the one before.
const BINARY_UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const DECIMAL_UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];

/// The bytes of a unit in lower case; `k` alone is 1024, `kb` is 1000, as in dd(1).
fn unit_bytes(unit: &str) -> Option<u64> {
    if matches!(unit, "" | "b") {
        return Some(1);
    }
    let power = 1 + "kmgtp".find(unit.get(..1)?)? as u32;
    match &unit[1..] {
        "" | "i" | "ib" => Some(1024u64.pow(power)),
        "b" => Some(1000u64.pow(power)),
        _ => None,
    }
}

/// Reads a size in bytes. See [`ByteSize`] for the forms.
///
/// # Errors
/// The text is wrong; the message has examples of what is right.
pub fn parse_size(text: &str) -> Result<ByteSize, QuantityError> {
    let wrong = |wrong| QuantityError::new(text, wrong);
    let too_large = || wrong(QuantityError::TOO_LARGE);
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim().to_ascii_lowercase();
    // `1.5MiB`: exact in integers, so that a size never depends on floating-point rounding.
    let (whole_text, fraction_text) = number.split_once('.').unwrap_or((number, "0"));
    let digits_are_fine =
        !whole_text.is_empty() && (1..=15).contains(&fraction_text.len()) && !fraction_text.contains('.');
    let Some(factor) = unit_bytes(&unit).filter(|_| digits_are_fine) else {
        return Err(wrong(QuantityError::NOT_A_SIZE));
    };
    let scale = 10u128.pow(fraction_text.len() as u32);
    let (Ok(whole), Ok(fraction)) = (whole_text.parse::<u128>(), fraction_text.parse::<u128>()) else {
        return Err(too_large());
    };
    let scaled = whole.checked_mul(scale).and_then(|value| value.checked_add(fraction));
    let scaled = scaled.and_then(|value| value.checked_mul(u128::from(factor))).ok_or_else(too_large)?;
    if scaled % scale != 0 {
        return Err(wrong("is not a whole number of bytes"));
    }
    u64::try_from(scaled / scale).map(ByteSize).map_err(|_| too_large())
}

/// Reads a duration such as `500ms`, `30s`, `2m`.
///
/// # Errors
/// The text is wrong; the message has examples of what is right.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let number = text.trim();
    let is_whole = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    humantime::parse_duration(number).map_err(|_| match is_whole {
        true => QuantityError::new(text, format!("has no unit: write {number}s, {number}m or {number}ms")),
        false => QuantityError::new(
            text,
            "is not a duration: write a whole number and a unit, as in 500ms, 30s, 2m",
        ),
    })
}

/// A duration as [`parse_duration`] reads it: "1s500ms".
pub fn shown_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string().replace(' ', "")
}

impl ByteSize {
    /// Exact, with a space before its unit: "64 KiB", "1 MB".
    pub fn spaced(self) -> String {
        let text = self.to_string();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        format!("{} {}", &text[..digits], &text[digits..])
    }

    /// From 1 KiB on in binary units, a whole number if exact, else three digits: "64 KiB", "23.5 GiB"; below as [`Self::spaced`].
    pub fn rounded(self) -> String {
        let exact = self.spaced();
        let digits = exact.bytes().take_while(u8::is_ascii_digit).count();
        if digits <= 4 && (self.0 < 1024 || exact.ends_with("iB")) {
            return exact;
        }
        let (mut value, mut units) = (self.0 as f64, BINARY_UNITS.iter());
        // Not at 1024, but at the value that three digits would round up to 1024.
        while value >= 1023.5 && units.len() > 1 {
            value /= 1024.0;
            units.next();
        }
        let decimals = [9.995, 99.95].iter().filter(|limit| value < **limit).count();
        format!("{value:.decimals$} {}", units.as_slice()[0])
    }
}

impl FromStr for ByteSize {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_size(text)
    }
}

/// The shortest exact form: `64KiB` for a whole number of binary units, `1MB` for a whole number of decimal units, else bytes.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As [`parse_size`] reads them: EiB is not among them.
        let units = [(1024u64, &BINARY_UNITS[..6]), (1000, &DECIMAL_UNITS[..])].into_iter();
        let named_sizes = units
            .flat_map(|(base, names)| (0..).zip(names).map(move |(power, name)| (base.pow(power), name)));
        let exact = named_sizes.filter(|(unit, _)| self.0 >= *unit && self.0.is_multiple_of(*unit));
        // 10 GB are also a whole number of KiB, but that is longer. The first of the shortest is binary.
        let shortest = exact.min_by_key(|(unit, _)| (self.0 / unit).to_string().len());
        match shortest {
            Some((unit, name)) => f.pad(&format!("{}{name}", self.0 / unit)),
            None => f.pad("0B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_of_every_unit() {
        for (text, bytes) in [
            ("64KiB", 65536),
            ("64k", 65536),
            ("64kB", 64000),
            ("1MiB", 1 << 20),
            ("10GiB", 10 << 30),
            ("4096", 4096),
            ("0", 0),
            ("1.5MiB", 3 << 19),
            ("1B", 1),
        ] {
            assert_eq!(parse_size(text), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn sizes_are_printed_in_units_of_which_they_are_whole_numbers() {
        for (bytes, text) in [
            (0, "0B"),
            (1, "1B"),
            (999, "999B"),
            (1000, "1kB"),
            (1023, "1023B"),
            (65_536, "64KiB"),
            (64_000, "64kB"),
            (1_000_000, "1MB"),
            (1_024_000, "1000KiB"),
            (10_000_000_000, "10GB"),
            (3 << 19, "1536KiB"),
            (1_500_000, "1500kB"),
            (1_234_567, "1234567B"),
        ] {
            assert_eq!(ByteSize(bytes).to_string(), text);
        }
    }

    #[test]
    fn sizes_for_people_are_rounded() {
        for (bytes, text) in [
            (512, "512 B"),
            (1500, "1.46 KiB"),
            (8192, "8 KiB"),
            (819_200, "800 KiB"),
            (65_536, "64 KiB"),
            (1 << 20, "1 MiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (3 << 19, "1536 KiB"),
            (24_684_084 * 1024, "23.5 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(ByteSize(bytes).rounded(), text);
        }
        assert_eq!(ByteSize(1_000_000).spaced(), "1 MB");
    }

    #[test]
    fn bad_sizes_are_refused_with_the_text_in_the_message() {
        for text in
            ["", "x", "12Q", "-1", "1.2.3k", "99999999999999999999", "16777216TiB", "1.0001kB", ".5k", "5.k"]
        {
            let error = parse_size(text).expect_err(text);
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert!(parse_duration("soon").is_err());
        let without_unit = parse_duration("5").expect_err("no unit").to_string();
        assert_eq!(without_unit, "`5` has no unit: write 5s, 5m or 5ms");
    }

    proptest! {
        #[test]
        fn a_printed_size_parses_to_the_same_size(bytes: u64) {
            prop_assert_eq!(parse_size(&ByteSize(bytes).to_string()), Ok(ByteSize(bytes)));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse_size(&text);
            let _ = parse_duration(&text);
        }
    }
}
