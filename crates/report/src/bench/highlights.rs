//! The main figures, at the top of the page.

use model::{BenchRecord, CaseRecord, DataLevel, Role, Workload};

use crate::document::Highlight;
use crate::estimate::{estimate_and_interval, speed};
use crate::groups::{Pipes, References};
use crate::lists::distinct;
use crate::numbers;
use crate::view::ranked;

/// The fastest checked stream and the shortest round trip, and for comparison the plain pipe and the ceiling.
pub(crate) fn highlights(record: &BenchRecord) -> Vec<Highlight> {
    let own = |workload: Workload| {
        ranked(record).filter(move |case| case.worker.is_none() && case.workload == workload)
    };
    let fastest = best(own(Workload::Stream).filter(|case| case.data == DataLevel::Verify));
    let pipes = Pipes::from_record(record);
    let pipe = fastest.and_then(|fastest| pipes.pipe(fastest).filter(|pipe| pipe.spec != fastest.spec));
    let pipe = pipe.filter(|pipe| pipe.throughput.is_some());
    let ceiling = best(References::from_record(record).of_role(Role::Ceiling));
    let is_placed = distinct(ranked(record).map(|case| case.placement)).len() > 1;
    let highlight = |case: &CaseRecord, what: &str| {
        let size = numbers::size(case.block_bytes);
        let mut what = match case.workload {
            Workload::Stream => format!("{what}, {size} blocks"),
            Workload::PingPong => format!("{what} of {size}"),
        };
        if is_placed && case.role == Role::Ranked {
            what += &format!(", placed `{}`", case.placement);
        }
        let [figure, interval] = estimate_and_interval(case).unwrap_or_default();
        Highlight { figure, interval, what, spec: case.spec.to_string() }
    };
    let highlights = [
        (fastest, "fastest stream, every byte checked"),
        (pipe, "the plain pipe, for comparison"),
        (best(own(Workload::PingPong)), "lowest median round trip"),
        (ceiling, "ceiling: a memory copy"),
    ];
    highlights.into_iter().filter_map(|(case, what)| Some(highlight(case?, what))).collect()
}

/// The case with the highest speed.
fn best<'a>(cases: impl Iterator<Item = &'a CaseRecord>) -> Option<&'a CaseRecord> {
    let with_speed = cases.filter_map(|case| Some((speed(case)?, case)));
    with_speed.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, case)| case)
}
