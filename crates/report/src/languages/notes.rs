//! What a reader must know before believing the tables of workers.

use model::{BenchRecord, Role};
use stats::is_mixed;

use super::{buffers, is_pair, speed, title, worker};
use crate::{numbers, remarks};

/// Remarks under the tables; none where nothing was measured.
pub(super) fn all(record: &BenchRecord) -> Vec<String> {
    let measured = || record.cases.iter().filter(|case| worker(case).is_some() && speed(case) > 0.0);
    if measured().next().is_none() {
        return Vec::new();
    }
    let ceiling = record.cases.iter().find(|case| case.role == Role::Ceiling && speed(case) > 0.0);
    let mut notes: Vec<String> = Vec::new();
    notes.extend(ceiling.map(|case| format!("ceiling {} {}", case.spec, numbers::throughput(speed(case)))));
    let mut sockets: Vec<String> = measured()
        .filter(|case| case.mechanism == "socketpair")
        .filter_map(|case| Some(title(worker(case)?)))
        .collect();
    sockets.dedup();
    if !sockets.is_empty() {
        notes.push(format!("{}: a pair of sockets joins it to its child, not a pipe.", sockets.join(", ")));
    }
    if measured().any(is_pair) {
        notes.push("CPU s/GB is of whole processes, with start-up and warm-up.".to_owned());
    }
    if measured().any(is_mixed) {
        notes.push(
            "The scheduler used one CPU in some trials and two in others, so the median is between two figures; --place same \
             and --place cross measure each."
                .to_owned(),
        );
    }
    notes.extend(remarks::single_trial(record));
    notes.extend(remarks::outliers(record));
    notes.extend(buffers::places(record));
    notes
}
