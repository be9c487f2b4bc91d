//! Scales of axes: positions of values, ticks and their texts. The page's script has no scales of its own: it gets lists of ticks, each
//! finer than the previous one, and chooses among them.

use crate::unit::Unit;

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances for equal differences; from zero if all values are positive.
    Linear,
    /// Equal distances for equal ratios.
    Log,
}

/// A logarithmic axis over fewer decades than this has ticks at 2 and 5 as well.
const DECADES_MIN: f64 = 2.5;
/// Largest value; the smallest one of a logarithmic axis is its inverse. Larger values are errors of arithmetic.
const LARGEST: f64 = 1e24;
/// Rarities with a tick. Of the percentile p it is 1/(1 − p): 0 %, 50 %, 90 %, 99 %…
const RARITIES: [f64; 9] = [1.0, 2.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];
/// Least number of ticks in the finest list, so that a sixteenth of an axis, the page's largest zoom, still has some.
const FINE: usize = 100;

/// The values that an axis shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub(super) scale: Scale,
    pub(super) unit: Unit,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Range {
    /// The range of all values that the scale can show; without any, 1 to 10.
    pub(super) fn new(scale: Scale, unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        let shown = values.into_iter().filter(|value| can_show(scale, *value));
        let (low, high) = shown
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let range = |low, high| Self { scale, unit, low, high };
        match scale {
            _ if low > high => range(1.0, 10.0),
            Scale::Log if low == high => range(low / 2.0, high * 2.0),
            Scale::Log => range(low, high),
            Scale::Linear if low == high && low == 0.0 => range(0.0, 1.0),
            Scale::Linear if low >= 0.0 => range(0.0, high),
            Scale::Linear => range(low, high.max(0.0)),
        }
    }

    /// The range with a margin, so that no mark is on the frame. The end of a linear range at zero stays there.
    pub(super) fn padded(self, share: f64) -> Self {
        match self.scale {
            Scale::Log => {
                let factor = (self.high / self.low).powf(share);
                Self { low: self.low / factor, high: self.high * factor, ..self }
            }
            Scale::Linear => {
                let margin = (self.high - self.low) * share;
                let low = if self.low == 0.0 { 0.0 } else { self.low - margin };
                let high = if self.high == 0.0 { 0.0 } else { self.high + margin };
                Self { low, high, ..self }
            }
        }
    }

    /// The position of a value between the ends, from 0 to 1; `None` if the scale cannot show it.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        let place = match self.scale {
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Linear => (value - self.low) / (self.high - self.low),
        };
        (can_show(self.scale, value) && place.is_finite()).then_some(place)
    }

    /// About this many round values, for ticks.
    pub(super) fn ticks(&self, about: usize) -> Vec<f64> {
        let about = about.max(2) as f64;
        let step = (self.high - self.low) / about;
        match (self.scale, self.unit) {
            (_, Unit::Rarity) => RARITIES.into_iter().filter(|rarity| *rarity <= self.high).collect(),
            (Scale::Log, Unit::Bytes) => self.powers(2.0, about),
            (Scale::Log, _) if (self.high / self.low).log10() < DECADES_MIN => {
                let within = self.multiplied_powers(10.0, &[1.0, 2.0, 5.0]);
                if within.len() >= 2 { within } else { self.multiples(round_step(step)) }
            }
            (Scale::Log, _) => self.powers(10.0, about),
            (Scale::Linear, Unit::Bytes) => self.multiples(2f64.powf(step.log2().ceil())),
            (Scale::Linear, _) => self.multiples(round_step(step)),
        }
    }

    /// Lists of ticks for parts of the axis, each finer than the previous one; none after the first that has enough.
    pub(super) fn ever_finer_ticks(&self) -> Vec<Vec<f64>> {
        let mut lists = match (self.scale, self.unit) {
            (_, Unit::Rarity) => vec![self.ticks(0)],
            (Scale::Linear, _) => [6, 15, 40, FINE].map(|about| self.ticks(about)).to_vec(),
            (Scale::Log, Unit::Bytes) => {
                let powers = [6, FINE].map(|about| self.ticks(about));
                let between = [0.5, 0.25, 0.0625].map(|step| self.steps_between_powers(2.0, step));
                [&powers[..], &between].concat()
            }
            (Scale::Log, _) => {
                let powers = [vec![1.0], vec![1.0, 2.0, 5.0]];
                let powers = powers.map(|factors| self.multiplied_powers(10.0, &factors));
                let between = [1.0, 0.5, 0.1].map(|step| self.steps_between_powers(10.0, step));
                [&[self.ticks(6)], &powers[..], &between].concat()
            }
        };
        let enough = lists.iter().position(|list| list.len() >= FINE).map_or(lists.len(), |at| at + 1);
        lists.truncate(enough);
        lists
    }

    /// Equal steps from each power of a base to the next. Of base 10 and step 0.5: 1, 1.5, 2 … 9.5, 10, 15, 20 …
    fn steps_between_powers(&self, base: f64, step: f64) -> Vec<f64> {
        let factors = (0..).map(|count| 1.0 + f64::from(count) * step);
        self.multiplied_powers(base, &factors.take_while(|factor| *factor < base).collect::<Vec<f64>>())
    }

    /// About this many whole powers of a base, in equal steps.
    fn powers(&self, base: f64, about: f64) -> Vec<f64> {
        let log = |value: f64| value.ln() / base.ln();
        // With a margin: the computed logarithm of a power may not be whole.
        let (first, last) = ((log(self.low) - 1e-9).ceil() as i32, (log(self.high) + 1e-9).floor() as i32);
        let step = ((f64::from(last - first) / about).ceil() as i32).max(1);
        (first..=last).filter(|power| power.rem_euclid(step) == 0).map(|power| base.powi(power)).collect()
    }

    /// Each power of a base times each of these factors.
    fn multiplied_powers(&self, base: f64, factors: &[f64]) -> Vec<f64> {
        let log = |value: f64| value.ln() / base.ln();
        let powers = log(self.low).floor() as i32..=log(self.high).ceil() as i32;
        let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * base.powi(power)));
        all.filter(|value| (self.low..=self.high).contains(value)).collect()
    }

    fn multiples(&self, step: f64) -> Vec<f64> {
        if !(step.is_finite() && step > 0.0) {
            return Vec::new();
        }
        let (first, last) =
            ((self.low / step - 1e-9).ceil() as i64, (self.high / step + 1e-9).floor() as i64);
        (first..=last).map(|count| count as f64 * step).collect()
    }
}

/// Whether a scale can show a value.
pub(super) fn can_show(scale: Scale, value: f64) -> bool {
    let bounded = value.abs() <= LARGEST;
    bounded && (scale == Scale::Linear || value >= LARGEST.recip())
}

/// The next larger of 1, 2, 5, 10, 20…
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= step * 0.999).unwrap_or(10.0);
    digit * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(scale: Scale, unit: Unit, low: f64, high: f64) -> Range {
        Range { scale, unit, low, high }
    }

    #[test]
    fn ticks_are_round() {
        let sizes = range(Scale::Log, Unit::Bytes, 1.0, 1048576.0).ticks(6);
        assert_eq!(sizes, [1.0, 16.0, 256.0, 4096.0, 65536.0, 1048576.0]);
        assert_eq!(range(Scale::Linear, Unit::BytesPerS, 0.0, 24.1).ticks(5), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(range(Scale::Log, Unit::Ns, 90.0, 600.0).ticks(5), [100.0, 200.0, 500.0]);
        assert_eq!(range(Scale::Log, Unit::Ns, 1e2, 1e6).ticks(5), [1e2, 1e3, 1e4, 1e5, 1e6]);
    }

    #[test]
    fn what_a_logarithm_does_not_have_is_not_shown() {
        let range = Range::new(Scale::Log, Unit::Ns, [0.0, 5.0, f64::NAN, 50.0]);
        assert_eq!((range.low, range.high), (5.0, 50.0));
        assert_eq!(range.share(0.0), None);
    }

    proptest! {
        #[test]
        fn every_range_has_ticks_within_it(
            low in 1e-6f64..1e12,
            factor in 1.0f64..1e9,
            log in prop::bool::ANY,
            bytes in prop::bool::ANY,
        ) {
            let scale = if log { Scale::Log } else { Scale::Linear };
            let unit = if bytes { Unit::Bytes } else { Unit::Ns };
            let range = Range::new(scale, unit, [low, low * factor]).padded(0.04);
            let ticks = range.ticks(6);
            prop_assert!(ticks.len() <= 40, "{range:?} {ticks:?}");
            let finer = range.ever_finer_ticks();
            prop_assert!(finer.iter().all(|list| list.len() <= 600), "{range:?} {finer:?}");
            for tick in ticks.into_iter().chain(finer.into_iter().flatten()) {
                let place = range.share(tick).expect("a tick has a place");
                prop_assert!((-1e-6..=1.000001).contains(&place), "{tick} at {place} of {range:?}");
            }
        }

        /// A sixteenth of an axis, which is as far as the page zooms, still has ticks to be read by.
        #[test]
        fn every_part_of_an_axis_has_ticks(
            low in 1e-3f64..1e9,
            factor in 1.5f64..1e7,
            at in 0.0f64..0.9375,
            log in prop::bool::ANY,
            bytes in prop::bool::ANY,
        ) {
            let scale = if log { Scale::Log } else { Scale::Linear };
            let unit = if bytes { Unit::Bytes } else { Unit::Ns };
            let range = Range::new(scale, unit, [low, low * factor]);
            let finest = range.ever_finer_ticks().pop().expect("a list");
            let shares = finest.iter().filter_map(|tick| range.share(*tick));
            prop_assert!(shares.filter(|share| (at..=at + 0.0625).contains(share)).count() >= 2, "{range:?} {finest:?}");
        }
    }
}
