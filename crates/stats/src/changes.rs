//! What changed between two runs of the same cases, and what may be chance: for each case a rank test and a factor with bounds,
//! both corrected for the number of cases and of interim analyses.
//!
//! - A change is **found** where Holm's step-down procedure rejects (*Scandinavian Journal of Statistics* 6, 1979): if nothing
//!   changed anywhere, the chance of finding anything is at most [`ERRORS`].
//! - The **bounds** are simultaneous (Bonferroni): with a chance of 1 - [`ERRORS`] all of them hold at once, whatever the number of
//!   cases.
//! - A run that may stop at one of several analyses divides the errors among all of them, as [`estimate::Analyses`] does.

use crate::estimate;
use crate::rank_test::{Design, ExactDistributions};
use crate::shift::{Steps, factor};

/// The chance of a false statement, over all cases and analyses.
pub const ERRORS: f64 = 0.05;

/// The figures of one case on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BothSides<'a> {
    /// Before.
    pub old: &'a [f64],
    /// After.
    pub new: &'a [f64],
    /// Whether figures at the same index were measured in the same round.
    pub paired: bool,
}

/// How the figures of a case changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// New divided by old (Hodges and Lehmann).
    pub ratio: f64,
    /// Its bounds, which hold over all cases at once; `None` where there are too few figures for any.
    pub interval: Option<(f64, f64)>,
    /// The chance to see the sides so far apart if nothing had changed, not corrected for the numbers of cases and analyses.
    pub p: f64,
    /// The same, corrected for both.
    pub p_corrected: f64,
}

impl Shift {
    /// Whether this is a change, not chance.
    pub fn is_found(&self) -> bool {
        self.p_corrected <= ERRORS
    }

    /// Whether further figures cannot change the result: the change was found, or one of ten percent is excluded. With a `limit` (a
    /// share): whether the whole interval is beyond it, or within it.
    pub fn is_settled(&self, limit: Option<f64>) -> bool {
        let Some((low, high)) = self.interval else { return false };
        let within = |limit: f64| 1.0 - limit < low && high < 1.0 + limit;
        match limit {
            None => self.is_found() || within(SOUGHT),
            Some(limit) => within(limit) || high < 1.0 - limit || low > 1.0 + limit,
        }
    }
}

/// The changes of cases, corrected for their number and for the number of analyses; `None` for a case without figures on both sides.
/// Figures must be [`usable`].
pub fn shifts(cases: &[BothSides<'_>], analyses: u32) -> Vec<Option<Shift>> {
    let is_judged = |at: &usize| !cases[*at].old.is_empty() && !cases[*at].new.is_empty();
    let judged: Vec<usize> = (0..cases.len()).filter(is_judged).collect();
    let analyses = analyses.max(1);
    let mut exact = ExactDistributions::default();
    let mut found = vec![None; cases.len()];
    let tail = ERRORS / f64::from(analyses) / judged.len() as f64 / 2.0;
    for at in &judged {
        let BothSides { old, new, paired } = cases[*at];
        let [old, new] =
            [old, new].map(|figures| figures.iter().map(|figure| figure.ln()).collect::<Vec<_>>());
        let steps = Steps::new(old, new, paired);
        let p = exact.p(&steps);
        let (ratio, interval) = factor(&mut exact, &steps, tail);
        found[*at] = Some(Shift { ratio, interval, p, p_corrected: 1.0 });
    }
    correct(&mut found, analyses);
    found
}

/// Corrects the chances for the number of cases and of analyses: Holm's procedure.
pub(crate) fn correct(found: &mut [Option<Shift>], analyses: u32) {
    let mut order: Vec<&mut Shift> = found.iter_mut().flatten().collect();
    model::sort_by(&mut order, |one, other| one.p.total_cmp(&other.p));
    let (count, mut least) = (order.len(), 0.0f64);
    for (step, shift) in order.into_iter().enumerate() {
        // Corrected values never decrease in the order of p.
        least = least.max((shift.p * (count - step) as f64 * f64::from(analyses)).min(1.0));
        shift.p_corrected = least;
    }
}

/// Fewest figures on each side with which a change of one of `cases` cases can be found.
pub fn figures_needed(cases: usize, analyses: u32, paired: bool) -> usize {
    let wanted = ERRORS / f64::from(analyses.max(1)) / cases.max(1) as f64;
    let shape = |count| if paired { Design::Pairs(count) } else { Design::Groups(count, count) };
    (1..).find(|count| shape(*count).least_p() <= wanted).unwrap_or(usize::MAX)
}

/// Most pairs by default: enough to find ten percent if trials differ by a fifth of their median.
pub const PAIRS_MAX: usize = 163;
/// Smallest change to find, as a share: a case that excludes it is finished.
const SOUGHT: f64 = 0.10;

/// The analyses: numbers of pairs of each of `cases` cases at which the run may end; `most` is the last one. Analyses that could find
/// nothing are left out, as each analysis takes its share of the errors.
pub fn analyses_for(cases: usize, most: usize) -> Vec<usize> {
    let early: Vec<usize> = estimate::analyses().take_while(|analysis| *analysis < most).collect();
    let can_find = |(at, analysis): (usize, &usize)| {
        let analyses = (early.len() - at + 1) as u32;
        *analysis >= figures_needed(cases, analyses, true)
    };
    let first = early.iter().enumerate().position(can_find).unwrap_or(early.len());
    early[first..].iter().copied().chain([most]).collect()
}

/// The same for the order of `pairs` pairs: two analyses if there are too few rounds for more.
pub fn analyses_for_order(pairs: usize, most: usize) -> Vec<usize> {
    let early = figures_needed(pairs, 2, true);
    let analyses = analyses_for(pairs, most);
    if analyses.len() == 1 && early < most { vec![early, most] } else { analyses }
}

/// How many tests share the errors after `made` pairs. A run that its time ended before the first analysis is tested only once, at its end.
pub fn analyses_at_end(analyses: &[usize], made: usize) -> u32 {
    if analyses.first().is_some_and(|first| made < *first) { 1 } else { analyses.len() as u32 }
}

/// Whether a figure can be compared by factors: quotients of figures within these bounds are finite.
pub fn usable(figure: f64) -> bool {
    (1e-100..1e100).contains(&figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::normal;
    use fastrand::Rng;

    /// Noise around 1 with a standard deviation of some 5 %.
    type Noise = fn(&mut Rng) -> f64;

    /// As it is with programs: mostly close to the best, now and then far above it.
    fn skewed(random: &mut Rng) -> f64 {
        let far = if random.f64() < 0.05 { 1.3 } else { 1.0 };
        far * (1.0 - 0.04 * random.f64().max(1e-12).ln())
    }

    const NOISES: [Noise; 2] = [|random| (0.05 * normal(random)).exp(), skewed];

    /// Makes `runs` runs of `cases` cases of `count` figures a side, the new ones longer by `factor`; gives the share of runs of
    /// which the question was answered with yes.
    fn share(
        runs: usize,
        (cases, count, paired): (usize, usize, bool),
        (noise, factor): (Noise, f64),
        ask: impl Fn(&[Shift]) -> bool,
    ) -> f64 {
        let mut random = Rng::with_seed(16);
        let yes = (0..runs).filter(|_| {
            let mut side = |factor: f64| -> Vec<Vec<f64>> {
                (0..cases).map(|_| (0..count).map(|_| factor * noise(&mut random)).collect()).collect()
            };
            let (old, new) = (side(1.0), side(factor));
            let both = old.iter().zip(&new).map(|(old, new)| BothSides { old, new, paired });
            let found: Vec<Shift> = shifts(&both.collect::<Vec<_>>(), 1).into_iter().flatten().collect();
            ask(&found)
        });
        yes.count() as f64 / runs as f64
    }

    /// Expected: eight rounds that the time ended, before the first analysis, are enough for three pipelines: it takes seven.
    /// Happened: none of them was compared, and "at least --trials 7 are needed".
    #[test]
    fn a_run_that_ends_before_its_first_look_is_tested_once() {
        let analyses = analyses_for_order(3, PAIRS_MAX);
        assert!(analyses.len() > 1 && analyses[0] > 8, "{analyses:?}");
        let [base, slow] = [1.0, 2.0].map(|time| [time; 8]);
        let case = BothSides { old: &base, new: &slow, paired: true };
        let found = |analyses| shifts(&[case, case], analyses)[0].and_then(|found| found.interval);
        assert!(found(analyses.len() as u32).is_none() && found(analyses_at_end(&analyses, 8)).is_some());
        assert_eq!(analyses_at_end(&analyses, analyses[0]), analyses.len() as u32);
    }

    #[test]
    fn nothing_is_found_where_nothing_changed() {
        for noise in NOISES {
            for (cases, count, paired) in
                [(1, 9, false), (20, 9, false), (1, 12, true), (20, 15, true), (3, 60, false)]
            {
                let any = share(600, (cases, count, paired), (noise, 1.0), |found| {
                    found.iter().any(Shift::is_found)
                });
                // Three standard errors above 5 %.
                assert!(any <= 0.077, "{cases} cases of {count}: {any} of all runs find something");
            }
        }
    }

    #[test]
    fn all_intervals_hold_at_once() {
        for noise in NOISES {
            for (cases, count, paired) in
                [(1, 9, false), (1, 12, true), (20, 9, false), (20, 15, true), (2, 50, true)]
            {
                let all = share(600, (cases, count, paired), (noise, 1.1), |found| {
                    found.iter().all(|shift| {
                        let (low, high) = shift.interval.expect("enough figures");
                        low <= 1.1 && 1.1 <= high
                    })
                });
                assert!(all >= 0.923, "{cases} cases of {count}: {all} of all runs");
            }
        }
    }

    /// One comparison in turns, as `diff --run` makes it: whether it found a slow-down, and after how many pairs it ended.
    fn in_turns(random: &mut Rng, cases: usize, noise: Noise, factor: f64) -> (bool, usize) {
        let analyses = analyses_for(cases, PAIRS_MAX);
        let mut sides = vec![[Vec::new(), Vec::new()]; cases];
        loop {
            for [old, new] in &mut sides {
                old.push(noise(random));
                new.push(factor * noise(random));
            }
            let pairs = sides[0][0].len();
            if !analyses.contains(&pairs) {
                continue;
            }
            let both = sides.iter().map(|[old, new]| BothSides { old, new, paired: true });
            let found: Vec<Shift> =
                shifts(&both.collect::<Vec<_>>(), analyses.len() as u32).into_iter().flatten().collect();
            if pairs == PAIRS_MAX || found.iter().all(|shift| shift.is_settled(None)) {
                return (found.iter().any(|shift| shift.is_found() && shift.ratio > 1.0), pairs);
            }
        }
    }

    #[test]
    fn ten_percent_are_found_in_turns_and_nothing_where_nothing_changed() {
        const RUNS: usize = 300;
        let mut random = Rng::with_seed(10);
        for noise in NOISES {
            for cases in [1, 12] {
                let mut share = |factor: f64| {
                    let found = (0..RUNS).filter(|_| in_turns(&mut random, cases, noise, factor).0);
                    found.count() as f64 / RUNS as f64
                };
                let (power, alarms) = (share(1.1), share(1.0));
                assert!(power >= 0.95, "{cases} cases: {power} of the changes found");
                assert!(alarms <= 0.05, "{cases} cases: {alarms} of the runs raise an alarm");
            }
            let ended = in_turns(&mut random, 1, noise, 1.0).1;
            assert!(ended < PAIRS_MAX, "ended after {ended} pairs, as nothing more was to be found out");
        }
    }

    #[test]
    fn corrected_chances_are_those_of_holm() {
        let old: Vec<f64> = (1..=8).map(f64::from).collect();
        let moved = |by: f64| old.iter().map(|value| value + by).collect::<Vec<f64>>();
        let news = [moved(0.5), moved(100.0), moved(5.2)];
        let both = news.iter().map(|new| BothSides { old: &old, new, paired: false }).collect::<Vec<_>>();
        let found: Vec<Shift> = shifts(&both, 2).into_iter().flatten().collect();
        assert!((found[1].p_corrected - 6.0 * found[1].p).abs() < 1e-12);
        assert!((found[2].p_corrected - 4.0 * found[2].p).abs() < 1e-12);
        assert_eq!(found[0].p_corrected, 1.0);
    }

    #[test]
    fn how_many_figures_it_takes() {
        assert_eq!([1, 20, 400].map(|cases| figures_needed(cases, 1, false)), [4, 6, 9]);
        assert_eq!([1, 20].map(|cases| figures_needed(cases, 5, true)), [8, 12]);
        let one = [1.0];
        let found = shifts(
            &[
                BothSides { old: &one, new: &one, paired: false },
                BothSides { old: &one, new: &[], paired: false },
                BothSides { old: &[], new: &one, paired: false },
            ],
            1,
        );
        assert_eq!(
            (found[0].and_then(|shift| shift.interval), found[0].map(|shift| shift.p), &found[1..]),
            (None, Some(1.0), &[None, None][..])
        );
    }

    #[test]
    fn a_result_is_settled_where_the_interval_leaves_no_doubt() {
        for (interval, p_corrected, limit, expected) in [
            (None, 0.01, None, false),
            (Some((0.91, 1.09)), 1.0, None, true),
            (Some((0.90, 1.09)), 1.0, None, false),
            (Some((0.91, 1.10)), 1.0, None, false),
            (Some((0.50, 2.00)), 0.05, None, true),
            (Some((0.50, 2.00)), 0.051, None, false),
            (Some((0.96, 1.04)), 1.0, Some(0.05), true),
            (Some((0.80, 1.00)), 0.01, Some(0.05), false),
            (Some((1.00, 1.20)), 0.01, Some(0.05), false),
            (Some((0.50, 2.00)), 0.01, Some(0.05), false),
            // Half as much more or less.
            (Some((0.51, 1.49)), 1.0, Some(0.5), true),
            (Some((0.50, 1.49)), 1.0, Some(0.5), false),
            (Some((0.51, 1.50)), 1.0, Some(0.5), false),
            (Some((0.40, 0.49)), 1.0, Some(0.5), true),
            (Some((0.40, 0.50)), 1.0, Some(0.5), false),
            (Some((1.51, 2.00)), 1.0, Some(0.5), true),
            (Some((1.50, 2.00)), 1.0, Some(0.5), false),
        ] {
            let shift = Shift { ratio: 1.0, interval, p: 1.0, p_corrected };
            assert_eq!(shift.is_settled(limit), expected, "{shift:?}, {limit:?}");
        }
    }

    /// All new figures are larger: of n pairs by chance with 2/2ⁿ, of two groups of n with 2 of C(2n, n) ways.
    #[test]
    fn bounds_exist_from_the_fewest_figures_on_that_can_find_a_change() {
        for (cases, analyses, paired, needed) in [
            (1, 1, true, 6),
            (2, 1, true, 7),
            (1, 2, true, 7),
            (2, 2, true, 8),
            (4, 2, true, 9),
            (1, 1, false, 4),
            (2, 1, false, 5),
            (1, 2, false, 5),
            (3, 3, false, 6),
        ] {
            assert_eq!(figures_needed(cases, analyses, paired), needed, "{cases} cases, {analyses} analyses");
            for count in [needed - 1, needed] {
                let old: Vec<f64> = (1..=count).map(|value| value as f64).collect();
                let new: Vec<f64> = old.iter().map(|value| value + 100.0).collect();
                let found = shifts(&vec![BothSides { old: &old, new: &new, paired }; cases], analyses);
                let bounded = found.iter().flatten().filter(|shift| shift.interval.is_some()).count();
                let expected = if count == needed { (cases, cases) } else { (cases, 0) };
                assert_eq!((found.len(), bounded), expected, "{cases} cases of {count}, {analyses} analyses");
            }
        }
        assert_eq!((figures_needed(0, 0, true), figures_needed(1, 1, true)), (6, 6));
    }

    #[test]
    fn a_run_looks_only_where_it_can_find_something() {
        // Ten pairs, 2/2¹⁰, can find a change in up to 25 cases times analyses; 15 pairs in 819.
        for (cases, most, expected) in [
            (1, 163, &[10, 15, 22, 33, 49, 73, 109, 163][..]),
            (3, 163, &[10, 15, 22, 33, 49, 73, 109, 163]),
            (4, 163, &[15, 22, 33, 49, 73, 109, 163]),
            (12, 15, &[10, 15]),
            (13, 15, &[15]),
            (300, 22, &[15, 22]),
            (410, 22, &[22]),
            (1, 11, &[10, 11]),
            (1, 10, &[10]),
            (1, 5, &[5]),
        ] {
            assert_eq!(analyses_for(cases, most), expected, "{cases} cases, at most {most} pairs");
        }
        // Seven pairs can find an order at the first of two analyses.
        for (pairs, most, expected) in [
            (1, 6, &[6][..]),
            (1, 7, &[7]),
            (1, 8, &[7, 8]),
            (1, 10, &[7, 10]),
            (1, 15, &[10, 15]),
            (3, 8, &[8]),
            (3, 9, &[8, 9]),
        ] {
            assert_eq!(analyses_for_order(pairs, most), expected, "{pairs} pairs, at most {most} rounds");
        }
    }

    #[test]
    fn figures_with_finite_quotients_are_usable() {
        for (figure, expected) in [
            (1e-100, true),
            (9e-101, false),
            (9e99, true),
            (1e100, false),
            (0.0, false),
            (-1.0, false),
            (f64::NAN, false),
            (f64::INFINITY, false),
        ] {
            assert_eq!(usable(figure), expected, "{figure}");
        }
    }
}
