//! Figures of many pairs, of many senders or receivers, and of round trips at a given rate.

use model::{CaseRecord, HistogramError, Sample, decode_histogram};

use crate::{estimate, figure, summary};

/// Smallest share of the given rate that a mechanism must reach to keep up with it.
const KEEPS_UP_FROM: f64 = 0.95;

/// Whether a mechanism that reaches `reached_per_s` keeps up with a rate: it never reaches more than is offered, and the last message of a
/// trial has to arrive, too.
pub fn keeps_up(reached_per_s: f64, rate_per_s: f64) -> bool {
    reached_per_s >= KEEPS_UP_FROM * rate_per_s
}

/// Jain's index of fairness: 1 if all are equal, 1/n if all but one are 0 (Jain, Chiu and Hawe, *A Quantitative Measure of
/// Fairness*, 1984). `None` if all are 0.
pub fn jain(amounts: &[f64]) -> Option<f64> {
    let sum: f64 = amounts.iter().sum();
    let squares: f64 = amounts.iter().map(|amount| amount * amount).sum();
    Some(sum * sum / (amounts.len() as f64 * squares)).filter(|index| index.is_finite())
}

/// Fewest round trips of a pair for its fairness: the progress of short ones is known in steps of 64.
const TRIPS_MIN: u64 = 20 * 64;

/// Jain's index of the progress of pairs, senders or receivers at the time when the first one was done. `None` with few round trips.
pub fn fairness(sample: &Sample) -> Option<f64> {
    let each = sample.messages / (sample.shares.len() as u64).max(1);
    if sample.latency_histogram.is_some() && each < TRIPS_MIN {
        return None;
    }
    let moved: Vec<f64> = sample.shares.iter().map(|share| share.bytes_while_all_ran as f64).collect();
    jain(&moved)
}

/// Bytes per second of the median pair, sender or receiver until the first one was done.
pub fn share_bytes_per_s(sample: &Sample) -> Option<f64> {
    let all_ran_ns = sample.all_ran_ns.filter(|ns| *ns > 0)?;
    let moved: Vec<f64> = sample.shares.iter().map(|share| share.bytes_while_all_ran as f64).collect();
    estimate::median(&moved).map(|bytes| bytes * 1e9 / all_ran_ns as f64)
}

/// Blocks, or round trips, of all pairs and senders in a second.
fn messages_per_s(case: &CaseRecord, sample: &Sample) -> Option<f64> {
    Some(1e9 / figure::interval_ns(case, sample)?).filter(|rate| rate.is_finite())
}

/// Median of the messages, or round trips, per second of a case; paced ones are at most at the requested rate.
pub fn reached_per_s(case: &CaseRecord) -> Option<f64> {
    let reached = figure::median_of(case, |sample| messages_per_s(case, sample))?;
    Some(offered_per_s(case).map_or(reached, |offered| reached.min(offered)))
}

/// Requested messages, or round trips, per second of all pairs of a case together; `None` if they were not paced.
pub fn offered_per_s(case: &CaseRecord) -> Option<f64> {
    let load = case.load();
    Some(f64::from(load.rate_per_s?) * f64::from(load.pairs()))
}

/// Share of blocks of all trials that did not arrive in one piece; `None` if blocks were not checked. Between one sender and one receiver
/// it is 0: earlier versions recorded a block that came in two reads.
pub fn torn_share(case: &CaseRecord) -> Option<f64> {
    let checked = || case.samples.iter().filter(|sample| sample.torn_blocks.is_some());
    let recorded: u64 = checked().filter_map(|sample| sample.torn_blocks).sum();
    let blocks: u64 = checked().map(|sample| sample.messages).sum();
    let torn = if case.load().has_several_at_an_end() { recorded } else { 0 };
    (blocks > 0).then(|| torn as f64 / blocks as f64)
}

/// Percentiles over all trials of paced round trips from their actual start to their end, in nanoseconds; `None` if none were paced.
///
/// # Errors
/// A histogram that cannot be read.
pub fn service_ns<const N: usize>(
    case: &CaseRecord,
    quantiles: [f64; N],
) -> Result<Option<[u64; N]>, HistogramError> {
    let texts = case.samples.iter().filter_map(|sample| sample.service_histogram.as_deref());
    let trials = texts.map(decode_histogram).collect::<Result<Vec<_>, _>>()?;
    let all = summary::merged(&trials)?.filter(|all| !all.is_empty());
    Ok(all.map(|all| quantiles.map(|quantile| all.value_at_quantile(quantile))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock;
    use model::{Share, Workload};
    use proptest::prelude::*;

    #[test]
    fn two_pairs_of_which_one_was_twice_as_fast() {
        let share = |elapsed_ns, bytes_while_all_ran| Share { elapsed_ns, bytes: 1000, bytes_while_all_ran };
        let sample = Sample {
            shares: vec![share(1_000_000_000, 1000), share(2_000_000_000, 500)],
            all_ran_ns: Some(1_000_000_000),
            ..mock::sample(0)
        };
        assert_eq!(fairness(&sample), Some(0.9), "1500² / (2 (1000² + 500²))");
        assert_eq!(share_bytes_per_s(&sample), Some(750.0));
        assert_eq!(fairness(&mock::sample(0)), None);
    }

    #[test]
    fn torn_blocks_are_counted_where_blocks_were_checked() {
        let torn = |torn_blocks| Sample { messages: 10, torn_blocks, ..mock::sample(0) };
        let case = |samples| CaseRecord { senders: Some(2), ..mock::case(Workload::Stream, samples) };
        assert_eq!(torn_share(&case(vec![torn(Some(5)), torn(Some(0))])), Some(0.25));
        let alone = CaseRecord { senders: None, receivers: Some(1), ..case(vec![torn(Some(5))]) };
        assert_eq!(torn_share(&alone), Some(0.0), "one receiver has every block");
        assert_eq!(torn_share(&case(vec![torn(Some(5)), torn(None)])), Some(0.5));
        assert_eq!(torn_share(&case(vec![torn(None)])), None);
        let none = Sample { messages: 0, ..torn(Some(0)) };
        assert_eq!(torn_share(&case(vec![none])), None);
        assert_eq!(service_ns(&case(vec![torn(None)]), [0.5]), Ok(None));
    }

    #[test]
    fn the_index_of_fairness_by_hand() {
        for (amounts, expected) in [
            (&[1.0, 1.0][..], Some(1.0)),
            (&[1.0, 0.0], Some(0.5)),
            (&[1.0, 2.0, 3.0], Some(6.0 / 7.0)),
            (&[0.0, 0.0], None),
            (&[], None),
        ] {
            assert_eq!(jain(amounts), expected, "{amounts:?}");
        }
    }

    #[test]
    fn few_round_trips_have_no_fairness() {
        let share = Share { elapsed_ns: 1, bytes: 1, bytes_while_all_ran: 1 };
        let trips = |messages, shares: usize| Sample {
            messages,
            shares: vec![share; shares],
            ..mock::round_trips(0, &[1])
        };
        for (messages, shares, expected) in
            [(2560, 2, Some(1.0)), (2559, 2, None), (1280, 1, Some(1.0)), (5120, 0, None)]
        {
            assert_eq!(fairness(&trips(messages, shares)), expected, "{messages} of {shares}");
        }
        let stream = Sample { latency_histogram: None, ..trips(1, 2) };
        assert_eq!(fairness(&stream), Some(1.0), "blocks are not counted in steps");
    }

    #[test]
    fn rates_are_amounts_divided_by_seconds() {
        let share = |bytes_while_all_ran| Share { elapsed_ns: 1, bytes: 1, bytes_while_all_ran };
        let with =
            |all_ran_ns| Sample { shares: vec![share(400), share(600)], all_ran_ns, ..mock::sample(0) };
        let rates = [Some(2_000_000_000), Some(0), None].map(|ns| share_bytes_per_s(&with(ns)));
        assert_eq!(rates, [Some(250.0), None, None]);
        let lasting = |elapsed_ns| Sample { elapsed_ns, messages: 100, ..mock::sample(0) };
        let case = mock::case(Workload::Stream, Vec::new());
        assert_eq!([2_000_000_000, 0].map(|ns| messages_per_s(&case, &lasting(ns))), [Some(50.0), None]);
    }

    #[test]
    fn paced_round_trips_reach_at_most_what_was_offered() {
        let case = |rate_per_s, pairs, messages: &[u64]| {
            let samples = messages.iter().map(|messages| Sample { messages: *messages, ..mock::sample(0) });
            CaseRecord { rate_per_s, pairs, ..mock::case(Workload::PingPong, samples.collect()) }
        };
        for (rate_per_s, pairs, offered, reached) in [
            (Some(100), Some(2), Some(200.0), 178.0),
            (Some(100), None, Some(100.0), 100.0),
            (None, Some(2), None, 180.0),
        ] {
            let case = case(rate_per_s, pairs, &[170, 180, 250]);
            assert_eq!((offered_per_s(&case), reached_per_s(&case)), (offered, Some(reached)));
        }
        assert_eq!(reached_per_s(&case(Some(100), None, &[])), None);
    }

    #[test]
    fn service_times_are_those_of_all_trials() {
        let served = |times: &[u64]| Sample {
            service_histogram: mock::round_trips(0, times).latency_histogram,
            ..mock::sample(0)
        };
        let case = |samples| mock::case(Workload::PingPong, samples);
        let both = case(vec![served(&[100, 200, 300]), mock::sample(1), served(&[400])]);
        assert_eq!(service_ns(&both, [0.5, 1.0]), Ok(Some([200, 400])));
        assert_eq!(service_ns(&case(vec![served(&[])]), [0.5]), Ok(None));
        let damaged = Sample { service_histogram: Some("?".to_owned()), ..mock::sample(0) };
        assert!(service_ns(&case(vec![damaged]), [0.5]).is_err());
    }

    proptest! {
        #[test]
        fn fairness_is_a_share(amounts in prop::collection::vec(0f64..1e18, 0..40)) {
            let all_alike = amounts.windows(2).all(|pair| pair[0] == pair[1]);
            match jain(&amounts) {
                None => prop_assert!(amounts.iter().all(|amount| *amount == 0.0)),
                Some(index) => {
                    prop_assert!(index > 0.0 && index <= 1.0 + 1e-9);
                    prop_assert!(index >= 1.0 / amounts.len() as f64 - 1e-9);
                    prop_assert!(!all_alike || (index - 1.0).abs() < 1e-9);
                }
            }
        }
    }
}
