//! When to stop: whether the samples so far pin the figure down as closely as `--precision` asks.

use model::Sample;

use crate::estimate::ENOUGH_FOR_95_PERCENT;
use crate::{Estimate, figure};

/// True where the 95 % interval of the headline figure (median round trip, else throughput) lies within
/// `percent` of its median on either side. Never with fewer than six samples, which have no such interval.
pub fn precise_enough(samples: &[Sample], percent: f64) -> bool {
    let values: Vec<f64> = samples.iter().filter_map(figure::headline).collect();
    values.len() >= ENOUGH_FOR_95_PERCENT
        && Estimate::of(&values)
            .and_then(|estimate| estimate.relative_half_width())
            .is_some_and(|share| share * 100.0 <= percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::{round_trips, stream};

    #[test]
    fn few_samples_are_never_enough() {
        let samples: Vec<Sample> = (0..6).map(|round| stream(round, 1_000_000)).collect();
        assert!(!precise_enough(&samples[..5], 50.0));
        assert!(precise_enough(&samples, 0.1));
    }

    #[test]
    fn the_spread_decides() {
        let samples: Vec<Sample> = (0..9).map(|round| stream(round, 1000 + 10 * u64::from(round))).collect();
        assert!(precise_enough(&samples, 3.0));
        assert!(!precise_enough(&samples, 2.0));
    }

    #[test]
    fn round_trips_are_judged_by_their_medians() {
        let samples: Vec<Sample> = (0..6).map(|round| round_trips(round, &[1000, 1000, 900_000])).collect();
        assert!(precise_enough(&samples, 1.0));
    }
}
