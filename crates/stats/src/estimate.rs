//! A point and how far to trust it: median with a 95 % interval, mean and standard deviation.

use std::iter::successors;

/// Fewer values than this and no pair of order statistics covers the median with 95 %:
/// `[min, max]` of five values covers it with 1 - 2/2⁵ = 93.75 %, of six with 96.9 %.
pub const ENOUGH_FOR_95_PERCENT: usize = 6;

/// How often a series was looked at with the choice to end it. A series that ends as soon as its interval happens to be narrow ends at
/// lucky times, and a 95 % interval then covers less than 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// Once, at the end that was decided beforehand.
    Once,
    /// At each of the numbers of values that `looks` gives: the 5 % of misses are shared out among all of them (Bonferroni), so that
    /// the interval covers the median with 95 % wherever the series ended.
    Repeatedly,
}

impl Looks {
    /// The chance that may be left beyond either end of the interval.
    fn tail(self) -> f64 {
        match self {
            Self::Once => 0.025,
            Self::Repeatedly => 0.025 / looks().count() as f64,
        }
    }
}

/// Samples at the first look: no fewer have an interval that may be judged by.
const FIRST_LOOK: usize = 10;
/// There is no look beyond this number of samples; no run has as many trials.
const LAST_LOOK: usize = 100_000;

/// The numbers of samples at which a case may end.
pub(crate) fn looks() -> impl Iterator<Item = usize> {
    successors(Some(FIRST_LOOK), |samples| Some(samples + samples / 2))
        .take_while(|samples| *samples <= LAST_LOOK)
}

/// What a set of values says about the quantity behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The headline.
    pub median: f64,
    /// Lower end of the interval of the median; see [`Estimate::of`].
    pub low: f64,
    /// Upper end of the interval of the median.
    pub high: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (n - 1); 0 for a single value.
    pub stddev: f64,
    /// How many values there were.
    pub count: usize,
}

impl Estimate {
    /// Estimates from any number of values; `None` for no values, or where one is not finite.
    ///
    /// The interval is made of order statistics (Conover, *Practical Nonparametric Statistics*, §3.2):
    /// it assumes nothing about the shape of the distribution, and covers the median with at least
    /// 95 % from [`ENOUGH_FOR_95_PERCENT`] values on. Below that it is `[min, max]`, which covers less.
    pub fn of(values: &[f64]) -> Option<Self> {
        Self::after(values, Looks::Once)
    }

    /// As [`Estimate::of`], of a series that may have been ended because its interval was narrow.
    pub fn after(values: &[f64], looks: Looks) -> Option<Self> {
        let sorted = sorted(values)?;
        let count = sorted.len();
        let (low, high) = order_interval(&sorted, looks);
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let stddev = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        Some(Self { median: middle(&sorted), low, high, mean, stddev, count })
    }

    /// The longer arm of the interval as a share of the median: 0.05 reads as ±5 %.
    /// `None` where one value shows no spread, or the median is zero.
    pub fn relative_half_width(&self) -> Option<f64> {
        (self.count > 1).then(|| relative_half_width(self.median, self.low, self.high)).flatten()
    }
}

/// The longer arm of an interval around a point, as a share of the point; `None` where that is zero.
pub fn relative_half_width(point: f64, low: f64, high: f64) -> Option<f64> {
    let share = (point - low).abs().max((high - point).abs()) / point.abs();
    share.is_finite().then_some(share)
}

/// The median; `None` for no values, or where one is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    sorted(values).map(|sorted| middle(&sorted))
}

/// The values in order, where there are any and all are numbers.
pub(crate) fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// The median of values in order, of which there is at least one.
pub(crate) fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        return sorted[half];
    }
    // Halved before they are added, so that no sum leaves the range of the two.
    (sorted[half - 1] / 2.0 + sorted[half] / 2.0).clamp(sorted[half - 1], sorted[half])
}

/// The 95 % interval of the median of values in order, of which there is at least one: see [`Estimate::of`].
pub(crate) fn order_interval(sorted: &[f64], looks: Looks) -> (f64, f64) {
    let rank = interval_rank(sorted.len(), looks.tail());
    (sorted[rank - 1], sorted[sorted.len() - rank])
}

/// The largest k for which fewer than k of n values lie below the median with a chance of at most `tail` (1 where there is
/// none): their number is binomial with p = ½.
fn interval_rank(count: usize, tail: f64) -> usize {
    let n = count as f64;
    // In logarithms: 0.5ⁿ would soon leave the range of f64.
    let mut ln_probability = -n * std::f64::consts::LN_2;
    let mut below = ln_probability.exp();
    let mut rank = 0;
    while below <= tail {
        rank += 1;
        ln_probability += ((n - rank as f64 + 1.0) / rank as f64).ln();
        below += ln_probability.exp();
    }
    rank.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_are_those_of_the_published_table() {
        // Conover, table A3 and any table of confidence intervals for the median.
        for (count, rank) in [(1, 1), (5, 1), (6, 1), (8, 1), (9, 2), (15, 4), (20, 6), (25, 8), (100, 40)] {
            assert_eq!(interval_rank(count, 0.025), rank, "{count} values");
        }
        // The normal approximation: (n - 1.96 √n) / 2.
        assert!(interval_rank(10_000, 0.025).abs_diff(4902) <= 1);
    }

    #[test]
    fn nine_values() {
        let estimate = Estimate::of(&[9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0]).unwrap();
        assert_eq!((estimate.median, estimate.low, estimate.high), (5.0, 2.0, 8.0));
        assert_eq!(estimate.mean, 5.0);
        assert!((estimate.stddev - 7.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(estimate.relative_half_width(), Some(0.6));
    }

    #[test]
    fn nothing_is_claimed_from_nothing() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
        assert_eq!(Estimate::of(&[3.0]).unwrap().relative_half_width(), None);
        assert_eq!(Estimate::of(&[0.0, 0.0]).unwrap().relative_half_width(), None);
    }

    proptest! {
        #[test]
        fn the_median_lies_in_its_interval(values in prop::collection::vec(-1e12f64..1e12, 1..60)) {
            let estimate = Estimate::of(&values).unwrap();
            let min = values.iter().copied().fold(f64::INFINITY, f64::min);
            let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(min <= estimate.low && estimate.low <= estimate.median);
            prop_assert!(estimate.median <= estimate.high && estimate.high <= max);
            prop_assert!(estimate.stddev >= 0.0);
        }

        #[test]
        fn order_does_not_matter(values in prop::collection::vec(0f64..1e12, 1..40), seed: u64) {
            let mut shuffled = values.clone();
            fastrand::Rng::with_seed(seed).shuffle(&mut shuffled);
            prop_assert_eq!(Estimate::of(&values), Estimate::of(&shuffled));
        }
    }
}
