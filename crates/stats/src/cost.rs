//! The cost of a block as a line over its size: time = overhead + bytes / bandwidth, plus, for blocks that fill the buffer between
//! the ends, a cost of each filling (both ends sleep and are woken). Computed from the raw samples of a sweep.
//!
//! - **Fit.** Times are compared in logarithms, as sizes span six decades and noise is proportional to the time. The samples of
//!   a size give its bisquare mean (outliers have little or no weight), the means give the line
//!   (Huber's weights, all sizes equal, no parameter below zero).
//! - **Intervals** are a jackknife's over rounds (without one round at a time, at most [`GROUPS_MAX`] groups of them) with
//!   Student's t: rounds are independent, but a disturbance affects all samples of a round.
//! - **Fillings** are part of the model only if at least three sizes fill the buffer and four do not, and if they make the fit clearly
//!   better ([`BETTER_BELOW`]): then blocks of at least the buffer's size take `filling × bytes / buffer` longer.
//! - **Verdict.** A size is off the line if the whole interval of its time is more than [`OFF_THE_LINE`] away.

mod crossing;
mod jackknife;
mod line;
mod swept;

pub use crossing::{Crossing, crossing, rounds_to_cross};
use jackknife::{interval, replicates};
use line::{CostLine, LineShape};
pub use swept::SizeSweep;

/// Fewest sizes for a line.
const SIZES_MIN: usize = 4;
/// Fewest rounds for an interval.
const ROUNDS_MIN: usize = 3;
/// Smallest ratio of the largest to the smallest size.
const SPAN_MIN: f64 = 8.0;
/// Most groups of rounds of the jackknife.
pub const GROUPS_MAX: usize = 25;
/// Fewest sizes that fill the buffer, and fewest that do not, for a model with fillings.
const FILLING_SIZES_MIN: [usize; 2] = [3, 4];
/// Fillings are part of the model if they reduce the mean distance of the sizes from the line below this share.
pub const BETTER_BELOW: f64 = 0.7;
/// Largest deviation of a size on the line, as a share; the same share as for noise ([`crate::spread`]).
pub const OFF_THE_LINE: f64 = 0.15;

/// A parameter and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fitted {
    /// The value.
    pub value: f64,
    /// Lower end; never below zero.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The cost of filling the buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Filling {
    /// The actual size of the buffer, in bytes.
    pub buffer_bytes: u64,
    /// The cost of each filling, in nanoseconds.
    pub ns: Fitted,
}

/// The deviation of a size from the line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviation {
    /// The block.
    pub block_bytes: u64,
    /// Its time as a multiple of the line's.
    pub times: Fitted,
}

/// Whether the line describes what was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Straightness {
    /// No size is off the line; the largest deviation is this share.
    Straight(f64),
    /// The whole intervals of some sizes are off the line.
    NotLinear,
    /// The intervals are too wide to decide.
    Unclear,
}

/// The line of a mechanism.
#[derive(Debug, Clone, PartialEq)]
pub struct CostModel {
    /// The cost of each block, independent of its size, in nanoseconds.
    pub overhead_ns: Fitted,
    /// The cost of each byte, in nanoseconds.
    pub byte_ns: Fitted,
    /// The cost of filling the buffer, if that is part of the model.
    pub filling: Option<Filling>,
    /// The block size with half the bandwidth, overhead × bandwidth (Hockney's half-performance length n½). `None` if the interval of
    /// the cost of a byte contains zero.
    pub half_bytes: Option<Fitted>,
    /// All sizes, ascending.
    pub deviations: Vec<Deviation>,
    line: CostLine,
}

/// Why there is no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoModel(String);

impl CostModel {
    /// The model of a mechanism.
    ///
    /// # Errors
    /// Too few sizes or rounds, or sizes too close together.
    pub fn of(swept: &SizeSweep) -> Result<Self, NoModel> {
        check(swept)?;
        let means = swept.size_means(None);
        let plain = LineShape { buffer_bytes: None };
        let fitted = |shape| line::fit(&means, shape);
        let too_odd = || NoModel("no line can be fitted to its times".to_owned());
        let without = fitted(plain).ok_or_else(too_odd)?;
        let filled = swept.buffer_bytes().filter(|buffer| has_sizes_about(*buffer, swept));
        let with = filled.and_then(|buffer| fitted(LineShape { buffer_bytes: Some(buffer) }));
        let better = |with: &CostLine| with.distance(&means) < BETTER_BELOW * without.distance(&means);
        let model = with.filter(better).map(|with| Self::around(swept, with));
        let costs = |model: &Self| model.filling.is_some_and(|filling| filling.ns.low > 0.0);
        Ok(model.filter(costs).unwrap_or_else(|| Self::around(swept, without)))
    }

    /// A line with the intervals around it.
    fn around(swept: &SizeSweep, line: CostLine) -> Self {
        let refitted: Vec<(CostLine, Vec<swept::SizeMean>)> = replicates(swept)
            .into_iter()
            .filter_map(|means| Some((line::fit(&means, line.shape)?, means)))
            .collect();
        let fitted = |of: &dyn Fn(&CostLine) -> f64| {
            let values: Vec<f64> = refitted.iter().map(|(line, _)| of(line)).collect();
            if values.iter().chain([&of(&line)]).all(|value| *value > 0.0) {
                let values: Vec<f64> = values.iter().map(|value| value.ln()).collect();
                return exponential(of(&line).ln(), interval(of(&line).ln(), &values));
            }
            let (low, high) = interval(of(&line), &values);
            Fitted { value: of(&line), low: low.max(0.0), high }
        };
        let half = |line: &CostLine| line.overhead_ns / line.byte_ns;
        // Not if the cost of a byte, or the overhead, is zero in any of the lines.
        let mut lines = refitted.iter().map(|(line, _)| line).chain([&line]);
        let has_half = lines.all(|line| half(line).ln().is_finite());
        let own = swept.size_means(None);
        let deviation = |mean: &swept::SizeMean| {
            let same = |means: &[swept::SizeMean]| {
                let found = means.binary_search_by_key(&mean.block_bytes, |other| other.block_bytes);
                found.ok().map(|at| means[at])
            };
            let off = |line: &CostLine, mean: &swept::SizeMean| mean.ln_ns - line.ns(mean.block_bytes).ln();
            let values: Vec<f64> =
                refitted.iter().filter_map(|(line, means)| Some(off(line, &same(means)?))).collect();
            let value = off(&line, mean);
            let times = exponential(value, interval(value, &values));
            Deviation { block_bytes: mean.block_bytes, times }
        };
        let filling = line.shape.buffer_bytes;
        Self {
            overhead_ns: fitted(&|line| line.overhead_ns),
            byte_ns: fitted(&|line| line.byte_ns),
            filling: filling
                .map(|buffer_bytes| Filling { buffer_bytes, ns: fitted(&|line| line.filling_ns) }),
            half_bytes: has_half.then(|| fitted(&half)),
            deviations: own.iter().map(deviation).collect(),
            line,
        }
    }

    /// The limit of the throughput for large blocks, without the cost of filling a buffer; `None` if the interval of the cost of a
    /// byte contains zero.
    pub fn bandwidth_bytes_per_s(&self) -> Option<Fitted> {
        let Fitted { value, low, high } = self.byte_ns;
        (low > 0.0).then(|| Fitted { value: 1e9 / value, low: 1e9 / high, high: 1e9 / low })
    }

    /// The same, with the cost of filling the buffer.
    pub fn large_blocks_bytes_per_s(&self) -> Option<f64> {
        let filling = self.filling.map_or(0.0, |filling| filling.ns.value / filling.buffer_bytes as f64);
        Some(1e9 / (1e9 / self.bandwidth_bytes_per_s()?.value + filling))
    }

    /// The time of a block of this size on the line, in nanoseconds.
    pub fn ns(&self, block_bytes: u64) -> f64 {
        self.line.ns(block_bytes)
    }

    /// Whether the line describes what was measured.
    pub fn straightness(&self) -> Straightness {
        if self.deviations.iter().any(Deviation::is_off) {
            return Straightness::NotLinear;
        }
        let farthest = |share: fn(&Fitted) -> f64| {
            self.deviations.iter().map(|deviation| share(&deviation.times)).fold(0.0, f64::max)
        };
        match farthest(|times| (times.low.recip() - 1.0).max(times.high - 1.0)) {
            share if share <= 2.0 * OFF_THE_LINE => {
                Straightness::Straight(farthest(|times| times.value.max(times.value.recip()) - 1.0))
            }
            _ => Straightness::Unclear,
        }
    }
}

impl Deviation {
    /// Whether the whole interval of the size is off the line.
    pub fn is_off(&self) -> bool {
        self.times.low > 1.0 + OFF_THE_LINE || self.times.high < (1.0 + OFF_THE_LINE).recip()
    }
}

/// The exponential of a value and of its interval.
fn exponential(value: f64, (low, high): (f64, f64)) -> Fitted {
    let [value, low, high] = [value, low, high].map(|ln| ln.exp().clamp(f64::MIN_POSITIVE, f64::MAX));
    Fitted { value, low, high }
}

fn check(swept: &SizeSweep) -> Result<(), NoModel> {
    let blocks = swept.blocks();
    let (sizes, rounds) = (blocks.len(), swept.rounds().len());
    let no = |why: String| Err(NoModel(why));
    match (blocks.first(), blocks.last()) {
        _ if sizes < SIZES_MIN => no(format!(
            "a line needs {SIZES_MIN} block sizes that were measured, and there {} {sizes}",
            if sizes == 1 { "is" } else { "are" }
        )),
        _ if rounds < ROUNDS_MIN => no(format!(
            "its interval needs {ROUNDS_MIN} trials, and there {} {rounds}",
            if rounds == 1 { "is" } else { "are" }
        )),
        (Some(first), Some(last)) if (*last as f64) < SPAN_MIN * *first as f64 => {
            no(format!("the largest block is not {SPAN_MIN} times the smallest: try --sweep"))
        }
        _ => Ok(()),
    }
}

/// Whether there are enough sizes below and above the buffer's.
fn has_sizes_about(buffer_bytes: u64, swept: &SizeSweep) -> bool {
    let (below, filling): (Vec<u64>, Vec<u64>) =
        swept.blocks().into_iter().partition(|block| *block < buffer_bytes);
    filling.len() >= FILLING_SIZES_MIN[0] && below.len() >= FILLING_SIZES_MIN[1]
}

#[cfg(test)]
mod tests;
