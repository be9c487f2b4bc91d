//! The records of `hosepipe run` and `hosepipe compare` (docs/RECORD.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RecordHead;

/// The record of `hosepipe run`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// What every record begins with.
    #[serde(flatten)]
    pub head: RecordHead,
    /// The text that was run.
    pub pipeline: String,
    /// What stood between the stages, as typed.
    pub via: String,
    /// From before the first stage was started until the last had ended.
    pub wall_ns: u64,
    /// The status of the whole, as bash gives it.
    pub status: i32,
    /// The statuses of the last pipeline's stages (`PIPESTATUS`).
    pub pipestatus: Vec<Option<i32>>,
    /// Every stage that was started, pipeline by pipeline.
    pub stages: Vec<StageRecord>,
    /// Every link, pipeline by pipeline.
    pub links: Vec<LinkRecord>,
    /// Of how many partitions the stages are sums (`hosepipe spread`); absent of a single run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u64>,
    /// What held the run up; `null` where nobody looked (`--stats`, `--live` and `--json` look).
    pub bottleneck: Option<Bottleneck>,
}

/// One stage of a run.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Which pipeline of the list it stood in, from 0.
    pub pipeline: u32,
    /// Whether it is a stage of the reduce of `hosepipe spread`; absent where it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_reduce: bool,
    /// Its words; of a subshell those of the programs that it started.
    pub command: String,
    /// Its process number; `null` in records of earlier versions, for a builtin that needed no process.
    pub pid: Option<i32>,
    /// Its status as a shell shows it; `null` of what the shell itself did, as the end of a pipeline in zsh.
    pub status: Option<i32>,
    /// The signal that ended it; `null` where it left by itself.
    pub signal: Option<i32>,
    /// From its start to its end.
    pub wall_ns: u64,
    /// CPU time in user mode, its children's included.
    pub user_ns: u64,
    /// CPU time in the kernel, its children's included.
    pub system_ns: u64,
    /// Time it was idle while nothing was there for it to read; `null` where nobody looked.
    pub blocked_read_ns: Option<u64>,
    /// Time it was idle while what it writes to was full; `null` where nobody looked.
    pub blocked_write_ns: Option<u64>,
    /// Time it was ready to run and no CPU was free for it (/proc/PID/schedstat); `null` where nobody looked.
    #[serde(default)]
    pub queued_ns: Option<u64>,
    /// Time for which the pipeline waited for it; `null` where nobody looked.
    #[serde(default)]
    pub held_up_ns: Option<u64>,
    /// Its largest resident memory; `null` where unknown.
    pub max_rss_bytes: Option<u64>,
}

impl StageRecord {
    /// Adds the same stage of another run: times are sums, memory is the largest, the status the first that is not 0. What is unknown
    /// of one is unknown of both.
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

/// One link of a run.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Which pipeline of the list it stood in, from 0.
    pub pipeline: u32,
    /// What it was.
    pub spec: String,
    /// Sizes the system really gave, in bytes, by name.
    pub granted: BTreeMap<String, u64>,
    /// Bytes that went through it; `null` where unknown.
    pub bytes: Option<u64>,
    /// Ends of lines among them; absent where nobody counted (`--lines`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// Bytes it stored in a file system; `null` where it stores none.
    pub stored_bytes: Option<u64>,
    /// The file that stored them, where it has a name.
    pub path: Option<String>,
    /// Whether a relay of ours stood in the path.
    pub relay: bool,
    /// The file that keeps what flowed (`--keep`).
    pub kept: Option<String>,
    /// What went wrong in it: a full disk, for example.
    pub trouble: Option<String>,
    /// For how long it could be seen how full it was; `null` where nobody looked, or nobody may.
    #[serde(default)]
    pub watched_ns: Option<u64>,
    /// For how much of that it was full.
    #[serde(default)]
    pub full_ns: Option<u64>,
    /// For how much of that it was empty, and somebody was there who could have written.
    #[serde(default)]
    pub empty_ns: Option<u64>,
}

impl LinkRecord {
    /// Adds the same link of another run, as [`StageRecord::add`] does a stage.
    pub fn add(&mut self, other: &Self) {
        self.bytes = sum(self.bytes, other.bytes);
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

/// What held a run up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// The place of the stage in `stages`; `null` where it was the plumbing, or nothing in particular.
    pub stage: Option<usize>,
    /// For people: what it was, and what would help.
    pub sentence: String,
}
