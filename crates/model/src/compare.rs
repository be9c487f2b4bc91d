//! The record of `hosepipe compare` (docs/RECORD.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RecordHead;

/// The record of `hosepipe compare`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompareRecord {
    /// What every record begins with.
    #[serde(flatten)]
    pub head: RecordHead,
    /// Seed of the order within rounds.
    pub seed: u64,
    /// Trials asked for.
    pub trials: u32,
    /// Untimed runs of each before them.
    pub warmup: u32,
    /// True where a signal ended it before every trial was made.
    pub interrupted: bool,
    /// What the shell needs by itself, in seconds: the median time of an empty text, where some pipeline took little more; else
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell_start_s: Option<f64>,
    /// What else every result was measured under, by name: `shell` where it is not bash, `set-up`, `prepare`, `conclude` and `clean-up` as
    /// typed; absent without any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, String>,
    /// One entry for each pipeline and link, links in the order asked for.
    pub results: Vec<CompareResult>,
}

/// One pipeline over one link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CompareResult {
    /// The text, with the values of its parameters; those that do not stand in it follow as a comment.
    pub pipeline: String,
    /// The parameters (`-P`) that it was made with, by name; absent without any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// What stood between its stages; one of [`SHELLS`] for the shell by itself.
    pub via: String,
    /// Wall time of each trial in seconds, in the order of the rounds.
    pub times_s: Vec<f64>,
    /// Arithmetic mean.
    pub mean_s: Option<f64>,
    /// Standard deviation of the trials.
    pub stddev_s: Option<f64>,
    /// Median.
    pub median_s: Option<f64>,
    /// Lower end of the 95 % interval of the median.
    pub low_s: Option<f64>,
    /// Upper end of the 95 % interval of the median.
    pub high_s: Option<f64>,
    /// Time as a multiple of the first link's, pair by pair.
    pub times_first: Option<Ratio>,
    /// Time as a multiple of that of the shell by itself, whichever it is, pair by pair; `null` where it is not among the links.
    #[serde(alias = "times_bash")]
    pub times_shell: Option<Ratio>,
    /// Time as a multiple of that of the fastest pipeline over the same link (Hodges and Lehmann, pair by pair), with bounds that
    /// hold for all pipelines at once; `null` where there is no other, or there are too few trials for bounds.
    #[serde(default)]
    pub times_fastest: Option<Ratio>,
    /// Bytes the links stored in a file system, in the last trial; `null` where they store none.
    pub stored_bytes: Option<u64>,
    /// Bytes of output, in the last trial.
    pub output_bytes: u64,
    /// XXH3-64 of the output, in hexadecimal, in the last trial.
    pub output_hash: Option<String>,
    /// The status, in the last trial.
    pub status: Option<i32>,
    /// Whether every trial gave the reference's output and status: the shell's own where it is among the links, else the
    /// first link's; `null` where there was nothing to compare it with.
    pub equal: Option<bool>,
    /// Whether its output was that of the first pipeline over the same link, in every trial of both; `null` where there was nothing
    /// to compare it with.
    #[serde(default)]
    pub same_output: Option<bool>,
    /// Why there are no figures, or fewer than asked for.
    pub error: Option<String>,
}

/// What stands among the links for a shell by itself, over its own pipes; the last one for a shell of another name.
pub const SHELLS: [&str; 6] = ["bash", "dash", "zsh", "fish", "yash", "shell"];

impl CompareResult {
    /// Whether no hosepipe was in it: the shell's own pipes were between the stages.
    pub fn is_shell_alone(&self) -> bool {
        SHELLS.contains(&self.via.as_str())
    }

    /// A result without figures yet.
    pub fn new(pipeline: &str, via: &str) -> Self {
        Self { pipeline: pipeline.to_owned(), via: via.to_owned(), ..Self::default() }
    }
}

/// A ratio with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The median of the pairs.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}
