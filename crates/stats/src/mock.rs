//! Samples and cases made by hand, for the tests of this room.

use hdrhistogram::Histogram;
use model::{
    CaseRecord, Check, DataLevel, EndUsage, PayloadKind, Placement, Role, Sample, Spec, Tasks, Wait, Workload,
};

/// An empty sample of a round.
pub(crate) fn sample(round: u32) -> Sample {
    Sample { round, elapsed_ns: 1_000_000_000, ..Sample::default() }
}

/// A second's stream at so many bytes per second, in 64 KiB blocks.
pub(crate) fn stream(round: u32, bytes_per_s: u64) -> Sample {
    Sample { bytes: bytes_per_s, messages: bytes_per_s.div_ceil(65536), ..sample(round) }
}

/// A trial of round trips of these lengths.
pub(crate) fn round_trips(round: u32, times_ns: &[u64]) -> Sample {
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    times_ns.iter().for_each(|time| histogram.record(*time).unwrap());
    let latency_histogram = Some(crate::encode_histogram(&histogram).unwrap());
    Sample { latency_histogram, messages: times_ns.len() as u64, ..sample(round) }
}

/// A sample whose ends used so much; the sums of the sample follow.
pub(crate) fn with_ends(mut sample: Sample, ends: &[EndUsage]) -> Sample {
    sample.syscalls = ends.iter().map(|end| end.syscalls).sum();
    sample.voluntary_switches = ends.iter().map(|end| end.voluntary_switches).sum();
    sample.involuntary_switches = ends.iter().map(|end| end.involuntary_switches).sum();
    sample.user_ns = ends.iter().map(|end| end.user_ns).sum();
    sample.system_ns = ends.iter().map(|end| end.system_ns).sum();
    sample.ends = ends.to_vec();
    sample
}

/// A case of two processes on two cores with these samples.
pub(crate) fn case(workload: Workload, samples: Vec<Sample>) -> CaseRecord {
    CaseRecord {
        mechanism: "pipe".to_owned(),
        spec: Spec::plain("pipe"),
        role: Role::Ranked,
        workload,
        tasks: Tasks::Processes,
        placement: Placement::Cross,
        cpus: vec![0, 1],
        wait: Wait::Block,
        data: DataLevel::Verify,
        check: Some(Check::Xxh3),
        payload: PayloadKind::Random,
        block_bytes: 65536,
        relays: 0,
        zero_copy: None,
        worker: None,
        granted: Default::default(),
        samples,
        throughput: None,
        latency_ns: None,
        noise: None,
        outliers: 0,
        error: None,
    }
}
