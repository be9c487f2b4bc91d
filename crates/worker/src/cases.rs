//! From a row of a plan to the record of a case.

use std::collections::BTreeMap;

use model::{
    CaseRecord, Check, DataLevel, PayloadKind, Placement, Role, Spec, Tasks, Wait, WorkerCase, Workload,
};

use crate::measure::Row;

/// The case of a row, without figures.
pub(crate) fn case_record(row: &Row, block_bytes: u64) -> CaseRecord {
    let unavailable = || row.writer.program.as_ref().err().or(row.reader.program.as_ref().err()).cloned();
    CaseRecord {
        mechanism: "pipe".to_owned(),
        spec: Spec::plain("pipe"),
        role: Role::Ranked,
        workload: Workload::Stream,
        tasks: Tasks::Processes,
        placement: Placement::Any,
        cpus: Vec::new(),
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
