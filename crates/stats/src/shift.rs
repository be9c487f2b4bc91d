//! The factor by which figures changed, with bounds.
//!
//! The factor is Hodges and Lehmann's: the median of all quotients between a new figure and an old one; of pairs, the median of
//! the Walsh averages of their quotients (Hodges and Lehmann, *Annals of Mathematical Statistics* 34, 1963). Quotients are computed
//! as differences of logarithms. The bounds are the extreme factors that the test of [`crate::rank_test`] does not reject: if only a
//! factor changed, they cover it with the requested probability for any distribution of the noise.

use crate::rank_test::{Design, ExactDistributions};

/// All differences of logarithms, as the values from which they are computed: thousands of values have millions of differences.
pub(crate) enum Steps {
    /// Sorted logarithms of the old figures and of the new ones.
    Groups(Vec<f64>, Vec<f64>),
    /// Sorted differences of the pairs' logarithms.
    Pairs(Vec<f64>),
}

/// The factor (new divided by old) between at least one old and one new figure, and its bounds with an error probability of `tail` each,
/// which is less than one half; `None` if there are too few figures.
pub(crate) fn factor(exact: &mut ExactDistributions, steps: &Steps, tail: f64) -> (f64, Option<(f64, f64)>) {
    let design = steps.design();
    let count = design.steps();
    let middle = (steps.smallest(count.div_ceil(2)) + steps.smallest(count / 2 + 1)) / 2.0;
    let interval = exact
        .left_out(design, tail)
        .map(|left_out| (multiple(steps.smallest(left_out + 1)), multiple(steps.smallest(count - left_out))));
    (multiple(middle), interval)
}

/// The exponential, limited to finite positive numbers.
pub(crate) fn multiple(log: f64) -> f64 {
    log.exp().clamp(f64::MIN_POSITIVE, f64::MAX)
}

impl Steps {
    /// The steps between figures, given by their logarithms. If `paired`, there are as many new figures as old ones.
    pub(crate) fn new(mut old: Vec<f64>, mut new: Vec<f64>, paired: bool) -> Self {
        if paired {
            new.truncate(old.len());
            new.iter_mut().zip(&old).for_each(|(new, old)| *new -= old);
        }
        [&mut old, &mut new].into_iter().for_each(|side| side.sort_unstable_by(f64::total_cmp));
        if paired { Self::Pairs(new) } else { Self::Groups(old, new) }
    }

    /// The numbers of figures.
    pub(crate) fn design(&self) -> Design {
        match self {
            Self::Groups(old, new) => Design::Groups(old.len(), new.len()),
            Self::Pairs(differences) => Design::Pairs(differences.len()),
        }
    }

    /// The `rank`th smallest step, counted from 1: a binary search over all numbers of type f64, with 64 counts that each take time
    /// proportional to the number of figures.
    fn smallest(&self, rank: u64) -> f64 {
        let (mut low, mut high) = (place(f64::NEG_INFINITY), place(f64::INFINITY));
        while low < high {
            let middle = low.midpoint(high);
            if self.up_to(value(middle)) >= rank { high = middle } else { low = middle + 1 }
        }
        value(low)
    }

    /// Number of steps that are at most `most`.
    fn up_to(&self, most: f64) -> u64 {
        match self {
            Self::Groups(old, new) => {
                let mut reached = 0;
                let of_one = |old: &f64| {
                    reached += new[reached..].iter().take_while(|new| **new - old <= most).count();
                    reached as u64
                };
                old.iter().map(of_one).sum()
            }
            // Pairs of each difference with itself and with larger ones.
            Self::Pairs(differences) => {
                let mut reached = differences.len();
                let of_one = |(at, one): (usize, &f64)| {
                    let beyond = |other: &&f64| *one / 2.0 + **other / 2.0 > most;
                    reached -= differences[..reached].iter().rev().take_while(beyond).count();
                    reached.saturating_sub(at) as u64
                };
                differences.iter().enumerate().map(of_one).sum()
            }
        }
    }
}

/// The index of a number in the order of all f64, for the binary search.
fn place(value: f64) -> u64 {
    let bits = value.to_bits();
    if value.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

/// The number at an index.
fn value(place: u64) -> f64 {
    f64::from_bits(if place >> 63 == 0 { !place } else { place & !(1 << 63) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn factor_of(old: &[f64], new: &[f64], paired: bool) -> (f64, Option<(f64, f64)>) {
        let logarithms = |values: &[f64]| values.iter().map(|value| value.ln()).collect();
        let steps = Steps::new(logarithms(old), logarithms(new), paired);
        factor(&mut ExactDistributions::default(), &steps, 0.025)
    }

    #[test]
    fn a_known_factor_is_found() {
        let old: Vec<f64> = (1..=9).map(f64::from).collect();
        let new: Vec<f64> = old.iter().map(|value| value * 1.5).collect();
        let pairs = factor_of(&old, &new, true);
        assert!((pairs.0 - 1.5).abs() < 1e-12 && (pairs.1.unwrap().1 - 1.5).abs() < 1e-12);
        let groups = factor_of(&old, &new, false);
        let (low, high) = groups.1.unwrap();
        assert!((groups.0 - 1.5).abs() < 1e-12 && low < 1.0 && high > 2.0, "{groups:?}");
        assert_eq!(factor_of(&[1.0], &[2.0], false).1, None);
        assert_eq!(factor_of(&[5.0; 9], &[5.0; 9], false), (1.0, Some((1.0, 1.0))));
    }

    #[test]
    fn the_largest_figures_have_a_factor() {
        let found = factor_of(&[f64::MIN_POSITIVE; 9], &[f64::MAX; 9], false);
        assert_eq!(found, (f64::MAX, Some((f64::MAX, f64::MAX))));
    }

    #[test]
    fn the_bounds_are_steps_that_are_counted_from_either_end() {
        let powers = |all: &[i32]| all.iter().map(|power| 2f64.powi(*power)).collect::<Vec<f64>>();
        let close = |(ratio, interval): (f64, Option<(f64, f64)>), powers: [f64; 3]| {
            let (low, high) = interval.unwrap();
            [low, ratio, high].iter().zip(powers).all(|(one, power)| (one.log2() - power).abs() < 1e-9)
        };
        // Of 21 averages of two exponents, all; of 36, all but three at either end: 0, 1/2, 1 and 1 are the least.
        let six = factor_of(&[1.0; 6], &powers(&[0, 1, 2, 3, 4, 5]), true);
        assert!(close(six, [0.0, 2.5, 5.0]), "{six:?}");
        let eight = factor_of(&[1.0; 8], &powers(&[0, 1, 2, 3, 4, 5, 6, 7]), true);
        assert!(close(eight, [1.0, 3.5, 6.0]), "{eight:?}");
        // Of 25 differences of exponents, all but two at either end.
        let five = factor_of(&powers(&[0, 10, 20, 30, 40]), &powers(&[0, 1, 2, 3, 4]), false);
        assert!(close(five, [-38.0, -18.0, 2.0]), "{five:?}");
        // Of four steps the middle is between the second and the third.
        let two = factor_of(&powers(&[0, 4]), &powers(&[0, 1]), false);
        assert!((two.0.log2() - -1.5).abs() < 1e-9, "{two:?}");
    }

    proptest! {
        #[test]
        fn the_search_finds_the_same_step_as_sorting_all_steps(
            old in vec(-5f64..5.0, 1..12), new in vec(-5f64..5.0, 1..12), share in 0f64..1.0,
        ) {
            let in_order = |mut values: Vec<f64>| { values.sort_unstable_by(f64::total_cmp); values };
            let (old, new) = (in_order(old), in_order(new));
            let walsh = |at: usize| old[at..].iter().map(move |other| other / 2.0);
            let averages = (0..old.len()).flat_map(|at| walsh(at).map(|half| old[at] / 2.0 + half).collect::<Vec<_>>());
            let differences = old.iter().flat_map(|old| new.iter().map(move |new| new - old));
            for (all, steps) in [
                (in_order(averages.collect()), Steps::Pairs(old.clone())),
                (in_order(differences.collect()), Steps::Groups(old.clone(), new.clone())),
            ] {
                let at = (share * all.len() as f64) as usize;
                prop_assert_eq!(steps.smallest(at as u64 + 1), all[at]);
            }
        }

        #[test]
        fn the_factor_lies_between_its_bounds(
            pairs in vec((1f64..1e6, 1f64..1e6), 1..50), paired in any::<bool>(),
        ) {
            let (old, new): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let (ratio, interval) = factor_of(&old, &new, paired);
            if let Some((low, high)) = interval {
                prop_assert!(low <= ratio && ratio <= high);
            }
            let (back, _) = factor_of(&new, &old, paired);
            prop_assert!((ratio * back - 1.0).abs() < 1e-9);
        }
    }
}
