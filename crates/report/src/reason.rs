//! Why a case has no figures, or not all of them.

use model::{CaseError, CaseRecord};

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
