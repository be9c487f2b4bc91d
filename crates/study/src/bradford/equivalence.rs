//! Whether two cases are "indistinguishable", as the study `bradford` has it of named pipes. That no difference was
//! found is not that there is none; so the ratio's whole interval has to lie within a bound that was set before.

use model::Sample;
use stats::estimate::ENOUGH_FOR_95_PERCENT;
use stats::figure::throughput_bytes_per_s;
use stats::{paired_ratios, ratio_of};

model::words! {
    /// What can be said of two cases.
    pub enum Verdict {
        /// The interval of the ratio lies within the bound.
        Indistinguishable = "indistinguishable",
        /// The interval lies outside 1, and not within the bound.
        Different = "different",
        /// The interval is too wide to say, or made of too few rounds.
        Undecided = "undecided",
    }
}

/// One case as a multiple of another, and what follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Equivalence {
    /// Median of the ratios of all rounds.
    pub(crate) ratio: f64,
    /// Lower end of its 95 % interval.
    pub(crate) low: f64,
    /// Upper end of its 95 % interval.
    pub(crate) high: f64,
    /// Rounds that had both.
    pub(crate) pairs: usize,
    /// What follows.
    pub(crate) verdict: Verdict,
}

/// Compares cases round by round; `bound` is the share up to which a difference counts as none. Of several pairs of
/// cases the ratios of all are taken together. `None` where no round has both.
///
/// The interval is the 95 % one, which makes the test stricter than two one-sided tests at 5 % (Schuirmann, 1987).
pub(crate) fn equivalence(pairs: &[(&[Sample], &[Sample])], bound: f64) -> Option<Equivalence> {
    let of_pair = |(one, other): &(&[Sample], &[Sample])| paired_ratios(one, other, throughput_bytes_per_s);
    let ratios: Vec<f64> = pairs.iter().flat_map(of_pair).collect();
    let ratio = ratio_of(&ratios)?;
    let within = 1.0 - bound <= ratio.low && ratio.high <= 1.0 + bound;
    let excludes_one = ratio.high < 1.0 || ratio.low > 1.0;
    let verdict = match (within, excludes_one) {
        _ if ratios.len() < ENOUGH_FOR_95_PERCENT => Verdict::Undecided,
        (true, _) => Verdict::Indistinguishable,
        (false, true) => Verdict::Different,
        (false, false) => Verdict::Undecided,
    };
    Some(Equivalence { ratio: ratio.median, low: ratio.low, high: ratio.high, pairs: ratios.len(), verdict })
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
        assert_eq!(verdict(&near, &steady), Some(Verdict::Indistinguishable));
        assert_eq!(verdict(&slower, &steady), Some(Verdict::Different));
        assert_eq!(verdict(&wild, &steady), Some(Verdict::Undecided));
        assert_eq!(verdict(&slower[..3], &steady), Some(Verdict::Undecided), "too few rounds");
        assert_eq!(verdict(&[], &steady), None);
    }

    #[test]
    fn several_cases_are_taken_together() {
        let (one, other) = (samples(&[100, 102, 98]), samples(&[100, 100, 100]));
        let pairs = [(one.as_slice(), other.as_slice()), (other.as_slice(), other.as_slice())];
        assert_eq!(equivalence(&pairs, 0.05).map(|found| found.pairs), Some(6));
    }
}
