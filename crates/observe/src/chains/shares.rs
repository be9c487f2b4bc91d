//! For which stage a chain waited in the last samples, although a sample shows one instant. Pure.

/// The smallest weight of the latest sample; all earlier ones have the rest. So about the last five samples count, and of fewer all count alike.
const LATEST_WEIGHT_MIN: f64 = 0.3;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::stands_out;

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
