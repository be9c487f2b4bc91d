//! The record of `hosepipe fleet` (docs/RECORD.md).

use serde::{Deserialize, Serialize};

use crate::{BenchRecord, CaseRecord, RecordHead};

/// The record of `hosepipe fleet`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetRecord {
    /// What every record begins with.
    #[serde(flatten)]
    pub head: RecordHead,
    /// From then until all was measured.
    pub wall_ns: u64,
    /// Every node that was to be there, by rank.
    pub nodes: Vec<FleetNode>,
    /// Every pair, each once.
    pub meetings: Vec<FleetMeeting>,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetNode {
    /// What it is called; no two are called the same.
    pub name: String,
    /// Where it listened for the others; `null` where it never came.
    pub address: Option<String>,
    /// What it measured by itself; `null` where that failed.
    pub bench: Option<BenchRecord>,
    /// Why it lacks figures, or was not there at the end.
    pub failure: Option<String>,
}

/// What two nodes measured between them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetMeeting {
    /// The rank of the node that measured.
    pub from: usize,
    /// The rank of the node that listened.
    pub to: usize,
    /// What was measured, with its raw samples.
    pub cases: Vec<CaseRecord>,
    /// Why there are no figures.
    pub failure: Option<String>,
}
