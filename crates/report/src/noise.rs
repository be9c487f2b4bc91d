//! How figures are marked that should not be trusted to their last digit: alike in every table.

use model::NoiseLevel;
use stats::Estimate;
use stats::estimate::ENOUGH_FOR_95_PERCENT;

/// The mark behind a figure.
pub fn mark(level: Option<NoiseLevel>) -> &'static str {
    match level {
        Some(NoiseLevel::Noisy) => " ~",
        Some(NoiseLevel::Wild) => " !",
        Some(NoiseLevel::Quiet) | None => "",
    }
}

/// The mark in words, where nothing explains it.
pub(crate) fn word(level: Option<NoiseLevel>) -> Option<&'static str> {
    match level {
        Some(NoiseLevel::Noisy) => Some("noisy"),
        Some(NoiseLevel::Wild) => Some("wild"),
        Some(NoiseLevel::Quiet) | None => None,
    }
}

/// How noisy the median of these values is; `None` where one value shows no spread.
pub fn level(values: &[f64]) -> Option<NoiseLevel> {
    Estimate::of(values).as_ref().and_then(stats::spread::verdict)
}

/// What the marks mean, where there are any.
pub(crate) fn legend(noisy: bool, wild: bool) -> Option<String> {
    let noisy = noisy.then_some("~ noisy: a difference below 15 % may be chance");
    let wild = wild.then_some("! wild: measure again");
    let marks: Vec<&str> = noisy.into_iter().chain(wild).collect();
    (!marks.is_empty()).then(|| format!("{}.", marks.join("; ")))
}

/// The same, of the levels that a table has.
pub fn legend_of(levels: impl Iterator<Item = NoiseLevel> + Clone) -> Option<String> {
    let has = |level| levels.clone().any(|one| one == level);
    legend(has(NoiseLevel::Noisy), has(NoiseLevel::Wild))
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
