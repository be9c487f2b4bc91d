//! The bottleneck of a run, in numbers and names (docs/RECORD.md); `report` makes its sentence.

use serde::{Deserialize, Serialize};

/// The bottleneck of a run.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bottleneck {
    /// The index of the stage in `stages`, in JSON from 1; `null` if it was a link, or no single stage.
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<usize>"))]
    pub stage: Option<usize>,
    /// The index of the stage, in JSON from 1, at whose input or output it was seen; absent if that is no other than `stage`.
    #[serde(default, with = "crate::one_based", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<usize>"))]
    pub seen_at: Option<usize>,
    /// The share of the time that `cause` explains, 0 to 1; `null` if it explains none.
    pub share: Option<f64>,
    /// Why the others waited; `null` in records of version 0.1.
    pub cause: Option<Cause>,
    /// Whether one stage ran after the other (`order=sequential`); absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// The time in which no pipeline ran; absent if that is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_pipeline: Option<NoPipeline>,
    /// All of it as a sentence for the user.
    #[serde(default)]
    pub sentence: String,
}

/// What the pipeline waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Cause {
    /// No stage took this time, so there is too little to judge by.
    TooShort { min_ns: u64 },
    /// The samples are too few, or differ too much.
    FewSamples { samples: u32 },
    /// No stage stands out.
    NoStage {
        /// The stages with the largest shares.
        largest: Vec<StageShare>,
        /// The size of the smallest pipe, if a larger one may help.
        pipe_bytes: Option<u64>,
        /// Whether it is so small because the user's quota of pipe pages is spent.
        quota_is_spent: bool,
    },
    /// What feeds the stage of `seen_at`, the first one: its standard input was empty.
    Before,
    /// What reads the output of that stage, the last one: there was no room for it.
    After,
    /// That stage went on although its reader had ended.
    Unread,
    /// The stage computed for most of the time, by the kernel's count.
    MostCpuTime {
        /// The share of the whole time for which it waited for a CPU; `null` if that is small.
        queued_share: Option<f64>,
        tips: Vec<Tip>,
    },
    /// The stage computed. Here and below shares are those of the time for which the others waited for the stage.
    Computes { cpu_share: f64, tips: Vec<Tip> },
    /// It waited for a CPU.
    Queues { queued_share: f64, cpu_share: f64, tips: Vec<Tip> },
    /// It waited for a disk.
    Disk { disk_share: f64 },
    /// A signal had stopped it.
    Stopped { stopped_share: f64 },
    /// It waited for a program that is no neighbour, with which it shares a pipe.
    SharedPipe { with: String, waited_share: f64 },
    /// It slept; `cpu_share` is `null` if it computed for less than a hundredth.
    Sleeps { cpu_share: Option<f64> },
    /// The stage of all partitions of `hosepipe spread` for which their runs waited, or no single one.
    AllPartitions,
}

/// A stage, and the share of the time for which the others waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageShare {
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "usize"))]
    pub stage: usize,
    pub share: f64,
}

/// Time in which no pipeline of the text ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoPipeline {
    /// Of the whole time.
    pub share: f64,
    /// The program that ran for most of it; `null` if there is none.
    pub command: Option<String>,
}

crate::words! {
    /// What makes a well-known program faster.
    pub recorded enum Tip {
        /// LC_ALL=C for a program that orders by the language.
        OrderByBytes = "order-by-bytes",
        /// LC_ALL=C for a program that looks for letters, if the text is ASCII.
        TextIsAscii = "text-is-ascii",
        /// mawk(1) instead of gawk(1).
        Mawk = "mawk",
        /// zstd(1) instead of gzip(1).
        Zstd = "zstd",
        /// pigz(1) instead of gzip(1), where CPUs are idle.
        Pigz = "pigz",
        /// lbzip2(1) instead of bzip2(1).
        Lbzip2 = "lbzip2",
        /// b3sum(1) or xxhsum(1) instead of md5sum(1).
        B3sumOrXxhsum = "b3sum-or-xxhsum",
        /// b3sum(1) instead of sha256sum(1) and its kin.
        B3sum = "b3sum",
        /// `<` instead of a `cat` of one file.
        RedirectInput = "redirect-input",
    }
}

impl Bottleneck {
    /// The index of each stage that it names.
    pub fn stages(&self) -> impl Iterator<Item = usize> {
        let largest = match &self.cause {
            Some(Cause::NoStage { largest, .. }) => largest.as_slice(),
            _ => &[],
        };
        self.stage.into_iter().chain(self.seen_at).chain(largest.iter().map(|of| of.stage))
    }
}
