//! The seeded percentile bootstrap: an interval for the median of few values. The same values always give the same interval.

use crate::estimate::{self, Analyses};

/// Number of resamples: fifty of them are in each tail of 2.5 %.
const RESAMPLES: usize = 2_000;

/// Of more values than this, order statistics give a good interval at once: 2,000 resamples of 10,000 values take seconds.
const VALUES_MAX: usize = 100;

/// A fixed seed, so that a record's figures are the same each time they are computed.
const SEED: u64 = 0x686f_7365_7069_7065;

/// The 95 % percentile-bootstrap interval of the median (Efron 1979), always containing the median itself; of more than
/// 100 values, that of order statistics.
/// `None` without values, or if one is not finite. Of very few values the interval is too narrow, and of one value it is a point:
/// show it together with the number of values.
pub fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    // Sorted first, so that the order of the values does not change the resamples.
    let sorted = estimate::sorted(values)?;
    let point = estimate::middle(&sorted);
    if sorted.len() > VALUES_MAX {
        return Some(estimate::order_interval(&sorted, Analyses::Once));
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut resample = sorted.clone();
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            resample.fill_with(|| sorted[random.usize(..sorted.len())]);
            resample.sort_unstable_by(f64::total_cmp);
            estimate::middle(&resample)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    Some((medians[tail].min(point), medians[RESAMPLES - 1 - tail].max(point)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn equal_values_have_no_spread() {
        assert_eq!(median_interval(&[2.0; 7]), Some((2.0, 2.0)));
        assert_eq!(median_interval(&[]), None);
    }

    #[test]
    fn many_values_have_an_interval_of_order_statistics() {
        let values: Vec<f64> = (1..=101).map(f64::from).collect();
        // The 41st from either end: (101 - 1.96 √101) / 2 = 40.7.
        assert_eq!(median_interval(&values), Some((41.0, 61.0)));
        let (low, high) = median_interval(&[1.0, 2.0, 3.0, 4.0, 100.0]).unwrap();
        assert_eq!((low, high), (1.0, 100.0), "three of five are the largest in 6 % of the resamples");
    }

    /// The seed is fixed: the figures of a record are the same each time they are computed.
    #[test]
    fn the_same_values_always_have_the_same_interval() {
        // Of a hundred values order statistics would give 1600 and 3721; of 82, the next medians further out are 1056.5 and 2501.
        for (count, expected) in [(100, (1681.0, 3660.5)), (82, (1089.0, 2500.0)), (20, (42.5, 210.5))] {
            let squares: Vec<f64> = (1..=count).map(|root| f64::from(root * root)).collect();
            assert_eq!(median_interval(&squares), Some(expected), "{count} values");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn the_interval_contains_the_median_and_ignores_order(
            values in prop_oneof![vec(1f64..1e9, 1..20), vec(1f64..1e9, 95..300)], seed: u64,
        ) {
            let (low, high) = median_interval(&values).unwrap();
            let median = estimate::median(&values).unwrap();
            prop_assert!(low <= median && median <= high);
            let mut shuffled = values.clone();
            fastrand::Rng::with_seed(seed).shuffle(&mut shuffled);
            prop_assert_eq!(median_interval(&shuffled), Some((low, high)));
        }
    }
}
