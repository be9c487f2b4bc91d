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
pub struct Swept {
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

impl Swept {
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

    /// How many rounds have a trial.
    pub fn round_count(&self) -> usize {
        self.rounds().len()
    }

    /// The rounds of the trials, each once.
    pub(super) fn rounds(&self) -> Vec<u32> {
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
    if spread <= 0.0 {
        return center;
    }
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
        // If no value has a weight, the median stays.
        if weights <= 0.0 {
            break;
        }
        center = sum / weights;
    }
    center
}
