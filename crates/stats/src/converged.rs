//! When to stop a case with `--precision`. To keep the interval's coverage, the interval is tested only at certain numbers of
//! samples (the analyses), each 1.5 times the one before, and it is wide enough that all analyses together miss the median in at most
//! one of twenty runs.

use model::Sample;

use crate::estimate::{Analyses, analyses};
use crate::{Estimate, figure};

/// Whether a case may end: its number of samples is one of the analyses, and the interval of the headline figure (median round trip,
/// else throughput) is within `percent` of its median on either side.
pub fn precise_enough(samples: &[Sample], percent: f64) -> bool {
    let values: Vec<f64> = samples.iter().filter_map(figure::headline).collect();
    values.len() == samples.len() && narrow_at_analysis(&values, percent)
}

/// Whether these are as many values as one of the analyses, and their interval is within `percent` of their median on either side.
pub(crate) fn narrow_at_analysis(values: &[f64], percent: f64) -> bool {
    if analyses().all(|analysis| analysis != values.len()) {
        return false;
    }
    let share =
        Estimate::after(values, Analyses::Repeatedly).and_then(|estimate| estimate.relative_half_width());
    share.is_some_and(|share| share * 100.0 <= percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::{round_trips, stream};

    #[test]
    fn few_samples_are_never_enough() {
        let samples: Vec<Sample> = (0..15).map(|round| stream(round, 1_000_000)).collect();
        let enough: Vec<usize> = (1..=15).filter(|count| precise_enough(&samples[..*count], 50.0)).collect();
        assert_eq!(enough, [10, 15], "at the analyses, and nowhere else");
    }

    #[test]
    fn the_spread_decides() {
        let samples: Vec<Sample> = (0..10).map(|round| stream(round, 1000 + 10 * u64::from(round))).collect();
        assert!(precise_enough(&samples, 5.0));
        assert!(!precise_enough(&samples, 4.0), "the whole range of ten, 1000 to 1090");
    }

    #[test]
    fn round_trips_are_judged_by_their_medians() {
        let samples: Vec<Sample> = (0..10).map(|round| round_trips(round, &[1000, 1000, 900_000])).collect();
        assert!(precise_enough(&samples, 1.0));
    }

    /// The share of series of skewed values, each ended as soon as `may_end`, whose interval contains the true median, 1.
    fn covered(analyses: Analyses, may_end: impl Fn(usize) -> bool) -> f64 {
        const SERIES: usize = 1000;
        let mut random = fastrand::Rng::with_seed(7);
        let holds = (0..SERIES).filter(|_| {
            let mut values: Vec<f64> = Vec::new();
            loop {
                // Log-normal, nearly: the sum of twelve uniform values is close to normal.
                let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                values.push((0.5 * normal).exp());
                if values.len() < 6 || !may_end(values.len()) {
                    continue;
                }
                let Some(estimate) = Estimate::after(&values, analyses) else { continue };
                let share = estimate.relative_half_width().unwrap_or(1.0);
                if share <= 0.20 || values.len() >= 400 {
                    return estimate.low <= 1.0 && 1.0 <= estimate.high;
                }
            }
        });
        holds.count() as f64 / SERIES as f64
    }

    #[test]
    fn an_interval_that_ended_its_series_still_covers_the_median() {
        let naive = covered(Analyses::Once, |_| true);
        assert!(naive < 0.95, "ending when a plain interval is narrow covers {naive}");
        let kept = covered(Analyses::Repeatedly, |count| analyses().any(|analysis| analysis == count));
        assert!(kept >= 0.95, "the rule covers {kept}");
    }

    #[test]
    fn a_trial_without_a_figure_is_never_enough() {
        let mut samples: Vec<Sample> = (0..10).map(|round| stream(round, 1_000_000)).collect();
        samples.push(Sample { elapsed_ns: 0, ..stream(10, 1) });
        assert!(precise_enough(&samples[..10], 50.0) && !precise_enough(&samples, 50.0));
    }

    #[test]
    fn the_interval_may_reach_the_percent_itself() {
        let values = [1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1050.0];
        assert!(narrow_at_analysis(&values, 5.0) && !narrow_at_analysis(&values, 4.999));
        assert!(!narrow_at_analysis(&[0.0; 10], 5.0), "no share of zero");
    }
}
