//! The tail of round trips in cells: a percentile with too few round trips beyond it is not shown.

use model::{CaseRecord, Latency};
use stats::tail::Tail;

use crate::limits::CASES_MAX;
use crate::lists::{first_if_any, joined_if_any};
use crate::unit::Unit;
use crate::value::{ABSENT, Value};
use crate::{numbers, unsteady};

/// The columns, and how many round trips each needs.
const COLUMNS: [(&str, Tail); 3] = [("p90", Tail::P90), ("p99", Tail::P99), ("p99.9", Tail::P999)];

/// A percentile of round trips; a dash with too few of them, `None` without any.
pub(crate) fn cell(latency: Option<&Latency>, tail: Tail) -> Option<Value> {
    Some(tail.ns(latency?).map_or(Value::Absent, |ns| Unit::WholeNs.of(ns as f64)))
}

/// How many round trips each percentile needs that some of these cases have too few for.
pub(crate) fn remark<'a>(cases: impl Iterator<Item = &'a CaseRecord>) -> Option<String> {
    let fewest = cases.filter_map(|case| Some(case.latency_ns.as_ref()?.count)).min()?;
    let unknown = COLUMNS.iter().filter(|(_, tail)| fewest < tail.trips_min());
    let needed =
        unknown.map(|(name, tail)| format!("{name} needs {}", numbers::grouped(tail.trips_min() as f64, 0)));
    let needed = joined_if_any(needed, ", ")?;
    Some(format!(
        "A percentile is shown ({ABSENT} if not) where at least 10 round trips are beyond it: {needed} of them."
    ))
}

/// The intervals of the 99th percentiles that are shown.
pub(crate) fn intervals<'a>(cases: impl Iterator<Item = &'a CaseRecord>) -> Option<String> {
    let time = |ns: u64| numbers::time(ns as f64);
    let known = cases.filter_map(|case| {
        let latency = case.latency_ns.as_ref().filter(|latency| Tail::P99.ns(latency).is_some())?;
        let (low, high) = latency.tails.as_ref()?.p99?;
        let range = match high {
            Some(high) => format!("{} to {}", time(low), time(high)),
            None => format!("at least {}", time(low)),
        };
        Some(format!("{} {range}", unsteady::name(case)))
    });
    let ranges = first_if_any(known, CASES_MAX, ", ")?;
    Some(format!("95 % intervals of p99, from how much trials differ: {ranges}."))
}
