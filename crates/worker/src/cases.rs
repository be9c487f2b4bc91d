//! From a row of a plan to the record of a case.

use std::collections::BTreeMap;

use model::{
    CaseRecord, Check, DataLevel, PayloadKind, Role, Spec, Tasks, Wait, WorkerCase, WorkerStart, Workload,
};

use crate::measure::Row;
use crate::seats::no_taskset;

/// The case of a row, without figures.
pub(crate) fn case_record(row: &Row, block_bytes: u64) -> CaseRecord {
    let apart = row.start == WorkerStart::Pair && row.cpus.first() != row.cpus.last();
    let missing = row.writer.program.as_ref().err().or(row.reader.program.as_ref().err());
    let unavailable = || missing.cloned().or_else(|| if apart { no_taskset() } else { None });
    CaseRecord {
        mechanism: "pipe".to_owned(),
        spec: Spec::plain("pipe"),
        role: Role::Ranked,
        workload: Workload::Stream,
        tasks: Tasks::Processes,
        placement: row.placement,
        cpus: row.cpus.clone(),
        wait: Wait::Block,
        data: DataLevel::Verify,
        check: Some(Check::Xor),
        payload: PayloadKind::Sequence,
        block_bytes,
        relays: 0,
        zero_copy: None,
        worker: Some(WorkerCase {
            writer: row.writer.end.clone(),
            reader: row.reader.end.clone(),
            start: row.start,
            warmup_bytes: 0,
            system_calls: None,
        }),
        granted: BTreeMap::new(),
        samples: Vec::new(),
        throughput: None,
        latency_ns: None,
        noise: None,
        outliers: 0,
        error: unavailable(),
    }
}
