//! Figures of one sample. `None` if the sample does not have them.

use hdrhistogram::Histogram;
use model::{CaseRecord, Sample, decode_histogram};

use crate::estimate;

/// Bytes per second of one trial.
pub fn throughput_bytes_per_s(sample: &Sample) -> Option<f64> {
    per(sample.bytes as f64 * 1e9, sample.elapsed_ns)
}

/// Bytes per second of one trial of a case. At a rate: of the messages after the first one, in the time from that to the last one.
pub fn case_bytes_per_s(case: &CaseRecord, sample: &Sample) -> Option<f64> {
    let whole = throughput_bytes_per_s(sample)?;
    let timed = intervals(case, sample) as f64 / sample.messages.max(1) as f64;
    Some(if case.rate_per_s.is_some() { whole * timed } else { whole })
}

/// Median round trip of one trial in nanoseconds, from its histogram.
pub fn round_trip_p50_ns(sample: &Sample) -> Option<f64> {
    Some(round_trips(sample)?.value_at_quantile(0.5) as f64)
}

/// Mean round trip of one trial in nanoseconds, from its histogram. A median does not show what some trips cost: where two ends meet on one
/// CPU or on two, the median may be that of either.
pub fn round_trip_mean_ns(sample: &Sample) -> Option<f64> {
    Some(round_trips(sample)?.mean())
}

/// The round trips of one trial, if it made any.
fn round_trips(sample: &Sample) -> Option<Histogram<u64>> {
    let histogram = decode_histogram(sample.latency_histogram.as_deref()?).ok()?;
    (!histogram.is_empty()).then_some(histogram)
}

/// Wall time from one message to the next in nanoseconds.
pub fn interval_ns(case: &CaseRecord, sample: &Sample) -> Option<f64> {
    per(sample.elapsed_ns as f64, intervals(case, sample))
}

/// The intervals between messages that a trial consists of. At a rate the first message is due at once, so that each pair has one interval less than
/// it has messages.
fn intervals(case: &CaseRecord, sample: &Sample) -> u64 {
    let pairs = u64::from(case.load().pairs());
    let first = if case.rate_per_s.is_some() && sample.messages > pairs { pairs } else { 0 };
    sample.messages - first
}

/// The main figure of a trial: its median round trip if it has a histogram, else its throughput.
pub fn headline(sample: &Sample) -> Option<f64> {
    if sample.latency_histogram.is_some() {
        round_trip_p50_ns(sample)
    } else {
        throughput_bytes_per_s(sample)
    }
}

/// Wall time per block (or per round trip) in nanoseconds.
pub fn elapsed_per_block_ns(sample: &Sample) -> Option<f64> {
    per(sample.elapsed_ns as f64, sample.messages)
}

/// CPU time of both ends per block (or per round trip) in nanoseconds.
pub fn cpu_per_block_ns(sample: &Sample) -> Option<f64> {
    per((sample.user_ns + sample.system_ns) as f64, sample.messages)
}

/// CPU time of the server per round trip in nanoseconds. With several pairs the ends are pair after pair, the client first. `None` if there
/// is no server, because one task did both.
pub fn server_cpu_per_trip_ns(sample: &Sample) -> Option<f64> {
    let servers = sample.ends.iter().skip(1).step_by(2);
    let cpu_ns: u64 = servers.map(|end| end.user_ns + end.system_ns).sum();
    per(cpu_ns as f64, sample.messages).filter(|_| sample.ends.len() > 1)
}

/// System calls of both ends per block (or per round trip).
pub fn syscalls_per_block(sample: &Sample) -> Option<f64> {
    per(sample.syscalls? as f64, sample.messages)
}

/// Voluntary context switches of both ends per block (or per round trip).
pub fn voluntary_switches_per_block(sample: &Sample) -> Option<f64> {
    per(sample.voluntary_switches as f64, sample.messages)
}

/// The median of a figure over a case's samples; `None` if no sample has it.
pub fn median_of(case: &CaseRecord, figure: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = case.samples.iter().filter_map(figure).collect();
    estimate::median(&values)
}

pub(crate) fn per(amount: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| amount / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock;
    use model::Workload;

    #[test]
    fn a_trial_of_one_second() {
        let sample =
            Sample { elapsed_ns: 1_000_000_000, bytes: 65536 * 100, messages: 100, ..mock::sample(0) };
        assert_eq!(throughput_bytes_per_s(&sample), Some(6_553_600.0));
        assert_eq!(elapsed_per_block_ns(&sample), Some(1e7));
    }

    /// Expected: a stream that keeps up with its rate has that throughput. Happened: it had more, by a message.
    #[test]
    fn a_paced_stream_has_no_more_than_its_rate() {
        // Messages of 1000 bytes, due at 0, 1, … 10 ms, from each of two senders that have a channel of their own.
        let sample = Sample { elapsed_ns: 10_000_000, bytes: 22_000, messages: 22, ..mock::sample(0) };
        let paced =
            CaseRecord { rate_per_s: Some(1000), pairs: Some(2), ..mock::case(Workload::Stream, Vec::new()) };
        assert_eq!(case_bytes_per_s(&paced, &sample), Some(2e6));
        let at_full_speed = CaseRecord { rate_per_s: None, ..paced.clone() };
        assert_eq!(case_bytes_per_s(&at_full_speed, &sample), throughput_bytes_per_s(&sample));
        let single = Sample { elapsed_ns: 1000, bytes: 2000, messages: 2, ..sample };
        assert_eq!(case_bytes_per_s(&paced, &single), Some(2e9), "a message each has no interval");
    }

    #[test]
    fn a_trial_without_blocks_has_no_figure_per_block() {
        let sample = Sample { elapsed_ns: 0, messages: 0, ..mock::sample(0) };
        assert_eq!(throughput_bytes_per_s(&sample), None);
        assert_eq!(cpu_per_block_ns(&sample), None);
    }

    #[test]
    fn figures_per_block_are_shares_of_both_ends_together() {
        let sample = Sample {
            messages: 4,
            user_ns: 10,
            system_ns: 30,
            syscalls: Some(6),
            voluntary_switches: 2,
            ..mock::sample(0)
        };
        assert_eq!(cpu_per_block_ns(&sample), Some(10.0));
        assert_eq!(syscalls_per_block(&sample), Some(1.5));
        assert_eq!(voluntary_switches_per_block(&sample), Some(0.5));
        assert_eq!(syscalls_per_block(&Sample { syscalls: None, ..sample }), None);
    }

    #[test]
    fn the_servers_of_all_pairs_are_every_second_end() {
        let end = |system_ns| model::EndUsage { user_ns: 1, system_ns, ..model::EndUsage::default() };
        let of = |ends: Vec<model::EndUsage>| {
            server_cpu_per_trip_ns(&Sample { messages: 4, ..Sample::of_ends(ends) })
        };
        assert_eq!(of(vec![end(99), end(7)]), Some(2.0));
        assert_eq!(of(vec![end(99), end(7), end(98), end(15)]), Some(6.0));
        assert_eq!(of(vec![end(99)]), None);
    }

    #[test]
    fn the_main_figure_is_the_round_trip_where_there_is_a_histogram() {
        let trips = Sample { bytes: 5, ..mock::round_trips(0, &[200, 200, 900]) };
        assert_eq!((headline(&trips), round_trip_p50_ns(&trips)), (Some(200.0), Some(200.0)));
        let empty = Sample { bytes: 5, ..mock::round_trips(0, &[]) };
        assert_eq!((headline(&empty), round_trip_p50_ns(&empty)), (None, None));
        let damaged = Sample { latency_histogram: Some("?".to_owned()), ..trips };
        assert_eq!(headline(&damaged), None);
        let stream = mock::stream(0, 5);
        assert_eq!((headline(&stream), round_trip_p50_ns(&stream)), (Some(5.0), None));
    }

    #[test]
    fn trials_without_a_figure_do_not_count_in_its_median() {
        let samples =
            vec![mock::stream(0, 8), Sample { elapsed_ns: 0, ..mock::sample(1) }, mock::stream(2, 2)];
        let case = mock::case(model::Workload::Stream, samples);
        assert_eq!(median_of(&case, throughput_bytes_per_s), Some(5.0));
        assert_eq!(median_of(&case, round_trip_p50_ns), None);
    }
}
