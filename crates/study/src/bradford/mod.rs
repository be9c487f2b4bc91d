//! `bradford`: a pipe in one thread and in two, over block sizes.

mod equivalence;
pub(crate) mod run;
pub(crate) mod view;

use serde::Deserialize;

use crate::registry::{Head, embedded};
use crate::size::Size;

/// The study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bradford {
    /// What it is.
    pub(crate) study: Head,
    /// The program with one thread.
    pub(crate) single: Single,
    /// The program with two.
    pub(crate) threads: ThreadsSweep,
    /// The block that no pipe holds.
    pub(crate) huge: Huge,
    choice: Choice,
    /// What was published, system by system.
    pub(crate) published: Vec<PublishedSystem>,
}

/// One thread writes a block into a pipe and reads it back.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Single {
    /// The block sizes.
    pub(crate) blocks: Vec<Size>,
    count_up_to_three_digits: Size,
    count_of_others: Size,
    /// Runs of each.
    pub(crate) series: u32,
}

impl Single {
    /// How often a block is written and read back: it goes by the way its size is written.
    pub(crate) fn count(&self, block: &Size) -> u64 {
        if block.is_short() { self.count_up_to_three_digits.value } else { self.count_of_others.value }
    }
}

/// One thread writes, another reads.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThreadsSweep {
    /// Runs of each.
    pub(crate) series: u32,
}

/// A block that no pipe holds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Huge {
    /// Its size.
    pub(crate) block: Size,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    threads_block_max: Size,
    threads_count: Size,
    threads_bytes_max: Size,
    huge_count: u64,
    named_single_blocks: Vec<Size>,
    named_threads_blocks: Vec<Size>,
    named_rounds: u32,
    named_count: Size,
    named_bytes_max: Size,
    equivalence_percent: f64,
}

/// How "indistinguishable" is tested.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Named {
    /// Block sizes with one thread, in bytes.
    pub(crate) single_blocks: Vec<u64>,
    /// Block sizes with two threads, in bytes.
    pub(crate) threads_blocks: Vec<u64>,
    /// Rounds, each with both contenders.
    pub(crate) rounds: u32,
    /// Differences below this share of the figure count as none.
    pub(crate) equivalence: f64,
}

/// What was published of a system.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedSystem {
    /// Its name.
    pub(crate) system: String,
    /// The peak with two threads, in 10^6 bytes per second.
    pub(crate) peak_mb_per_s: f64,
    /// The same in the study's words.
    pub(crate) peak: String,
    /// With very large blocks, in 10^6 bytes per second.
    pub(crate) steady_mb_per_s: Option<f64>,
    /// The same in the study's words.
    pub(crate) steady: Option<String>,
    /// What it says of one thread.
    pub(crate) one_thread: String,
}

impl Bradford {
    /// Block sizes with two threads, in bytes: powers of two.
    pub(crate) fn threads_blocks(&self) -> Vec<u64> {
        let most = self.choice.threads_block_max.value;
        (0..63).map(|power| 1 << power).take_while(|block| *block <= most).collect()
    }

    /// Blocks of this size in a trial with two threads.
    pub(crate) fn threads_count(&self, block_bytes: u64) -> u64 {
        self.choice.threads_count.value.min(self.choice.threads_bytes_max.value / block_bytes).max(1)
    }

    /// Blocks of the size that no pipe holds, in a trial.
    pub(crate) fn huge_count(&self) -> u64 {
        self.choice.huge_count
    }

    /// How "indistinguishable" is tested.
    pub(crate) fn named(&self) -> Named {
        let values = |sizes: &[Size]| sizes.iter().map(|size| size.value).collect();
        Named {
            single_blocks: values(&self.choice.named_single_blocks),
            threads_blocks: values(&self.choice.named_threads_blocks),
            rounds: self.choice.named_rounds,
            equivalence: self.choice.equivalence_percent / 100.0,
        }
    }

    /// Blocks of this size in a trial of the named pipe.
    pub(crate) fn named_count(&self, block_bytes: u64) -> u64 {
        self.choice.named_count.value.min(self.choice.named_bytes_max.value / block_bytes).max(1)
    }
}

/// The study.
pub(crate) fn bradford() -> Bradford {
    embedded(include_str!("study.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sweep_is_the_published_one() {
        let study = bradford();
        let sizes: Vec<u64> = study.single.blocks.iter().map(|size| size.value).collect();
        assert_eq!((sizes.len(), sizes[0], sizes[sizes.len() - 1]), (62, 1, 4096));
        assert!(sizes.is_sorted());
        let count = |text: &str| {
            let size = study.single.blocks.iter().find(|size| size.text == text).expect(text);
            study.single.count(size)
        };
        assert_eq!((count("1"), count("960")), (500 << 10, 500 << 10));
        assert_eq!((count("1024"), count("3k"), count("3584")), (100 << 10, 100 << 10, 100 << 10));
    }

    #[test]
    fn two_threads_move_no_more_than_was_chosen() {
        let study = bradford();
        assert_eq!(study.threads_blocks().len(), 25);
        assert_eq!(study.threads_count(1), 100 << 10);
        assert_eq!(study.threads_count(16 << 20), 16);
    }
}
