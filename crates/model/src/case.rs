//! A case: one cell of the matrix of measurements.

use serde::{Deserialize, Serialize};

use crate::{Check, DataLevel, PayloadKind, Placement, Spec, Tasks, Toward, Wait, Workload};

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

/// How much is asked of a mechanism at once; each part only where somebody asked for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load {
    /// Independent pairs of ends at once, each with a channel of its own (`--pairs`).
    pub pairs: Option<u32>,
    /// Senders that share the sending end of one channel (`--senders`).
    pub senders: Option<u32>,
    /// Round trips that each asker begins in a second, whether or not the last one has come back (`--rate`).
    pub rate_per_s: Option<u32>,
}

impl Load {
    /// Whether anything was asked for.
    pub fn is_asked(&self) -> bool {
        *self != Self::default()
    }

    /// How many channels there are.
    pub fn pairs(&self) -> u32 {
        self.pairs.unwrap_or(1)
    }

    /// How many senders each channel has.
    pub fn senders(&self) -> u32 {
        self.senders.unwrap_or(1)
    }
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
    /// Which way it goes where one end is on another host (`--peer`); `None` where both are here.
    pub toward: Option<Toward>,
    /// How much is asked of it at once.
    pub load: Load,
    /// How much a trial moves, of each pair and of each sender.
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
            toward: None,
            load: Load::default(),
            amount: Amount::Adaptive,
        }
    }
}
