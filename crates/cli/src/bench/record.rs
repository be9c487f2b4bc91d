//! From what came of a run to the record that is kept.

use std::time::SystemTime;

use model::{BenchRecord, CaseRecord, Host, SCHEMA, Settings};

use stats::Looks;

use crate::record::{arguments, rfc3339, tool};

/// Makes the record and its summaries.
///
/// # Errors
/// A histogram that does not read back.
pub(crate) fn make(
    settings: Settings,
    mut cases: Vec<CaseRecord>,
    host: Host,
    started: SystemTime,
) -> anyhow::Result<BenchRecord> {
    let looks = if settings.precision_percent.is_some() { Looks::Repeatedly } else { Looks::Once };
    for case in &mut cases {
        stats::summarise(case, looks)?;
    }
    Ok(BenchRecord {
        schema: SCHEMA.to_owned(),
        tool: tool(),
        host,
        arguments: arguments(),
        started: rfc3339(started),
        settings,
        cases,
    })
}
