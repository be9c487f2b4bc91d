//! Whether one text gives the same as another one, and is faster.

use model::{CompareResult, Ratio, TuneReason};
use stats::{BothSides, shifts};

/// A change must save at least this much to be worth a longer text.
const WORTHWHILE: f64 = 0.97;
/// After fewer rounds a change must take at most [`CLEARLY`] of the time in each.
const ROUNDS_MIN: u32 = 3;
const CLEARLY: f64 = 0.85;

/// How much faster a text is that gives the same.
pub(super) struct Compared {
    pub(super) ratio: Ratio,
    pub(super) rounds: u32,
}

impl Compared {
    /// Whether it is faster in every likely reading.
    pub(super) fn is_faster(&self) -> bool {
        self.ratio.high < if self.rounds < ROUNDS_MIN { CLEARLY } else { 1.0 }
    }

    /// Whether it seems faster, and more rounds might show it.
    pub(super) fn is_open(&self) -> bool {
        self.rounds < ROUNDS_MIN && self.ratio.median < WORTHWHILE
    }

    /// Whether it also saves enough for a longer text.
    pub(super) fn is_worthwhile(&self) -> bool {
        self.is_faster() && self.ratio.median < WORTHWHILE
    }
}

/// Compares a new text with the old one.
///
/// # Errors
/// It was not run, gives something else, or needs too much.
pub(super) fn compare(old: &CompareResult, new: &CompareResult) -> Result<Compared, TuneReason> {
    let rounds = old.times_s.len().min(new.times_s.len());
    if new.error.is_none() && rounds == 0 {
        return Err(TuneReason::NoTime);
    }
    if new.error.is_some() || old.status != new.status {
        return Err(TuneReason::Status);
    }
    if !is_equal(old, new) {
        return Err(TuneReason::Output);
    }
    let memory_bytes = host::memory().map_or(u64::MAX, |memory| memory.available_bytes / 2);
    if new.max_rss_bytes > Some(memory_bytes) {
        return Err(TuneReason::Memory);
    }
    let times = BothSides { old: &old.times_s[..rounds], new: &new.times_s[..rounds], paired: true };
    let found = shifts(&[times], 1).pop().flatten().ok_or(TuneReason::NoTime)?;
    let ratios = || old.times_s.iter().zip(&new.times_s).map(|(old_s, new_s)| new_s / old_s);
    // After few rounds there is no interval: from the smallest to the largest.
    let range = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    let (low, high) = found.interval.unwrap_or(range);
    Ok(Compared { ratio: Ratio { median: found.ratio, low, high }, rounds: rounds as u32 })
}

/// Whether every run of both gave the same output and status.
fn is_equal(old: &CompareResult, new: &CompareResult) -> bool {
    let is_steady = |result: &CompareResult| result.equal != Some(false) && result.error.is_none();
    is_steady(old) && is_steady(new) && old.output_hash == new.output_hash && old.status == new.status
}

/// Whether more rounds are in vain: the second of two differs from the first, or is slower in most rounds.
pub(super) fn is_in_vain(made: u32, results: &[&CompareResult]) -> bool {
    let [old, new] = results else { return false };
    let slower = old.times_s.iter().zip(&new.times_s).filter(|(old, new)| new >= old).count();
    !is_equal(old, new) || made >= ROUNDS_MIN && slower * 2 > made as usize
}

/// Whether the second of two is clearly faster in every round so far.
pub(super) fn is_clear(made: u32, results: &[&CompareResult]) -> bool {
    let [old, new] = results else { return false };
    made >= ROUNDS_MIN && old.times_s.iter().zip(&new.times_s).all(|(old, new)| *new < old * CLEARLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(times_s: &[f64], hash: &str) -> CompareResult {
        CompareResult {
            times_s: times_s.to_vec(),
            output_hash: Some(hash.to_owned()),
            status: Some(0),
            ..CompareResult::new("x", "bash")
        }
    }

    #[test]
    fn few_rounds_must_be_clear_and_many_need_an_interval() {
        let faster = |old: &[f64], new: &[f64]| {
            compare(&result(old, "a"), &result(new, "a")).is_ok_and(|found| found.is_worthwhile())
        };
        assert!(faster(&[1.0], &[0.5]) && !faster(&[1.0], &[0.9]));
        assert!(faster(&[1.0, 2.0, 1.5], &[0.9, 1.8, 1.4]) && !faster(&[1.0, 2.0, 1.5], &[0.5, 2.1, 0.5]));
        let (old, new) = ([1.0, 1.2, 0.9, 1.1, 1.0, 1.3, 1.1], [0.5, 0.6, 0.4, 0.7, 1.2, 0.6, 0.5]);
        assert!(faster(&old, &new), "one disturbed round of seven");
        assert!(!faster(&old, &old.map(|time| time * 0.98)), "not worth it");
    }

    #[test]
    fn what_gives_something_else_is_never_faster() {
        let reason = |old: &CompareResult, new: &CompareResult| compare(old, new).err();
        let base = result(&[1.0], "a");
        assert_eq!(reason(&base, &result(&[0.1], "b")), Some(TuneReason::Output));
        let unsteady = CompareResult { equal: Some(false), ..result(&[0.1], "a") };
        assert_eq!(reason(&base, &unsteady), Some(TuneReason::Output));
        let failed = CompareResult { status: Some(1), ..result(&[0.1], "a") };
        assert_eq!(reason(&base, &failed), Some(TuneReason::Status));
        assert_eq!(reason(&base, &result(&[], "a")), Some(TuneReason::NoTime));
        let large = CompareResult { max_rss_bytes: Some(u64::MAX), ..result(&[0.1], "a") };
        assert_eq!(reason(&base, &large), Some(TuneReason::Memory));
    }
}
