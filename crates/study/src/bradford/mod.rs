//! `bradford`: a pipe in one thread and in two, over block sizes.

mod equivalence;
mod run;
mod view;

use serde::Deserialize;

use crate::scale::Size;
use crate::{Needs, Study};

/// The entry in the list of studies.
pub(crate) const STUDY: Study = Study {
    name: "bradford",
    elsewhere: Some(view::elsewhere),
    needs: |scale| Needs { memory_bytes: run::memory_bytes(scale), ..Needs::default() },
    parts: &[
        ("single", run::single, view::single),
        ("threads", run::threads, view::threads),
        ("named", run::named, view::named),
        ("huge", run::huge, view::huge),
    ],
    facts: view::facts_of,
    toml: include_str!("study.toml"),
};

#[derive(Deserialize)]
struct Bradford {
    single: Single,
    threads: Threads,
    huge: Huge,
    choice: Choice,
    published: Vec<PublishedSystem>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Single {
    blocks: Vec<Size>,
    count_up_to_three_digits: Size,
    count_of_others: Size,
    series: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Threads {
    series: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Huge {
    block: Size,
}

#[derive(Deserialize)]
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedSystem {
    system: String,
    /// The peak with two threads, in 10^6 bytes per second.
    peak_mb_per_s: f64,
    /// The same in the study's words.
    peak: String,
    /// With very large blocks, in 10^6 bytes per second.
    steady_mb_per_s: Option<f64>,
    steady: Option<String>,
    one_thread: String,
}

impl Single {
    /// How often a block is written and read back: it goes by the way its size is written.
    fn count(&self, block: &Size) -> u64 {
        let is_short = block.text.len() <= 3 && block.text.bytes().all(|byte| byte.is_ascii_digit());
        if is_short { self.count_up_to_three_digits.value } else { self.count_of_others.value }
    }
}

impl Bradford {
    fn read() -> Self {
        STUDY.parameters()
    }

    /// Block sizes with two threads, in bytes: powers of two.
    fn threads_blocks(&self) -> Vec<u64> {
        let most = self.choice.threads_block_max.value;
        (0..63).map(|power| 1 << power).take_while(|block| *block <= most).collect()
    }

    /// Blocks of this size in a trial with two threads.
    fn threads_count(&self, block_bytes: u64) -> u64 {
        self.choice.threads_count.value.min(self.choice.threads_bytes_max.value / block_bytes).max(1)
    }

    /// Blocks of this size in a trial of the named pipe.
    fn named_count(&self, block_bytes: u64) -> u64 {
        self.choice.named_count.value.min(self.choice.named_bytes_max.value / block_bytes).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sweep_is_the_published_one() {
        let single = Bradford::read().single;
        let sizes: Vec<u64> = single.blocks.iter().map(|size| size.value).collect();
        assert_eq!((sizes.len(), sizes[0], sizes[sizes.len() - 1]), (62, 1, 4096));
        assert!(sizes.is_sorted());
        let count =
            |text: &str| single.count(single.blocks.iter().find(|size| size.text == text).expect(text));
        assert_eq!((count("1"), count("960")), (500 << 10, 500 << 10));
        assert_eq!((count("1024"), count("3k"), count("3584")), (100 << 10, 100 << 10, 100 << 10));
    }

    #[test]
    fn two_threads_move_no_more_than_was_chosen() {
        let study = Bradford::read();
        assert_eq!(study.threads_blocks().len(), 25);
        assert_eq!(study.threads_count(1), 100 << 10);
        assert_eq!(study.threads_count(16 << 20), 16);
    }
}
