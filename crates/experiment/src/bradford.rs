//! `bradford`: a pipe in one thread and in two, over block sizes.

use serde::Deserialize;

use crate::size::Size;
use crate::study::{Head, embedded};

/// The study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bradford {
    /// What it is.
    pub study: Head,
    /// The program with one thread.
    pub single: Single,
    /// The program with two.
    pub threads: ThreadsSweep,
    /// The block that no pipe holds.
    pub huge: Huge,
    choice: Choice,
    /// What was published, system by system.
    pub published: Vec<PublishedSystem>,
}

/// One thread writes a block into a pipe and reads it back.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Single {
    /// The block sizes.
    pub blocks: Vec<Size>,
    count_up_to_three_digits: Size,
    count_of_others: Size,
    /// Runs of each.
    pub series: u32,
}

impl Single {
    /// How often a block is written and read back: it goes by the way its size is written.
    pub fn count(&self, block: &Size) -> u64 {
        if block.is_short() { self.count_up_to_three_digits.value } else { self.count_of_others.value }
    }
}

/// One thread writes, another reads.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadsSweep {
    /// Runs of each.
    pub series: u32,
}

/// A block that no pipe holds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Huge {
    /// Its size.
    pub block: Size,
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
pub struct Named {
    /// Block sizes with one thread, in bytes.
    pub single_blocks: Vec<u64>,
    /// Block sizes with two threads, in bytes.
    pub threads_blocks: Vec<u64>,
    /// Rounds, each with both contenders.
    pub rounds: u32,
    /// Differences below this share of the figure count as none.
    pub equivalence: f64,
}

/// What was published of a system.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSystem {
    /// Its name.
    pub system: String,
    /// The peak with two threads, in 10^6 bytes per second.
    pub peak_mb_per_s: f64,
    /// The same in the study's words.
    pub peak: String,
    /// With very large blocks, in 10^6 bytes per second.
    pub steady_mb_per_s: Option<f64>,
    /// The same in the study's words.
    pub steady: Option<String>,
    /// What it says of one thread.
    pub one_thread: String,
}

impl Bradford {
    /// Block sizes with two threads, in bytes: powers of two.
    pub fn threads_blocks(&self) -> Vec<u64> {
        let most = self.choice.threads_block_max.value;
        (0..63).map(|power| 1 << power).take_while(|block| *block <= most).collect()
    }

    /// Blocks of this size in a trial with two threads.
    pub fn threads_count(&self, block_bytes: u64) -> u64 {
        self.choice.threads_count.value.min(self.choice.threads_bytes_max.value / block_bytes).max(1)
    }

    /// Blocks of the size that no pipe holds, in a trial.
    pub fn huge_count(&self) -> u64 {
        self.choice.huge_count
    }

    /// How "indistinguishable" is tested.
    pub fn named(&self) -> Named {
        let values = |sizes: &[Size]| sizes.iter().map(|size| size.value).collect();
        Named {
            single_blocks: values(&self.choice.named_single_blocks),
            threads_blocks: values(&self.choice.named_threads_blocks),
            rounds: self.choice.named_rounds,
            equivalence: self.choice.equivalence_percent / 100.0,
        }
    }

    /// Blocks of this size in a trial of the named pipe.
    pub fn named_count(&self, block_bytes: u64) -> u64 {
        self.choice.named_count.value.min(self.choice.named_bytes_max.value / block_bytes).max(1)
    }
}

/// The study.
pub fn bradford() -> Bradford {
    embedded("bradford.toml", include_str!("../../../experiments/bradford.toml"))
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
