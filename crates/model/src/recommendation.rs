//! The answer of `hosepipe recommend`, beside the figures that it rests on.

use serde::{Deserialize, Serialize};

use crate::Spec;

/// Which mechanism to take, why, and a program that sets it up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recommendation {
    /// What was asked, as a heading.
    pub title: String,
    /// The mechanism to take; `null` where none is left.
    pub taken: Option<Spec>,
    /// The answer, sentence by sentence.
    pub sentences: Vec<String>,
    /// The language of the programs: `c`, `rust` or `python`.
    pub language: String,
    /// Seconds from the question to the answer; `null` where the answer is from a record that was there already.
    #[serde(default)]
    pub took_s: Option<f64>,
    /// Time per message, or round trip, of the program to take, in nanoseconds: the median of its runs; `null` where it was not run.
    pub program_ns: Option<f64>,
    /// The programs that were run beside each other; empty where none was.
    pub programs: Vec<ProgramFigures>,
    /// The text of the program to take, in one file.
    pub program: Option<String>,
}

/// What a program took, run by run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramFigures {
    /// The mechanism that it uses.
    pub spec: Spec,
    /// Messages, or round trips, of a run. The runs of one number were made in one round.
    pub messages: u64,
    /// Wall time of each in nanoseconds, as the program says, run by run.
    pub time_ns: Vec<f64>,
    /// CPU time of each at both ends in nanoseconds, less that of a run with a single message.
    pub cpu_ns: Vec<f64>,
    /// Why it has no figures; `null` where it has some.
    pub failure: Option<String>,
}
