//! The interval beside a median, as narrow as a table needs it: "±12 %".

use stats::estimate::{ENOUGH_FOR_95_PERCENT, relative_half_width};

use crate::numbers;

/// The longer arm of an interval around a median, as a share of it, to stand behind the median: " ±12 %". Nothing of a single trial,
/// which has no interval.
pub fn plus_minus([median, low, high]: [f64; 3], trials: usize) -> String {
    let share = relative_half_width(median, low, high).filter(|_| trials > 1);
    share.map(|share| format!(" ±{}", numbers::percent(share))).unwrap_or_default()
}

/// What ± is in figures of so many trials each; `None` where none has an interval.
pub fn legend(trials: impl Iterator<Item = usize>) -> Option<String> {
    let several: Vec<usize> = trials.filter(|trials| *trials > 1).collect();
    let few = several.iter().all(|trials| is_range(*trials));
    let why = if few {
        format!("; fewer than {ENOUGH_FOR_95_PERCENT} give no 95 % interval")
    } else {
        String::new()
    };
    (!several.is_empty()).then(|| format!("± is {}{why}.", interval_words(several.into_iter())))
}

/// What the interval around a median is called; `None` of a single trial, which has none. `trials` is not known of published
/// figures.
pub(crate) fn interval_name(trials: Option<u32>) -> Option<&'static str> {
    match trials.map(|trials| trials as usize) {
        Some(..2) => None,
        Some(trials) if is_range(trials) => Some("range of all trials"),
        Some(_) | None => Some("95 % interval"),
    }
}

/// What the marks across the figures of a chart are, by the numbers of their trials.
pub(crate) fn interval_words(trials: impl Iterator<Item = usize> + Clone) -> String {
    let few = trials.clone().any(is_range);
    match (few, trials.clone().any(|trials| trials >= ENOUGH_FOR_95_PERCENT)) {
        (true, false) => "the range of all trials".to_owned(),
        (true, true) => format!(
            "the 95 % interval of the median, of fewer than {ENOUGH_FOR_95_PERCENT} trials their whole range"
        ),
        (false, _) => "the 95 % interval of the median".to_owned(),
    }
}

/// Whether a median of `trials` has no 95 % interval, so that their range is shown in its place.
pub fn is_range(trials: usize) -> bool {
    (2..ENOUGH_FOR_95_PERCENT).contains(&trials)
}
