//! The answer of `hosepipe recommend`, which its record has in addition to the figures.

use serde::{Deserialize, Serialize};

use crate::Spec;

/// Which mechanism to take, why, and a program that sets it up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recommendation {
    /// The question, as a heading.
    pub title: String,
    /// The mechanism to take; `null` if none fits.
    pub taken: Option<Spec>,
    /// The sentences of the answer.
    pub sentences: Vec<String>,
    /// The language of the programs: `c`, `rust` or `python`; of two programs those of the sender and the receiver: `rust,python`.
    pub language: String,
    /// Seconds from the question to the answer; `null` if the answer is from an existing record.
    #[serde(default)]
    pub took_s: Option<f64>,
    /// Time per message, or round trip, of the recommended program, in nanoseconds: the median of its runs; `null` if it was not run.
    pub program_ns: Option<f64>,
    /// The programs that were run and compared; empty if none was.
    pub programs: Vec<ProgramFigures>,
    /// The source of the recommended program, in one file; of two programs the sender's.
    pub program: Option<String>,
    /// The source of the receiver, if there are two programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<String>,
}

/// The times of a program's runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramFigures {
    /// The mechanism that it uses.
    pub spec: Spec,
    /// Messages, or round trips, of a run. Runs with the same index were made in one round.
    pub messages: u64,
    /// For each run the wall time of a message in nanoseconds, as the program reports it.
    pub time_ns: Vec<f64>,
    /// For each run the CPU time of a message at both ends in nanoseconds, without that of a run with a single message.
    pub cpu_ns: Vec<f64>,
    /// Why it has no figures; `null` if it has some.
    pub failure: Option<String>,
}
