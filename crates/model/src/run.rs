//! The record of `hosepipe run` (docs/RECORD.md): its stages, its links, and the latency of its lines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bottleneck, HeldBack, RecordHead, SlowCopies, WhyAnswer};

/// The record of `hosepipe run`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// System calls that were refused to the stages (`--without`), with commas between them; absent without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
    /// How long lines took, pipeline by pipeline; absent without `--latency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Vec<LatencyRecord>>,
    /// The bottleneck; `null` if it was not measured (`--stats`, `--live` and `--json` measure it).
    pub bottleneck: Option<Bottleneck>,
    /// Why nothing moved in it before it ended, if a cause was found; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<WhyAnswer>,
}

/// One stage of a run.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageRecord {
    /// The index of its pipeline in the list, from 0; in JSON from 1.
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "u32"))]
    pub pipeline: u32,
    /// The index of the stage in its pipeline, from 0; in JSON from 1.
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "u32"))]
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
    /// What it did when the shell ended, if the shell did not wait for its end; absent otherwise. Its status is then `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen_end: Option<UnseenEnd>,
    /// From its start to its end, or until it was seen last.
    pub wall_ns: u64,
    /// CPU time in user mode, with its children's. If its end was not seen: all CPU time that samples show.
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
    /// Page offset, 0 to 4095, of the buffer for its reads of 4 KiB or more; `null` if no sample shows it, or if it changes.
    pub read_buffer_offset: Option<u64>,
    /// The same for its writes.
    pub write_buffer_offset: Option<u64>,
    /// Copies that are slow on this machine because of the offset; absent if they cost little time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_copies: Option<SlowCopies>,
    /// The output that it held back for the longest time; absent if no sample shows any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// How it was made to write line by line (`--line-buffered`); absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_buffered: Option<String>,
    /// How its buffers were aligned (`--align-buffers`), or why they were not; absent without that option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align_buffers: Option<String>,
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
        let same = |one: Option<u64>, other| one.filter(|_| one == other);
        self.read_buffer_offset = same(self.read_buffer_offset, other.read_buffer_offset);
        self.write_buffer_offset = same(self.write_buffer_offset, other.write_buffer_offset);
    }
}

/// What a stage did when the shell ended without having waited for it, as a shell that SIGTERM ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UnseenEnd {
    /// It still ran.
    Runs,
    /// It was stopped (SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU).
    Stopped,
    /// It had ended, too.
    Ended,
}

/// How a figure is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The sign before the figure in a text.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkRecord {
    /// The index of its pipeline in the list, from 0; in JSON from 1.
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "u32"))]
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
    /// Bytes that its writers wrote and its readers did not read, by their counters, although the writers ended with status 0; absent unless
    /// a pipe of the usual size is too small for them, in which a writer gets SIGPIPE if the reader leaves early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_bytes: Option<u64>,
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
        self.left_bytes = self.left_bytes.max(other.left_bytes);
        self.trouble = self.trouble.take().or_else(|| other.trouble.clone());
        self.watched_ns = sum(self.watched_ns, other.watched_ns);
        self.full_ns = sum(self.full_ns, other.full_ns);
        self.empty_ns = sum(self.empty_ns, other.empty_ns);
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one? + other?)
}

/// How outgoing lines, or blocks, of a part of a pipeline were matched with incoming ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Matched {
    /// By content: the lines are equal.
    #[default]
    Content,
    /// By position: the numbers of lines are equal, but their contents differ.
    Position,
    /// Neither: from an incoming block to the next outgoing one, which need not carry its data, but none before it can: lower bounds.
    Block,
}

impl Matched {
    /// How times that were matched like this are known.
    pub fn certainty(self) -> Certainty {
        if self == Self::Block { Certainty::AtLeast } else { Certainty::Exact }
    }
}

/// Times that lines, or blocks, took; lower bounds where blocks were matched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delays {
    /// How they were matched.
    pub matched: Matched,
    /// Number of times from which the figures are computed; if there were many lines, the times are a sample.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

/// How long lines took through a pipeline, from its first link to its last (`--latency`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyRecord {
    /// The index of the pipeline, from 0; in JSON from 1.
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "u32"))]
    pub pipeline: u32,
    /// From the first link to the last.
    pub whole: Delays,
    /// Each stage between two links.
    pub stages: Vec<StageLatency>,
}

/// How long lines took through one stage, from one link to the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageLatency {
    /// The index of the stage in its pipeline, from 0; in JSON from 1.
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "u32"))]
    pub stage: u32,
    /// From the link before it to the link after it, including the wait in the link before it.
    pub delays: Delays,
    /// Its mean as a share of the sum of all stages' means, some of which may be lower bounds; `null` if that sum is 0.
    pub share: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(factor: u64) -> StageRecord {
        StageRecord {
            wall_ns: factor,
            user_ns: 2 * factor,
            system_ns: 3 * factor,
            queued_ns: Some(4 * factor),
            max_rss_bytes: Some(5 * factor),
            read_buffer_offset: Some(16),
            write_buffer_offset: Some(factor),
            pid: Some(1),
            ..StageRecord::default()
        }
    }

    #[test]
    fn stages_of_two_runs_are_added() {
        let mut sum = stage(5);
        sum.add(&stage(2));
        assert_eq!((sum.wall_ns, sum.user_ns, sum.system_ns), (7, 14, 21));
        assert_eq!((sum.queued_ns, sum.blocked_read_ns), (Some(28), None));
        assert_eq!((sum.max_rss_bytes, sum.pid), (Some(25), None));
        assert_eq!((sum.read_buffer_offset, sum.write_buffer_offset), (Some(16), None));
    }

    #[test]
    fn a_sum_has_the_first_status_that_is_not_0() {
        let ended = |status, signal| StageRecord { status, signal, ..StageRecord::default() };
        let mut sum = ended(Some(0), None);
        sum.add(&ended(Some(130), Some(2)));
        assert_eq!((sum.status, sum.signal), (Some(130), Some(2)));
        sum.add(&ended(Some(1), None));
        assert_eq!((sum.status, sum.signal), (Some(130), Some(2)));
    }

    #[test]
    fn links_of_two_runs_are_added_and_their_bytes_known_as_well_as_the_less_certain_ones() {
        use Certainty::{AtLeast, AtMost, Exact};
        let link =
            |bytes_is| LinkRecord { bytes: Some(5), bytes_is, lines: Some(3), ..LinkRecord::default() };
        for (one, other, known) in [
            (Some(Exact), Some(Exact), Some(Exact)),
            (None, Some(AtMost), Some(AtMost)),
            (Some(AtLeast), Some(Exact), Some(AtLeast)),
            (Some(AtLeast), Some(AtLeast), Some(AtLeast)),
            (Some(AtLeast), Some(AtMost), None),
        ] {
            let mut sum = link(one);
            sum.add(&LinkRecord { bytes: Some(2), ..link(other) });
            assert_eq!(sum.flowed(), known.map(|known| (7, known)), "{one:?} {other:?}");
            assert_eq!((sum.lines, sum.stored_bytes), (Some(6), None));
        }
    }

    #[test]
    fn bounds_have_a_sign() {
        let signs = [Certainty::Exact, Certainty::AtLeast, Certainty::AtMost].map(Certainty::sign);
        assert_eq!(signs, ["", "≥", "≤"]);
    }
}
