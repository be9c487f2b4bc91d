//! The record of `hosepipe reproduce`: a published study run here, part by part (docs/RECORD.md).
//! Published figures are not in it: they are data of the room `study`, looked up by the study's name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CaseRecord, CompareResult, Host, RecordHead};

/// The record of `hosepipe reproduce`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// What every record begins with.
    #[serde(flatten)]
    pub head: RecordHead,
    /// The study's name: `bradford`, `comp517`, `kernel-pipe`, `stover`.
    pub study: String,
    /// The share of the study's amounts that was run: 1 is the study's own size.
    pub scale: f64,
    /// Seed of the order within rounds and of random payloads.
    pub seed: u64,
    /// True where a signal ended it before every part was made.
    pub interrupted: bool,
    /// Its parts, in the order in which they were run.
    pub parts: Vec<StudyPart>,
}

/// One part of a study: what was set, and the raw figures. Each part fills the lists that it has a use for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyPart {
    /// Its name within the study.
    pub name: String,
    /// How often each of its cases was to be run.
    pub series: u32,
    /// False where a signal ended it early: it is run again when the record is resumed.
    pub complete: bool,
    /// What the part took, in seconds.
    pub elapsed_s: f64,
    /// What was set, by name, for people: amounts after scaling, what the study did not say.
    pub settings: BTreeMap<String, String>,
    /// The machine, where it is another one than the record's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<Host>>,
    /// Streams measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseRecord>,
    /// Pipelines measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<CompareResult>,
    /// What is neither.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Measure>,
    /// Facts about mechanisms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mechanisms: Vec<MechanismFacts>,
    /// What the reader of the figures should know: what was left out, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// A quantity measured once or several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// What it is, within its part.
    pub name: String,
    /// Its unit, as in `s`, `ns`, `bytes`.
    pub unit: String,
    /// The raw values, in the order in which they were taken.
    pub samples: Vec<f64>,
    /// Why there are none, or fewer than asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Measure {
    /// A quantity of which nothing is known yet.
    pub fn new(name: &str, unit: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), samples: Vec::new(), error: None }
    }
}

/// What a mechanism is good for, from the registry of the hosepipe that made the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MechanismFacts {
    /// Its name.
    pub name: String,
    /// Programs that know only standard input and output can use it.
    pub filters: bool,
    /// A block sent in one call arrives as one block.
    pub keeps_boundaries: bool,
    /// What was sent stays readable after the sender has gone.
    pub stores_data: bool,
    /// The two ends may be on different hosts.
    pub crosses_hosts: bool,
    /// It has a name or number that outlives its users unless it is removed.
    pub needs_cleanup: bool,
    /// The largest message it takes here; empty where it has no messages or no such limit.
    pub largest_message: String,
    /// Lines of code of its own file and folder, blank lines, comments and tests apart.
    pub lines: u32,
    /// The same with the files of the registry that it borrows from.
    pub lines_with_borrowed: u32,
}
