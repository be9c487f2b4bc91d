//! The interval after a median, in the short form of tables: "±12 %".

use std::fmt::{self, Display, Formatter};

use stats::estimate::{ENOUGH_FOR_95_PERCENT, relative_half_width};

use crate::numbers;
use crate::unit::{ShownUnit, Unit};

/// Fewest trials whose spread is shown: the median of two is in their middle, however far from the truth both are.
pub const SPREAD_FROM: usize = 3;
/// An interval of at least this share of the median is shown by its ends.
const WIDE_FROM: f64 = 1.0;

/// A number below this share of a heading's unit is shown in its own unit.
const OWN_UNIT_BELOW: f64 = 0.0995;

/// A median with its interval, as a table shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimated {
    pub(crate) unit: Unit,
    /// The median and the ends of its interval.
    of: [f64; 3],
    trials: usize,
    /// The two medians of a mixture, the smaller one first: they are shown instead.
    modes: Option<[f64; 2]>,
    /// What values are divided by where the heading names the unit.
    factor: Option<f64>,
}

impl Estimated {
    /// The median of some trials and the ends of its interval.
    pub fn new(unit: Unit, of: [f64; 3], trials: usize) -> Self {
        Self { unit, of, trials, modes: None, factor: None }
    }

    /// The medians of a mixture, if it is one.
    pub(crate) fn with_modes(self, modes: Option<[f64; 2]>) -> Self {
        let in_order = |[one, two]: [f64; 2]| [one.min(two), one.max(two)];
        Self { modes: modes.map(in_order), ..self }
    }

    /// Without the unit, which the heading names: values are divided by this factor.
    pub(crate) fn without_unit(self, factor: f64) -> Self {
        Self { factor: Some(factor), ..self }
    }

    pub(crate) fn median(&self) -> f64 {
        self.of[0]
    }

    /// The number and its interval: "10.5 GB/s" and " ±12 %", or "0.60–4.9 GB/s", "830 ns–15 ms". A number that is too small or too large
    /// for the unit of the heading has its own.
    pub(crate) fn parts(&self) -> [String; 2] {
        match self.factor {
            Some(factor) if self.is_readable_in(factor) && self.largest() < 1000.0 * factor => {
                [self.digits(factor), self.spread(|value| numbers::significant(value / factor, 2))]
            }
            _ => [self.in_own_unit(), self.spread(|value| self.unit.text(value))],
        }
    }

    fn in_own_unit(&self) -> String {
        let ShownUnit { factor, name } = self.unit.shown_unit(self.largest());
        match self.modes {
            Some(_) if self.is_readable_in(factor) => format!("{} {name}", self.digits(factor)),
            _ => self.joined(|value| self.unit.text(value)),
        }
    }

    fn values(&self) -> &[f64] {
        self.modes.as_ref().map_or(&self.of[..1], |two| two)
    }

    fn largest(&self) -> f64 {
        self.values().iter().copied().fold(0.0, f64::max)
    }

    fn is_readable_in(&self, factor: f64) -> bool {
        self.values().iter().all(|value| *value >= OWN_UNIT_BELOW * factor)
    }

    /// Three digits of one median, two of each of two.
    fn digits(&self, factor: f64) -> String {
        let digits = if self.modes.is_none() { 3 } else { 2 };
        self.joined(|value| numbers::significant(value / factor, digits))
    }

    fn joined(&self, text: impl Fn(f64) -> String) -> String {
        self.values().iter().map(|value| text(*value)).collect::<Vec<String>>().join("–")
    }

    fn spread(&self, text: impl Fn(f64) -> String) -> String {
        if self.modes.is_some() { String::new() } else { plus_minus(self.of, self.trials, text) }
    }
}

impl Display for Estimated {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts().concat())
    }
}

/// The largest unit of at least a quarter of these numbers.
pub(crate) fn common_unit(numbers: impl Iterator<Item = Estimated>) -> Option<ShownUnit> {
    let mut units: Vec<ShownUnit> = numbers.map(|one| one.unit.shown_unit(one.largest())).collect();
    model::sort_by(&mut units, |one, other| other.factor.total_cmp(&one.factor));
    let has_quarter = |unit: &&ShownUnit| 4 * units.iter().filter(|one| one == unit).count() >= units.len();
    units.iter().find(has_quarter).cloned()
}

/// The longer arm of an interval, as a share of the median: " ±12 %"; if that is 100 % or more, its ends, shown by `text`:
/// " (0.21–77)". Empty for fewer than [`SPREAD_FROM`] trials.
pub fn plus_minus(of: [f64; 3], trials: usize, text: impl Fn(f64) -> String) -> String {
    match (alone(of, trials, text), is_wide(of, trials)) {
        (None, _) => String::new(),
        (Some(ends), true) => format!(" ({ends})"),
        (Some(share), false) => format!(" {share}"),
    }
}

/// The same by itself: "±12 %", or "0.21–77".
pub(crate) fn alone(
    of @ [median, low, high]: [f64; 3],
    trials: usize,
    text: impl Fn(f64) -> String,
) -> Option<String> {
    let share = relative_half_width(median, low, high).filter(|_| trials >= SPREAD_FROM)?;
    Some(match is_wide(of, trials) {
        true => format!("{}–{}", text(low), text(high)),
        false => format!("±{}", numbers::percent(share)),
    })
}

/// Whether an interval is shown by its ends.
fn is_wide([median, low, high]: [f64; 3], trials: usize) -> bool {
    trials >= SPREAD_FROM && relative_half_width(median, low, high).is_some_and(|share| share >= WIDE_FROM)
}

/// What parentheses after figures mean; `None` if no interval is so wide that it is shown by its ends.
pub(crate) fn wide_legend(mut figures: impl Iterator<Item = ([f64; 3], usize)>) -> Option<String> {
    figures
        .any(|(of, trials)| is_wide(of, trials))
        .then(|| "(a–b) is the same interval where it is wider than ±100 %.".to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64) -> Estimated {
        Estimated::new(Unit::Ns, [value, 0.9 * value, 1.12 * value], 9)
    }

    #[test]
    fn a_column_has_the_largest_unit_that_is_not_rare_and_what_is_far_from_it_has_its_own() {
        let unit = common_unit([830.0, 4_100.0, 52_000.0, 9_996.0, 15e6].into_iter().map(shown));
        assert_eq!(unit, Some(ShownUnit { factor: 1e3, name: "µs".to_owned() }));
        let text = |value: f64| shown(value).without_unit(1e3).to_string();
        assert_eq!(text(830.0), "0.830 ±12 %");
        assert_eq!(text(52_000.0), "52.0 ±12 %");
        assert_eq!(text(30.0), "30.0 ns ±12 %");
        assert_eq!(text(15e6), "15.0 ms ±12 %");
        assert_eq!(common_unit(std::iter::empty()), None);
    }

    #[test]
    fn two_medians_are_a_range_in_one_unit_where_it_suits_both() {
        let two = |values: [f64; 2]| shown(1.0).with_modes(Some(values));
        assert_eq!(two([4_850.0, 604.0]).to_string(), "0.60–4.8 µs");
        assert_eq!(two([604.0, 4_850.0]).without_unit(1e3).to_string(), "0.60–4.8");
        assert_eq!(two([830.0, 15e6]).without_unit(1e3).to_string(), "830 ns–15.0 ms");
        assert!(shown(0.0).to_string().starts_with("0 ns"));
        assert!(shown(f64::INFINITY).to_string().starts_with('–'));
    }

    /// Expected: an interval that a reader can use. Happened: `52.0 µs ±9275 %`.
    #[test]
    fn an_interval_wider_than_its_median_is_a_range() {
        let wide = Estimated::new(Unit::Ns, [52_000.0, 4_000.0, 4.875e6], 9);
        assert_eq!(wide.to_string(), "52.0 µs (4.00 µs–4.88 ms)");
        assert_eq!(wide.without_unit(1e3).to_string(), "52.0 (4.0–4875)");
    }
}
