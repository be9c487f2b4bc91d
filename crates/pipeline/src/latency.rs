//! How long lines take through a pipeline and through each of its stages, computed from the times at which data entered its links.
//!
//! Lines of two links are matched by the first of these rules that applies: lines with the same content that occur equally often
//! in both (the stage is a filter or a sort); the n-th line with the n-th, if both have the same number of lines (the stage
//! rewrites lines); else each block that entered the first link with the next block that entered the second, which is a lower bound. A rule
//! does not apply if a line would leave the stage before it entered it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Deref;

use model::{Delays, LatencyRecord, Matched, StageLatency};

/// Largest number of lines, or of blocks, whose times are kept. If there are more, a subset is kept.
const KEPT_MAX: usize = 1 << 15;

/// The times at which data entered a link.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    lines: u64,
    /// The hash of the unfinished line.
    unfinished: DefaultHasher,
    by_position: LineSample,
    by_content: LineSample,
    /// The times of blocks, at least `spacing_ns` apart.
    blocks_ns: Vec<u64>,
    spacing_ns: u64,
}

/// The keys and times of the lines whose key ends in `zero_bits` zero bits, so that two links keep the same lines. The number grows until
/// at most [`KEPT_MAX`] are kept.
#[derive(Debug, Default)]
struct LineSample {
    kept: Vec<(u64, u64)>,
    zero_bits: u32,
}

fn has_zero_bits(key: u64, bits: u32) -> bool {
    key.trailing_zeros() >= bits
}

impl LineSample {
    fn keep(&mut self, key: u64, at_ns: u64) {
        if !has_zero_bits(key, self.zero_bits) {
            return;
        }
        while self.kept.len() >= KEPT_MAX && self.zero_bits < u64::BITS {
            self.zero_bits += 1;
            let bits = self.zero_bits;
            self.kept.retain(|(key, _)| has_zero_bits(*key, bits));
        }
        if has_zero_bits(key, self.zero_bits) {
            self.kept.push((key, at_ns));
        }
    }

    /// The times of each key that ends in `zero_bits` zero bits; `zero_bits` is at least this sample's.
    fn times(&self, zero_bits: u32) -> HashMap<u64, Vec<u64>> {
        let mut times: HashMap<u64, Vec<u64>> = HashMap::new();
        for (key, at_ns) in self.kept.iter().filter(|(key, _)| has_zero_bits(*key, zero_bits)) {
            times.entry(*key).or_default().push(*at_ns);
        }
        times
    }
}

impl Stamps {
    /// Adds the data of one read.
    pub(crate) fn add(&mut self, piece: &[u8], at_ns: u64) {
        if self.blocks_ns.last().is_none_or(|last| at_ns >= last + self.spacing_ns) {
            self.blocks_ns.push(at_ns);
        }
        if self.blocks_ns.len() > KEPT_MAX {
            self.spacing_ns =
                (2 * self.spacing_ns).max((at_ns - self.blocks_ns[0]) / (KEPT_MAX as u64 / 2)).max(1);
            let (mut next_ns, spacing_ns) = (0, self.spacing_ns);
            self.blocks_ns.retain(|at_ns| {
                let stays = *at_ns >= next_ns;
                next_ns = if stays { at_ns + spacing_ns } else { next_ns };
                stays
            });
        }
        let mut rest = piece;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(end + 1);
            self.unfinished.write(line);
            let content = std::mem::take(&mut self.unfinished).finish();
            self.by_position.keep(self.lines, at_ns);
            self.by_content.keep(content, at_ns);
            self.lines += 1;
            rest = behind;
        }
        self.unfinished.write(rest);
    }
}

/// The delays from one link to another; `None` if one of them had no data.
fn between(entry: &Stamps, exit: &Stamps) -> Option<Delays> {
    let by_content = || matched(&entry.by_content, &exit.by_content).map(|times| (Matched::Content, times));
    let as_many = entry.lines == exit.lines;
    let by_position =
        || matched(&entry.by_position, &exit.by_position).map(|times| (Matched::Position, times));
    let by_block = || {
        // A block was left out because it came within the spacing of one that was kept. That one may have been left out later in the
        // same way, when the spacing was at least doubled: the spacings add up to at most twice the last one.
        let not_kept_ns = 2 * exit.spacing_ns;
        let bound_ns = |at_ns: &u64| {
            let next = exit.blocks_ns.partition_point(|out| out < at_ns);
            let next_ns = exit.blocks_ns.get(next)?;
            let before_ns = next.checked_sub(1).map(|before| exit.blocks_ns[before]);
            let perhaps_now = before_ns.is_some_and(|before_ns| at_ns - before_ns < not_kept_ns);
            Some(if perhaps_now { 0 } else { next_ns - at_ns })
        };
        (Matched::Block, entry.blocks_ns.iter().filter_map(bound_ns).collect())
    };
    let (matched, mut times) =
        by_content().or_else(|| as_many.then(by_position).flatten()).unwrap_or_else(by_block);
    times.sort_unstable();
    let rank = |percent: usize| times.get((times.len() * percent).div_ceil(100).max(1) - 1).copied();
    let count = times.len() as u64;
    Some(Delays {
        matched,
        count,
        mean_ns: times.iter().sum::<u64>().checked_div(count)?,
        p50_ns: rank(50)?,
        p99_ns: rank(99)?,
        max_ns: rank(100)?,
    })
}

/// The delays of lines with the same key; `None` if these are less than half of the lines of `exit`, or if one entered `exit` before
/// `entry`.
fn matched(entry: &LineSample, exit: &LineSample) -> Option<Vec<u64>> {
    let zero_bits = entry.zero_bits.max(exit.zero_bits);
    let (came, left) = (entry.times(zero_bits), exit.times(zero_bits));
    let out = left.values().map(Vec::len).sum::<usize>();
    let same = left.iter().filter_map(|(key, left)| Some((came.get(key)?, left)));
    let pairs =
        same.filter(|(came, left)| came.len() == left.len()).flat_map(|(came, left)| came.iter().zip(left));
    let times: Vec<u64> = pairs.map(|(came, left)| left.checked_sub(*came)).collect::<Option<_>>()?;
    (!times.is_empty() && 2 * times.len() >= out).then_some(times)
}

/// The latency of a pipeline, from its links in their order; `None` with fewer than two links that had data.
pub(crate) fn of_pipeline(pipeline: u32, links: &[impl Deref<Target = Stamps>]) -> Option<LatencyRecord> {
    let (first, last) = (links.first()?, links.last().filter(|_| links.len() > 1)?);
    let whole = between(first, last)?;
    let stage = |at: usize| {
        Some(StageLatency { stage: at as u32, delays: between(&links[at - 1], &links[at])?, share: None })
    };
    let mut stages: Vec<StageLatency> = (1..links.len()).filter_map(stage).collect();
    let sum_ns: u64 = stages.iter().map(|stage| stage.delays.mean_ns).sum();
    for stage in &mut stages {
        stage.share = (sum_ns > 0).then(|| stage.delays.mean_ns as f64 / sum_ns as f64);
    }
    Some(LatencyRecord { pipeline, whole, stages })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(pieces: &[(&str, u64)]) -> Stamps {
        let mut stamps = Stamps::default();
        pieces.iter().for_each(|(piece, at_ns)| stamps.add(piece.as_bytes(), *at_ns));
        stamps
    }

    fn seen(entry: &Stamps, exit: &Stamps) -> Option<(Matched, u64, u64, u64)> {
        between(entry, exit).map(|delays| (delays.matched, delays.count, delays.p50_ns, delays.max_ns))
    }

    #[test]
    fn lines_are_matched_by_what_is_true_of_both_links() {
        let entry = stamps(&[("a\nb", 10), ("\nc\n", 20), ("b\n", 30)]);
        // A filter, which writes at once what it had; a sort; what rewrites; what counts; what drops one of two that are alike.
        let filter = stamps(&[("a\nc\n", 50)]);
        assert_eq!(seen(&entry, &filter), Some((Matched::Content, 2, 30, 40)));
        assert_eq!(seen(&entry, &stamps(&[("a\nb\nb\nc\n", 40)])), Some((Matched::Content, 4, 20, 30)));
        assert_eq!(
            seen(&entry, &stamps(&[("A\nB\n", 21), ("C\nB\n", 35)])),
            Some((Matched::Position, 4, 5, 15))
        );
        assert_eq!(seen(&entry, &stamps(&[("4\n", 31)])), Some((Matched::Block, 3, 11, 21)));
        assert_eq!(seen(&entry, &stamps(&[("a\nb\nc\n", 31)])), Some((Matched::Content, 2, 11, 21)));
        assert_eq!(seen(&entry, &stamps(&[])), None);
    }

    /// A stage that writes before it reads has not made what it writes of what it reads.
    #[test]
    fn nothing_leaves_before_it_came() {
        let (entry, exit) = (stamps(&[("a\n", 10), ("b\n", 30)]), stamps(&[("a\n", 5), ("b\n", 40)]));
        assert_eq!(seen(&entry, &exit), Some((Matched::Block, 2, 10, 30)));
    }

    /// Expected: a lower bound. Happened: blocks that were not kept made the next output later.
    #[test]
    fn a_block_that_was_not_kept_may_have_been_the_next_output() {
        let (mut entry, mut exit) = (Stamps::default(), Stamps::default());
        entry.add(b"a", 1001);
        // Not all of this number of outputs are kept.
        (0..2 * KEPT_MAX as u64).for_each(|at_ns| exit.add(b"b", at_ns));
        assert_eq!(seen(&entry, &exit), Some((Matched::Block, 1, 0, 0)));
    }

    #[test]
    fn of_many_lines_both_links_keep_the_same_part() {
        let (mut entry, mut exit) = (Stamps::default(), Stamps::default());
        let count = 5 * KEPT_MAX as u64;
        for line in 0..count {
            entry.add(format!("{line}\n").as_bytes(), 100 * line);
            if line % 2 == 0 {
                exit.add(format!("{line}\n").as_bytes(), 100 * line + 7);
            }
        }
        let (matched, kept, p50_ns, max_ns) = seen(&entry, &exit).expect("times");
        assert_eq!((matched, p50_ns, max_ns), (Matched::Content, 7, 7));
        assert!(kept > count / 64 && kept <= KEPT_MAX as u64, "{kept}");
        assert!(entry.blocks_ns.len() <= KEPT_MAX && entry.spacing_ns < 2000, "{}", entry.spacing_ns);
        let same = (0..count).map(|_| ("y\n", 1)).collect::<Vec<_>>();
        assert_eq!(seen(&stamps(&same), &stamps(&same)).map(|seen| seen.2), Some(0));
    }

    #[test]
    fn the_slowest_stage_has_the_largest_share() {
        let links = [&stamps(&[("a\n", 10)]), &stamps(&[("a\n", 20)]), &stamps(&[("a\n", 50)])];
        let known = of_pipeline(0, &links).expect("three links");
        let stages: Vec<(u32, Option<f64>)> =
            known.stages.iter().map(|stage| (stage.stage, stage.share)).collect();
        assert_eq!((known.whole.p50_ns, stages), (40, vec![(1, Some(0.25)), (2, Some(0.75))]));
        assert_eq!(of_pipeline(0, &links[..1]), None);
    }
}
