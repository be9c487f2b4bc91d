//! The few figures a reader came for, large, at the top of the page.

use model::{BenchRecord, CaseRecord, DataLevel, Role, Workload};

use crate::case_figure::figure_text;
use crate::document::Highlight;
use crate::numbers;
use crate::view::ranked;

/// The fastest checked stream, the soonest round trip and, to hold them against, the plain pipe and the ceiling.
pub(crate) fn highlights(record: &BenchRecord) -> Vec<Highlight> {
    let own = || ranked(record).filter(|case| case.worker.is_none());
    let speed = |case: &CaseRecord| case.throughput.as_ref().map_or(0.0, |found| found.median_bytes_per_s);
    let trip = |case: &CaseRecord| case.latency_ns.as_ref().map_or(u64::MAX, |found| found.p50);
    let checked = own().filter(|case| case.throughput.is_some() && case.data == DataLevel::Verify);
    let fastest = checked.max_by(|a, b| speed(a).total_cmp(&speed(b)));
    let soonest = own().filter(|case| case.latency_ns.is_some()).min_by_key(|case| trip(case));
    let plain = |case: &&CaseRecord| case.spec == model::Spec::plain("pipe");
    let pipe = fastest.filter(|case| !plain(case)).and_then(|fastest| {
        let beside = own().filter(plain).filter(|case| case.throughput.is_some());
        let mut beside = beside.filter(|case| {
            (case.data, case.block_bytes, case.workload)
                == (fastest.data, fastest.block_bytes, Workload::Stream)
        });
        beside.next()
    });
    let ceiling = record.cases.iter().filter(|case| case.role == Role::Ceiling && case.throughput.is_some());
    let ceiling = ceiling.max_by(|a, b| speed(a).total_cmp(&speed(b)));
    let stream = |case: &CaseRecord, what: &str| Highlight {
        figure: figure_text(case).unwrap_or_default(),
        what: format!("{what}, {} blocks", numbers::size(case.block_bytes)),
        whose: case.spec.to_string(),
    };
    let soonest = soonest.map(|case| Highlight {
        figure: figure_text(case).unwrap_or_default(),
        what: format!("lowest median round trip of {}", numbers::size(case.block_bytes)),
        whose: case.spec.to_string(),
    });
    [
        fastest.map(|case| stream(case, "fastest stream, every byte checked")),
        pipe.map(|case| stream(case, "the plain pipe beside it")),
        soonest,
        ceiling.map(|case| stream(case, "ceiling: a memory copy")),
    ]
    .into_iter()
    .flatten()
    .collect()
}
