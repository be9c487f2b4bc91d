//! The summary of a comparison: each pipeline's times over each link, and how they compare round by round.

use std::collections::BTreeSet;

use model::{CompareResult, Ratio};

use crate::changes::{BothSides, shifts, usable};
use crate::estimate::{self, Estimate};
use crate::paired::ratio_of;

/// Sets the summaries. The results of one pipeline are compared with its first result and with the shell's own pipes; those of
/// several pipelines over one link with the fastest.
pub fn summarise_times(results: &mut [CompareResult]) {
    let taken: Vec<(String, bool, Vec<f64>)> = results
        .iter()
        .map(|result| (result.pipeline.clone(), result.is_shell_alone(), result.times_s.clone()))
        .collect();
    for result in &mut *results {
        let same = || taken.iter().filter(|(pipeline, ..)| *pipeline == result.pipeline);
        let first = same().next().map(|(.., times)| times.as_slice());
        let shell = same().find(|(_, is_shell, _)| *is_shell).map(|(.., times)| times.as_slice());
        result.times_first = first.and_then(|first| multiple(&result.times_s, first));
        result.times_shell = shell.and_then(|shell| multiple(&result.times_s, shell));
        let Some(estimate) = Estimate::of(&result.times_s) else { continue };
        result.mean_s = Some(estimate.mean);
        result.stddev_s = Some(estimate.stddev);
        result.median_s = Some(estimate.median);
        result.low_s = Some(estimate.low);
        result.high_s = Some(estimate.high);
    }
    let links: BTreeSet<String> = results.iter().map(|result| result.via.clone()).collect();
    links.iter().for_each(|via| against_fastest(results, via));
}

/// Compares the pipelines over one link with the fastest of them, in the rounds that both have.
///
/// The bounds are corrected for the number of comparisons with the fastest, not for all pairs, although the same trials determine
/// which one is the fastest (multiple comparisons with the best: J. C. Hsu, *Annals of Statistics* 12, 1984).
fn against_fastest(results: &mut [CompareResult], via: &str) {
    let over_it = |at: &usize| {
        let result = &results[*at];
        let measured = !result.times_s.is_empty() && result.times_s.iter().all(|time| usable(*time));
        result.via == via && result.error.is_none() && measured
    };
    let mut ranked: Vec<usize> = (0..results.len()).filter(over_it).collect();
    let median = |at: &usize| estimate::median(&results[*at].times_s).unwrap_or(f64::INFINITY);
    ranked.sort_by(|one, other| median(one).total_cmp(&median(other)));
    let [fastest, others @ ..] = &ranked[..] else { return };
    let cases: Vec<BothSides<'_>> = others
        .iter()
        .map(|at| {
            let (old, new) = (&results[*fastest].times_s, &results[*at].times_s);
            let rounds = old.len().min(new.len());
            BothSides { old: &old[..rounds], new: &new[..rounds], paired: true }
        })
        .collect();
    let ratios: Vec<Option<Ratio>> = shifts(&cases, 1)
        .into_iter()
        .map(|shift| {
            let (median, (low, high)) = shift.and_then(|shift| Some((shift.ratio, shift.interval?)))?;
            Some(Ratio { median, low, high })
        })
        .collect();
    if !others.is_empty() {
        results[*fastest].times_fastest = Some(Ratio { median: 1.0, low: 1.0, high: 1.0 });
    }
    for (at, ratio) in others.iter().zip(ratios) {
        results[*at].times_fastest = ratio;
    }
}

/// The paired ratio: both lists are in the order of the rounds.
fn multiple(times: &[f64], reference: &[f64]) -> Option<Ratio> {
    let ratios: Vec<f64> = times.iter().zip(reference).map(|(one, other)| one / other).collect();
    ratio_of(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(via: &str, times_s: &[f64]) -> CompareResult {
        CompareResult { times_s: times_s.to_vec(), ..CompareResult::new("a | b", via) }
    }

    #[test]
    fn times_are_compared_round_by_round() {
        let mut results = [
            result("pipe", &[1.0, 2.0, 3.0]),
            result("tmpfile", &[2.0, 4.0, 6.0]),
            result("bash", &[4.0, 8.0, 12.0]),
        ];
        summarise_times(&mut results);
        assert_eq!(results[1].times_first.map(|ratio| ratio.median), Some(2.0));
        assert_eq!(results[0].times_shell.map(|ratio| ratio.median), Some(0.25));
        assert_eq!(results[0].median_s, Some(2.0));
        assert_eq!(results[2].mean_s, Some(8.0));
    }

    #[test]
    fn without_times_there_is_no_summary() {
        let mut results = [result("pipe", &[]), result("tcp", &[1.0])];
        summarise_times(&mut results);
        assert_eq!(results[0].median_s, None);
        assert_eq!(results[1].times_first, None);
    }

    fn pipelines(times: &[&[f64]]) -> Vec<Option<(f64, f64, f64)>> {
        let named = times
            .iter()
            .enumerate()
            .map(|(at, times)| CompareResult { pipeline: at.to_string(), ..result("bash", times) });
        let mut results: Vec<CompareResult> = named.collect();
        summarise_times(&mut results);
        results
            .iter()
            .map(|one| one.times_fastest.map(|ratio| (ratio.low, ratio.median, ratio.high)))
            .collect()
    }

    /// A disturbance affects all pipelines of a round: the factor is found although the times overlap.
    #[test]
    fn pipelines_are_compared_with_the_fastest_within_rounds() {
        let base = [1.0, 3.0, 2.0, 5.0, 1.5, 4.0, 2.5, 1.2];
        let slower = base.map(|time| 2.0 * time);
        let found = pipelines(&[&slower, &base]);
        let (low, ratio, high) = found[0].expect("eight pairs");
        assert!(low > 1.99 && (ratio - 2.0).abs() < 1e-9 && high < 2.01, "{found:?}");
        assert_eq!(found[1], Some((1.0, 1.0, 1.0)));
        let level = base.map(|time| if time > 2.0 { time * 1.1 } else { time * 0.95 });
        let found = pipelines(&[&base, &level]);
        let other = found.iter().flatten().find(|(low, _, high)| low < high).expect("the other one");
        assert!(other.0 < 1.0 && other.2 > 1.0, "these are not known to differ: {found:?}");
    }

    /// The fastest of equal pipelines is chosen by the same trials, but its difference must not be significant.
    #[test]
    fn of_equal_pipelines_none_is_said_to_be_the_fastest() {
        let mut random = fastrand::Rng::with_seed(17);
        for count in [2, 3, 6] {
            let mut noisy = || 1.0 + 0.1 * (0..12).map(|_| random.f64()).sum::<f64>();
            let mut wins = || {
                let times: Vec<[f64; 10]> = (0..count).map(|_| std::array::from_fn(|_| noisy())).collect();
                let found = pipelines(&times.iter().map(|times| &times[..]).collect::<Vec<_>>());
                let slower = found.iter().flatten().filter(|(low, ..)| *low > 1.0).count();
                slower == count - 1
            };
            let wrong = (0..600).filter(|_| wins()).count();
            // Three standard errors above 5 %.
            assert!(wrong <= 46, "of {count} equal ones: {wrong} of 600 runs name a winner");
        }
    }

    #[test]
    fn five_pairs_and_a_pipeline_alone_have_no_bounds() {
        assert_eq!(pipelines(&[&[1.0; 5], &[2.0; 5]]), [Some((1.0, 1.0, 1.0)), None]);
        assert_eq!(pipelines(&[&[1.0; 8]]), [None]);
        assert_eq!(pipelines(&[&[1.0; 8], &[]]), [None, None], "the other one failed");
        assert_eq!(pipelines(&[&[1.0; 8], &[2.0, f64::NAN]]), [None, None]);
        // Interrupted: the first has one more round.
        assert_eq!(pipelines(&[&[1.0; 9], &[2.0; 8]])[1].map(|(low, ..)| low > 1.9), Some(true));
    }
}
