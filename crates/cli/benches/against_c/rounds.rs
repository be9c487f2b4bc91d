//! Fair turns: contenders are measured in rounds, each once per round, so that a disturbance of the machine
//! affects all of them, and figures of one round can be compared pair by pair.

use anyhow::Result;
use model::{Round, RoundLimits, Rounds};

use crate::target::Laboratory;

impl Laboratory {
    /// The rounds asked for, or the target's own.
    pub(crate) fn rounds_or(&self, default: usize) -> usize {
        self.rounds.unwrap_or(default)
    }

    /// Runs every contender once to warm up (not kept), then in each round once, in an order shuffled by the seed. Gives back each
    /// contender's figures, in the order of the rounds: `rounds` of them, unless another number is asked for.
    ///
    /// # Errors
    /// The first contender's failure: a round with a hole in it has no pairs.
    pub(crate) fn interleave<const N: usize>(
        &self,
        rounds: usize,
        contenders: [&dyn Fn() -> Result<f64>; N],
    ) -> Result<[Vec<f64>; N]> {
        let mut figures = [const { Vec::new() }; N];
        for contender in contenders {
            contender()?;
        }
        let most = self.rounds_or(rounds) as u32;
        let mut rounds =
            Rounds::new(self.seed, RoundLimits { most, least: most, until: None, unshuffled: 0 });
        while let Some(Round { rows, .. }) = rounds.next(Vec::from_iter(0..N)) {
            for turn in rows {
                figures[turn].push(contenders[turn]()?);
            }
        }
        Ok(figures)
    }

    /// Figures of one program alone: nothing to alternate with, no warm-up.
    pub(crate) fn repeat(&self, rounds: usize, run: impl Fn() -> Result<f64>) -> Result<Vec<f64>> {
        (0..self.rounds_or(rounds)).map(|_| run()).collect()
    }
}

/// The middle figure, or the mean of the middle two; NaN where there are none.
pub(crate) fn median(figures: &[f64]) -> f64 {
    stats::estimate::median(figures).unwrap_or(f64::NAN)
}

/// The smallest and the largest figure.
pub(crate) fn range(figures: &[f64]) -> (f64, f64) {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    figures.iter().fold(ends, |(low, high), figure| (low.min(*figure), high.max(*figure)))
}

/// The 95 % interval of the median, by order statistics; below six figures the whole range, which covers less.
pub(crate) fn median_interval(figures: &[f64]) -> (f64, f64) {
    stats::Estimate::of(figures).map_or((f64::NAN, f64::NAN), |estimate| (estimate.low, estimate.high))
}
