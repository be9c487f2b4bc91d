//! For which stage a chain waited in the last samples, although a sample shows one instant. Pure.

use crate::activity::Slice;
use crate::fullness::Fill;

/// The smallest weight of the latest sample; all earlier ones have the rest. So about the last five samples count, and of fewer all count alike.
const LATEST_WEIGHT_MIN: f64 = 0.3;
/// Smallest share of the time since the previous sample in which a process computed or waited for a CPU, if it never waited for anything else.
const ALWAYS_SHARE_MIN: f64 = 0.9;
/// Largest share of a CPU of a writer that waits for its reader, and not the reader for it.
const WRITER_CPU_MAX: f64 = 0.5;

/// Shares of one stage, over the last samples.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct StageShares {
    /// Share of the time for which the chain waited for it.
    pub(super) held_up: f64,
    /// Share of the samples in which it waited for time to pass.
    pub(super) passed_time: f64,
    samples: f64,
}

impl StageShares {
    /// The shares with one more sample.
    pub(super) fn with(self, held_up: f64, passes_time: bool) -> Self {
        let samples = self.samples + 1.0;
        let weight = LATEST_WEIGHT_MIN.max(1.0 / samples);
        let share = |before: f64, now: f64| before + (now - before) * weight;
        Self {
            held_up: share(self.held_up, held_up),
            passed_time: share(self.passed_time, f64::from(u8::from(passes_time))),
            samples,
        }
    }
}

/// How full a link was since the previous sample, by what the processes at its ends did. `fill` is of one instant: a reader that never waited for
/// input may just have emptied it.
pub(super) fn over_time(fill: Fill, readers: &[Slice], writers: &[Slice]) -> Fill {
    let never_waited = |slice: &Slice| slice.cpu + slice.queued >= ALWAYS_SHARE_MIN;
    let may_wait = |slice: &Slice| slice.cpu < WRITER_CPU_MAX && !slice.at_disk;
    let is_seen = !readers.is_empty() && !writers.is_empty();
    if is_seen && readers.iter().all(never_waited) && writers.iter().all(may_wait) {
        Fill { share: 1.0, holds: true, ..fill }
    } else {
        fill
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::stands_out;

    fn slice(cpu: f64, queued: f64) -> Slice {
        Slice { cpu, queued, ..Slice::default() }
    }

    /// Expected: the reader. Happened: in 2 of 14 runs of `cat | tr | gzip -9 | wc` no stage was named, as gzip had just emptied its input.
    #[test]
    fn a_reader_that_never_waited_had_input() {
        let empty = Fill::NOTHING_YET;
        let is_full = |readers: &[Slice], writers: &[Slice]| over_time(empty, readers, writers).is_full();
        assert!(is_full(&[slice(1.0, 0.0)], &[slice(0.1, 0.0)]));
        assert!(is_full(&[slice(0.4, 0.6)], &[slice(0.1, 0.5)]), "with one CPU they queue for it");
        assert!(!is_full(&[slice(0.6, 0.0)], &[slice(0.1, 0.0)]), "it waits for a slow source");
        assert!(!is_full(&[slice(1.0, 0.0)], &[slice(0.9, 0.0)]), "both compute");
        assert!(!is_full(&[slice(1.0, 0.0)], &[]), "a writer that is not visible");
    }

    /// Expected: the stage that five of six samples found. Happened: it had 55 % of the shares, as the last sample alone had 40 %.
    #[test]
    fn one_sample_does_not_outweigh_five() {
        let all = |held_up: [f64; 6]| {
            held_up.iter().fold(StageShares::default(), |shares, share| shares.with(*share, false)).held_up
        };
        let [first, other] = [all([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]), all([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])];
        assert!((first + other - 1.0).abs() < 1e-9 && stands_out(first, other, 1.0), "{first} {other}");
        assert!(all([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]) < 0.15, "what was long ago counts less");
    }
}
