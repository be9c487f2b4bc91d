//! Why a row has no figures, or not all of them.

use model::{CaseError, CaseRecord, Workload};

use crate::view::RankedRow;

/// What happened and what to try, one entry for each different reason of a row. Says which figures are meant where others of
/// the row went well.
pub(crate) fn reasons(row: &RankedRow, interrupted: bool) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<&CaseRecord>)> = Vec::new();
    for case in row.cases() {
        let Some(reason) = reason(case, interrupted) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, cases)) => cases.push(case),
            None => reasons.push((reason, vec![case])),
        }
    }
    let all = row.cases().count();
    let sentence = |(reason, cases): (String, Vec<&CaseRecord>)| {
        if cases.len() == all { reason } else { format!("{}: {reason}", whose(&cases, row)) }
    };
    reasons.into_iter().map(sentence).collect()
}

/// Which of a row's cases are meant: "stream", "round trips", "pinned".
fn whose(cases: &[&CaseRecord], row: &RankedRow) -> String {
    let all_of = |workload| row.cases().filter(move |case| case.workload == workload).count();
    let mut words: Vec<String> = Vec::new();
    for (workload, word) in [(Workload::Stream, "stream"), (Workload::PingPong, "round trips")] {
        let meant: Vec<&&CaseRecord> = cases.iter().filter(|case| case.workload == workload).collect();
        match meant.as_slice() {
            [] => {}
            all if all.len() == all_of(workload) => words.push(word.to_owned()),
            some => words.push(format!("{word} placed `{}`", some[0].placement)),
        }
    }
    words.join(" and ")
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
