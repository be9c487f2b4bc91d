//! Choice by a seeded generator: the same seed gives the same cases.

/// What decides where a case has a choice.
pub(crate) struct Dice(fastrand::Rng);

impl Dice {
    /// Dice of one case: known from the run's seed and the case's number alone, so that a case can be had again
    /// without those before it.
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        let mut mixed = fastrand::Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Neighbouring seeds give alike first figures.
        mixed.u64(..);
        Self(fastrand::Rng::with_seed(mixed.u64(..)))
    }

    /// One of several.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.usize(..choices.len())]
    }

    /// True in `percent` of a hundred calls.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.0.u32(..100) < percent
    }

    /// A number, both bounds included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.u64(low..=high)
    }
}
