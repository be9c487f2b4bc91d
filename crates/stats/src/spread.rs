//! The noise level of a measurement and its outliers, which are counted and shown, never dropped.

use model::NoiseLevel;

use crate::Estimate;
use crate::estimate::median;

/// Largest relative half width of the interval of a quiet measurement.
const QUIET: f64 = 0.05;
/// Largest relative half width of a measurement that is not noisy.
const NOISY: f64 = 0.15;

/// The noise level of an estimate; `None` for one value.
pub fn noise_level(estimate: &Estimate) -> Option<NoiseLevel> {
    estimate.relative_half_width().map(|share| match share {
        share if share <= QUIET => NoiseLevel::Quiet,
        share if share <= NOISY => NoiseLevel::Noisy,
        _ => NoiseLevel::Wild,
    })
}

/// Largest modified z-score of a value that is not an outlier (Iglewicz and Hoaglin, *How to Detect and Handle Outliers*, 1993).
const THRESHOLD: f64 = 3.5;
/// Makes the median absolute deviation agree with the standard deviation of a normal distribution.
const MAD_TO_SIGMA: f64 = 1.4826;
/// The same for the mean absolute deviation, which is used if more than half of the values are equal.
const MEAN_AD_TO_SIGMA: f64 = 1.2533;

/// The standard deviation of a normal distribution with these absolute deviations from its median; `None` without any, or if one is
/// not finite.
pub(crate) fn mad_sigma(deviations: &[f64]) -> Option<f64> {
    Some(median(deviations)? * MAD_TO_SIGMA)
}

/// Number of outliers by their modified z-score; 0 for fewer than three values.
pub fn outliers(values: &[f64]) -> u32 {
    u32::try_from(outlier_indices(values).len()).unwrap_or(u32::MAX)
}

/// The indices of the outliers.
pub fn outlier_indices(values: &[f64]) -> Vec<usize> {
    residual_outliers(values, 0)
}

/// The same for the residuals of a fit with `parameters` parameters. A robust fit passes exactly through that many
/// values: that number of smallest deviations is left out of the spread.
pub(crate) fn residual_outliers(residuals: &[f64], parameters: usize) -> Vec<usize> {
    let Some((center, limit)) = limit(residuals, parameters) else { return Vec::new() };
    (0..residuals.len()).filter(|at| limit > 0.0 && (residuals[*at] - center).abs() > limit).collect()
}

/// The median of the residuals, and the distance from it beyond which a value is an outlier; `None` for fewer than three.
pub(crate) fn limit(residuals: &[f64], parameters: usize) -> Option<(f64, f64)> {
    let center = median(residuals).filter(|_| residuals.len() >= 3)?;
    let mut spread: Vec<f64> = residuals.iter().map(|value| (value - center).abs()).collect();
    spread.sort_unstable_by(f64::total_cmp);
    spread.drain(..parameters.min(residuals.len()));
    let mean = spread.iter().sum::<f64>() / spread.len().max(1) as f64;
    let sigma = mad_sigma(&spread).filter(|sigma| *sigma > 0.0).unwrap_or(mean * MEAN_AD_TO_SIGMA);
    Some((center, sigma * THRESHOLD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_wider_interval_is_noisier() {
        let of = |spread: f64| noise_level(&Estimate::of(&[100.0 - spread, 100.0, 100.0 + spread]).unwrap());
        assert_eq!(of(5.0), Some(NoiseLevel::Quiet));
        assert_eq!(of(5.1), Some(NoiseLevel::Noisy));
        assert_eq!(of(15.0), Some(NoiseLevel::Noisy));
        assert_eq!(of(16.0), Some(NoiseLevel::Wild));
        assert_eq!(noise_level(&Estimate::of(&[1.0]).unwrap()), None);
    }

    #[test]
    fn one_far_value_is_counted() {
        assert_eq!(outliers(&[10.0, 10.1, 9.9, 10.2, 9.8, 30.0]), 1);
        assert_eq!(outliers(&[10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 30.0]), 1, "also where the MAD is zero");
        assert_eq!(outliers(&[1.0, 1000.0]), 0, "of two, neither is the odd one");
    }

    #[test]
    fn the_limit_is_a_multiple_of_the_median_deviation() {
        let (mad, mean) = (3.5 * 1.4826, 3.5 * 1.2533);
        for (residuals, parameters, expected) in [
            (&[1.0, 2.0, 3.0, 4.0, 100.0][..], 0, Some((3.0, mad))),
            (&[1.0, 2.0, 3.0, 4.0, 100.0], 2, Some((3.0, 2.0 * mad))),
            (&[5.0, 5.0, 5.0, 5.0, 9.0], 0, Some((5.0, 0.8 * mean))),
            (&[5.0, 5.0, 5.0, 5.0, 9.0], 3, Some((5.0, 2.0 * mad))),
            (&[1.0, 2.0, 9.0], 4, Some((2.0, 0.0))),
            (&[1.0, 2.0, 4.0], 0, Some((2.0, mad))),
            (&[1.0, 2.0], 0, None),
        ] {
            let found = limit(residuals, parameters);
            assert_eq!(found.map(|found| found.0), expected.map(|expected| expected.0), "{residuals:?}");
            let off = found.unwrap_or_default().1 - expected.unwrap_or_default().1;
            assert!(off.abs() < 1e-12, "{found:?} of {residuals:?}, {parameters} parameters");
        }
    }

    #[test]
    fn an_outlier_is_beyond_the_limit() {
        let limit = 1.4826 * 3.5;
        let far = |value: f64| outlier_indices(&[-1.0, value, 0.0, 1.0, -value]);
        assert_eq!((far(limit), far(limit + 1e-9)), (vec![], vec![1, 4]));
        assert_eq!(residual_outliers(&[1.0, 2.0, 9.0], 3), [0; 0], "nothing is left to judge them by");
        assert_eq!(outlier_indices(&[4.0; 5]), [0; 0]);
    }

    proptest! {
        #[test]
        fn never_more_than_half_are_outliers(values in prop::collection::vec(-1e9f64..1e9, 0..40)) {
            prop_assert!(2 * outliers(&values) as usize <= values.len());
        }

        #[test]
        fn shifting_all_values_changes_nothing(values in prop::collection::vec(0u32..1000, 3..40)) {
            let plain: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
            let shifted: Vec<f64> = plain.iter().map(|v| v + 4096.0).collect();
            prop_assert_eq!(outliers(&plain), outliers(&shifted));
        }
    }
}
