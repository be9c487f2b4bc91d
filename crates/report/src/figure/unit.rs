//! Units of axes: how a value is written on an axis, beside a mark and in a table.

use crate::numbers;

/// What a value is measured in.
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
    /// How many.
    Count,
    /// A multiple.
    Ratio,
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps for equal differences, from zero where all values are positive.
    Linear,
    /// Equal steps for equal ratios.
    Log,
}

impl Scale {
    /// The word that stands for it in the page.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Log => "log",
        }
    }
}

impl Unit {
    /// The word that stands for it in the page.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::BytesPerS => "bytes_per_s",
            Self::Seconds => "seconds",
            Self::Ns => "ns",
            Self::Count => "count",
            Self::Ratio => "ratio",
        }
    }

    /// Three digits and a unit, as tables in the terminal have them.
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Self::Seconds if value == 0.0 => "0 s".to_owned(),
            Self::Ns if value == 0.0 => "0 ns".to_owned(),
            Self::Bytes => numbers::binary_size(value),
            Self::BytesPerS => numbers::throughput(value),
            Self::Seconds => numbers::time(value * 1e9),
            Self::Ns => numbers::time(value),
            Self::Count => numbers::plain(value),
            Self::Ratio => format!("{}×", numbers::ratio(value)),
        }
    }

    /// Every digit that means something, in the base unit: "1,388,021,234 B/s".
    pub(super) fn exact(self, value: f64) -> String {
        match self {
            Self::Bytes => format!("{} B", numbers::grouped(value, 0)),
            Self::BytesPerS => format!("{} B/s", numbers::grouped(value, 0)),
            Self::Seconds => format!("{} s", numbers::grouped(value, 6)),
            Self::Ns => format!("{} ns", numbers::grouped(value, if value < 100.0 { 2 } else { 0 })),
            Self::Count => numbers::grouped(value, if value.fract() == 0.0 { 0 } else { 3 }),
            Self::Ratio => format!("{}×", numbers::fixed(value, 4)),
        }
    }

    /// What to divide values by, and the name of the unit they are in then, so that the largest one is short.
    pub(super) fn step(self, largest: f64) -> (f64, String) {
        let text = self.text(largest);
        let (digits, name) = text.split_once(' ').unwrap_or((text.trim_end_matches('×'), ""));
        let shown: f64 = digits.replace(',', "").parse().unwrap_or(0.0);
        let whole_power = |base: f64| base.powf(((largest / shown).ln() / base.ln()).round());
        let factor = match self {
            _ if !(shown > 0.0 && largest > 0.0) => 1.0,
            Self::Bytes => whole_power(1024.0),
            Self::BytesPerS | Self::Seconds | Self::Ns => whole_power(1000.0),
            Self::Count | Self::Ratio => 1.0,
        };
        (factor, if self == Self::Ratio { "×".to_owned() } else { name.to_owned() })
    }

    /// A value on an axis: no more digits than it needs.
    pub(super) fn tick(self, value: f64) -> String {
        if value == 0.0 {
            return "0".to_owned();
        }
        let text = self.text(value);
        let (digits, unit) = match text.split_once(' ') {
            Some((digits, unit)) => (digits, format!(" {unit}")),
            None => {
                (text.trim_end_matches('×'), if self == Self::Ratio { "×".to_owned() } else { String::new() })
            }
        };
        let short =
            if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
        format!("{short}{unit}")
    }
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
        assert_eq!(Unit::BytesPerS.step(2.43e9), (1e9, "GB/s".to_owned()));
        assert_eq!(Unit::Seconds.step(0.0021), (1e-3, "ms".to_owned()));
        assert_eq!(Unit::Count.step(12.0), (1.0, String::new()));
        assert_eq!(Unit::Ns.step(0.0), (1.0, "ns".to_owned()));
    }
}
