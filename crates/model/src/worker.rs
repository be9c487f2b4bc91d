//! What a case of `hosepipe bench --workers` adds to a case record: which programs held the two ends, and what
//! they cost beside the stream.

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
