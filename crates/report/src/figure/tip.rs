//! What is said of a mark when a reader points at it: the name, the figure, its interval, how many samples.

use super::unit::Unit;
use crate::{noise, numbers};

/// The lines of a tip, the name first.
pub(super) fn of(
    name: &str,
    place: Option<String>,
    unit: Unit,
    value: f64,
    interval: (Option<f64>, Option<f64>),
    n: Option<u32>,
    note: &str,
) -> String {
    let mut lines = vec![match place {
        Some(place) => format!("{name} · {place}"),
        None => name.to_owned(),
    }];
    lines.push(unit.text(value));
    lines.push(unit.exact(value));
    let words = interval_text(unit, interval).zip(noise::interval_name(n));
    lines.extend(words.map(|(text, name)| format!("{name} {text}")));
    lines.extend(n.map(|n| format!("n = {}", numbers::grouped(f64::from(n), 0))));
    if !note.is_empty() {
        lines.push(note.to_owned());
    }
    lines.join("\n")
}

/// "1.35 GB/s to 1.42 GB/s".
pub(super) fn interval_text(unit: Unit, interval: (Option<f64>, Option<f64>)) -> Option<String> {
    let (low, high) = (interval.0?, interval.1?);
    Some(format!("{} to {}", unit.text(low), unit.text(high)))
}
