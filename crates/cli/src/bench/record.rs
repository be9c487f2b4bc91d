//! From what came of a run to the record that is kept.

use std::time::SystemTime;

use engine::{CaseOutcome, Plan, RunOutcome};
use model::{BenchRecord, CaseRecord, DataLevel, Host, SCHEMA, Settings};

use crate::record::{arguments, rfc3339, tool};

/// Makes the record and its summaries.
///
/// # Errors
/// A histogram that does not read back.
pub(crate) fn make(
    plan: &Plan,
    outcome: RunOutcome,
    host: Host,
    started: SystemTime,
) -> anyhow::Result<BenchRecord> {
    let mut cases: Vec<CaseRecord> = outcome.cases.into_iter().map(case_record).collect();
    for case in &mut cases {
        stats::summarise(case)?;
    }
    Ok(BenchRecord {
        schema: SCHEMA.to_owned(),
        tool: tool(),
        host,
        arguments: arguments(),
        started: rfc3339(started),
        settings: Settings { seed: plan.seed, trials: plan.trials, interrupted: outcome.interrupted },
        cases,
    })
}

fn case_record(outcome: CaseOutcome) -> CaseRecord {
    let case = outcome.case;
    CaseRecord {
        mechanism: case.spec.mechanism.clone(),
        check: (case.data == DataLevel::Verify).then_some(case.check),
        spec: case.spec,
        role: case.role,
        workload: case.workload,
        tasks: case.tasks,
        placement: case.placement,
        cpus: outcome.cpus,
        wait: case.wait,
        data: case.data,
        payload: case.payload,
        block_bytes: case.block_bytes,
        relays: case.relays,
        zero_copy: outcome.zero_copy,
        worker: None,
        granted: outcome.granted,
        samples: outcome.samples,
        throughput: None,
        latency_ns: None,
        noise: None,
        outliers: 0,
        error: outcome.error,
    }
}
