//! Changes between several runs of each side. The trials of one run have its layout of memory and its hours in common, so that a run is
//! the unit, and its median the figure (Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013): what lies between runs
//! is then in the test and in the bounds.
//!
//! Runs are few. If there are enough of them for the ranks of [`crate::changes`], which assume nothing, these are taken; with fewer,
//! Welch's t of the logarithms (*Biometrika* 34, 1947), as if runs scattered normally. Three medians may be close to each other by chance, as
//! where a channel has two states: no case counts as scattering less than half of the cases do.

use model::RUNS_MIN;

use crate::changes::{BothSides, ERRORS, Shift, correct, figures_needed, shifts};
use crate::estimate::median;
use crate::shift::multiple;
use crate::student;

/// Smallest spread between runs, as a share: histograms hold three digits, so that the medians of all runs may be one number.
const RESOLUTION: f64 = 1e-3;

/// The changes of cases, each given by the medians of its runs; corrected as [`shifts`] corrects them. A case that fewer than [`RUNS_MIN`]
/// runs of a side have is not tested.
pub(crate) fn shifts_of_runs(cases: &[BothSides<'_>]) -> Vec<Option<Shift>> {
    let fewest = |case: &BothSides| case.old.len().min(case.new.len());
    let judged: Vec<&BothSides> = cases.iter().filter(|case| fewest(case) >= RUNS_MIN).collect();
    let least = judged.iter().map(|case| fewest(case)).min().unwrap_or_default();
    if least >= figures_needed(judged.len(), 1, false) {
        return shifts(cases, 1);
    }
    let spreads: Vec<f64> =
        judged.iter().filter_map(|case| variance_between_runs(case.old, case.new)).collect();
    let least_variance = median(&spreads).unwrap_or_default().max(RESOLUTION.powi(2));
    let tail = ERRORS / judged.len().max(1) as f64 / 2.0;
    let test = |case: &BothSides| {
        let welch = Welch::of(case, least_variance);
        match fewest(case) {
            0 => None,
            RUNS_MIN.. => Some(welch.shift(tail)),
            _ => Some(Shift { ratio: multiple(welch.step), interval: None, p: 1.0, p_corrected: 1.0 }),
        }
    };
    let mut found: Vec<Option<Shift>> = cases.iter().map(test).collect();
    correct(&mut found, 1);
    found
}

/// The standard deviation between runs of one side, as a share of their figure, over both sides; `None` if a side has fewer than two.
pub fn spread_between_runs(old: &[f64], new: &[f64]) -> Option<f64> {
    variance_between_runs(old, new).map(|variance| variance.sqrt().exp_m1())
}

fn variance_between_runs(old: &[f64], new: &[f64]) -> Option<f64> {
    let [old, new] = [old, new].map(|runs| (runs.len() > 1).then(|| Moments::of(runs)));
    let (old, new) = old.zip(new)?;
    let squares = |side: &Moments| side.variance * (side.count - 1.0);
    Some((squares(&old) + squares(&new)) / (old.count + new.count - 2.0))
}

/// The mean of logarithms, and their variance.
struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Moments {
    fn of(figures: &[f64]) -> Self {
        let count = figures.len() as f64;
        let mean = figures.iter().map(|figure| figure.ln()).sum::<f64>() / count;
        let squares: f64 = figures.iter().map(|figure| (figure.ln() - mean).powi(2)).sum();
        Self { count, mean, variance: squares / (count - 1.0).max(1.0) }
    }
}

/// The step between the means of two sides, its standard error, and the degrees of freedom of that (Welch and Satterthwaite).
struct Welch {
    step: f64,
    error: f64,
    freedom: f64,
}

impl Welch {
    fn of(case: &BothSides<'_>, least_variance: f64) -> Self {
        let [old, new] = [case.old, case.new].map(Moments::of);
        let share = |side: &Moments| side.variance.max(least_variance) / side.count;
        let of_freedom = |side: &Moments| share(side).powi(2) / (side.count - 1.0).max(1.0);
        let square = share(&old) + share(&new);
        Self {
            step: new.mean - old.mean,
            error: square.sqrt(),
            freedom: square.powi(2) / (of_freedom(&old) + of_freedom(&new)),
        }
    }

    fn shift(&self, tail: f64) -> Shift {
        let arm = student::exceeded_with(tail, self.freedom) * self.error;
        Shift {
            ratio: multiple(self.step),
            interval: Some((multiple(self.step - arm), multiple(self.step + arm))),
            p: (2.0 * student::upper_tail((self.step / self.error).abs(), self.freedom)).min(1.0),
            p_corrected: 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::normal;
    use crate::{CaseFigures, differences, measured};
    use fastrand::Rng;
    use model::{CaseChange, CompareResult};

    /// How the figures of one program scatter.
    struct Scatter {
        between_runs: fn(&mut Rng) -> f64,
        between_trials: f64,
    }

    const EVEN: fn(&mut Rng) -> f64 = |random| (0.03 * normal(random)).exp();
    /// Mostly close to the best, and now and then far above it.
    const SKEWED: fn(&mut Rng) -> f64 = |random| 1.0 - 0.03 * random.f64().max(1e-12).ln();
    /// Two states, as of a channel whose memory lies in this or that cache.
    const STATES: fn(&mut Rng) -> f64 = |random| if random.bool() { 1.0 } else { 1.5 };

    /// The trials of some runs of one side.
    fn runs(random: &mut Rng, count: usize, scatter: &Scatter, factor: f64) -> Vec<Vec<f64>> {
        let one = |random: &mut Rng| {
            let middle = factor * (scatter.between_runs)(random);
            (0..9).map(|_| middle * (scatter.between_trials * normal(random)).exp()).collect()
        };
        (0..count).map(|_| one(random)).collect()
    }

    /// The share of comparisons of `count` runs a side of `cases` cases that find anything, if the new ones take `factor` times as long.
    fn found(cases: usize, count: usize, scatter: &Scatter, factor: f64) -> f64 {
        const COMPARISONS: usize = 400;
        let mut random = Rng::with_seed(51);
        let mut medians = |factor: f64| -> Vec<f64> {
            runs(&mut random, count, scatter, factor).iter().filter_map(|trials| median(trials)).collect()
        };
        let comparisons = (0..COMPARISONS).filter(|_| {
            let sides: Vec<[Vec<f64>; 2]> = (0..cases).map(|_| [medians(1.0), medians(factor)]).collect();
            let both: Vec<BothSides> =
                sides.iter().map(|[old, new]| BothSides { old, new, paired: false }).collect();
            shifts_of_runs(&both).iter().flatten().any(Shift::is_found)
        });
        comparisons.count() as f64 / COMPARISONS as f64
    }

    #[test]
    fn what_lies_between_runs_is_no_change() {
        for between_runs in [EVEN, SKEWED, STATES] {
            let scatter = Scatter { between_runs, between_trials: 0.05 };
            for (cases, count) in [(1, 3), (12, 3), (1, 5), (12, 8)] {
                let any = found(cases, count, &scatter, 1.0);
                // Three standard errors above 5 %.
                assert!(
                    any <= 0.083,
                    "{cases} cases of {count} runs: {any} of all comparisons find something"
                );
            }
        }
    }

    /// Expected: two runs of one program end with status 1 in at most one of twenty comparisons. Happened: in every third, because the
    /// trials of one run stood for all runs.
    #[test]
    fn two_runs_of_one_program_are_rarely_a_regression() {
        const COMPARISONS: usize = 400;
        let mut random = Rng::with_seed(7);
        let scatter = Scatter { between_runs: EVEN, between_trials: 0.05 };
        let mut alarms = |margin: Option<f64>| {
            let one = |random: &mut Rng| -> Vec<CaseChange> {
                let case = |random: &mut Rng, case: usize| CaseFigures {
                    case: [("spec".to_owned(), case.to_string())].into(),
                    values: (0..).zip(runs(random, 1, &scatter, 1.0).concat()).collect(),
                    ..measured::of_result(&CompareResult::default())
                };
                let mut side = || (0..12).map(|number| case(random, number)).collect::<Vec<_>>();
                differences(&side(), &side(), false, 1)
            };
            let is_alarm = |_: &usize| one(&mut random).iter().any(|change| change.is_regression(margin));
            (0..COMPARISONS).filter(is_alarm).count() as f64 / COMPARISONS as f64
        };
        let (without, with) = (alarms(None), alarms(Some(10.0)));
        assert!(without > 0.3 && with <= 0.05, "{without} without a margin, {with} with one");
    }

    #[test]
    fn a_tenth_is_found_with_three_runs_that_differ_by_one_percent() {
        let between_runs: fn(&mut Rng) -> f64 = |random| (0.01 * normal(random)).exp();
        let share = |cases, count| found(cases, count, &Scatter { between_runs, between_trials: 0.02 }, 1.1);
        assert!(share(1, 3) >= 0.95 && share(12, 3) >= 0.95 && share(12, 8) >= 0.95);
    }
}
