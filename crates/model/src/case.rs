//! A case: one cell of the matrix of measurements.

use serde::{Deserialize, Serialize};

use crate::{Check, DataLevel, PayloadKind, Placement, Spec, Tasks, Wait, Workload};

/// How much one trial moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// As much as makes the trial long enough for the clock and short enough for the budget.
    Adaptive,
    /// This many bytes, rounded up to whole blocks.
    Bytes(u64),
    /// This many blocks.
    Blocks(u64),
}

/// What a row is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A mechanism among others.
    Ranked,
    /// What the harness itself costs.
    Floor,
    /// What plain memory copy reaches.
    Ceiling,
    /// One end only (the generator into /dev/null): a check of the sender, not a transport.
    Reference,
}

/// One cell of the matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The mechanism and its options.
    pub spec: Spec,
    /// What the row is for.
    pub role: Role,
    /// Stream or ping-pong.
    pub workload: Workload,
    /// Who holds the ends.
    pub tasks: Tasks,
    /// Where they sit, as asked.
    pub placement: Placement,
    /// How they wait.
    pub wait: Wait,
    /// What they do with the data.
    pub data: DataLevel,
    /// How the receiver checks, under `verify`.
    pub check: Check,
    /// What the data is.
    pub payload: PayloadKind,
    /// Bytes handed over in one call.
    pub block_bytes: u64,
    /// Copying tasks between the two ends (`--chain`).
    pub relays: u32,
    /// How much a trial moves.
    pub amount: Amount,
}

impl Case {
    /// A stream of 64 KiB blocks between two processes, checked, where the scheduler puts them: what is not said otherwise.
    pub fn stream(spec: Spec) -> Self {
        Self {
            spec,
            role: Role::Ranked,
            workload: Workload::Stream,
            tasks: Tasks::Processes,
            placement: Placement::Any,
            wait: Wait::Block,
            data: DataLevel::Verify,
            check: Check::Xxh3,
            payload: PayloadKind::Random,
            block_bytes: 64 << 10,
            relays: 0,
            amount: Amount::Adaptive,
        }
    }
}
