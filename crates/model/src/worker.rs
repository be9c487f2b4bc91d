//! The additional fields of a case of `hosepipe bench --workers`: the programs at the two ends.

use serde::{Deserialize, Serialize};

/// The programs at the two ends of a pipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerCase {
    /// The end that sends.
    pub writer: WorkerEnd,
    /// The end that receives; the same program as the writer's under [`WorkerStart::Pair`].
    pub reader: WorkerEnd,
    /// Which program started the receiver.
    pub start: WorkerStart,
    /// Bytes sent before the clock starts, so that a just-in-time compiler has compiled the program.
    pub warmup_bytes: u64,
}

/// One worker, as registered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerEnd {
    /// The language's name: "C++".
    pub language: String,
    /// `idiomatic`, `tuned`, or `program` for the user's own program.
    pub variant: String,
    /// The version that its toolchain reports; `null` if unknown.
    pub toolchain: Option<String>,
}

impl WorkerEnd {
    /// The name for `--workers`: `c++:tuned`; the path of a user's own program.
    pub fn label(&self) -> String {
        match self.variant.as_str() {
            "program" => self.language.clone(),
            variant => format!("{}:{variant}", self.language.to_lowercase()),
        }
    }
}

crate::words! {
    /// Which program started the receiver.
    pub recorded enum WorkerStart {
        /// The sender, by its language's own means.
        Pair = "pair",
        /// Hosepipe, which made the pipe and started both programs (`--matrix`).
        Harness = "harness",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_named_by_language_and_variant_and_a_users_program_by_its_path() {
        let label = |language: &str, variant: &str| {
            WorkerEnd { language: language.to_owned(), variant: variant.to_owned(), toolchain: None }.label()
        };
        assert_eq!(label("C++", "tuned"), "c++:tuned");
        assert_eq!(label("/home/Me/a", "program"), "/home/Me/a");
    }
}
