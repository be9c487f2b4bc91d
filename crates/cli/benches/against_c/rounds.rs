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
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The smallest and the largest figure.
pub(crate) fn range(figures: &[f64]) -> (f64, f64) {
    figures
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), figure| (low.min(*figure), high.max(*figure)))
}

/// The narrowest pair of figures, equally far from either end of the order, that has the true median between
/// them in at least 95 of 100 such runs (order statistics: each figure lies below it with probability 1/2,
/// whatever their distribution). Below six figures there is none, and the whole range is given.
pub(crate) fn median_interval(figures: &[f64]) -> (f64, f64) {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // P(k figures below the median) is C(count, k) / 2^count; cut from each end while both tails stay in 5 %.
    let mut probability = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut tail = probability;
    let mut cut = 0;
    while 2 * (cut + 1) < count {
        probability *= (count - cut) as f64 / (cut + 1) as f64;
        tail += probability;
        if 2.0 * tail > 0.05 {
            break;
        }
        cut += 1;
    }
    if count == 0 { (f64::NAN, f64::NAN) } else { (sorted[cut], sorted[count - 1 - cut]) }
}
