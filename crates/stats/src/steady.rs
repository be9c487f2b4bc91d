//! Whether the trials of a case have a steady state: their halves, and the states that whole trials fall into.

use model::{CaseRecord, SIXTEENTHS, Sample};

use crate::Estimate;
use crate::cpu_sharing::{TrialGroup, is_mixed};
use crate::estimate::{ENOUGH_FOR_95_PERCENT, median};

/// Halves that differ by less are the same.
const HALVES_DIFFER: f64 = 1.1;
/// Fewest trials of a state, and of all states.
const STATE_TRIALS_MIN: usize = 3;
const TRIALS_MIN: usize = 12;
/// Smallest quotient of the figures of two states that are next to each other.
const GAP_MIN: f64 = 1.25;
/// Smallest gap as a multiple of the range of either state, both as logarithms.
const GAP_OF_RANGE: f64 = 1.3;

/// The time of the second half of a trial divided by that of the first, if it surely differs from 1 by over a tenth in most trials; `None`
/// also where too few trials have marks.
pub fn unlike_halves(case: &CaseRecord) -> Option<Estimate> {
    let halves: Vec<f64> = case.samples.iter().filter_map(halves).collect();
    let found = Estimate::of(&halves).filter(|found| found.count >= ENOUGH_FOR_95_PERCENT)?;
    (found.low > HALVES_DIFFER || found.high < 1.0 / HALVES_DIFFER).then_some(found)
}

/// The time of the second half of a trial divided by that of the first.
fn halves(sample: &Sample) -> Option<f64> {
    let first_ns = *sample.sixteenths_ns.get(SIXTEENTHS / 2)? as f64;
    let second_ns = sample.elapsed_ns as f64 - first_ns;
    (first_ns > 0.0 && second_ns > 0.0).then(|| second_ns / first_ns)
}

/// The two states that the trials of a case fall into, the smaller figure first: the gap between them is a quarter or more, and larger than
/// [`GAP_OF_RANGE`] of either's range. `None` if there are none, or if the scheduler's choice of one CPU or two is the cause ([`is_mixed`]).
pub fn states(case: &CaseRecord, figure: impl Fn(&Sample) -> Option<f64>) -> Option<[TrialGroup; 2]> {
    if case.samples.len() < TRIALS_MIN || is_mixed(case) {
        return None;
    }
    let mut values: Vec<f64> = case.samples.iter().filter_map(figure).filter(|value| *value > 0.0).collect();
    if values.len() < TRIALS_MIN {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let gap = |at: usize| values[at] / values[at - 1];
    let splits = STATE_TRIALS_MIN..=values.len() - STATE_TRIALS_MIN;
    let at = splits.max_by(|one, other| gap(*one).total_cmp(&gap(*other)))?;
    let (low, high) = values.split_at(at);
    let range = |group: &[f64]| group[group.len() - 1] / group[0];
    let group = |group: &[f64]| Some(TrialGroup { trials: group.len(), median: median(group)? });
    if gap(at) < GAP_MIN || gap(at).ln() <= GAP_OF_RANGE * range(low).max(range(high)).ln() {
        return None;
    }
    Some([group(low)?, group(high)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::{self, normal};
    use model::Workload;

    fn case(samples: Vec<Sample>) -> CaseRecord {
        mock::case(Workload::Stream, samples)
    }

    fn of_values(values: &[f64]) -> Option<[TrialGroup; 2]> {
        let samples = (0..).zip(values).map(|(round, value)| mock::stream(round, (value * 1e9) as u64));
        states(&case(samples.collect()), |sample| Some(sample.bytes as f64 / 1e9))
    }

    #[test]
    fn halves_that_differ_surely_and_by_over_a_tenth_are_found() {
        let of = |second: &dyn Fn(u32) -> u64| {
            let sample = |round| {
                let sixteenths_ns = (1..=15).map(|at| at * 1_000).collect();
                Sample { sixteenths_ns, elapsed_ns: 8_000 + second(round), ..mock::stream(round, 1) }
            };
            unlike_halves(&case((0..9).map(sample).collect())).map(|found| found.median)
        };
        assert_eq!(of(&|_| 8_000), None);
        assert_eq!(of(&|_| 8_400), None, "a twentieth");
        assert_eq!(of(&|round| 8_500 + 100 * u64::from(round)), None, "its interval holds a tenth");
        assert_eq!(of(&|_| 12_000), Some(1.5));
        assert_eq!(of(&|_| 4_000), Some(0.5));
        assert_eq!(of(&|round| if round < 4 { 4_000 } else { 12_000 }), None, "not in most trials");
        assert_eq!(unlike_halves(&case(vec![mock::stream(0, 1); 9])), None, "without marks");
    }

    #[test]
    fn states_are_groups_with_a_gap_between_them() {
        let ring = [18.0, 17.5, 9.1, 17.8, 9.0, 18.2, 9.3, 17.9, 18.1, 15.1, 17.7, 18.0];
        let found = of_values(&ring).expect("two states").map(|group| (group.trials, group.median));
        assert_eq!(found, [(3, 9.1), (9, 17.9)]);
        assert_eq!(of_values(&ring[..11]), None, "too few trials");
        let one_slow = [18.0, 17.5, 18.3, 17.8, 9.0, 18.2, 17.7, 17.9, 18.1, 18.0, 17.9, 18.2];
        assert_eq!(of_values(&one_slow), None, "an outlier is no state");
        let mixed = CaseRecord {
            placement: model::Placement::Any,
            samples: (0..)
                .zip(ring)
                .map(|(round, value)| Sample {
                    same_cpu_share: Some(if value < 10.0 { 1.0 } else { 0.0 }),
                    ..mock::stream(round, (value * 1e9) as u64)
                })
                .collect(),
            ..case(Vec::new())
        };
        assert_eq!(states(&mixed, |sample| Some(sample.bytes as f64)), None, "the CPUs are the cause");
    }

    /// Of noise without states at most 1 % of the cases have some; of two states with a quotient of 1.6, and noise of 5 %, nine in ten.
    #[test]
    fn noise_alone_has_no_states() {
        let mut random = fastrand::Rng::with_seed(51);
        let mut share = |spread: f64, quotient: f64, trials: usize| {
            let found = (0..500).filter(|_| {
                let values: Vec<f64> = (0..trials)
                    .map(|at| (spread * normal(&mut random)).exp() * if at % 3 == 0 { quotient } else { 1.0 })
                    .collect();
                of_values(&values).is_some()
            });
            found.count() as f64 / 500.0
        };
        for (spread, trials) in [(0.05, 12), (0.15, 12), (0.3, 12), (0.3, 20), (0.6, 40)] {
            let found = share(spread, 1.0, trials);
            assert!(found <= 0.01, "{found} with {trials} trials that vary by {spread}");
        }
        let found = share(0.05, 1.6, 15);
        assert!(found >= 0.9, "{found}");
    }
}
