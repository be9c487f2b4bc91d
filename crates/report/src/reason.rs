//! Why a row has no figures, or not all of them.

use model::{CaseError, CaseRecord, Workload};

use crate::view::Row;

/// What happened and what to try, one entry for each different reason of a row. Says which workload is
/// meant where the other one went well.
pub(crate) fn reasons(row: &Row, interrupted: bool) -> Vec<String> {
    let all: Vec<(&CaseRecord, String)> =
        row.cases().filter_map(|case| Some((case, reason(case, interrupted)?))).collect();
    let cases = row.cases().count();
    match all.as_slice() {
        [(_, one), (_, other)] if one == other => vec![one.clone()],
        [(_, only)] if cases == 1 => vec![only.clone()],
        several => {
            several.iter().map(|(case, reason)| format!("{}: {reason}", what(case.workload))).collect()
        }
    }
}

/// The reason of one case; `None` where it was measured in full.
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

fn what(workload: Workload) -> &'static str {
    match workload {
        Workload::Stream => "stream",
        Workload::PingPong => "round trips",
    }
}
