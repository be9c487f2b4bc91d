//! The figure of a case, for charts.

use model::{CaseRecord, Workload};

use crate::figure::Cell;
use crate::reason::reason;

/// The figure of a case and the ends of its interval.
pub(crate) fn estimated(case: &CaseRecord) -> Option<[f64; 3]> {
    match case.workload {
        Workload::Stream => {
            case.throughput.as_ref().map(|found| [found.median_bytes_per_s, found.low, found.high])
        }
        Workload::PingPong => {
            let found = case.latency_ns.as_ref()?;
            Some([found.p50, found.p50_low, found.p50_high].map(|ns| ns as f64))
        }
    }
}

/// The same as a bar or a cell of a matrix; without a figure, with the reason.
pub(crate) fn figure_cell(case: &CaseRecord, interrupted: bool) -> Cell {
    Cell::new(estimated(case), case.samples.len(), reason(case, interrupted).unwrap_or_default())
}
