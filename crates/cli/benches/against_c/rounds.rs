//! Fair turns: contenders are measured in rounds, each once per round, so that whatever the machine does
//! meanwhile falls on all of them, and figures of one round can be compared pair by pair.

use anyhow::Result;

/// Runs every contender once to warm up (not kept), then `rounds` times in an order shuffled by `seed`.
/// Gives back each contender's figures, in the order of the rounds.
///
/// # Errors
/// The first contender's failure: a round with a hole in it has no pairs.
pub(crate) fn interleave<F, const N: usize>(
    rounds: usize,
    seed: u64,
    contenders: [&dyn Fn() -> Result<F>; N],
) -> Result<[Vec<F>; N]> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut order: [usize; N] = std::array::from_fn(|index| index);
    let mut figures = std::array::from_fn(|_| Vec::with_capacity(rounds));
    for contender in contenders {
        contender()?;
    }
    for _ in 0..rounds {
        rng.shuffle(&mut order);
        for &turn in &order {
            figures[turn].push(contenders[turn]()?);
        }
    }
    Ok(figures)
}

/// The middle figure, or the mean of the middle two; NaN where there are none.
pub(crate) fn median(figures: &[f64]) -> f64 {
    stats::estimate::median(figures).unwrap_or(f64::NAN)
}

/// The smallest and the largest figure.
pub(crate) fn range(figures: &[f64]) -> (f64, f64) {
    figures
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), figure| (low.min(*figure), high.max(*figure)))
}

/// The 95 % interval of the median, by order statistics; below six figures the whole range, which covers less.
pub(crate) fn median_interval(figures: &[f64]) -> (f64, f64) {
    stats::Estimate::of(figures).map_or((f64::NAN, f64::NAN), |estimate| (estimate.low, estimate.high))
}
