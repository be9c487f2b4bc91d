//! The record of `hosepipe compare` (docs/RECORD.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{RecordHead, WhyAnswer};

/// The record of `hosepipe compare`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompareRecord {
    /// The fields that every record has.
    #[serde(flatten)]
    pub head: RecordHead,
    /// Seed of the order within rounds.
    pub seed: u64,
    /// Largest number of trials of each pipeline over each link.
    pub trials: u32,
    /// Untimed runs of each pipeline before the trials.
    pub warmup: u32,
    /// Number of interim analyses that decided whether to end early; `null` in records of earlier versions, which had none.
    #[serde(rename = "looks")]
    pub analyses: Option<u32>,
    /// Duration of all trials, including the untimed ones, in seconds; `null` in records of earlier versions.
    pub elapsed_s: Option<f64>,
    /// Whether the order of any two results of one ranking is certain; `null` if there is only one result, and in records of earlier
    /// versions.
    pub order_is_certain: Option<bool>,
    /// The half width of the intervals, in percent of the medians, at which it ended (`--precision`); absent without that option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision_percent: Option<f64>,
    /// How much longer than the baseline a result may take, in percent (`--fail-over`); absent without that option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_over_percent: Option<f64>,
    /// Whether a signal ended it before every trial was made.
    pub interrupted: bool,
    /// The median time of the shell with an empty text, in seconds; absent unless a pipeline took little more than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_start_s: Option<f64>,
    /// Other conditions of all results, by name: `by` if the `latency` of a line is ranked and not the time of a run, `shell` if it is
    /// not bash, `set-up`, `prepare`, `conclude` and `clean-up` as typed; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, String>,
    /// One entry for each pipeline and link; links in the requested order.
    pub results: Vec<CompareResult>,
}

impl CompareRecord {
    /// The results that surely take longer than their baseline by more than `--fail-over` allows.
    pub fn regressions(&self) -> impl Iterator<Item = &CompareResult> {
        let longest = self.fail_over_percent.map(|percent| 1.0 + percent / 100.0);
        let is_over = move |ratio: &Ratio| longest.is_some_and(|longest| ratio.low > longest);
        self.results.iter().filter(move |result| result.times_baseline.as_ref().is_some_and(is_over))
    }
}

/// One pipeline over one link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompareResult {
    /// The text with the values of its parameters; parameters that are not in the text follow as a comment.
    pub pipeline: String,
    /// Its name (`-n`), made different from others as `pipeline` is; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its parameters (`-P`) by name; absent without any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// The link between its stages; one of [`SHELLS`] for the shell's own pipes.
    pub via: String,
    /// Wall time of each trial in seconds, in the order of the rounds.
    pub times_s: Vec<f64>,
    /// CPU time in user mode of all its processes in each trial, in seconds; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_times_s: Vec<f64>,
    /// The same in the kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system_times_s: Vec<f64>,
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
    /// Time as a multiple of the first link's, from paired trials.
    pub times_first: Option<Ratio>,
    /// Time as a multiple of that with the shell's own pipes, from paired trials; `null` if those are not among the links.
    pub times_shell: Option<Ratio>,
    /// Time as a multiple of that of the fastest pipeline over the same link (Hodges and Lehmann, from paired trials), with
    /// simultaneous bounds for all pipelines; `null` if there is no other pipeline, or there are too few trials for bounds.
    pub times_fastest: Option<Ratio>,
    /// With `--fail-over`: time as a multiple of the baseline's (Hodges and Lehmann, from paired trials), with simultaneous bounds for all
    /// results. The baseline is the first pipeline over the same link; if there is only one pipeline, that over the first link. Absent
    /// without that option, of the baseline itself, and if there are too few trials for bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_baseline: Option<Ratio>,
    /// Bytes that the links stored in a file system, in the last trial; `null` if they store none.
    pub stored_bytes: Option<u64>,
    /// The largest resident set of any of its processes, in any run; `null` in records of earlier versions.
    pub max_rss_bytes: Option<u64>,
    /// Bytes of output, in the last trial.
    pub output_bytes: u64,
    /// XXH3-64 of the output, in hexadecimal, in the last trial.
    pub output_hash: Option<String>,
    /// The status, in the last trial.
    pub status: Option<i32>,
    /// Whether every trial gave the output and status of the reference: the shell's own pipes if they are among the links, else the
    /// first link; `null` without a reference.
    pub equal: Option<bool>,
    /// Whether every trial gave the output of the first pipeline over the same link; `null` if there is nothing to compare.
    pub same_output: Option<bool>,
    /// Why there are no figures, or fewer than requested.
    pub error: Option<String>,
    /// Why the trial did not go on that was interrupted; absent if it moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<WhyAnswer>,
}

/// The names, among the links, of a shell with its own pipes; the last one is for every other shell.
pub const SHELLS: [&str; 6] = ["bash", "dash", "zsh", "fish", "yash", "shell"];

impl CompareResult {
    /// Whether the shell's own pipes were between the stages.
    pub fn is_shell_alone(&self) -> bool {
        SHELLS.contains(&self.via.as_str())
    }

    /// Its name; without one its text.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.pipeline)
    }

    /// A result without figures yet.
    pub fn new(pipeline: &str, via: &str) -> Self {
        Self { pipeline: pipeline.to_owned(), via: via.to_owned(), ..Self::default() }
    }
}

/// A ratio with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The median of the pairs.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_with_its_own_pipes_is_known_by_its_name() {
        assert!(CompareResult::new("true", "bash").is_shell_alone());
        assert!(!CompareResult::new("true", "pipe").is_shell_alone());
    }
}
