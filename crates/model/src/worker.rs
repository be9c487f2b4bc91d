//! What a case of `hosepipe bench --workers` adds to a case record: which programs held the two ends, and what
//! they cost beside the stream.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The programs at the two ends of a pipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerCase {
    /// The end that sends.
    pub writer: WorkerEnd,
    /// The end that receives; the same program as the writer's under [`WorkerStart::Pair`].
    pub reader: WorkerEnd,
    /// Who started the receiver.
    pub start: WorkerStart,
    /// Bytes sent before the clock, so that a just-in-time compiler has done its work.
    pub warmup_bytes: u64,
    /// System calls of both ends, counted in a run of its own; `null` where nobody counted.
    pub system_calls: Option<SystemCalls>,
}

/// One worker, as registered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WorkerEnd {
    /// The language as people write it: "C++".
    pub language: String,
    /// `idiomatic`, `tuned`, or `program` for a program of the user's own.
    pub variant: String,
    /// The version its toolchain tells; `null` where it is not known.
    pub toolchain: Option<String>,
}

impl WorkerEnd {
    /// The name that can be typed after `--workers`: `c++:tuned`; a user's own program keeps its path.
    pub fn label(&self) -> String {
        match self.variant.as_str() {
            "program" => self.language.clone(),
            variant => format!("{}:{variant}", self.language.to_lowercase()),
        }
    }
}

/// Who started the receiving program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerStart {
    /// The sender did, by its language's own means, as in the study.
    Pair,
    /// Hosepipe started both over a pipe of its own (`--matrix`).
    Harness,
}

/// System calls made for the stream: those of a longer run less those of a shorter one, so that start-up and
/// the way out are not in them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemCalls {
    /// Calls of every kind, of all threads of both ends, for each MiB (2^20 bytes) moved.
    pub per_mib: f64,
    /// The same by the call's name, for the calls made most.
    pub by_name: BTreeMap<String, f64>,
}
