//! Estimates: median with a 95 % interval, mean and standard deviation.

use std::iter::successors;

/// Fewest values of which a pair of order statistics covers the median with 95 %: `[min, max]` of five values covers it with
/// 1 - 2/2⁵ = 93.75 %, of six with 96.9 %.
pub const ENOUGH_FOR_95_PERCENT: usize = 6;

/// How often a series was tested for its end (interim analyses of a sequential test). The interval of a series that ends as soon as
/// it is narrow covers less than one of a fixed number of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Analyses {
    /// Once, after a fixed number of values.
    Once,
    /// At each of the numbers of values of `analyses`: the error of 5 % is divided among them (Bonferroni), so that the interval covers
    /// the median with 95 % at each of them.
    Repeatedly,
}

impl Analyses {
    /// The error probability at each end of the interval.
    fn tail(self) -> f64 {
        match self {
            Self::Once => 0.025,
            Self::Repeatedly => 0.025 / analyses().count() as f64,
        }
    }
}

/// Samples at the first analysis: the interval of fewer is too wide or does not exist.
const FIRST_ANALYSIS: usize = 10;
/// Most samples at an analysis; no run has as many trials.
const LAST_ANALYSIS: usize = 100_000;

/// The numbers of samples at which a case may end.
pub(crate) fn analyses() -> impl Iterator<Item = usize> {
    successors(Some(FIRST_ANALYSIS), |samples| Some(samples + samples / 2))
        .take_while(|samples| *samples <= LAST_ANALYSIS)
}

/// Statistics of a set of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value that is reported.
    pub median: f64,
    /// Lower end of the interval of the median; see [`Estimate::of`].
    pub low: f64,
    /// Upper end of the interval of the median.
    pub high: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (n - 1); 0 for a single value.
    pub stddev: f64,
    /// Number of values.
    pub count: usize,
}

impl Estimate {
    /// The estimate of any number of values; `None` without values, or if one is not finite.
    ///
    /// The interval is made of order statistics (Conover, *Practical Nonparametric Statistics*, §3.2):
    /// it assumes nothing about the shape of the distribution, and covers the median with at least
    /// 95 % from [`ENOUGH_FOR_95_PERCENT`] values on. Below that it is `[min, max]`, which covers less.
    pub fn of(values: &[f64]) -> Option<Self> {
        Self::after(values, Analyses::Once)
    }

    /// As [`Estimate::of`], for a series that may have ended because its interval was narrow.
    pub fn after(values: &[f64], analyses: Analyses) -> Option<Self> {
        let sorted = sorted(values)?;
        let count = sorted.len();
        let (low, high) = order_interval(&sorted, analyses);
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let stddev = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        Some(Self { median: middle(&sorted), low, high, mean, stddev, count })
    }

    /// The longer side of the interval as a share of the median: 0.05 is ±5 %. `None` for one value, or if the median is zero.
    pub fn relative_half_width(&self) -> Option<f64> {
        (self.count > 1).then(|| relative_half_width(self.median, self.low, self.high)).flatten()
    }
}

/// The longer side of an interval around a point, as a share of the point; `None` if the point is zero.
pub fn relative_half_width(point: f64, low: f64, high: f64) -> Option<f64> {
    let share = (point - low).abs().max((high - point).abs()) / point.abs();
    share.is_finite().then_some(share)
}

/// The median; `None` without values, or if one is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    sorted(values).map(|sorted| middle(&sorted))
}

/// The values in ascending order; `None` without values, or if one is not finite.
pub(crate) fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

/// The median of at least one value, in ascending order.
pub(crate) fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        return sorted[half];
    }
    // Halved before they are added: the sum could overflow.
    (sorted[half - 1] / 2.0 + sorted[half] / 2.0).clamp(sorted[half - 1], sorted[half])
}

/// The 95 % interval of the median of at least one value, in ascending order: see [`Estimate::of`].
pub(crate) fn order_interval(sorted: &[f64], analyses: Analyses) -> (f64, f64) {
    let rank = interval_rank(sorted.len(), analyses.tail());
    (sorted[rank - 1], sorted[sorted.len() - rank])
}

/// The largest k with a probability of at most `tail` that fewer than k of n values are below the median (1 if there is none):
/// their number is binomial with p = ½.
fn interval_rank(count: usize, tail: f64) -> usize {
    let n = count as f64;
    // In logarithms: 0.5ⁿ underflows for large n.
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
        // Conover, table A3.
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
    fn without_finite_values_there_is_no_estimate() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
        assert_eq!(Estimate::of(&[3.0]).unwrap().relative_half_width(), None);
        assert_eq!(Estimate::of(&[0.0, 0.0]).unwrap().relative_half_width(), None);
    }

    #[test]
    fn each_look_is_half_as_many_samples_later() {
        let all: Vec<usize> = analyses().collect();
        assert_eq!(all[..8], [10, 15, 22, 33, 49, 73, 109, 163]);
        assert_eq!((all.len(), all.last()), (23, Some(&71_140)), "at most 100,000");
    }

    /// Expected: P(fewer than k of n below the median) is at most 0.025 / 23 = 0.00109 at either end.
    #[test]
    fn an_interval_at_each_look_is_wider() {
        // 1/2¹⁰; 16/2¹⁵ but not 121/2¹⁵; 1794/2²² but not 9109/2²².
        for (count, rank) in [(9, 1), (10, 1), (15, 2), (22, 4)] {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let estimate = Estimate::after(&values, Analyses::Repeatedly).unwrap();
            let expected = (f64::from(rank), f64::from(count + 1 - rank));
            assert_eq!((estimate.low, estimate.high), expected, "{count} values");
        }
    }

    #[test]
    fn estimates_of_one_and_two_values() {
        let of = |values: &[f64]| Estimate::of(values).unwrap();
        let one = Estimate { median: 3.0, low: 3.0, high: 3.0, mean: 3.0, stddev: 0.0, count: 1 };
        assert_eq!(of(&[3.0]), one);
        let two = Estimate { median: 3.0, low: 1.0, high: 5.0, mean: 3.0, stddev: 8f64.sqrt(), count: 2 };
        assert_eq!(of(&[5.0, 1.0]), two);
        assert_eq!(two.relative_half_width(), Some(2.0 / 3.0));
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
        assert_eq!(median(&[4.0, 1.0, 2.0, 8.0]), Some(3.0));
    }

    #[test]
    fn the_longer_side_of_an_interval_counts() {
        for (point, low, high, expected) in [
            (10.0, 8.0, 11.0, Some(0.2)),
            (10.0, 9.0, 13.0, Some(0.3)),
            (-10.0, -12.0, -9.0, Some(0.2)),
            (10.0, 10.0, 10.0, Some(0.0)),
            (0.0, -1.0, 1.0, None),
            (1.0, 0.0, f64::INFINITY, None),
        ] {
            assert_eq!(relative_half_width(point, low, high), expected, "{point} of {low} to {high}");
        }
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
