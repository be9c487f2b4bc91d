//! How quiet the machine was: a verdict on the width of an interval.

use model::NoiseLevel;

use crate::Estimate;

/// Up to this share of the median on either side, rank by the figure.
const QUIET: f64 = 0.05;
/// Up to this share, a smaller difference may be chance; beyond it, believe nothing.
const NOISY: f64 = 0.15;

/// The verdict on an estimate; `None` where one value shows no spread.
pub fn verdict(estimate: &Estimate) -> Option<NoiseLevel> {
    estimate.relative_half_width().map(|share| match share {
        share if share <= QUIET => NoiseLevel::Quiet,
        share if share <= NOISY => NoiseLevel::Noisy,
        _ => NoiseLevel::Wild,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wider_the_wilder() {
        let of = |spread: f64| verdict(&Estimate::of(&[100.0 - spread, 100.0, 100.0 + spread]).unwrap());
        assert_eq!(of(5.0), Some(NoiseLevel::Quiet));
        assert_eq!(of(5.1), Some(NoiseLevel::Noisy));
        assert_eq!(of(16.0), Some(NoiseLevel::Wild));
        assert_eq!(verdict(&Estimate::of(&[1.0]).unwrap()), None);
    }
}
