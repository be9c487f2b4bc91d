//! Numbers as text for people: three significant digits and the unit. A number that is not finite is shown as
//! a dash, and a huge one with an exponent.

use model::ByteSize;

use crate::value::ABSENT;

/// Units of bytes per second, and of times from nanoseconds on.
pub(crate) const RATES: &[&str] = &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
pub(crate) const TIMES: &[&str] = &["ns", "µs", "ms", "s"];
/// Smallest number that is shown with an exponent.
const HUGE: f64 = 1e15;

/// Smallest factor that is shown as a factor and not in percent.
pub(crate) const SEVERAL_TIMES: f64 = 3.0;

/// Bytes per second in decimal units, as in "24.1 GB/s".
pub fn throughput(bytes_per_s: f64) -> String {
    scaled(bytes_per_s, 1000.0, RATES)
}

/// Bytes per second; zero as "0 B/s", without decimals.
pub fn speed(bytes_per_s: f64) -> String {
    if bytes_per_s > 0.0 { throughput(bytes_per_s) } else { "0 B/s".to_owned() }
}

/// An amount in decimal units, as in "1.00 GB".
pub fn decimal_size(bytes: u64) -> String {
    if bytes < 1000 {
        format!("{bytes} B")
    } else {
        scaled(bytes as f64, 1000.0, &["B", "kB", "MB", "GB", "TB"])
    }
}

/// A number of things, as in "999", "1.20 M".
pub fn amount(value: f64) -> String {
    if value < 999.5 { plain(value.round()) } else { scaled(value, 1000.0, &["", "k", "M", "G", "T"]) }
}

/// A time, as in "1.20 ns", "52.0 µs", "3.40 s".
pub fn time(ns: f64) -> String {
    scaled(ns, 1000.0, TIMES)
}

/// A share, as in "2.1 %" or "34 %".
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    format!("{} %", fixed(percent, if percent < 9.95 { 1 } else { 0 }))
}

/// A ratio, as in "17.2", "1.0", "0.35".
pub fn ratio(ratio: f64) -> String {
    match ratio {
        ratio if (0.0..0.005).contains(&ratio) => "<0.01".to_owned(),
        ratio if ratio < 0.995 => fixed(ratio, 2),
        ratio if ratio < 99.95 => fixed(ratio, 1),
        ratio => fixed(ratio, 0),
    }
}

/// A factor as a change: "+3.1 %", "-12 %", "× 4.2", "÷ 12".
pub(crate) fn change(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    let decimals = usize::from(change.abs() < 9.95);
    let times = |factor: f64| fixed(factor, usize::from(factor < 99.95));
    match ratio {
        ratio if ratio >= SEVERAL_TIMES => format!("× {}", times(ratio)),
        ratio if ratio > 0.0 && 1.0 / ratio >= SEVERAL_TIMES => format!("÷ {}", times(1.0 / ratio)),
        _ if fixed(change.abs(), 1) == "0.0" => "0.0 %".to_owned(),
        _ => format!("{}{} %", if change > 0.0 { "+" } else { "" }, fixed(change, decimals)),
    }
}

/// A probability with one or two digits, or that it is very small.
pub(crate) fn chance(p: f64) -> String {
    if p < 0.0005 { "<0.001".to_owned() } else { fixed(p, if p < 0.0995 { 3 } else { 2 }) }
}

/// With this number of decimals.
pub fn fixed(value: f64, decimals: usize) -> String {
    match value.abs() {
        size if !size.is_finite() => ABSENT.to_owned(),
        size if size >= HUGE => format!("{value:.2e}"),
        _ => format!("{value:.decimals$}"),
    }
}

/// A size with a space before its unit, as in "64 KiB" or "1 MB"; exact.
pub fn size(bytes: u64) -> String {
    ByteSize(bytes).spaced()
}

/// A size in binary units: exact if it is a whole number of bytes, as "64 KiB", else with three digits, as "23.5 GiB".
pub(crate) fn binary_size(bytes: f64) -> String {
    let whole = bytes >= 0.0 && bytes.fract() == 0.0 && bytes < HUGE;
    if whole {
        ByteSize(bytes as u64).rounded()
    } else {
        scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
    }
}

/// A number without a unit: in full if it is whole, else with three digits.
pub(crate) fn plain(value: f64) -> String {
    if value.fract() == 0.0 { grouped(value, 0) } else { three_digits(value) }
}

/// A number with a comma between groups of three digits: "1,388,021,234".
pub fn grouped(value: f64, decimals: usize) -> String {
    // Negative zero is zero.
    let mut text = fixed(value + 0.0, decimals);
    let whole = text.find('.').unwrap_or(text.len());
    let first = if value < 0.0 { 2 } else { 1 };
    for at in (first..whole).rev().filter(|at| (whole - at).is_multiple_of(3)) {
        text.insert(at, ',');
    }
    text
}

/// Three significant digits of the value in the largest unit that leaves it at 1 or more.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let (factor, unit) = unit_of(value, step, units);
    if value.is_finite() { format!("{} {unit}", three_digits(value / factor)) } else { ABSENT.to_owned() }
}

/// That unit: what values are divided by in it, and its name.
pub(crate) fn unit_of<'u>(value: f64, step: f64, units: &[&'u str]) -> (f64, &'u str) {
    let (mut factor, mut unit) = (1.0, units[0]);
    for larger in &units[1..] {
        // 999.5 is shown in the next unit, because three digits would round it up to 1000.
        if value / factor < step - 0.5 {
            break;
        }
        factor *= step;
        unit = larger;
    }
    (factor, unit)
}

/// A number with this many digits, not counting a zero before the point: "0.849" and "10.5" have three.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    // 9.995 is shown with one decimal less, because three digits would round it up to 10.0.
    let rounds_up = 1.0 - 0.5 / 10f64.powi(digits as i32);
    let before_the_point = [1.0, 10.0, 100.0].iter().filter(|power| value >= *power * rounds_up).count();
    fixed(value, digits.saturating_sub(before_the_point))
}

pub(crate) fn three_digits(value: f64) -> String {
    match value {
        value if value < 9.995 => fixed(value, 2),
        value if value < 99.95 => fixed(value, 1),
        value => fixed(value, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn figures_as_people_read_them() {
        assert_eq!(throughput(24.1e9), "24.1 GB/s");
        assert_eq!(throughput(999.6e6), "1.00 GB/s");
        assert_eq!(throughput(0.0), "0.00 B/s");
        assert_eq!(time(120.0), "120 ns");
        assert_eq!(time(52_000.0), "52.0 µs");
        assert_eq!(time(9_996_000.0), "10.0 ms");
        assert_eq!([amount(999.4), amount(999.6), amount(1.2e6)], ["999", "1.00 k", "1.20 M"]);
        assert_eq!(percent(0.0213), "2.1 %");
        assert_eq!(percent(0.0999), "10 %");
        assert_eq!(
            [0.849, 9.996, 99.94, 230.4].map(|value| significant(value, 3)),
            ["0.849", "10.0", "99.9", "230"]
        );
        assert_eq!(
            [0.604, 0.996, 4.85, 23.4].map(|value| significant(value, 2)),
            ["0.60", "1.0", "4.8", "23"]
        );
        assert_eq!(size(65536), "64 KiB");
        assert_eq!(size(1), "1 B");
        assert_eq!(size(1_000_000), "1 MB");
    }

    #[test]
    fn every_digit_in_threes() {
        for (value, decimals, text) in
            [(1_388_021_234.0, 0, "1,388,021,234"), (999.0, 0, "999"), (0.1984, 3, "0.198")]
        {
            assert_eq!(grouped(value, decimals), text);
        }
        assert_eq!(grouped(-1234.5, 1), "-1,234.5");
        assert_eq!(binary_size(65536.0), "64 KiB");
        assert_eq!(binary_size(1500.0), "1.46 KiB");
        assert_eq!(binary_size(24_684_084.0 * 1024.0), "23.5 GiB");
        assert_eq!(plain(20971520.0), "20,971,520");
    }

    #[test]
    fn any_number_is_short_and_none_is_infinite() {
        for value in [f64::MAX, -1e308, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e16] {
            for text in
                [throughput(value), time(value), percent(value), ratio(value), plain(value), fixed(value, 3)]
            {
                assert!(text.chars().count() < 14, "{text}");
                assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
            }
        }
        assert_eq!((time(f64::INFINITY), ratio(1e300)), ("–".to_owned(), "1.00e300".to_owned()));
    }

    #[test]
    fn changes_as_people_say_them() {
        for (ratio, text) in [
            (1.0, "0.0 %"),
            (0.9999, "0.0 %"),
            (1.031, "+3.1 %"),
            (0.88, "-12 %"),
            (4.2, "× 4.2"),
            (170.0, "× 170"),
            (f64::MAX, "× 1.80e308"),
            (1.0 / 12.0, "÷ 12.0"),
            (f64::MIN_POSITIVE, "÷ 4.49e307"),
        ] {
            assert_eq!(change(ratio), text);
        }
        assert_eq!([0.00001, 0.0123, 0.5].map(chance), ["<0.001", "0.012", "0.50"]);
    }

    #[test]
    fn ratios_keep_two_digits() {
        for (value, text) in [(17.23, "17.2"), (1.0, "1.0"), (0.996, "1.0"), (0.354, "0.35"), (170.4, "170")]
        {
            assert_eq!(ratio(value), text);
        }
        assert_eq!(ratio(0.001), "<0.01");
    }

    proptest! {
        #[test]
        fn a_time_is_short_and_close(ns in 1f64..9e11) {
            let text = time(ns);
            prop_assert!(text.chars().count() <= 7, "{text}");
            let (number, unit) = text.split_once(' ').unwrap();
            let unit_ns = match unit { "ns" => 1.0, "µs" => 1e3, "ms" => 1e6, _ => 1e9 };
            let read: f64 = number.parse().unwrap();
            prop_assert!((read * unit_ns / ns - 1.0).abs() < 0.006, "{ns} as {text}");
        }
    }
}
