//! Rank tests: the probability of a difference at least as large if nothing has changed. They assume nothing about the distribution
//! of the noise, and an outlier counts no more than any other value.
//!
//! Mann and Whitney's of two groups (1947), and Wilcoxon's signed ranks of pairs (1945; zeros by Pratt's method, 1959): Conover,
//! *Practical Nonparametric Statistics*, §5.1 and §5.7. With few values the test is exact, also with ties; with more it uses the
//! normal approximation, with the variance of the actual ranks and a continuity correction.

use std::collections::HashMap;
use std::rc::Rc;

use crate::normal::{exceeded_with, upper_tail};
use crate::shift::Steps;

/// Most values in both groups together for the exact test.
const EXACT_OF_GROUPS: usize = 40;
/// The same with ties: each pattern of ties needs its own distribution, which cannot be kept for the next case.
const EXACT_OF_GROUPS_TIED: usize = 20;
/// The same for pairs.
const EXACT_OF_PAIRS: usize = 40;

/// The numbers of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Design {
    /// Two groups: the old figures and the new ones.
    Groups(usize, usize),
    /// A number of pairs.
    Pairs(usize),
}

impl Design {
    /// The smallest two-sided p-value that is possible: every value of one group is larger than every value of the other.
    pub(crate) fn least_p(self) -> f64 {
        let ln_ways = match self {
            Self::Groups(one, other) => {
                let (less, more) = (one.min(other), one.max(other));
                (1..=less).map(|k| ((more + k) as f64 / k as f64).ln()).sum::<f64>()
            }
            Self::Pairs(pairs) => pairs as f64 * std::f64::consts::LN_2,
        };
        (2.0 * (-ln_ways).exp()).min(1.0)
    }

    /// Number of differences between the two groups, or of averages of two differences (Walsh).
    pub(crate) fn steps(self) -> u64 {
        match self {
            Self::Groups(one, other) => one as u64 * other as u64,
            Self::Pairs(pairs) => pairs as u64 * (pairs as u64 + 1) / 2,
        }
    }

    /// The doubled ranks without ties.
    fn untied(self) -> Vec<usize> {
        let count = match self {
            Self::Groups(one, other) => one + other,
            Self::Pairs(pairs) => pairs,
        };
        (1..=count).map(|rank| 2 * rank).collect()
    }
}

/// A cache: the cases of a run often have the same design.
#[derive(Default)]
pub(crate) struct ExactDistributions(HashMap<Design, Rc<[f64]>>);

impl ExactDistributions {
    fn untied(&mut self, design: Design) -> Rc<[f64]> {
        self.0.entry(design).or_insert_with(|| chances(&design.untied(), design).into()).clone()
    }

    /// The two-sided p-value of the hypothesis that nothing has changed.
    pub(crate) fn p(&mut self, steps: &Steps) -> f64 {
        match steps {
            Steps::Groups(old, new) => self.p_of_groups(old, new, steps.design()),
            Steps::Pairs(differences) => self.p_of_pairs(differences),
        }
    }

    fn p_of_groups(&mut self, old: &[f64], new: &[f64], design: Design) -> f64 {
        let all: Vec<f64> = new.iter().chain(old).copied().collect();
        let (ranks, tied) = doubled_ranks(&all);
        let sum: usize = ranks[..new.len()].iter().sum();
        let exact_max = if tied { EXACT_OF_GROUPS_TIED } else { EXACT_OF_GROUPS };
        if all.len() <= exact_max {
            let chances = if tied { chances(&ranks, design).into() } else { self.untied(design) };
            return both_tails(&chances, sum);
        }
        let count = all.len() as f64;
        let mean = ranks.iter().sum::<usize>() as f64 / count;
        let spread: f64 = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum();
        let variance = new.len() as f64 * old.len() as f64 * spread / (count * (count - 1.0));
        approximate(sum as f64 - new.len() as f64 * mean, variance)
    }

    fn p_of_pairs(&mut self, differences: &[f64]) -> f64 {
        let sizes: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
        let (ranks, tied) = doubled_ranks(&sizes);
        let changed = || differences.iter().zip(&ranks).filter(|(difference, _)| **difference != 0.0);
        let sum = changed().filter(|(difference, _)| **difference > 0.0).map(|(_, rank)| rank).sum::<usize>();
        let ranks: Vec<usize> = changed().map(|(_, rank)| *rank).collect();
        let design = Design::Pairs(ranks.len());
        if ranks.len() <= EXACT_OF_PAIRS {
            let is_plain = !tied && ranks.len() == differences.len();
            let chances = if is_plain { self.untied(design) } else { chances(&ranks, design).into() };
            return both_tails(&chances, sum);
        }
        let mean = ranks.iter().sum::<usize>() as f64 / 2.0;
        let variance = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum::<f64>() / 4.0;
        approximate(sum as f64 - mean, variance)
    }

    /// Number of the sorted [`Design::steps`] beyond each end of the interval, with an error probability below `tail` at each end;
    /// `None` if there are too few values for an interval. The interval contains every shift that the test without ties does not
    /// reject (Hodges and Lehmann 1963).
    pub(crate) fn left_out(&mut self, design: Design, tail: f64) -> Option<u64> {
        if design.least_p() / 2.0 > tail {
            return None;
        }
        // The smallest doubled sum of ranks: of groups 2 · (1 + 2 + … + other), of pairs 0.
        let (is_exact, least_sum, variance) = match design {
            Design::Groups(one, other) => {
                let count = (one + other) as f64;
                let variance = one as f64 * other as f64 * (count + 1.0) / 12.0;
                (one + other <= EXACT_OF_GROUPS, other * (other + 1), variance)
            }
            Design::Pairs(pairs) => {
                let count = pairs as f64;
                (pairs <= EXACT_OF_PAIRS, 0, count * (count + 1.0) * (2.0 * count + 1.0) / 24.0)
            }
        };
        if !is_exact {
            let middle = design.steps() as f64 / 2.0;
            return Some((middle - 0.5 - exceeded_with(tail) * variance.sqrt()).max(0.0).floor() as u64);
        }
        let chances = self.untied(design);
        // How many of the smallest sums have together a probability of at most `tail`. Without ties doubled sums are even.
        let (mut below, mut rejected) = (0.0, 0_u64);
        for chance in chances[least_sum..].iter().step_by(2) {
            below += chance;
            if below > tail {
                break;
            }
            rejected += 1;
        }
        // The n smallest sums, from 0 steps below, are those with fewer than n steps below: the interval begins after n − 1.
        Some(rejected.saturating_sub(1))
    }
}

/// The probability of each doubled sum of ranks, if all choices of ranks are equally likely: as many ranks as there are new figures,
/// or, for pairs, any number of ranks.
fn chances(ranks: &[usize], design: Design) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    match design {
        Design::Pairs(_) => {
            let mut chances = vec![0.0; total + 1];
            chances[0] = 1.0;
            for rank in ranks {
                for sum in (0..=total).rev() {
                    let with = if sum >= *rank { chances[sum - rank] } else { 0.0 };
                    chances[sum] = (chances[sum] + with) / 2.0;
                }
            }
            chances
        }
        Design::Groups(_, chosen) => {
            let mut ways = vec![vec![0.0; total + 1]; chosen + 1];
            ways[0][0] = 1.0;
            for rank in ranks {
                for taken in (1..=chosen).rev() {
                    for sum in *rank..=total {
                        ways[taken][sum] += ways[taken - 1][sum - rank];
                    }
                }
            }
            let ways = ways.swap_remove(chosen);
            let all: f64 = ways.iter().sum();
            ways.into_iter().map(|ways| ways / all).collect()
        }
    }
}

/// The two-sided p-value of a sum: twice the smaller tail, with the sum itself.
fn both_tails(chances: &[f64], sum: usize) -> f64 {
    let below: f64 = chances[..=sum].iter().sum();
    let above: f64 = chances[sum..].iter().sum();
    (2.0 * below.min(above)).min(1.0)
}

/// The same by the normal approximation; `beyond` is the distance of the doubled sum from its mean.
fn approximate(beyond: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    (2.0 * upper_tail((beyond.abs() - 1.0).max(0.0) / variance.sqrt())).min(1.0)
}

/// The rank of each value among all, doubled so that the mean rank of ties is a whole number; and whether there are ties.
fn doubled_ranks(values: &[f64]) -> (Vec<usize>, bool) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0; values.len()];
    let mut first = 0;
    for alike in order.chunk_by(|one, other| values[*one] == values[*other]) {
        let rank = 2 * first + alike.len() + 1;
        alike.iter().for_each(|at| ranks[*at] = rank);
        first += alike.len();
    }
    let tied = order.windows(2).any(|pair| values[pair[0]] == values[pair[1]]);
    (ranks, tied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn p(old: &[f64], new: &[f64], paired: bool) -> f64 {
        ExactDistributions::default().p(&Steps::new(old.to_vec(), new.to_vec(), paired))
    }

    #[test]
    fn chances_and_steps_are_those_of_the_published_tables() {
        let five = [1.0, 2.0, 3.0, 4.0, 5.0];
        let above = five.map(|value| value + 10.0);
        assert!((p(&five, &above, false) - 2.0 / 252.0).abs() < 1e-12);
        assert_eq!((p(&five, &five, false), p(&five, &five, true)), (1.0, 1.0));
        assert!((p(&five, &[2.5, 4.5, 11.0, 12.0, 13.0], true) - 2.0 / 32.0).abs() < 1e-12);
        // Conover, tables A7 and A12, two-sided 5 % and 1 %.
        let mut counted = ExactDistributions::default();
        for (design, tail, left_out) in [
            (Design::Groups(10, 10), 0.025, 23),
            (Design::Groups(5, 9), 0.025, 7),
            (Design::Groups(20, 20), 0.005, 105),
            (Design::Pairs(10), 0.025, 8),
            (Design::Pairs(20), 0.005, 37),
        ] {
            assert_eq!(counted.left_out(design, tail), Some(left_out), "{design:?}");
        }
        assert_eq!(counted.left_out(Design::Groups(3, 3), 0.025), None);
        assert_eq!(counted.left_out(Design::Pairs(5), 0.025), None);
    }

    #[test]
    fn the_exact_test_and_the_approximation_agree_where_they_meet() {
        let mut random = fastrand::Rng::with_seed(3);
        for paired in [false, true] {
            let mut side =
                |count: usize, shift: f64| -> Vec<f64> { (0..count).map(|_| random.f64() + shift).collect() };
            let few = if paired { EXACT_OF_PAIRS } else { EXACT_OF_GROUPS / 2 };
            let (old, new) = (side(few, 0.0), side(few, 0.2));
            let counted = p(&old, &new, paired);
            let approximate = p(&[&old[..], &[0.5]].concat(), &[&new[..], &[0.7]].concat(), paired);
            assert!((approximate / counted).ln().abs() < 0.7, "{counted} and {approximate}");
            let design = |count| if paired { Design::Pairs(count) } else { Design::Groups(count, count) };
            let left_out = [few, few + 1]
                .map(|count| ExactDistributions::default().left_out(design(count), 0.005).unwrap());
            assert!((1.0..1.12).contains(&(left_out[1] as f64 / left_out[0] as f64)), "{left_out:?}");
        }
    }

    /// The p-value by enumeration of all choices of ranks.
    fn by_hand(old: &[f64], new: &[f64]) -> f64 {
        let all: Vec<f64> = new.iter().chain(old).copied().collect();
        let (ranks, _) = doubled_ranks(&all);
        let seen: usize = ranks[..new.len()].iter().sum();
        let ways = (0u32..1 << all.len()).filter(|way| way.count_ones() as usize == new.len());
        let sums: Vec<usize> = ways
            .map(|way| (0..all.len()).filter(|at| way & (1 << at) != 0).map(|at| ranks[at]).sum())
            .collect();
        let share = |is: &dyn Fn(&usize) -> bool| {
            sums.iter().filter(|sum| is(sum)).count() as f64 / sums.len() as f64
        };
        (2.0 * share(&|sum| *sum <= seen).min(share(&|sum| *sum >= seen))).min(1.0)
    }

    #[test]
    fn designs_know_their_least_p_and_their_steps() {
        for (design, least_p, steps) in [
            (Design::Groups(3, 3), 2.0 / 20.0, 9),
            (Design::Groups(2, 5), 2.0 / 21.0, 10),
            (Design::Groups(5, 2), 2.0 / 21.0, 10),
            (Design::Groups(1, 1), 1.0, 1),
            (Design::Pairs(5), 2.0 / 32.0, 15),
            (Design::Pairs(1), 1.0, 1),
            (Design::Pairs(0), 1.0, 0),
        ] {
            assert!((design.least_p() - least_p).abs() < 1e-12, "{design:?}");
            assert_eq!(design.steps(), steps, "{design:?}");
        }
    }

    #[test]
    fn ties_have_the_mean_of_their_ranks() {
        assert_eq!(doubled_ranks(&[3.0, 1.0, 3.0, 2.0]), (vec![7, 2, 7, 4], true));
        assert_eq!(doubled_ranks(&[2.0, 2.0, 2.0, 9.0]), (vec![4, 4, 4, 8], true));
        assert_eq!(doubled_ranks(&[5.0, 1.0, 3.0]), (vec![6, 2, 4], false));
        assert_eq!(doubled_ranks(&[]), (vec![], false));
    }

    fn numbers(from: u32, to: u32) -> Vec<f64> {
        (from..=to).map(f64::from).collect()
    }

    #[test]
    fn up_to_forty_values_are_counted_and_more_are_approximated() {
        // 20 and 20 in 2 of C(40, 20) ways; z of 21 and 21 is 440 / √6321.
        let tied = |old: Vec<f64>| [&[1.0], &old[1..]].concat();
        for (old, new, paired, expected) in [
            (numbers(1, 20), numbers(21, 40), false, 1.450_888_91e-11),
            (numbers(1, 21), numbers(22, 42), false, 3.125_4e-8),
            (tied(numbers(0, 9)), numbers(10, 19), false, 1.082_508_8e-5),
            (vec![0.0; 40], numbers(1, 40), true, 1.818_989_4e-12),
            (vec![0.0; 41], numbers(1, 41), true, 2.516_95e-8),
        ] {
            let found = p(&old, &new, paired);
            assert!((found / expected - 1.0).abs() < 1e-4, "{found} for {} values", old.len());
        }
        // Of 22 values 11 are zero and 11 are one: the distance of 54 from the mean has a variance of 697.19.
        let mostly = |value: f64| [vec![value; 8], vec![1.0 - value; 3]].concat();
        let found = p(&mostly(0.0), &mostly(1.0), false);
        assert!((found / 0.040_843_38 - 1.0).abs() < 1e-5, "{found}");
        assert_eq!(p(&[1.0; 30], &[1.0; 30], false), 1.0);
        assert_eq!(p(&numbers(1, 50), &numbers(1, 50), true), 1.0);
    }

    #[test]
    fn pairs_without_a_difference_have_a_rank_but_no_sign() {
        // Six of six signs; four of five with one size: (4 + 1) / 16 of all; and three of four, the smallest negative.
        for (differences, expected) in [
            (&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..], 2.0 / 64.0),
            (&[1.0, 1.0, 1.0, -1.0], 10.0 / 16.0),
            (&[-1.0, 2.0, 3.0, 4.0], 4.0 / 16.0),
            (&[0.0, 0.0, -1.0, 2.0, 3.0], 4.0 / 8.0),
            (&[0.0, 0.0], 1.0),
        ] {
            let found = p(&vec![0.0; differences.len()], differences, true);
            assert!((found - expected).abs() < 1e-12, "{found} for {differences:?}");
        }
    }

    /// Error probabilities that sums of equal chances use up exactly: 1/2, and 1/4 for each of four.
    #[test]
    fn a_tail_may_be_used_up_exactly() {
        let mut counted = ExactDistributions::default();
        let found = [1, 2].map(|pairs| counted.left_out(Design::Pairs(pairs), 0.5));
        assert_eq!(found, [Some(0), Some(1)]);
        assert_eq!(counted.left_out(Design::Pairs(1), 0.49), None);
    }

    #[test]
    fn what_is_left_out_of_many_steps_is_approximated() {
        let mut counted = ExactDistributions::default();
        for (design, left_out) in [
            // Of the published table.
            (Design::Pairs(40), 264),
            // 430 - 1.96 √5955.25, 220 - 1.96 √1580.25, 199.5 - 1.96 √1700.
            (Design::Pairs(41), 278),
            (Design::Groups(21, 21), 142),
            (Design::Groups(10, 40), 118),
            (Design::Groups(40, 10), 118),
            // The least of all sums is left out in the tail itself: 1/64, and 1/70.
            (Design::Pairs(6), 0),
            (Design::Groups(4, 4), 0),
        ] {
            assert_eq!(counted.left_out(design, 0.025), Some(left_out), "{design:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_exact_test_is_right_with_ties(old in vec(0u8..4, 1..6), new in vec(0u8..4, 1..6)) {
            let [old, new] = [old, new].map(|side| side.into_iter().map(f64::from).collect::<Vec<_>>());
            prop_assert!((p(&old, &new, false) - by_hand(&old, &new)).abs() < 1e-9);
        }

        #[test]
        fn a_p_value_is_a_probability_and_symmetric(
            values in vec((0f64..1e9, 0f64..1e9), 1..60), equal in any::<bool>(), paired in any::<bool>(),
        ) {
            let (old, mut new): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
            if equal {
                new.clone_from(&old);
            }
            let (there, back) = (p(&old, &new, paired), p(&new, &old, paired));
            prop_assert!((0.0..=1.0).contains(&there) && (there - back).abs() < 1e-9);
            prop_assert!(!equal || there == 1.0);
        }
    }
}
