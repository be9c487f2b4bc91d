//! Which of many nodes is slow, and which pair of them: by how far each is from the others, not by how far it should be.

use crate::estimate::median;
use crate::spread::far_off;

/// Of fewer values none can be told to be the odd one.
pub const VALUES_MIN: usize = 4;
/// Who is at least so much slower than the median is slow; where all are nearly alike, less would be an outlier, and no reason to act.
const SLOWER_MIN: f64 = 0.1;

/// The places of values (logarithms of speeds) that are slow: far from the others by their modified z-score (see [`crate::spread`]), and
/// at least a tenth below their median.
pub fn slow(log_speeds: &[f64]) -> Vec<usize> {
    let Some(middle) = median(log_speeds).filter(|_| log_speeds.len() >= VALUES_MIN) else {
        return Vec::new();
    };
    let limit = middle + (1.0 - SLOWER_MIN).ln();
    far_off(log_speeds).into_iter().filter(|at| log_speeds[*at] < limit).collect()
}

/// What was measured between two nodes: the two, and the logarithm of the speed.
pub type PairSpeed = (usize, usize, f64);

/// Speeds between nodes, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Polished {
    /// How much faster or slower than the median node each is with all its partners, as a logarithm; `None` for a node without figures.
    pub nodes: Vec<Option<f64>>,
    /// What is left of each pair: how much faster or slower it is than its two nodes let expect, as a logarithm.
    pub pairs: Vec<f64>,
}

/// Takes the part of each node out of what was measured between pairs, so that a slow node does not look like many slow pairs: median
/// polish (Tukey, *Exploratory Data Analysis*, 1977, chapter 11), with one effect for a node whichever end it holds.
pub fn polished(pairs: &[PairSpeed], nodes: usize) -> Polished {
    const SWEEPS: usize = 10;
    let middle = median(&pairs.iter().map(|pair| pair.2).collect::<Vec<_>>()).unwrap_or_default();
    let mut left: Vec<f64> = pairs.iter().map(|pair| pair.2 - middle).collect();
    let mut effects: Vec<Option<f64>> = vec![None; nodes];
    for _ in 0..SWEEPS {
        let parts: Vec<Option<f64>> = (0..nodes)
            .map(|node| {
                let own = pairs.iter().zip(&left).filter(|(pair, _)| pair.0 == node || pair.1 == node);
                median(&own.map(|(_, left)| *left).collect::<Vec<_>>())
            })
            .collect();
        // Half of it, because both ends of a pair give their part at once.
        let part = |node: usize| parts[node].unwrap_or_default() / 2.0;
        left.iter_mut().zip(pairs).for_each(|(left, pair)| *left -= part(pair.0) + part(pair.1));
        for (node, effect) in effects.iter_mut().enumerate() {
            *effect = parts[node].map(|_| effect.unwrap_or_default() + part(node));
        }
    }
    let middle = median(&effects.iter().flatten().copied().collect::<Vec<_>>()).unwrap_or_default();
    Polished {
        nodes: effects.iter().map(|effect| effect.map(|effect| effect - middle)).collect(),
        pairs: left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The data of Seo, *A Review and Comparison of Methods for Detecting Outliers in Univariate Data Sets* (University of Pittsburgh, 2006),
    /// whose modified z-scores are 1.80 at most but for 22.48 and 24.73 of the two last; a plain z-score finds neither.
    #[test]
    fn what_is_known_of_the_test_holds() {
        let values = [3.2, 3.4, 3.7, 3.7, 3.8, 3.9, 4.0, 4.0, 4.1, 4.2, 4.7, 4.8, 14.0, 15.0];
        assert_eq!(far_off(&values), [12, 13]);
        let slow_ones: Vec<f64> = values.iter().map(|value| -value).collect();
        assert_eq!((slow(&slow_ones), slow(&values)), (vec![12, 13], vec![]), "only the slow end counts");
    }

    #[test]
    fn few_and_nearly_alike_name_nobody() {
        assert_eq!(slow(&[0.0, 0.0, -5.0]), [0; 0]);
        assert_eq!(slow(&[0.0, 0.001, -0.001, 0.0, -0.05]), [0; 0], "5 % are no reason to act");
        assert_eq!(slow(&[0.0, 0.001, -0.001, -0.7]), [3]);
    }

    fn all_pairs(nodes: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..nodes).flat_map(move |one| (one + 1..nodes).map(move |other| (one, other)))
    }

    proptest! {
        /// A slow node is found as a node, and a slow pair as a pair, in fleets of any size.
        #[test]
        fn a_slow_node_is_no_slow_pair(nodes in 5usize..30, which in 0usize..30, noise in prop::collection::vec(-0.02f64..0.02, 435)) {
            let node = which % nodes;
            let (one, other) = ((node + 1) % nodes, (node + 2) % nodes);
            let speed = |(at, (a, b)): (usize, (usize, usize))| {
                let is_slow_pair = (a, b) == (one.min(other), one.max(other));
                let slower = if a == node || b == node { -0.7 } else if is_slow_pair { -0.9 } else { 0.0 };
                (a, b, 20.0 + slower + noise[at])
            };
            let pairs: Vec<PairSpeed> = all_pairs(nodes).enumerate().map(speed).collect();
            let found = polished(&pairs, nodes);
            let effects: Vec<f64> = found.nodes.into_iter().flatten().collect();
            prop_assert_eq!(slow(&effects), vec![node]);
            let at: Vec<(usize, usize)> = slow(&found.pairs).into_iter().map(|at| (pairs[at].0, pairs[at].1)).collect();
            prop_assert_eq!(at, vec![(one.min(other), one.max(other))]);
        }
    }
}
