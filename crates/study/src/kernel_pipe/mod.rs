//! `kernel-pipe`: one pipe, five languages, and beliefs about pipes that can be measured.

mod atomicity;
mod beliefs;
mod calls;
mod languages;
mod room;
mod run;
mod view;

use serde::Deserialize;

use crate::scale::Size;
use crate::{Needs, Study};

/// The entry in the list of studies.
pub(crate) const STUDY: Study = Study {
    name: "kernel-pipe",
    elsewhere: None,
    needs: |_| Needs::default(),
    parts: &[
        ("languages", languages::run, view::languages),
        ("buffers", run::buffers, beliefs::buffers),
        ("calls", calls::run, beliefs::calls),
        ("copies", run::copies, beliefs::copies),
        ("atomicity", atomicity::run, beliefs::atomicity),
        ("room", room::run, beliefs::room),
        ("alternatives", run::alternatives, beliefs::alternatives),
    ],
    facts: view::facts_of,
    toml: include_str!("study.toml"),
};

#[derive(Deserialize)]
struct KernelPipe {
    workload: Workload,
    published: Vec<PublishedLanguage>,
    #[serde(rename = "buffer")]
    buffers: Vec<BufferSize>,
    stated: Stated,
    /// What it lists and does not measure.
    #[serde(rename = "alternative")]
    alternatives: Vec<Alternative>,
    choice: Choice,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    bytes: Size,
    block: Size,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedLanguage {
    language: String,
    /// `None` where it was not measured.
    mean_ms: Option<f64>,
    /// In 10^9 bytes per second, as printed there.
    gb_per_s: Option<f64>,
    /// How it was done, or why it was not.
    how: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BufferSize {
    block: Size,
    /// For the whole workload, one way.
    calls: u64,
    /// What is said of its throughput.
    said: String,
}

/// What is stated of pipes and calls.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    pipe_bytes_linux: Size,
    /// What a system call costs, from and to.
    call_us: [f64; 2],
    /// Writes of up to this never interleave.
    pipe_buf_bytes: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Alternative {
    /// The study's name for it.
    name: String,
    /// Ours.
    spec: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    /// Runs of each language.
    trials: u32,
    /// Bytes of a trial of a buffer size.
    buffer_bytes: Size,
    buffer_trials: u32,
    /// Calls in a sample of their cost.
    calls: u64,
    call_samples: u32,
    /// Writers at once, to look for interleaving.
    writers: u32,
    message_sizes: Vec<Size>,
    /// Bytes that each writer writes.
    writer_bytes: Size,
    alternative_trials: u32,
}

impl KernelPipe {
    fn read() -> Self {
        STUDY.parameters()
    }

    /// Sizes of the messages that several writers send at once.
    fn message_bytes(&self) -> impl Iterator<Item = u64> {
        self.choice.message_sizes.iter().map(|size| size.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_are_those_of_ten_binary_gigabytes() {
        let study = KernelPipe::read();
        for buffer in &study.buffers {
            assert_eq!(
                study.workload.bytes.value / buffer.block.value,
                buffer.calls,
                "{}",
                buffer.block.text
            );
        }
    }

    #[test]
    fn the_published_bandwidth_is_of_decimal_gigabytes() {
        // 10 GB / 4641 ms = 2.15 GB/s with 10^10 bytes and 2.31 GB/s with 10 * 2^30: the study's own calls say
        // binary, its bandwidth decimal. Both are kept as published.
        for one in KernelPipe::read().published {
            let (Some(mean_ms), Some(gb_per_s)) = (one.mean_ms, one.gb_per_s) else { continue };
            assert!((10_000.0 / mean_ms - gb_per_s).abs() < 0.02, "{}", one.language);
        }
    }
}
