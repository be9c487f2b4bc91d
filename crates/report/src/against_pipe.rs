//! Every mechanism as a multiple of the plain pipe that was measured beside it.

use model::{BenchRecord, CaseRecord, Role, Spec, Workload};
use stats::{Ratio, figure, paired_ratio};

/// How many times as fast as the plain `pipe` with the same axes: more bytes in the same time for a
/// stream, sooner back for a round trip. `None` where the record has no such pipe.
pub(crate) fn against_pipe(record: &BenchRecord, case: &CaseRecord) -> Option<Ratio> {
    let pipe = plain_pipe(record, case).filter(|_| case.role == Role::Ranked && case.worker.is_none())?;
    match case.workload {
        Workload::Stream => paired_ratio(&case.samples, &pipe.samples, figure::throughput_bytes_per_s),
        Workload::PingPong => paired_ratio(&pipe.samples, &case.samples, figure::round_trip_p50_ns),
    }
}

/// The plain pipe beside a case. How the ends wait may differ (`shm-ring:wait=spin` has no blocking pipe
/// of its own kind); where there are several, the one that waits alike.
fn plain_pipe<'a>(record: &'a BenchRecord, case: &CaseRecord) -> Option<&'a CaseRecord> {
    let plain = Spec::plain("pipe");
    let alike = |other: &&CaseRecord| {
        other.spec == plain
            && other.role == Role::Ranked
            && (other.workload, other.tasks, other.placement) == (case.workload, case.tasks, case.placement)
            && (other.data, other.block_bytes) == (case.data, case.block_bytes)
    };
    record
        .cases
        .iter()
        .filter(alike)
        .min_by_key(|other| (other.wait != case.wait, other.payload != case.payload))
}
