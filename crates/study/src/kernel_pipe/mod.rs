//! `kernel-pipe`: one pipe, five languages, and beliefs about pipes that can be measured.

mod atomicity;
mod beliefs;
mod calls;
mod languages;
mod room;
pub(crate) mod run;
pub(crate) mod view;

use serde::Deserialize;

use crate::registry::{Head, embedded};
use crate::size::Size;

/// The study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KernelPipe {
    /// What it is.
    pub(crate) study: Head,
    workload: Workload,
    /// What was published, language by language.
    pub(crate) published: Vec<PublishedLanguage>,
    /// What it states of buffer sizes.
    #[serde(rename = "buffer")]
    pub(crate) buffers: Vec<BufferSize>,
    /// What it states of pipes and calls.
    pub(crate) stated: Stated,
    /// What it lists and does not measure.
    #[serde(rename = "alternative")]
    pub(crate) alternatives: Vec<Alternative>,
    choice: Choice,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    bytes: Size,
    block: Size,
}

/// What was published of a language.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedLanguage {
    /// The language.
    pub(crate) language: String,
    /// Mean time in milliseconds; `None` where it was not measured.
    pub(crate) mean_ms: Option<f64>,
    /// Bandwidth in 10^9 bytes per second, as printed there.
    pub(crate) gb_per_s: Option<f64>,
    /// How it was done, or why it was not.
    pub(crate) how: String,
}

/// A buffer size and what is said of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BufferSize {
    /// The size.
    pub(crate) block: Size,
    /// Calls for the whole workload, one way.
    pub(crate) calls: u64,
    /// What is said of its throughput.
    pub(crate) said: String,
}

/// What is stated of pipes and calls.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stated {
    /// What a pipe of Linux holds.
    pub(crate) pipe_bytes_linux: Size,
    /// What other systems' pipes hold.
    pub(crate) pipe_bytes_elsewhere: String,
    /// What a system call costs in microseconds, from and to.
    pub(crate) call_us: [f64; 2],
    /// How often plain write and read copy each byte.
    pub(crate) copies: u32,
    /// Writes of up to this never interleave.
    pub(crate) pipe_buf_bytes: u64,
}

/// An alternative to copying.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alternative {
    /// The study's name for it.
    pub(crate) name: String,
    /// Ours.
    pub(crate) spec: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    trials: u32,
    buffer_bytes: Size,
    buffer_trials: u32,
    calls: u64,
    call_samples: u32,
    writers: u32,
    message_sizes: Vec<Size>,
    writer_bytes: Size,
    alternative_trials: u32,
    minutes_languages: f64,
    minutes_alternatives: f64,
}

/// How the cost of a call is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Calls {
    /// Calls in a sample.
    pub(crate) calls: u64,
    /// Samples.
    pub(crate) samples: u32,
}

/// How interleaving is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Atomicity {
    /// Writers at once.
    pub(crate) writers: u32,
    /// Bytes that each of them writes.
    pub(crate) writer_bytes: u64,
    /// Message sizes, one after another, in bytes.
    pub(crate) message_bytes: Vec<u64>,
}

impl KernelPipe {
    /// Bytes of the workload.
    pub(crate) fn bytes(&self) -> u64 {
        self.workload.bytes.value
    }

    /// Bytes handed over in one call.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.workload.block.value
    }

    /// Runs of each language.
    pub(crate) fn trials(&self) -> u32 {
        self.choice.trials
    }

    /// What the languages may take, in minutes.
    pub(crate) fn minutes_languages(&self) -> f64 {
        self.choice.minutes_languages
    }

    /// Bytes of a trial of a buffer size, and trials.
    pub(crate) fn buffer_trials(&self) -> (u64, u32) {
        (self.choice.buffer_bytes.value, self.choice.buffer_trials)
    }

    /// How the cost of a call is measured.
    pub(crate) fn calls(&self) -> Calls {
        Calls { calls: self.choice.calls, samples: self.choice.call_samples }
    }

    /// How interleaving is looked for.
    pub(crate) fn atomicity(&self) -> Atomicity {
        Atomicity {
            writers: self.choice.writers,
            writer_bytes: self.choice.writer_bytes.value,
            message_bytes: self.choice.message_sizes.iter().map(|size| size.value).collect(),
        }
    }

    /// Trials of each alternative, and what they may take, in minutes.
    pub(crate) fn alternative_trials(&self) -> (u32, f64) {
        (self.choice.alternative_trials, self.choice.minutes_alternatives)
    }
}

/// The study.
pub(crate) fn kernel_pipe() -> KernelPipe {
    embedded(include_str!("study.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_are_those_of_ten_binary_gigabytes() {
        let study = kernel_pipe();
        for buffer in &study.buffers {
            assert_eq!(study.bytes() / buffer.block.value, buffer.calls, "{}", buffer.block.text);
        }
    }

    #[test]
    fn the_published_bandwidth_is_of_decimal_gigabytes() {
        // 10 GB / 4641 ms = 2.15 GB/s with 10^10 bytes and 2.31 GB/s with 10 * 2^30: the study's own calls say
        // binary, its bandwidth decimal. Both are kept as published.
        for language in kernel_pipe().published {
            let (Some(mean_ms), Some(gb_per_s)) = (language.mean_ms, language.gb_per_s) else { continue };
            assert!((10_000.0 / mean_ms - gb_per_s).abs() < 0.02, "{language:?}");
        }
    }
}
