//! The record of `hosepipe reproduce`: a published study that was run on this machine (docs/RECORD.md).
//! It does not contain the published figures, which are in the crate `study`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CaseRecord, CompareResult, Host, RecordHead};

/// The record of `hosepipe reproduce`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyRecord {
    /// The fields that every record has.
    #[serde(flatten)]
    pub head: RecordHead,
    /// The study's name: `bradford`, `comp517`, `kernel-pipe`, `stover`.
    pub study: String,
    /// The scale: 1 is the study's own amounts.
    pub scale: f64,
    /// Seed of the order within rounds and of random payloads.
    pub seed: u64,
    /// Whether a signal ended it before every part was run.
    pub interrupted: bool,
    /// Its parts, in the order in which they were run.
    pub parts: Vec<StudyPart>,
}

/// One part of a study: its settings and the raw figures. Each part uses some of the lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyPart {
    /// Its name within the study.
    pub name: String,
    /// Requested runs of each case.
    pub series: u32,
    /// False if a signal ended it early: then it is run again when the record is resumed.
    pub complete: bool,
    /// Duration of the part, in seconds.
    pub elapsed_s: f64,
    /// The settings, by name, for the user: scaled amounts, and settings that the study does not name.
    pub settings: BTreeMap<String, String>,
    /// The machine, if it is not the record's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<Host>>,
    /// Streams measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseRecord>,
    /// Pipelines measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<CompareResult>,
    /// Other figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Measure>,
    /// Facts about mechanisms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mechanisms: Vec<MechanismFacts>,
    /// Remarks for the reader: what was omitted, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// A quantity measured once or several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measure {
    /// What it is, within its part.
    pub name: String,
    /// Its unit, such as `s`, `ns`, `bytes`.
    pub unit: String,
    /// The raw values, in the order in which they were taken.
    pub samples: Vec<f64>,
    /// Why there are no values, or fewer than requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Measure {
    /// A quantity without values.
    pub fn new(name: &str, unit: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), samples: Vec::new(), error: None }
    }
}

/// The properties of a mechanism, from the registry of the hosepipe that made the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MechanismFacts {
    /// Its name.
    pub name: String,
    /// Whether programs can use it as standard input and output.
    pub filters: bool,
    /// Whether a block that is sent in one call arrives as one block.
    pub keeps_boundaries: bool,
    /// Whether sent bytes stay readable after the sender has ended.
    pub stores_data: bool,
    /// Whether the two ends may be on different hosts.
    pub crosses_hosts: bool,
    /// Whether it has a name or number that stays after its users until it is removed.
    pub needs_cleanup: bool,
    /// The largest message here; empty without messages or without a limit.
    pub largest_message: String,
    /// Lines of code in its file and folder, without blank lines, comments and tests.
    pub lines: u32,
    /// The same including the shared files that it uses.
    pub lines_with_borrowed: u32,
}
