//! The normal distribution, for tests and intervals with too many values for exact ones.

use std::f64::consts::SQRT_2;

/// The probability that a standard normal value exceeds `z`: Chebyshev fitting of erfc (Press et al., *Numerical Recipes*, §6.2),
/// with a relative error below 1.2e-7.
pub(crate) fn upper_tail(z: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        0.17087277,
        -0.82215223,
        1.48851587,
        -1.13520398,
        0.27886807,
        -0.18628806,
        0.09678418,
        0.37409196,
        1.00002368,
        -1.26551223,
    ];
    let x = z.abs() / SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let polynomial = COEFFICIENTS.iter().fold(0.0, |sum, coefficient| sum * t + coefficient);
    let half = 0.5 * t * (polynomial - x * x).exp();
    if z < 0.0 { 1.0 - half } else { half }
}

/// The quantile that a standard normal value exceeds with this probability, which is at most one half.
pub(crate) fn exceeded_with(chance: f64) -> f64 {
    exceeded_by(chance, upper_tail)
}

/// The value, at least 0, at which a tail that falls toward 0 has this size.
pub(crate) fn exceeded_by(chance: f64, tail: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while tail(high) > chance {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if tail(middle) > chance { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_any_table() {
        for (z, chance) in
            [(0.0, 0.5), (1.0, 0.158_655_25), (1.959_964, 0.025), (3.290_527, 5e-4), (-1.0, 0.841_344_75)]
        {
            assert!((upper_tail(z) / chance - 1.0).abs() < 1e-6, "{z}");
        }
        assert!((exceeded_with(0.025) - 1.959_964).abs() < 1e-5);
        assert!((exceeded_with(1e-6) - 4.753_424).abs() < 1e-5);
        assert!(upper_tail(1e9) == 0.0 && exceeded_with(0.5) < 1e-6);
    }
}
