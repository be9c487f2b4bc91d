//! From a row of a plan to the record of a case.

use model::{CaseRecord, Check, PayloadKind, Spec, WorkerCase, WorkerStart};

use crate::measure::Row;
use crate::seats::no_taskset;

/// The case of a row, without figures.
pub(crate) fn case_record(row: &Row, block_bytes: u64) -> CaseRecord {
    let apart = row.start == WorkerStart::Pair && row.cpus.first() != row.cpus.last();
    let missing = row.writer.program.as_ref().err().or(row.reader.program.as_ref().err());
    let unavailable = || missing.cloned().or_else(|| if apart { no_taskset() } else { None });
    CaseRecord {
        placement: row.placement,
        cpus: row.cpus.clone(),
        check: Some(Check::Xor),
        payload: PayloadKind::Sequence,
        block_bytes,
        worker: Some(WorkerCase {
            writer: row.writer.end.clone(),
            reader: row.reader.end.clone(),
            start: row.start,
            warmup_bytes: 0,
            system_calls: None,
        }),
        error: unavailable(),
        ..CaseRecord::new(Spec::plain("pipe"))
    }
}
