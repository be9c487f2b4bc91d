//! What is to be run, and what came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Case, CaseError, CaseRecord, DataLevel, Sample, ZeroCopy};

/// Every case of a run and how often, in what order, for how long.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The cases; samples come back in this order, whatever order they are taken in.
    pub cases: Vec<Case>,
    /// Trials of each case.
    pub trials: u32,
    /// Decides the order within each round, and random payloads.
    pub seed: u64,
    /// What the whole run may take, calibration included; `None`: as long as it needs.
    pub budget: Option<Duration>,
}

/// What came of a case.
#[derive(Debug, Clone)]
pub struct CaseOutcome {
    /// The case.
    pub case: Case,
    /// The CPUs of its ends, the sender's first; empty where the scheduler chose.
    pub cpus: Vec<u32>,
    /// What shows that bytes passed by reference; `None` where they were copied.
    pub zero_copy: Option<ZeroCopy>,
    /// Sizes the system granted, in bytes, by name.
    pub granted: BTreeMap<String, u64>,
    /// The samples, in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// Why there are none, or fewer than asked for.
    pub error: Option<CaseError>,
}

impl CaseOutcome {
    /// The case and its raw figures, as records have them; summaries are computed by whoever keeps or shows it.
    pub fn into_record(self) -> CaseRecord {
        let case = self.case;
        CaseRecord {
            check: (case.data == DataLevel::Verify).then_some(case.check),
            role: case.role,
            workload: case.workload,
            tasks: case.tasks,
            placement: case.placement,
            cpus: self.cpus,
            wait: case.wait,
            data: case.data,
            payload: case.payload,
            block_bytes: case.block_bytes,
            relays: case.relays,
            zero_copy: self.zero_copy,
            granted: self.granted,
            samples: self.samples,
            error: self.error,
            ..CaseRecord::new(case.spec)
        }
    }
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// One entry for each case of the plan.
    pub cases: Vec<CaseOutcome>,
    /// True where the run ended before every trial was made: a signal, or the budget.
    pub interrupted: bool,
}
