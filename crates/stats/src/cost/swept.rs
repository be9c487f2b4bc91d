//! The trials of one mechanism over block sizes, and a robust mean of each size.

use std::collections::BTreeMap;

use model::{CaseRecord, Workload};

use crate::estimate::{median, middle};
use crate::figure::elapsed_per_block_ns;
use crate::spread::mad_sigma;

/// Standard deviations beyond which a sample has no weight (Beaton and Tukey's bisquare, 95 % efficient for normal values).
const BISQUARE: f64 = 6.0;
/// Steps of the bisquare mean; it hardly changes after the third.
const STEPS: usize = 8;
/// Names of the buffer between the ends in `granted`; the first that exists is used.
const BUFFERS: [&str; 3] = ["pipe_bytes", "ring_bytes", "sndbuf_bytes"];

/// The trials of one mechanism over block sizes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SizeSweep {
    /// The logarithm of the time per block in nanoseconds, by block and round.
    sizes: BTreeMap<u64, Vec<(u32, f64)>>,
    buffer_bytes: Option<u64>,
}

/// The mean of a size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SizeMean {
    pub(super) block_bytes: u64,
    pub(super) ln_ns: f64,
}

impl SizeSweep {
    /// The streams among these cases, which must have the same mechanism and options except for the block. Samples without a time per
    /// block are ignored.
    pub fn of<'a>(cases: impl IntoIterator<Item = &'a CaseRecord>) -> Self {
        let mut swept = Self::default();
        let mut buffers: Vec<Option<u64>> = Vec::new();
        for case in cases {
            if case.workload != Workload::Stream || case.samples.is_empty() || case.block_bytes == 0 {
                continue;
            }
            buffers.push(BUFFERS.iter().find_map(|name| case.granted.get(*name)).copied());
            for sample in &case.samples {
                let ln_ns = elapsed_per_block_ns(sample).map(f64::ln).filter(|ln_ns| ln_ns.is_finite());
                let Some(ln_ns) = ln_ns else { continue };
                swept.sizes.entry(case.block_bytes).or_default().push((sample.round, ln_ns));
            }
        }
        // One buffer for all sizes: larger blocks do not fill a buffer that grows with them.
        swept.buffer_bytes =
            buffers.first().copied().flatten().filter(|one| buffers.iter().all(|all| *all == Some(*one)));
        swept
    }

    /// The block sizes with trials, ascending.
    pub fn blocks(&self) -> Vec<u64> {
        self.sizes.keys().copied().collect()
    }

    /// The rounds of the trials, each once.
    pub fn rounds(&self) -> Vec<u32> {
        let rounds: std::collections::BTreeSet<u32> =
            self.sizes.values().flatten().map(|(round, _)| *round).collect();
        rounds.into_iter().collect()
    }

    /// The trials of a size: round, and logarithm of the nanoseconds per block.
    pub(super) fn of_block(&self, block_bytes: u64) -> &[(u32, f64)] {
        self.sizes.get(&block_bytes).map_or(&[], Vec::as_slice)
    }

    pub(super) fn buffer_bytes(&self) -> Option<u64> {
        self.buffer_bytes
    }

    /// The mean of every size, without the trials of the rounds `without`.
    pub(super) fn size_means(&self, without: Option<&[u32]>) -> Vec<SizeMean> {
        let stays = |round: &u32| without.is_none_or(|rounds| !rounds.contains(round));
        let values: Vec<(u64, Vec<f64>)> = self
            .sizes
            .iter()
            .map(|(block, trials)| (*block, trials.iter().filter(|(round, _)| stays(round)).map(|t| t.1)))
            .map(|(block, values)| (block, values.collect::<Vec<f64>>()))
            .filter(|(_, values)| !values.is_empty())
            .collect();
        let spread = spread(values.iter().map(|(_, values)| values.as_slice()));
        let mean = |(block_bytes, values): &(u64, Vec<f64>)| SizeMean {
            block_bytes: *block_bytes,
            ln_ns: bisquare_mean(values, spread),
        };
        values.iter().map(mean).collect()
    }
}

/// The standard deviation of the values of all sizes around the median of each, by their median absolute deviation.
fn spread<'a>(sizes: impl Iterator<Item = &'a [f64]>) -> f64 {
    let off = sizes.flat_map(|values| {
        let center = median(values).unwrap_or(0.0);
        // One of n values is the median itself: approximately the n - 1 correction of the standard deviation.
        let few = (values.len() as f64 / (values.len().max(2) - 1) as f64).sqrt();
        values.iter().map(move |value| (value - center).abs() * few)
    });
    mad_sigma(&off.collect::<Vec<f64>>()).unwrap_or(0.0)
}

/// The bisquare mean of at least one value.
fn bisquare_mean(values: &[f64], spread: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut center = middle(&sorted);
    for _ in 0..STEPS {
        let weight = |value: f64| {
            let far = (value - center) / (BISQUARE * spread);
            if far.abs() < 1.0 { (1.0 - far * far).powi(2) } else { 0.0 }
        };
        let (mut sum, mut weights) = (0.0, 0.0);
        for value in &sorted {
            sum += weight(*value) * value;
            weights += weight(*value);
        }
        // If no value has a weight, the median stays: none has where the spread is zero.
        if weights <= 0.0 {
            break;
        }
        center = sum / weights;
    }
    center
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock;
    use model::Sample;

    /// A trial of one block that takes so long.
    fn trial(round: u32, elapsed_ns: u64) -> Sample {
        Sample { elapsed_ns, messages: 1, ..mock::sample(round) }
    }

    fn case(block_bytes: u64, granted: &[(&str, u64)], samples: Vec<Sample>) -> CaseRecord {
        let granted = granted.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
        CaseRecord { block_bytes, granted, ..mock::case(Workload::Stream, samples) }
    }

    #[test]
    fn streams_with_times_are_swept() {
        let trips = CaseRecord { workload: Workload::PingPong, ..case(2, &[], vec![trial(0, 5)]) };
        let untimed = vec![trial(0, 0), Sample { messages: 0, ..trial(1, 5) }, trial(7, 1), trial(4, 1)];
        let cases = [
            trips,
            case(4, &[("pipe_bytes", 9)], Vec::new()),
            case(0, &[("pipe_bytes", 9)], vec![trial(0, 5)]),
            case(16, &[("ring_bytes", 8), ("pipe_bytes", 64)], untimed),
            case(8, &[("pipe_bytes", 64)], vec![trial(4, 1)]),
        ];
        let swept = SizeSweep::of(&cases);
        assert_eq!((swept.blocks(), swept.rounds()), (vec![8, 16], vec![4, 7]));
        assert_eq!(swept.of_block(16), [(7, 0.0), (4, 0.0)]);
        assert_eq!((swept.of_block(4), swept.buffer_bytes()), (&[][..], Some(64)));
        assert_eq!((SizeSweep::default().rounds(), SizeSweep::default().buffer_bytes()), (Vec::new(), None));
        for (first, second, expected) in [
            (&[("sndbuf_bytes", 7)][..], &[("sndbuf_bytes", 7)][..], Some(7)),
            (&[("sndbuf_bytes", 7)], &[("sndbuf_bytes", 8)], None),
            (&[("ring_bytes", 7)], &[], None),
            (&[], &[("ring_bytes", 7)], None),
            (&[("other_bytes", 7)], &[("other_bytes", 7)], None),
        ] {
            let cases =
                [(1, first), (2, second)].map(|(block, granted)| case(block, granted, vec![trial(0, 1)]));
            assert_eq!(SizeSweep::of(&cases).buffer_bytes(), expected, "{first:?} and {second:?}");
        }
    }

    #[test]
    fn a_size_without_the_rounds_that_stay_has_no_mean() {
        let swept =
            SizeSweep::of(&[case(1, &[], vec![trial(0, 1), trial(1, 1)]), case(2, &[], vec![trial(1, 1)])]);
        let blocks = |without: Option<&[u32]>| -> Vec<u64> {
            swept.size_means(without).iter().map(|mean| mean.block_bytes).collect()
        };
        assert_eq!((blocks(None), blocks(Some(&[1])), blocks(Some(&[0, 1]))), (vec![1, 2], vec![1], vec![]));
    }

    #[test]
    fn the_spread_is_that_around_the_median_of_each_size() {
        for (sizes, expected) in [
            // Each deviation is multiplied by the square root of n / (n - 1).
            (&[&[0.0, 2.0][..]][..], 1.4826 * 2f64.sqrt()),
            (&[&[0.0, 1.0, 3.0]], 1.4826 * 1.5f64.sqrt()),
            (&[&[5.0]], 0.0),
            (&[&[5.0], &[0.0, 2.0]], 1.4826 * 2f64.sqrt()),
            (&[&[7.0, 8.0, 9.0, 12.0], &[0.0, 2.0, 3.0, 5.0]], 1.4826 * (4.0f64 / 3.0).sqrt()),
            (&[], 0.0),
        ] {
            let found = spread(sizes.iter().copied());
            assert!((found - expected).abs() < 1e-12, "{found} for {sizes:?}");
        }
    }

    #[test]
    fn the_bisquare_mean_ignores_what_is_far() {
        for (values, spread, expected) in [
            (&[3.0][..], 1.0, 3.0),
            (&[0.0, 5.0, 1.0], 0.0, 1.0),
            (&[-1.0, 1.0], 1.0, 0.0),
            (&[0.0, 0.0, 0.0, 5.9, 100.0], 0.9, 0.0),
            (&[0.0, 0.0, 6.0], 1.0, 0.0),
            // No value is near the median, so that it stays.
            (&[-10.0, 10.0], 1.0, 0.0),
            (&[-10.0, 20.0], 1.0, 5.0),
            // c with 2 c (1 - (c/6)²)² = (3 - c) (1 - ((3 - c)/6)²)².
            (&[0.0, 3.0, 0.0], 1.0, 0.850_417_8),
        ] {
            let found = bisquare_mean(values, spread);
            assert!((found - expected).abs() < 1e-4, "{found} for {values:?}");
        }
    }
}
