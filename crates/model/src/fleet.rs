//! The record of `hosepipe fleet` (docs/RECORD.md).

use serde::{Deserialize, Serialize};

use crate::{BenchRecord, CaseRecord, RecordHead};

/// The record of `hosepipe fleet`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetRecord {
    /// The fields that every record has.
    #[serde(flatten)]
    pub head: RecordHead,
    /// From the start (see [`RecordHead`]) to the end of the last measurement, in nanoseconds.
    pub wall_ns: u64,
    /// Every expected node, in order of rank.
    pub nodes: Vec<FleetNode>,
    /// Every pair of nodes, once.
    pub meetings: Vec<FleetMeeting>,
}

impl FleetRecord {
    /// Whether no node and no pair of nodes has a sample.
    pub fn is_without_samples(&self) -> bool {
        let mut meetings = self.meetings.iter().flat_map(|meeting| &meeting.cases);
        let mut benches = self.nodes.iter().filter_map(|node| node.bench.as_ref());
        meetings.all(|case| case.samples.is_empty()) && benches.all(|bench| bench.is_without_samples(&[]))
    }
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetNode {
    /// Its name, unique in the record.
    pub name: String,
    /// The address on which it listened; `null` if it never reported.
    pub address: Option<String>,
    /// What it measured alone; `null` if that failed.
    pub bench: Option<BenchRecord>,
    /// Why it has no figures, or did not answer at the end.
    pub failure: Option<String>,
}

/// What two nodes measured between them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
