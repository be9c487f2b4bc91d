//! `kernel-pipe`: one pipe, five languages, and beliefs about pipes that can be measured.

use serde::Deserialize;

use crate::size::Size;
use crate::study::{Head, embedded};

/// The study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelPipe {
    /// What it is.
    pub study: Head,
    workload: Workload,
    /// What was published, language by language.
    pub published: Vec<PublishedLanguage>,
    /// What it states of buffer sizes.
    #[serde(rename = "buffer")]
    pub buffers: Vec<BufferSize>,
    /// What it states of pipes and calls.
    pub stated: Stated,
    /// What it lists and does not measure.
    #[serde(rename = "alternative")]
    pub alternatives: Vec<Alternative>,
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
pub struct PublishedLanguage {
    /// The language.
    pub language: String,
    /// Mean time in milliseconds; `None` where it was not measured.
    pub mean_ms: Option<f64>,
    /// Bandwidth in 10^9 bytes per second, as printed there.
    pub gb_per_s: Option<f64>,
    /// How it was done, or why it was not.
    pub how: String,
}

/// A buffer size and what is said of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferSize {
    /// The size.
    pub block: Size,
    /// Calls for the whole workload, one way.
    pub calls: u64,
    /// What is said of its throughput.
    pub said: String,
}

/// What is stated of pipes and calls.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// What a pipe of Linux holds.
    pub pipe_bytes_linux: Size,
    /// What other systems' pipes hold.
    pub pipe_bytes_elsewhere: String,
    /// What a system call costs in microseconds, from and to.
    pub call_us: [f64; 2],
    /// How often plain write and read copy each byte.
    pub copies: u32,
    /// Writes of up to this never interleave.
    pub pipe_buf_bytes: u64,
}

/// An alternative to copying.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// The study's name for it.
    pub name: String,
    /// Ours.
    pub spec: String,
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
pub struct Calls {
    /// Calls in a sample.
    pub calls: u64,
    /// Samples.
    pub samples: u32,
}

/// How interleaving is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Atomicity {
    /// Writers at once.
    pub writers: u32,
    /// Bytes that each of them writes.
    pub writer_bytes: u64,
    /// Message sizes, one after another, in bytes.
    pub message_bytes: Vec<u64>,
}

impl KernelPipe {
    /// Bytes of the workload.
    pub fn bytes(&self) -> u64 {
        self.workload.bytes.value
    }

    /// Bytes handed over in one call.
    pub fn block_bytes(&self) -> u64 {
        self.workload.block.value
    }

    /// Runs of each language.
    pub fn trials(&self) -> u32 {
        self.choice.trials
    }

    /// What the languages may take, in minutes.
    pub fn minutes_languages(&self) -> f64 {
        self.choice.minutes_languages
    }

    /// Bytes of a trial of a buffer size, and trials.
    pub fn buffer_trials(&self) -> (u64, u32) {
        (self.choice.buffer_bytes.value, self.choice.buffer_trials)
    }

    /// How the cost of a call is measured.
    pub fn calls(&self) -> Calls {
        Calls { calls: self.choice.calls, samples: self.choice.call_samples }
    }

    /// How interleaving is looked for.
    pub fn atomicity(&self) -> Atomicity {
        Atomicity {
            writers: self.choice.writers,
            writer_bytes: self.choice.writer_bytes.value,
            message_bytes: self.choice.message_sizes.iter().map(|size| size.value).collect(),
        }
    }

    /// Trials of each alternative, and what they may take, in minutes.
    pub fn alternative_trials(&self) -> (u32, f64) {
        (self.choice.alternative_trials, self.choice.minutes_alternatives)
    }
}

/// The study.
pub fn kernel_pipe() -> KernelPipe {
    embedded("kernel-pipe.toml", include_str!("../../../experiments/kernel-pipe.toml"))
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
