//! Tests whether two cases are "indistinguishable", as the study `bradford` says of named and unnamed pipes. To find no difference
//! does not prove that there is none. Therefore the whole interval of the ratio has to lie within a bound that was set beforehand.

use model::{Ratio, Sample};
use stats::estimate::ENOUGH_FOR_95_PERCENT;
use stats::figure::throughput_bytes_per_s;
use stats::{paired_ratios, ratio_of};

model::words! {
    /// The result of the test.
    pub enum Likeness {
        /// The interval of the ratio lies within the bound.
        Indistinguishable = "indistinguishable",
        /// The interval does not contain 1, and does not lie within the bound.
        Different = "different",
        /// The interval is too wide, or there are too few rounds.
        Undecided = "undecided",
    }
}

/// One case as a multiple of another, and the result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Equivalence {
    /// The median of the ratios of all rounds, and its interval.
    pub(crate) ratio: Ratio,
    /// Rounds with a sample of both.
    pub(crate) pairs: usize,
    pub(crate) verdict: Likeness,
}

/// Compares cases round by round; a difference of at most the share `bound` counts as none. For several pairs of cases the ratios
/// of all pairs are taken together. `None` if no round has samples of both.
///
/// The interval is the 95 % one, which makes the test stricter than two one-sided tests at 5 % (Schuirmann, 1987).
pub(crate) fn equivalence(pairs: &[(&[Sample], &[Sample])], bound: f64) -> Option<Equivalence> {
    let ratios_of = |(one, other): &(&[Sample], &[Sample])| paired_ratios(one, other, throughput_bytes_per_s);
    let ratios: Vec<f64> = pairs.iter().flat_map(ratios_of).collect();
    let ratio = ratio_of(&ratios)?;
    let within = 1.0 - bound <= ratio.low && ratio.high <= 1.0 + bound;
    let excludes_one = ratio.high < 1.0 || ratio.low > 1.0;
    let verdict = match (within, excludes_one) {
        _ if ratios.len() < ENOUGH_FOR_95_PERCENT => Likeness::Undecided,
        (true, _) => Likeness::Indistinguishable,
        (false, true) => Likeness::Different,
        (false, false) => Likeness::Undecided,
    };
    Some(Equivalence { ratio, pairs: ratios.len(), verdict })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rates: &[u64]) -> Vec<Sample> {
        let sample = |(rate, round): (&u64, u32)| Sample {
            round,
            elapsed_ns: 1_000_000_000,
            bytes: *rate,
            messages: 1,
            ..Sample::default()
        };
        rates.iter().zip(0..).map(sample).collect()
    }

    #[test]
    fn a_narrow_interval_around_one_is_needed() {
        let verdict = |one: &[u64], other: &[u64]| {
            equivalence(&[(&samples(one), &samples(other))], 0.05).map(|found| found.verdict)
        };
        let steady = [1000; 12];
        let near: Vec<u64> = (0..12).map(|round| 1000 + round).collect();
        let slower: Vec<u64> = (0..12).map(|round| 800 + round).collect();
        let wild: Vec<u64> = (0..12).map(|round| if round % 2 == 0 { 500 } else { 1500 }).collect();
        assert_eq!(verdict(&near, &steady), Some(Likeness::Indistinguishable));
        assert_eq!(verdict(&slower, &steady), Some(Likeness::Different));
        assert_eq!(verdict(&wild, &steady), Some(Likeness::Undecided));
        assert_eq!(verdict(&slower[..3], &steady), Some(Likeness::Undecided), "too few rounds");
        assert_eq!(verdict(&[], &steady), None);
    }

    #[test]
    fn several_cases_are_taken_together() {
        let (one, other) = (samples(&[100, 102, 98]), samples(&[100, 100, 100]));
        let pairs = [(one.as_slice(), other.as_slice()), (other.as_slice(), other.as_slice())];
        assert_eq!(equivalence(&pairs, 0.05).map(|found| found.pairs), Some(6));
    }
}
