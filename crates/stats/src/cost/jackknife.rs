//! The jackknife: the interval of a value of many rounds, from its values without each of them.

use super::GROUPS_MAX;
use super::swept::{SizeMean, SizeSweep};

/// Student's t for 95 %, by degrees of freedom from 1 on.
const T: [f64; 24] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
];

/// The means of all sizes without each group of rounds in turn.
pub(super) fn replicates(swept: &SizeSweep) -> Vec<Vec<SizeMean>> {
    let rounds = swept.rounds();
    let groups = rounds.len().min(GROUPS_MAX);
    let group = |at: usize| rounds.iter().skip(at).step_by(groups).copied().collect::<Vec<u32>>();
    (0..groups).map(|at| swept.size_means(Some(&group(at)))).collect()
}

/// The 95 % interval of a value from its values without each group (Tukey's jackknife, variance (g-1)/g Σ(θᵢ-θ)²). The weights of
/// the robust mean use one degree of freedom: with g-1 degrees the simulated coverage was 91 % in the worst case.
pub(super) fn interval(value: f64, without: &[f64]) -> (f64, f64) {
    let groups = without.len() as f64;
    let squares = without.iter().map(|one| (one - value).powi(2)).sum::<f64>();
    let variance = squares * (groups - 1.0) / groups.max(1.0);
    let freedom = without.len().saturating_sub(2).clamp(1, T.len());
    let arm = T[freedom - 1] * variance.max(0.0).sqrt();
    (value - arm, value + arm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock;
    use model::{CaseRecord, Sample, Workload};

    #[test]
    fn the_interval_is_that_of_the_jackknife() {
        for (value, without, arm) in [
            // t of one degree of freedom, variance 2/3 of a sum of squares of 2.
            (10.0, &[9.0, 10.0, 11.0][..], 12.706 * (4.0f64 / 3.0).sqrt()),
            (10.0, &[8.0, 9.0, 10.0, 11.0, 12.0], 3.182 * 8f64.sqrt()),
            (10.0, &[8.0; 30], 2.064 * (120.0f64 * 29.0 / 30.0).sqrt()),
            (10.0, &[7.0], 0.0),
            (10.0, &[], 0.0),
        ] {
            let (low, high) = interval(value, without);
            assert!((low - (value - arm)).abs() < 1e-9, "{low} for {without:?}");
            assert!((high - (value + arm)).abs() < 1e-9, "{high} for {without:?}");
        }
    }

    fn swept(rounds: u32, ns: impl Fn(u32) -> u64) -> SizeSweep {
        let samples =
            (0..rounds).map(|round| Sample { elapsed_ns: ns(round), messages: 1, ..mock::sample(round) });
        SizeSweep::of(&[CaseRecord { block_bytes: 1, ..mock::case(Workload::Stream, samples.collect()) }])
    }

    #[test]
    fn each_group_of_rounds_is_left_out_once() {
        let means = |swept: &SizeSweep| -> Vec<u64> {
            replicates(swept).iter().map(|means| means[0].ln_ns.exp().round() as u64).collect()
        };
        // The geometric mean of the two that are left.
        assert_eq!(means(&swept(3, |round| [1, 4, 64][round as usize])), [16, 8, 2]);
        assert_eq!(replicates(&swept(0, |_| 1)).len(), 0);
        // Of 28 rounds the 26th is left out together with the first, and so on: three of these took longer.
        let of_28 = means(&swept(28, |round| if round >= 14 { 4 } else { 1 }));
        let expected: Vec<u64> = (0..25)
            .map(|at| {
                if at < 3 {
                    2
                } else if at < 14 {
                    4
                } else {
                    1
                }
            })
            .collect();
        assert_eq!(of_28, expected);
    }
}
