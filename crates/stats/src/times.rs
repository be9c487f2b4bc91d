//! The summary of a comparison: each pipeline's times over each link, and how they compare round by round.

use model::{CompareResult, Ratio};

use crate::estimate::Estimate;
use crate::paired::ratio_of;

/// Fills in the summaries. Results of one pipeline are compared with its first one, and with the shell's own.
pub fn summarise_times(results: &mut [CompareResult]) {
    let taken: Vec<(String, bool, Vec<f64>)> = results
        .iter()
        .map(|result| (result.pipeline.clone(), result.is_shell_alone(), result.times_s.clone()))
        .collect();
    for result in results {
        let same = || taken.iter().filter(|(pipeline, ..)| *pipeline == result.pipeline);
        let first = same().next().map(|(.., times)| times.as_slice());
        let shell = same().find(|(_, is_shell, _)| *is_shell).map(|(.., times)| times.as_slice());
        result.times_first = first.and_then(|first| multiple(&result.times_s, first));
        result.times_bash = shell.and_then(|shell| multiple(&result.times_s, shell));
        let Some(estimate) = Estimate::of(&result.times_s) else { continue };
        result.mean_s = Some(estimate.mean);
        result.stddev_s = Some(estimate.stddev);
        result.median_s = Some(estimate.median);
        result.low_s = Some(estimate.low);
        result.high_s = Some(estimate.high);
    }
}

/// Round by round: the trials of both stand in the order of the rounds.
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
        assert_eq!(results[0].times_bash.map(|ratio| ratio.median), Some(0.25));
        assert_eq!(results[0].median_s, Some(2.0));
        assert_eq!(results[2].mean_s, Some(8.0));
    }

    #[test]
    fn nothing_measured_says_nothing() {
        let mut results = [result("pipe", &[]), result("tcp", &[1.0])];
        summarise_times(&mut results);
        assert_eq!(results[0].median_s, None);
        assert_eq!(results[1].times_first, None);
    }
}
