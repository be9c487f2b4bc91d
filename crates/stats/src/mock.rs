//! Invented samples and cases for the tests of this crate.

use hdrhistogram::Histogram;
use model::{CaseRecord, Placement, Sample, Spec, Workload};

/// An empty sample of a round.
pub(crate) fn sample(round: u32) -> Sample {
    Sample { round, elapsed_ns: 1_000_000_000, ..Sample::default() }
}

/// One second of a stream, in 64 KiB blocks.
pub(crate) fn stream(round: u32, bytes_per_s: u64) -> Sample {
    Sample { bytes: bytes_per_s, messages: bytes_per_s.div_ceil(65536), ..sample(round) }
}

/// A trial of round trips of these lengths.
pub(crate) fn round_trips(round: u32, times_ns: &[u64]) -> Sample {
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    times_ns.iter().for_each(|time| histogram.record(*time).unwrap());
    let latency_histogram = Some(model::encode_histogram(&histogram).unwrap());
    Sample { latency_histogram, messages: times_ns.len() as u64, ..sample(round) }
}

/// A case of two processes on two cores with these samples.
pub(crate) fn case(workload: Workload, samples: Vec<Sample>) -> CaseRecord {
    CaseRecord {
        workload,
        placement: Placement::Cross,
        cpus: vec![0, 1],
        samples,
        ..CaseRecord::new(Spec::plain("pipe"))
    }
}

/// Approximately a standard normal value: the sum of twelve uniform ones.
pub(crate) fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}
