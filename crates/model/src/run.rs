//! The records of `hosepipe run` and `hosepipe compare` (docs/RECORD.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RecordHead;

/// The record of `hosepipe run`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The fields that every record has.
    #[serde(flatten)]
    pub head: RecordHead,
    /// The text that was run.
    pub pipeline: String,
    /// The link between the stages, as typed.
    pub via: String,
    /// Time from before the start of the first stage to the end of the last one.
    pub wall_ns: u64,
    /// The status of the text, as in bash.
    pub status: i32,
    /// The statuses of the last pipeline's stages (`PIPESTATUS`).
    pub pipestatus: Vec<Option<i32>>,
    /// Every stage, pipeline by pipeline.
    pub stages: Vec<StageRecord>,
    /// Every link, pipeline by pipeline.
    pub links: Vec<LinkRecord>,
    /// Number of partitions of which the stages are sums (`hosepipe spread`); absent for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u64>,
    /// The bottleneck; `null` if it was not measured (`--stats`, `--live` and `--json` measure it).
    pub bottleneck: Option<Bottleneck>,
}

/// One stage of a run.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// The index of its pipeline in the list, from 0; in JSON from 1.
    #[serde(with = "crate::places")]
    pub pipeline: u32,
    /// The index of the stage in its pipeline, from 0; in JSON from 1.
    #[serde(with = "crate::places")]
    pub stage: u32,
    /// Whether it is a stage of the reduce of `hosepipe spread`; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_reduce: bool,
    /// Its command; for a subshell the commands of the programs that it started.
    pub command: String,
    /// Its PID; `null` in records of earlier versions, for a builtin without a process.
    pub pid: Option<i32>,
    /// Its status as a shell shows it; `null` for a stage that the shell ran itself, such as the last one in zsh.
    pub status: Option<i32>,
    /// The signal that ended it; `null` if it exited.
    pub signal: Option<i32>,
    /// From its start to its end.
    pub wall_ns: u64,
    /// CPU time in user mode, with its children's.
    pub user_ns: u64,
    /// CPU time in the kernel, with its children's.
    pub system_ns: u64,
    /// Time for which it was idle while it had nothing to read; `null` if not measured.
    pub blocked_read_ns: Option<u64>,
    /// Time for which it was idle while its output was full; `null` if not measured.
    pub blocked_write_ns: Option<u64>,
    /// Time for which it was ready to run and had no CPU (/proc/PID/schedstat); `null` if not measured.
    pub queued_ns: Option<u64>,
    /// Time for which the pipeline waited for it; `null` if not measured.
    pub held_up_ns: Option<u64>,
    /// Its largest resident set size; `null` if unknown.
    pub max_rss_bytes: Option<u64>,
}

impl StageRecord {
    /// Adds the same stage of another run: times are sums, memory is the maximum, the status the first that is not 0. A value that is
    /// unknown in one run is unknown in the sum.
    pub fn add(&mut self, other: &Self) {
        self.pid = None;
        if self.status.is_none_or(|status| status == 0) {
            (self.status, self.signal) = (other.status, other.signal);
        }
        self.wall_ns += other.wall_ns;
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.blocked_read_ns = sum(self.blocked_read_ns, other.blocked_read_ns);
        self.blocked_write_ns = sum(self.blocked_write_ns, other.blocked_write_ns);
        self.queued_ns = sum(self.queued_ns, other.queued_ns);
        self.held_up_ns = sum(self.held_up_ns, other.held_up_ns);
        self.max_rss_bytes = self.max_rss_bytes.max(other.max_rss_bytes);
    }
}

/// How a figure is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Certainty {
    /// It was counted.
    #[serde(rename = "exact")]
    Exact,
    /// It is a lower bound.
    #[serde(rename = "at least")]
    AtLeast,
    /// It is an upper bound.
    #[serde(rename = "at most")]
    AtMost,
}

impl Certainty {
    /// What stands before the figure in a text.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::AtLeast => "≥",
            Self::AtMost => "≤",
        }
    }
}

/// One link of a run.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// The index of its pipeline in the list, from 0; in JSON from 1.
    #[serde(with = "crate::places")]
    pub pipeline: u32,
    /// Its spec.
    pub spec: String,
    /// Actual sizes in bytes, by name.
    pub granted: BTreeMap<String, u64>,
    /// Bytes that went through it; `null` if unknown.
    pub bytes: Option<u64>,
    /// How they are known; `null` if they are not, and in records of earlier versions, which have exact ones only.
    pub bytes_is: Option<Certainty>,
    /// Line feeds among them; absent without `--lines`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// Bytes that it stored in a file system; `null` if it stores none.
    pub stored_bytes: Option<u64>,
    /// The file that stored them, if it has a name.
    pub path: Option<String>,
    /// Whether the bytes went through a relay of hosepipe.
    pub relay: bool,
    /// The file with a copy of the bytes (`--keep`).
    pub kept: Option<String>,
    /// An error in it: a full disk, for example.
    pub trouble: Option<String>,
    /// Time for which its fill level was sampled; `null` if it was not, or may not be read.
    pub watched_ns: Option<u64>,
    /// Part of that time for which it was full.
    pub full_ns: Option<u64>,
    /// Part of that time for which it was empty and had a writer.
    pub empty_ns: Option<u64>,
}

impl LinkRecord {
    /// Bytes that went through it, and how they are known.
    pub fn flowed(&self) -> Option<(u64, Certainty)> {
        Some((self.bytes?, self.bytes_is.unwrap_or(Certainty::Exact)))
    }

    /// Adds the same link of another run, as [`StageRecord::add`] does a stage.
    pub fn add(&mut self, other: &Self) {
        let both = self.flowed().zip(other.flowed()).and_then(|(one, other)| {
            let known = match (one.1, other.1) {
                (Certainty::Exact, known) | (known, Certainty::Exact) => known,
                (known, same) if known == same => known,
                _ => return None,
            };
            Some((one.0 + other.0, known))
        });
        (self.bytes, self.bytes_is) = both.unzip();
        self.lines = sum(self.lines, other.lines);
        self.stored_bytes = sum(self.stored_bytes, other.stored_bytes);
        self.trouble = self.trouble.take().or_else(|| other.trouble.clone());
        self.watched_ns = sum(self.watched_ns, other.watched_ns);
        self.full_ns = sum(self.full_ns, other.full_ns);
        self.empty_ns = sum(self.empty_ns, other.empty_ns);
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one? + other?)
}

/// The bottleneck of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// The index of the stage in `stages`, in JSON from 1; `null` if it was a link, or no single stage.
    #[serde(with = "crate::places")]
    pub stage: Option<usize>,
    /// A sentence for the user: the bottleneck, and what would help.
    pub sentence: String,
}
