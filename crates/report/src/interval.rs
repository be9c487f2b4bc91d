//! The interval after a median, in the short form of tables: "±12 %".

use stats::estimate::{ENOUGH_FOR_95_PERCENT, relative_half_width};

use crate::numbers;

/// Fewest trials whose spread is shown: the median of two is in their middle, however far from the truth both are.
pub const SPREAD_FROM: usize = 3;
/// An interval of at least this share of the median is shown by its ends.
const WIDE_FROM: f64 = 1.0;

/// The longer arm of an interval, as a share of the median: " ±12 %"; if that is 100 % or more, its ends, shown by `text`:
/// " (0.21–77)". Empty for fewer than [`SPREAD_FROM`] trials.
pub fn plus_minus([median, low, high]: [f64; 3], trials: usize, text: impl Fn(f64) -> String) -> String {
    match relative_half_width(median, low, high).filter(|_| trials >= SPREAD_FROM) {
        None => String::new(),
        Some(share) if share >= WIDE_FROM => format!(" ({}–{})", text(low), text(high)),
        Some(share) => format!(" ±{}", numbers::percent(share)),
    }
}

/// What parentheses after figures mean; `None` if no interval is so wide that it is shown by its ends.
pub(crate) fn wide_legend(mut figures: impl Iterator<Item = ([f64; 3], usize)>) -> Option<String> {
    let is_wide = |([median, low, high], trials): ([f64; 3], usize)| {
        trials >= SPREAD_FROM
            && relative_half_width(median, low, high).is_some_and(|share| share >= WIDE_FROM)
    };
    figures.any(is_wide).then(|| "(a–b) is the same interval where it is wider than ±100 %.".to_owned())
}

/// What ± means in figures with these numbers of trials; `None` if none has an interval.
pub fn legend(trials: impl Iterator<Item = usize>) -> Option<String> {
    let several: Vec<usize> = trials.filter(|trials| *trials >= SPREAD_FROM).collect();
    let few = several.iter().all(|trials| is_range(*trials));
    let why = if few {
        format!("; fewer than {ENOUGH_FOR_95_PERCENT} give no 95 % interval")
    } else {
        String::new()
    };
    (!several.is_empty()).then(|| format!("± is {}{why}.", interval_words(several.into_iter())))
}

/// That this many trials have no spread; `None` if they have one.
pub(crate) fn no_spread(trials: usize) -> Option<&'static str> {
    match trials {
        1 => Some("A single trial shows no spread"),
        2 => Some("Two trials show no spread"),
        _ => None,
    }
}

/// The name of the interval around a median; `None` for a single trial, which has none. `trials` is unknown for published figures.
pub(crate) fn interval_name(trials: Option<u32>) -> Option<&'static str> {
    match trials.map(|trials| trials as usize) {
        Some(..2) => None,
        Some(trials) if is_range(trials) => Some("range of all trials"),
        Some(_) | None => Some("95 % interval"),
    }
}

/// What the intervals of a chart are, by the numbers of trials of its figures.
pub(crate) fn interval_words(trials: impl Iterator<Item = usize>) -> String {
    let several: Vec<usize> = trials.filter(|trials| *trials > 1).collect();
    let few = several.iter().any(|trials| is_range(*trials));
    match (few, several.iter().any(|trials| *trials >= ENOUGH_FOR_95_PERCENT)) {
        (true, false) => "the range of all trials".to_owned(),
        (true, true) => format!(
            "the 95 % interval of the median, or the range of all trials if there are fewer than {ENOUGH_FOR_95_PERCENT}"
        ),
        (false, _) => "the 95 % interval of the median".to_owned(),
    }
}

/// Whether the range of all trials is shown because they are too few for a 95 % interval.
pub fn is_range(trials: usize) -> bool {
    (2..ENOUGH_FOR_95_PERCENT).contains(&trials)
}
