//! The tail of round trips: its percentiles, and how many round trips each of them needs.

use model::Latency;

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

/// The largest share of `count` round trips below a percentile that has enough of them beyond it; below 0 if there is none.
pub fn share_max(count: u64) -> f64 {
    1.0 - BEYOND_MIN as f64 / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: 10 round trips beyond a percentile. Happened: a 99.9th percentile of 414 round trips, which is the slowest of them.
    #[test]
    fn a_percentile_has_ten_round_trips_beyond_it_or_is_not_known() {
        let known = |count| {
            let latency = Latency { p50: 1, p90: 2, p99: 3, p999: 4, max: 5, p50_low: 1, p50_high: 1, count };
            [Tail::P90, Tail::P99, Tail::P999].map(|tail| tail.ns(&latency))
        };
        assert_eq!(known(99), [None, None, None]);
        assert_eq!(known(414), [Some(2), None, None]);
        assert_eq!(known(1000), [Some(2), Some(3), None]);
        assert_eq!(known(10_000), [Some(2), Some(3), Some(4)]);
        assert!(share_max(10_000) == 0.999 && share_max(9) < 0.0 && share_max(0) < 0.0);
    }
}
