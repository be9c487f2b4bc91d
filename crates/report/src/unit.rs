//! The unit of a number: how it is printed for people, on an axis, and in data.

use crate::numbers;
use crate::value::Value;

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Sizes in bytes, divided by powers of two.
    Bytes,
    /// Bytes per second, decimal.
    BytesPerS,
    /// Seconds.
    Seconds,
    /// Nanoseconds.
    Ns,
    /// Nanoseconds that were counted one by one.
    WholeNs,
    /// A number of things.
    Count,
    /// A ratio, with its sign.
    Ratio,
    /// A ratio under a heading that says so.
    Times,
    /// A ratio with three digits.
    Factor,
    /// A share of one, in percent.
    Share,
    /// A share of one, of which one that is not 0 does not read as 0.
    ShareOrLess,
    /// Bytes that were moved, in decimal units.
    Amount,
    /// Many things, with a decimal prefix.
    Many,
    /// Things in a second.
    PerS,
    /// A number with this many decimals.
    Decimals(usize),
    /// A ratio as a change.
    Change,
    /// A probability.
    Chance,
    /// One value in this many is larger: 100 is written as the percentile 99 %. The rarity of the largest value is infinite.
    Rarity,
}

/// A unit that values are shown in, as kB/s for bytes per second.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ShownUnit {
    /// What values are divided by.
    pub(crate) factor: f64,
    pub(crate) name: String,
}

impl Unit {
    /// Three digits and a unit, as in tables.
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Self::Seconds if value == 0.0 => "0 s".to_owned(),
            Self::Ns if value == 0.0 => "0 ns".to_owned(),
            Self::Bytes => numbers::binary_size(value),
            Self::BytesPerS => numbers::speed(value),
            Self::Seconds => numbers::time(value * 1e9),
            Self::Ns | Self::WholeNs => numbers::time(value),
            Self::Count => numbers::plain(value),
            Self::Ratio => format!("{}×", numbers::ratio(value)),
            Self::Times => numbers::ratio(value),
            Self::Factor => numbers::three_digits(value),
            Self::ShareOrLess if value > 0.0 && value < 0.0005 => "<0.1 %".to_owned(),
            Self::Share | Self::ShareOrLess => numbers::percent(value),
            Self::Amount => numbers::decimal_size(value as u64),
            Self::Many => numbers::amount(value),
            Self::PerS => format!("{}/s", numbers::grouped(value, 0)),
            Self::Decimals(decimals) => numbers::fixed(value, decimals),
            Self::Change => numbers::change(value),
            Self::Chance => numbers::chance(value),
            Self::Rarity => format!("percentile {}", percentile(value)),
        }
    }

    /// All significant digits in the base unit: "1,388,021,234 B/s".
    pub(crate) fn exact(self, value: f64) -> String {
        match self {
            Self::Bytes => format!("{} B", numbers::grouped(value, 0)),
            Self::BytesPerS => format!("{} B/s", numbers::grouped(value, 0)),
            Self::Seconds => format!("{} s", numbers::grouped(value, 6)),
            Self::Ns => format!("{} ns", numbers::grouped(value, if value < 100.0 { 2 } else { 0 })),
            Self::Count => numbers::grouped(value, if value.fract() == 0.0 { 0 } else { 3 }),
            Self::Ratio => format!("{}×", numbers::fixed(value, 4)),
            Self::Rarity => percentile(value),
            _ => self.text(value),
        }
    }

    /// The number for programs, in the base unit: bytes and things are whole.
    pub(crate) fn raw(self, value: f64) -> String {
        match self {
            _ if !value.is_finite() => String::new(),
            Self::Bytes | Self::BytesPerS | Self::WholeNs | Self::Amount => {
                format!("{value:.0}")
            }
            Self::Count | Self::Many if value.fract() == 0.0 => format!("{value:.0}"),
            Self::Seconds | Self::Change => format!("{value:.6}"),
            Self::Chance => value.to_string(),
            Self::Decimals(decimals) => format!("{value:.*}", decimals.max(4)),
            _ => format!("{value:.4}"),
        }
    }

    /// A value in this unit.
    pub fn of(self, value: f64) -> Value {
        Value::Number(self, value)
    }

    /// A value on an axis, without zeros at its end.
    pub(crate) fn tick(self, value: f64) -> String {
        match self {
            Self::Rarity => return percentile(value),
            _ if value == 0.0 => return "0".to_owned(),
            _ => {}
        }
        let (digits, unit) = self.digits_and_unit(value);
        without_zeros(&digits).to_owned() + &unit
    }

    /// The unit in which the largest value is short.
    pub(crate) fn shown_unit(self, largest: f64) -> ShownUnit {
        let own = |name: &str| ShownUnit { factor: 1.0, name: name.to_owned() };
        let (in_first, names) = match self {
            Self::BytesPerS => (1.0, numbers::RATES),
            Self::Ns | Self::WholeNs => (1.0, numbers::TIMES),
            Self::Seconds => (1e9, numbers::TIMES),
            Self::Ratio => return own("×"),
            _ => return own(""),
        };
        let (factor, name) = numbers::unit_of(largest * in_first, 1000.0, names);
        ShownUnit { factor: factor / in_first, name: name.to_owned() }
    }

    /// The text, split into its digits and its unit with the space before it.
    fn digits_and_unit(self, value: f64) -> (String, String) {
        let text = self.text(value);
        let end = text.find([' ', '×']).unwrap_or(text.len());
        (text[..end].to_owned(), text[end..].to_owned())
    }
}

/// "99.9 %" for one in a thousand.
pub(crate) fn percentile(rarity: f64) -> String {
    let rarity = rarity.clamp(1.0, 1e12);
    let decimals = (rarity.log10() - 1.0 - 1e-9).ceil().clamp(0.0, 8.0) as usize;
    without_zeros(&format!("{:.decimals$}", 100.0 - 100.0 / rarity)).to_owned() + " %"
}

/// A number without zeros at the end of its decimals.
fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short_and_exact_figures_are_not() {
        assert_eq!(Unit::BytesPerS.tick(2e9), "2 GB/s");
        assert_eq!(Unit::Ns.tick(52_500.0), "52.5 µs");
        assert_eq!(Unit::Bytes.tick(65536.0), "64 KiB");
        assert_eq!(Unit::Count.tick(20.0), "20");
        assert_eq!(Unit::Ratio.tick(2.0), "2×");
        assert_eq!(Unit::BytesPerS.exact(1_388_021_234.4), "1,388,021,234 B/s");
        assert_eq!(Unit::Seconds.exact(0.1984), "0.198400 s");
        assert_eq!(Unit::Ns.exact(1.25), "1.25 ns");
        let shown_unit = |unit: Unit, largest: f64| {
            let ShownUnit { factor, name } = unit.shown_unit(largest);
            (factor, name)
        };
        assert_eq!(shown_unit(Unit::BytesPerS, 2.43e9), (1e9, "GB/s".to_owned()));
        assert_eq!(shown_unit(Unit::Seconds, 0.0021), (1e-3, "ms".to_owned()));
        assert_eq!(shown_unit(Unit::Count, 12.0), (1.0, String::new()));
        assert_eq!(shown_unit(Unit::Ratio, 12.0), (1.0, "×".to_owned()));
        assert_eq!(shown_unit(Unit::Ns, 0.0), (1.0, "ns".to_owned()));
    }

    #[test]
    fn percentiles_have_the_nines_they_need() {
        for (share, text) in
            [(0.0, "0 %"), (0.5, "50 %"), (0.999, "99.9 %"), (0.99999, "99.999 %"), (1.0, "100 %")]
        {
            assert_eq!(percentile(1.0 / (1.0 - share)), text);
        }
    }
}
