//! Why a row has no figures, or not all of them.

use model::{CaseError, CaseRecord, Workload};

use crate::lists::grouped;
use crate::view::RankedRow;

/// The failure and its remedy, once for each different reason of a row. Names the cases if others of the row did not fail.
pub(crate) fn reasons(row: &RankedRow, interrupted: bool) -> Vec<String> {
    let reasons = grouped(row.cases().filter_map(|case| Some((reason(case, interrupted)?, case))));
    let all = row.cases().count();
    let sentence = |(reason, cases): (String, Vec<&CaseRecord>)| {
        if cases.len() == all { reason } else { format!("{}: {reason}", names(&cases, row)) }
    };
    reasons.into_iter().map(sentence).collect()
}

/// Some of a row's cases in words: "stream", "round trips", "stream placed `cross`".
fn names(cases: &[&CaseRecord], row: &RankedRow) -> String {
    let name = |(workload, word): (Workload, &str)| {
        let all = row.cases().filter(|case| case.workload == workload).count();
        let named: Vec<_> = cases.iter().filter(|case| case.workload == workload).collect();
        let first = named.first()?;
        Some(if named.len() == all {
            word.to_owned()
        } else {
            format!("{word} placed `{}`", first.placement)
        })
    };
    let names = [(Workload::Stream, "stream"), (Workload::PingPong, "round trips")];
    names.into_iter().filter_map(name).collect::<Vec<String>>().join(" and ")
}

/// The reason of one case; `None` if it was measured in full.
pub(crate) fn reason(case: &CaseRecord, interrupted: bool) -> Option<String> {
    match &case.error {
        Some(error) => Some(text(error)),
        None if !case.samples.is_empty() => None,
        None if interrupted => Some("not measured: the run was stopped before its first trial".to_owned()),
        None => Some("not measured".to_owned()),
    }
}

/// The message, then the remedy.
pub(crate) fn text(error: &CaseError) -> String {
    let message = error.message.trim_end_matches('.');
    match &error.remedy {
        Some(remedy) => format!("{message}: {remedy}"),
        None => message.to_owned(),
    }
}
