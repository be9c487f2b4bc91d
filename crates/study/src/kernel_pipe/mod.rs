//! `kernel-pipe`: one pipe, five languages, and statements about pipes that can be measured.

mod atomicity;
mod calls;
mod capacity;
mod languages;
mod statements;
mod view;

use serde::Deserialize;

use crate::Study;
use crate::parameters::StudyWorkload;
use crate::scale::Size;

/// The entry in the list of studies.
pub(crate) const STUDY: Study = Study {
    name: "kernel-pipe",
    run: |run| match run.part.name.as_str() {
        "languages" => languages::run(run),
        "calls" => calls::run(run),
        "atomicity" => atomicity::run(run),
        "room" => capacity::run(run),
        _ => run.run_streams(),
    },
    show: view::show,
    elsewhere: None,
    facts: view::facts_of,
    toml: include_str!("study.toml"),
};

#[derive(Deserialize)]
struct KernelPipe {
    workload: StudyWorkload,
    published: Vec<PublishedLanguage>,
    stated: Stated,
    choice: KernelPipeChoice,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedLanguage {
    language: String,
    /// `None` if it was not measured.
    mean_ms: Option<f64>,
    /// In 10^9 bytes per second, as published.
    gb_per_s: Option<f64>,
    /// The method, or why it was not measured.
    how: String,
}

/// The study's statements about pipes and system calls.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    /// The smallest cost of a system call.
    call_us: f64,
    /// The largest write that never interleaves with others.
    pipe_buf_bytes: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KernelPipeChoice {
    /// System calls in a sample.
    calls: u64,
    /// Simultaneous writers in the part `atomicity`.
    writers: u32,
    message_sizes: Vec<Size>,
    /// Bytes that each writer writes.
    writer_bytes: Size,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_are_those_of_ten_binary_gigabytes() {
        let bytes = STUDY.parameters::<KernelPipe>().workload.bytes.value;
        let buffers = STUDY.parts().into_iter().find(|part| part.name == "buffers").expect("a part");
        for row in buffers.rows {
            let block = row.block.expect("a size").value;
            assert_eq!(report::numbers::grouped((bytes / block) as f64, 0), row.texts["calls said"]);
        }
    }

    #[test]
    fn the_published_bandwidth_is_of_decimal_gigabytes() {
        // 10 GB in 4641 ms are 2.15 GB/s with 10^10 bytes, and 2.31 GB/s with 10 * 2^30. The study's numbers of calls are those of
        // 10 * 2^30 bytes, its bandwidths those of 10^10. Both are kept as published.
        for one in STUDY.parameters::<KernelPipe>().published {
            let (Some(mean_ms), Some(gb_per_s)) = (one.mean_ms, one.gb_per_s) else { continue };
            assert!((10_000.0 / mean_ms - gb_per_s).abs() < 0.02, "{}", one.language);
        }
    }
}
