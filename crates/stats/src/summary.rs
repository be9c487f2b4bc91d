//! A case's summary, computed from its raw samples only: computing it again gives the same result.

use hdrhistogram::Histogram;
use model::{CaseRecord, HistogramError, Latency, Throughput, Workload, decode_histogram};

use crate::estimate::Analyses;
use crate::{Estimate, figure, spread, tail};

/// Sets `throughput` or `latency_ns`, `noise` and `outliers` from `samples`; without samples all are empty. `analyses`: whether a
/// narrow interval may have ended the case (`--precision`).
///
/// # Errors
/// A sample's latency histogram cannot be read (the record is damaged, or another program wrote it).
pub fn summarise(case: &mut CaseRecord, analyses: Analyses) -> Result<(), HistogramError> {
    case.throughput = None;
    case.latency_ns = None;
    let values = match case.workload {
        Workload::Stream => {
            let value = |sample| figure::case_bytes_per_s(case, sample);
            let values: Vec<f64> = case.samples.iter().filter_map(value).collect();
            case.throughput = Estimate::after(&values, analyses).map(throughput);
            values
        }
        Workload::PingPong => {
            let trials = histograms(case)?;
            let medians: Vec<f64> = trials.iter().map(|trial| trial.value_at_quantile(0.5) as f64).collect();
            case.latency_ns = latency(&trials, Estimate::after(&medians, analyses))?;
            medians
        }
    };
    case.noise = Estimate::after(&values, analyses).as_ref().and_then(spread::noise_level);
    case.outliers = spread::outliers(&values);
    Ok(())
}

fn throughput(estimate: Estimate) -> Throughput {
    Throughput {
        median_bytes_per_s: estimate.median,
        low: estimate.low,
        high: estimate.high,
        mean: estimate.mean,
        stddev: estimate.stddev,
    }
}

/// The histograms of all trials that made a round trip.
fn histograms(case: &CaseRecord) -> Result<Vec<Histogram<u64>>, HistogramError> {
    let texts = case.samples.iter().filter_map(|sample| sample.latency_histogram.as_deref());
    let mut trials = texts.map(decode_histogram).collect::<Result<Vec<_>, _>>()?;
    trials.retain(|trial| !trial.is_empty());
    Ok(trials)
}

/// The median and its interval are those of the trials' medians, because the round trips of one trial are not independent. The
/// higher percentiles are those of all round trips together: one trial has too few.
fn latency(trials: &[Histogram<u64>], medians: Option<Estimate>) -> Result<Option<Latency>, HistogramError> {
    let (Some(all), Some(estimate)) = (merged(trials)?, medians) else {
        return Ok(None);
    };
    Ok(Some(Latency {
        p50: estimate.median.round() as u64,
        p90: all.value_at_quantile(0.9),
        p99: all.value_at_quantile(0.99),
        p999: all.value_at_quantile(0.999),
        max: all.max(),
        p50_low: estimate.low.round() as u64,
        p50_high: estimate.high.round() as u64,
        tails: tail::intervals(trials, &all),
        count: all.len(),
    }))
}

/// Merges histograms into one that is as precise as the most precise of them; `None` without histograms.
///
/// # Errors
/// The histograms cannot be merged.
pub fn merged(histograms: &[Histogram<u64>]) -> Result<Option<Histogram<u64>>, HistogramError> {
    let Some(digits) = histograms.iter().map(Histogram::sigfig).max() else { return Ok(None) };
    let mut merged =
        Histogram::<u64>::new(digits).map_err(|error| HistogramError::Format(error.to_string()))?;
    for histogram in histograms {
        merged.add(histogram).map_err(|error| HistogramError::Format(error.to_string()))?;
    }
    Ok(Some(merged))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock;
    use model::{NoiseLevel, Sample};
    use proptest::prelude::*;

    #[test]
    fn a_stream() {
        let samples = (0..9).map(|round| mock::stream(round, 1_000_000_000 + u64::from(round))).collect();
        let mut case = mock::case(Workload::Stream, samples);
        summarise(&mut case, Analyses::Once).unwrap();
        let throughput = case.throughput.unwrap();
        assert_eq!(throughput.median_bytes_per_s, 1_000_000_004.0);
        assert_eq!((throughput.low, throughput.high), (1_000_000_001.0, 1_000_000_007.0));
        assert_eq!((case.noise, case.outliers, case.latency_ns), (Some(NoiseLevel::Quiet), 0, None));
    }

    #[test]
    fn round_trips() {
        let samples = (0..6).map(|round| mock::round_trips(round, &[100, 200, 300])).collect();
        let mut case = mock::case(Workload::PingPong, samples);
        summarise(&mut case, Analyses::Once).unwrap();
        let latency = case.latency_ns.unwrap();
        assert_eq!((latency.p50, latency.p50_low, latency.p50_high), (200, 200, 200));
        assert_eq!((latency.max, latency.count), (300, 18));
        assert_eq!(case.throughput, None);
    }

    #[test]
    fn a_median_is_in_its_interval_also_with_many_long_round_trips() {
        // Most trials have a median of 200 ns, and yet most round trips take 900 ns.
        let usual = (0..12).map(|round| mock::round_trips(round, &[200, 200, 200, 900, 900]));
        let slow = (12..15).map(|round| mock::round_trips(round, &[900; 5]));
        let mut case = mock::case(Workload::PingPong, usual.chain(slow).collect());
        summarise(&mut case, Analyses::Once).unwrap();
        let latency = case.latency_ns.unwrap();
        assert_eq!((latency.p50_low, latency.p50, latency.p50_high, latency.p90), (200, 200, 200, 900));
    }

    #[test]
    fn no_samples_no_summary() {
        for workload in Workload::ALL {
            let mut case = mock::case(*workload, Vec::new());
            case.outliers = 7;
            summarise(&mut case, Analyses::Once).unwrap();
            assert_eq!((case.throughput, case.latency_ns, case.noise, case.outliers), (None, None, None, 0));
        }
    }

    #[test]
    fn a_damaged_histogram_is_an_error_and_not_a_gap() {
        let damaged = Sample { latency_histogram: Some("?".to_owned()), ..mock::sample(0) };
        assert!(summarise(&mut mock::case(Workload::PingPong, vec![damaged]), Analyses::Once).is_err());
    }

    #[test]
    fn percentiles_are_those_of_all_round_trips_together() {
        let times: Vec<u64> = (1..=1000).collect();
        let trials = vec![
            mock::round_trips(0, &times[..500]),
            mock::round_trips(1, &[]),
            mock::round_trips(2, &times[500..]),
        ];
        let mut case = mock::case(Workload::PingPong, trials);
        summarise(&mut case, Analyses::Once).unwrap();
        let latency = case.latency_ns.unwrap();
        assert_eq!((latency.p90, latency.p99, latency.p999, latency.max), (900, 990, 999, 1000));
        // Of the medians 250 and 750, and of 250 and 251.
        assert_eq!((latency.p50_low, latency.p50, latency.p50_high, latency.count), (250, 500, 750, 1000));
        let trials = vec![mock::round_trips(0, &[250]), mock::round_trips(1, &[251])];
        let mut case = mock::case(Workload::PingPong, trials);
        summarise(&mut case, Analyses::Once).unwrap();
        assert_eq!(case.latency_ns.map(|latency| latency.p50), Some(251), "250.5, rounded");
    }

    #[test]
    fn outliers_and_noise_are_those_of_the_headline_figure() {
        let trials = [100, 101, 99, 102, 98, 300].iter().map(|time| mock::round_trips(0, &[*time]));
        let mut case = mock::case(Workload::PingPong, trials.collect());
        summarise(&mut case, Analyses::Once).unwrap();
        assert_eq!((case.outliers, case.noise), (1, Some(NoiseLevel::Wild)));
    }

    #[test]
    fn a_merged_histogram_is_as_precise_as_the_most_precise_one() {
        let with = |digits: u8| {
            let mut histogram = Histogram::<u64>::new(digits).unwrap();
            histogram.record(100_000).unwrap();
            histogram
        };
        let all = merged(&[with(1), with(3), with(2)]).unwrap().unwrap();
        assert_eq!((all.sigfig(), all.len()), (3, 3));
        assert_eq!(merged(&[]).unwrap(), None);
    }

    proptest! {
        #[test]
        fn merged_histograms_hold_all_round_trips(times in prop::collection::vec(1u64..10_000_000_000, 1..200)) {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            for time in &times {
                histogram.record(*time).unwrap();
            }
            let twice = merged(&[histogram.clone(), histogram.clone()]).unwrap().unwrap();
            prop_assert_eq!(twice.len(), 2 * histogram.len());
            prop_assert_eq!(twice.value_at_quantile(0.5), histogram.value_at_quantile(0.5));
        }

        #[test]
        fn a_summary_can_be_recomputed(rates in prop::collection::vec(1u64..1 << 40, 1..20), seed: u64) {
            let samples = rates.iter().zip(0..).map(|(rate, round)| mock::stream(round, *rate)).collect();
            let mut case = mock::case(Workload::Stream, samples);
            summarise(&mut case, Analyses::Once).unwrap();
            let mut again = case.clone();
            summarise(&mut again, Analyses::Once).unwrap();
            prop_assert_eq!(&again, &case);
            fastrand::Rng::with_seed(seed).shuffle(&mut again.samples);
            summarise(&mut again, Analyses::Once).unwrap();
            prop_assert_eq!((again.throughput, again.noise), (case.throughput, case.noise));
        }
    }
}
