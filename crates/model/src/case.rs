//! A case: one cell of the matrix of measurements.

use serde::{Deserialize, Serialize};

use crate::{Alignment, Check, DataLevel, Direction, PayloadKind, Placement, Spec, Tasks, Wait, Workload};

/// How much one trial moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Amount {
    /// Enough for the clock's resolution, and not too much for the budget.
    Adaptive,
    /// This many bytes, rounded up to whole blocks.
    Bytes(u64),
    /// This many blocks.
    Blocks(u64),
}

crate::words! {
    /// The purpose of a row.
    pub recorded enum Role {
        /// A mechanism among others.
        Ranked = "ranked",
        /// The cost of the harness itself.
        Floor = "floor",
        /// Plain memory copy.
        Ceiling = "ceiling",
        /// One end only (the generator into /dev/null): a check of the sender, not a transport.
        Reference = "reference",
    }
}

/// The load of a mechanism; each part only if the user requested it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Load {
    /// Independent pairs of ends at the same time, each with its own channel (`--pairs`).
    pub pairs: Option<u32>,
    /// Senders that share the sending end of one channel (`--senders`).
    pub senders: Option<u32>,
    /// Receivers that share the receiving end of one channel (`--receivers`).
    pub receivers: Option<u32>,
    /// Messages that each sender sends in a second, or round trips that each client begins, independent of the last one (`--rate`).
    pub rate_per_s: Option<u32>,
}

impl Load {
    /// Whether the user requested a load.
    pub fn is_requested(&self) -> bool {
        *self != Self::default()
    }

    /// Number of channels.
    pub fn pairs(&self) -> u32 {
        self.pairs.unwrap_or(1)
    }

    /// Number of senders of each channel.
    pub fn senders(&self) -> u32 {
        self.senders.unwrap_or(1)
    }

    /// Number of receivers of each channel.
    pub fn receivers(&self) -> u32 {
        self.receivers.unwrap_or(1)
    }

    /// Number of senders and receivers of each channel.
    pub fn ends(&self) -> u32 {
        self.senders() + self.receivers()
    }

    /// Whether several tasks hold one end.
    pub fn shares_an_end(&self) -> bool {
        self.senders.or(self.receivers).is_some()
    }

    /// Whether more than one task holds an end: only then can blocks be mixed or divided.
    pub fn has_several_at_an_end(&self) -> bool {
        self.ends() > 2
    }
}

/// One cell of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The mechanism and its options.
    pub spec: Spec,
    /// The purpose of the row.
    pub role: Role,
    /// Stream or ping-pong.
    pub workload: Workload,
    /// The tasks that run the ends.
    pub tasks: Tasks,
    /// Their placement, as requested.
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
    /// Where the ends' buffers begin (`--align`).
    pub align: Alignment,
    /// Copying tasks between the two ends (`--chain`).
    pub relays: u32,
    /// The direction if one end is on another host (`--peer`); `None` if both are on this host.
    pub direction: Option<Direction>,
    /// Its load.
    pub load: Load,
    /// What each pair and each sender moves in a trial.
    pub amount: Amount,
}

impl Case {
    /// The defaults: a verified stream of 64 KiB blocks between two processes, placed by the scheduler.
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
            align: Alignment::default(),
            relays: 0,
            direction: None,
            load: Load::default(),
            amount: Amount::Adaptive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_requested_load_there_is_one_sender_and_one_receiver() {
        let load = Load::default();
        assert!(!load.is_requested() && !load.shares_an_end());
        assert_eq!((load.pairs(), load.senders(), load.receivers(), load.ends()), (1, 1, 1, 2));
    }

    #[test]
    fn a_requested_load_is_counted() {
        let pairs = Load { pairs: Some(3), ..Load::default() };
        assert!(pairs.is_requested() && !pairs.shares_an_end());
        assert_eq!((pairs.pairs(), pairs.ends()), (3, 2));
        let senders = Load { senders: Some(4), ..Load::default() };
        assert!(senders.shares_an_end());
        assert_eq!((senders.senders(), senders.receivers(), senders.ends()), (4, 1, 5));
        let receivers = Load { receivers: Some(5), ..Load::default() };
        assert!(receivers.shares_an_end());
        assert_eq!((receivers.senders(), receivers.receivers(), receivers.ends()), (1, 5, 6));
    }
}
