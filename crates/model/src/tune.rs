//! The record of `hosepipe tune` (docs/RECORD.md).

use serde::{Deserialize, Serialize};

use crate::{Ratio, RecordHead};

/// The record of `hosepipe tune`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TuneRecord {
    /// The fields that every record has.
    #[serde(flatten)]
    pub head: RecordHead,
    /// The text as it was given.
    pub pipeline: String,
    /// The shell that ran it.
    pub shell: String,
    /// The text that is faster; the given one where nothing faster was found.
    pub text: String,
    /// Whether every run of `text` in the last contest gave the output and the status of `pipeline`; false where that was not held.
    pub equal: bool,
    /// Median time of the given text in the last contest, in seconds; `null` if it was not held.
    pub original_s: Option<f64>,
    /// The same of `text`.
    pub tuned_s: Option<f64>,
    /// The time of `text` as a multiple of that of `pipeline`, from rounds of both; 1 where nothing faster was found.
    pub ratio: f64,
    /// Its 95 % interval, after fewer than six rounds the smallest and the largest; `null` where nothing faster was found.
    pub interval: Option<Ratio>,
    /// Rounds of the last contest.
    pub rounds: u32,
    /// Bytes of output.
    pub output_bytes: u64,
    /// What was changed, in the order in which it was accepted.
    pub changes: Vec<TuneChange>,
    /// What was tried and left out.
    pub left_out: Vec<TuneLeftOut>,
    /// Time of the whole search, in seconds.
    pub search_s: f64,
    /// Whether a signal ended it before it was complete.
    pub interrupted: bool,
}

impl TuneRecord {
    /// Whether something faster was found.
    pub fn is_faster(&self) -> bool {
        self.text != self.pipeline
    }
}

/// A change that makes a pipeline faster.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TuneChange {
    /// The name of the rule (docs/TUNE.md).
    pub rule: String,
    /// The number of the stage in the given text, from 1; `null` if it is about all of it.
    pub stage: Option<usize>,
    /// What it changes, as it was before: stages with `|` between them.
    pub before: String,
    /// The same as it is then; empty if the stage is left out.
    pub after: String,
    /// The time with it as a multiple of the time without it.
    pub ratio: Option<Ratio>,
    /// Why the output is the same on every input; absent if it was found to be so on this one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal_because: Option<String>,
    /// On what other input the output could differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
}

/// A change that was tried and left out.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TuneLeftOut {
    /// The name of the rule.
    pub rule: String,
    /// As in [`TuneChange`].
    pub stage: Option<usize>,
    /// What it would have made of its stages.
    pub after: String,
    /// Why it is left out.
    pub reason: TuneReason,
    /// The time with it as a multiple of the time without it; `null` where it was not timed.
    pub ratio: Option<f64>,
}

/// Why a change is left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TuneReason {
    /// The output was another one.
    Output,
    /// The exit status was another one, or it could not be run.
    Status,
    /// It needs more than half of the free memory.
    Memory,
    /// It was not certainly faster.
    #[default]
    NotFaster,
    /// There was no time to try it.
    NoTime,
}
