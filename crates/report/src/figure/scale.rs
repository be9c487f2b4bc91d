//! From values to places on an axis, and where an axis has its ticks.

use super::unit::{Scale, Unit};

/// A logarithmic axis over fewer decades than this has ticks at 2 and 5 as well.
const DECADES_MIN: f64 = 2.5;
/// No quantity is larger, nor, on a logarithmic axis, smaller than its inverse: what is, is an error of arithmetic.
const LARGEST: f64 = 1e24;

/// The stretch of values that an axis shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub(super) scale: Scale,
    pub(super) unit: Unit,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Range {
    /// A range with room for all values that the scale can show; any range where there is none.
    pub(super) fn of(scale: Scale, unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
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

    /// The range with a margin, so that no mark sits on the frame. A linear range keeps its zero.
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

    /// Where a value stands between the ends, as 0 to 1; `None` where the scale cannot show it.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        let place = match self.scale {
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Linear => (value - self.low) / (self.high - self.low),
        };
        (can_show(self.scale, value) && place.is_finite()).then_some(place)
    }

    /// Values at which a tick stands, about so many.
    pub(super) fn ticks(&self, about: usize) -> Vec<f64> {
        let about = about.max(2) as f64;
        match (self.scale, self.unit) {
            (Scale::Log, Unit::Bytes) => self.powers(2.0, about),
            (Scale::Log, _) if (self.high / self.low).log10() < DECADES_MIN => self.one_two_five(about),
            (Scale::Log, _) => self.powers(10.0, about),
            (Scale::Linear, Unit::Bytes) => {
                self.multiples(2f64.powf(((self.high - self.low) / about).log2().ceil()))
            }
            (Scale::Linear, _) => self.multiples(round_step((self.high - self.low) / about)),
        }
    }

    fn powers(&self, base: f64, about: f64) -> Vec<f64> {
        let log = |value: f64| value.ln() / base.ln();
        // A hair outside, as the logarithm of a power is not quite whole.
        let (first, last) = ((log(self.low) - 1e-9).ceil() as i32, (log(self.high) + 1e-9).floor() as i32);
        let step = ((f64::from(last - first) / about).ceil() as i32).max(1);
        (first..=last).filter(|power| power.rem_euclid(step) == 0).map(|power| base.powi(power)).collect()
    }

    fn one_two_five(&self, about: f64) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let all = decades.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
        let within: Vec<f64> = all.filter(|value| (self.low..=self.high).contains(value)).collect();
        if within.len() >= 2 {
            return within;
        }
        self.multiples(round_step((self.high - self.low) / about))
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

/// Whether an axis has a place for a value.
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
        let range = Range::of(Scale::Log, Unit::Ns, [0.0, 5.0, f64::NAN, 50.0]);
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
            let range = Range::of(scale, unit, [low, low * factor]).padded(0.04);
            let ticks = range.ticks(6);
            prop_assert!(ticks.len() <= 40, "{range:?} {ticks:?}");
            for tick in ticks {
                let place = range.share(tick).expect("a tick has a place");
                prop_assert!((-1e-6..=1.000001).contains(&place), "{tick} at {place} of {range:?}");
            }
        }
    }
}
