//! The tail of round trips in cells: a percentile with too few round trips beyond it is not shown.

use model::{CaseRecord, Latency};
use stats::tail::Tail;

use crate::numbers;
use crate::table::{ABSENT, Table};

/// The columns, and how many round trips each needs.
const COLUMNS: [(&str, Tail); 3] = [("p90", Tail::P90), ("p99", Tail::P99), ("p99.9", Tail::P999)];

/// A percentile of round trips; a dash with too few of them, `None` without any.
pub(crate) fn cell(latency: Option<&Latency>, tail: Tail) -> Option<String> {
    let ns = tail.ns(latency?);
    Some(ns.map_or_else(|| ABSENT.to_owned(), |ns| numbers::time(ns as f64)))
}

/// The same for CSV: no value with too few round trips.
pub(crate) fn digits(case: &CaseRecord, tail: Tail) -> Option<String> {
    Some(tail.ns(case.latency_ns.as_ref()?)?.to_string())
}

/// Adds a sentence for each percentile that these cases, at least one of them, have too few round trips for.
pub(crate) fn explain<'a>(table: &mut Table, cases: impl Iterator<Item = &'a CaseRecord>) {
    let fewest = cases.filter_map(|case| Some(case.latency_ns.as_ref()?.count)).min();
    for (column, tail) in COLUMNS {
        let needed = tail.trips_min();
        if fewest.is_some_and(|count| count < needed) {
            let number = numbers::grouped(needed as f64, 0);
            table.explain(
                column,
                &format!("{column}: of at least {number} round trips, so that 10 are beyond it; {ABSENT} of fewer."),
            );
        }
    }
}
