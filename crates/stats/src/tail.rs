//! The tail of round trips: its percentiles, and how many round trips each of them needs.

use hdrhistogram::Histogram;
use model::{Latency, Tails};

use crate::estimate::ENOUGH_FOR_95_PERCENT;
use crate::student;

/// Fewest round trips beyond a percentile: with fewer, which of them are slow is chance.
const BEYOND_MIN: u64 = 10;

/// A percentile of the tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// One round trip in 10 takes longer.
    P90,
    /// One in 100.
    P99,
    /// One in 1,000.
    P999,
}

impl Tail {
    /// One round trip in this many takes longer.
    fn one_in(self) -> u64 {
        match self {
            Self::P90 => 10,
            Self::P99 => 100,
            Self::P999 => 1000,
        }
    }

    /// Fewest round trips with enough of them beyond it.
    pub fn trips_min(self) -> u64 {
        BEYOND_MIN * self.one_in()
    }

    /// Its value in nanoseconds; `None` with too few round trips.
    pub fn ns(self, latency: &Latency) -> Option<u64> {
        let ns = match self {
            Self::P90 => latency.p90,
            Self::P99 => latency.p99,
            Self::P999 => latency.p999,
        };
        (latency.count >= self.trips_min()).then_some(ns)
    }
}

/// The 95 % intervals of the percentiles of all round trips, `all`; `None` with too few trials. The round trips of one trial have its pauses in
/// common, so that each trial is one cluster of a cluster sample. The share of round trips beyond a percentile, a ratio over k clusters, has the
/// standard error √(k/(k − 1) · Σ(beyondᵢ − share · tripsᵢ)²) / Σ tripsᵢ. The interval holds the percentiles of the shares within Student's t times
/// that (Woodruff, *Journal of the American Statistical Association* 47, 1952).
pub(crate) fn intervals(trials: &[Histogram<u64>], all: &Histogram<u64>) -> Option<Tails> {
    if trials.len() < ENOUGH_FOR_95_PERCENT {
        return None;
    }
    let clusters = trials.len() as f64;
    let count = all.len() as f64;
    let t = student::exceeded_with(0.025, clusters - 1.0);
    let interval = |tail: Tail| {
        if all.len() < tail.trips_min() {
            return None;
        }
        let share = 1.0 - 1.0 / tail.one_in() as f64;
        let percentile = all.value_at_quantile(share);
        let beyond = |trial: &Histogram<u64>| trial.count_between(percentile + 1, u64::MAX) as f64;
        let share_beyond = beyond(all) / count;
        let square = |trial| (beyond(trial) - share_beyond * trial.len() as f64).powi(2);
        let squares: f64 = trials.iter().map(square).sum();
        let error = t * (clusters / (clusters - 1.0) * squares).sqrt() / count;
        let high = (share + error < 1.0).then(|| all.value_at_quantile(share + error));
        Some((all.value_at_quantile((share - error).max(0.0)), high))
    };
    Some(Tails { p90: interval(Tail::P90), p99: interval(Tail::P99), p999: interval(Tail::P999) })
}

/// The largest share of `count` round trips below a percentile that has enough of them beyond it; below 0 if there is none.
pub fn share_max(count: u64) -> f64 {
    1.0 - BEYOND_MIN as f64 / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::normal;
    use crate::summary::merged;

    /// Trials of 2,000 round trips, each with pauses of its own: the interval of its percentile holds the true one in about 95 % of runs, where
    /// one that takes round trips as independent would hold it in half of them.
    #[test]
    fn intervals_count_a_trial_as_one() {
        let mut random = fastrand::Rng::with_seed(51);
        let mut run = |trials: usize| {
            let mut trial = || {
                let mut histogram = Histogram::<u64>::new_with_max(1_000_000_000, 3).expect("three digits");
                // 5 % of the round trips of a trial are slow on the average; their number differs by half from trial to trial.
                let slow = 0.05 * (0.5 * normal(&mut random) - 0.125).exp();
                for _ in 0..2_000 {
                    let factor = if random.f64() < slow { 20.0 } else { 1.0 };
                    histogram.saturating_record((1e4 * factor * (0.5 * normal(&mut random)).exp()) as u64);
                }
                histogram
            };
            let trials: Vec<Histogram<u64>> = (0..trials).map(|_| trial()).collect();
            let all = merged(&trials).ok().flatten().expect("trials");
            (intervals(&trials, &all), all)
        };
        // The true percentile, of as many trials as 100 runs have.
        let truth = run(1_200).1.value_at_quantile(0.99);
        let held = (0..200).filter(|_| {
            let (low, high) = run(12).0.expect("twelve trials").p99.expect("enough round trips");
            low <= truth && high.is_none_or(|high| truth <= high)
        });
        let held = held.count();
        assert!((180..200).contains(&held), "{held} of 200 intervals hold {truth}");
        assert_eq!(run(5).0, None);
    }

    /// Expected: 10 round trips beyond a percentile. Happened: a 99.9th percentile of 414 round trips, which is the slowest of them.
    #[test]
    fn a_percentile_has_ten_round_trips_beyond_it_or_is_not_known() {
        let known = |count| {
            let latency = Latency {
                p50: 1,
                p90: 2,
                p99: 3,
                p999: 4,
                max: 5,
                p50_low: 1,
                p50_high: 1,
                tails: None,
                count,
            };
            [Tail::P90, Tail::P99, Tail::P999].map(|tail| tail.ns(&latency))
        };
        assert_eq!(known(99), [None, None, None]);
        assert_eq!(known(414), [Some(2), None, None]);
        assert_eq!(known(1000), [Some(2), Some(3), None]);
        assert_eq!(known(10_000), [Some(2), Some(3), Some(4)]);
        assert!(share_max(10_000) == 0.999 && share_max(9) < 0.0 && share_max(0) < 0.0);
    }
}
