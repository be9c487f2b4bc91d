//! Compares two cases round by round: a disturbance affects both samples of a round, so their ratio varies less than the figures.

use std::collections::BTreeMap;

use model::{Ratio, Sample};

use crate::{bootstrap, estimate};

/// A figure of `numerator` divided by the same figure of `denominator`, in each round that has both
/// ([`Sample::round`]). With few rounds the interval of their [`ratio_of`] is too narrow.
pub fn paired_ratios(
    numerator: &[Sample],
    denominator: &[Sample],
    figure: impl Fn(&Sample) -> Option<f64>,
) -> Vec<f64> {
    let others = by_round(denominator, &figure);
    by_round(numerator, &figure)
        .into_iter()
        .filter_map(|(round, values)| Some(values.into_iter().zip(others.get(&round)?.clone())))
        .flatten()
        .map(|(one, other)| one / other)
        .collect()
}

/// The median of paired ratios and its 95 % bootstrap interval. `None` without ratios, or if one is not finite.
pub fn ratio_of(ratios: &[f64]) -> Option<Ratio> {
    let (low, high) = bootstrap::median_interval(ratios)?;
    Some(Ratio { median: estimate::median(ratios)?, low, high })
}

/// The figures of each round in ascending order, so that the order of the samples does not matter.
fn by_round(samples: &[Sample], figure: impl Fn(&Sample) -> Option<f64>) -> BTreeMap<u32, Vec<f64>> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for sample in samples {
        if let Some(value) = figure(sample) {
            rounds.entry(sample.round).or_default().push(value);
        }
    }
    rounds.values_mut().for_each(|values| values.sort_unstable_by(f64::total_cmp));
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::throughput_bytes_per_s;
    use crate::mock::stream;
    use proptest::prelude::*;

    fn paired_ratio(
        numerator: &[Sample],
        denominator: &[Sample],
        figure: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<Ratio> {
        ratio_of(&paired_ratios(numerator, denominator, figure))
    }

    fn samples(rates: &[u64]) -> Vec<Sample> {
        rates.iter().zip(0..).map(|(rate, round)| stream(round, *rate)).collect()
    }

    #[test]
    fn a_slow_round_cancels_out() {
        let ratios = paired_ratios(&samples(&[40, 20, 8]), &samples(&[10, 5, 2]), throughput_bytes_per_s);
        assert_eq!(ratios, [4.0, 4.0, 4.0]);
        assert_eq!(ratio_of(&ratios), Some(Ratio { median: 4.0, low: 4.0, high: 4.0 }));
    }

    #[test]
    fn only_rounds_of_both_count() {
        let late = vec![stream(2, 30), stream(7, 99)];
        assert_eq!(paired_ratios(&late, &samples(&[1, 2, 3]), throughput_bytes_per_s), [10.0]);
        assert_eq!(paired_ratio(&late[1..], &samples(&[1]), throughput_bytes_per_s), None);
        assert_eq!(paired_ratio(&samples(&[1]), &samples(&[0]), throughput_bytes_per_s), None);
    }

    #[test]
    fn samples_of_one_round_are_paired_in_their_order_of_size() {
        let one = [stream(0, 8), stream(0, 2), stream(1, 5)];
        let other = [stream(0, 1), stream(0, 2), stream(0, 9)];
        assert_eq!(paired_ratios(&one, &other, throughput_bytes_per_s), [2.0, 4.0]);
        let missing = [Sample { elapsed_ns: 0, ..stream(0, 1) }];
        assert_eq!(paired_ratios(&one, &missing, throughput_bytes_per_s), [0.0; 0]);
        let ratio = ratio_of(&[1.0, 2.0, 4.0]);
        assert_eq!(ratio, Some(Ratio { median: 2.0, low: 1.0, high: 4.0 }));
        assert_eq!((ratio_of(&[]), ratio_of(&[1.0, f64::INFINITY])), (None, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_case_is_once_itself(rates in prop::collection::vec(1u64..1 << 40, 1..12)) {
            let ratio = paired_ratio(&samples(&rates), &samples(&rates), throughput_bytes_per_s).unwrap();
            prop_assert_eq!((ratio.median, ratio.low, ratio.high), (1.0, 1.0, 1.0));
        }

        #[test]
        fn the_ratio_of_exchanged_cases_is_the_inverse(rates in prop::collection::vec((1u64..1 << 40, 1u64..1 << 40), 1..6)) {
            // An odd number of pairs, whose median is one of them.
            let rates: Vec<_> = rates.iter().chain(rates[1..].iter()).copied().collect();
            let (one, other): (Vec<u64>, Vec<u64>) = rates.into_iter().unzip();
            let (one, other) = (samples(&one), samples(&other));
            let there = paired_ratio(&one, &other, throughput_bytes_per_s).unwrap();
            let back = paired_ratio(&other, &one, throughput_bytes_per_s).unwrap();
            prop_assert!((there.median * back.median - 1.0).abs() < 1e-9);
            prop_assert!(there.low <= there.median && there.median <= there.high);
            let mut shuffled = one.clone();
            shuffled.reverse();
            prop_assert_eq!(paired_ratio(&shuffled, &other, throughput_bytes_per_s), Some(there));
        }
    }
}
