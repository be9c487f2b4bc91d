//! Numbers for people: three significant digits and the unit beside them. Machines get the raw ones.

use model::ByteSize;

/// Bytes per second in decimal units, as in "24.1 GB/s".
pub fn throughput(bytes_per_s: f64) -> String {
    scaled(bytes_per_s, 1000.0, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"])
}

/// Bytes per second in binary units, as in "22.4 GiB/s".
pub fn throughput_binary(bytes_per_s: f64) -> String {
    scaled(bytes_per_s, 1024.0, &["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"])
}

/// An amount in decimal units, as in "1.00 GB".
pub fn decimal_size(bytes: u64) -> String {
    if bytes < 1000 {
        format!("{bytes} B")
    } else {
        scaled(bytes as f64, 1000.0, &["B", "kB", "MB", "GB", "TB"])
    }
}

/// A time, as in "1.20 ns", "52.0 µs", "3.40 s".
pub fn time(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// A share, as in "2.1 %" or "34 %".
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// A multiple, as in "17.2", "1.0", "0.35".
pub fn ratio(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 0.005 => "<0.01".to_owned(),
        ratio if ratio < 0.995 => format!("{ratio:.2}"),
        ratio if ratio < 99.95 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}

/// A size with a space before its unit, as in "64 KiB"; exact.
pub fn size(bytes: u64) -> String {
    let text = ByteSize(bytes).to_string();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    format!("{} {}", &text[..digits], &text[digits..])
}

/// Three significant digits of the value in the largest unit that leaves it at 1 or more.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for larger in units {
        // Not at 1000 but where three digits would round up to it.
        if value < step - 0.5 {
            break;
        }
        value /= step;
        unit = larger;
    }
    format!("{} {unit}", three_digits(value))
}

fn three_digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
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
        assert_eq!(throughput_binary(1024.0 * 1024.0), "1.00 MiB/s");
        assert_eq!(time(120.0), "120 ns");
        assert_eq!(time(52_000.0), "52.0 µs");
        assert_eq!(time(9_996_000.0), "10.0 ms");
        assert_eq!(percent(0.0213), "2.1 %");
        assert_eq!(percent(0.0999), "10 %");
        assert_eq!(size(65536), "64 KiB");
        assert_eq!(size(1), "1 B");
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
