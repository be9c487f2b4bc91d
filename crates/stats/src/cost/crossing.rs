//! Where two mechanisms cross: up to which block one is faster, and from which block on the other. It is read from the trials,
//! paired by round, and not from the fitted lines: lines that fit badly can cross where the mechanisms do not.

use std::collections::BTreeMap;

use super::CostModel;
use super::swept::Swept;

/// Family-wise error rate over all sizes of all pairs of mechanisms.
const ERRORS: f64 = 0.05;
/// Fewest rounds of a size: with five, all would have the same sign by chance once in sixteen times.
const ROUNDS_MIN: usize = 6;
/// Rounds beyond this number are added to the groups of earlier ones.
const GROUPS_MAX: usize = 64;
/// Up to this many groups every pattern of signs is tried; with more groups, the same number of random patterns.
const GROUPS_OF_ALL_PATTERNS: usize = 12;

/// Which of two mechanisms is faster, over the sizes at which both were measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Crossing {
    /// One is faster up to `low` and the other from `high` on; between them it is unknown.
    At {
        /// Whether the first is faster at small blocks.
        first_ahead_below: bool,
        /// The block size at which the two lines cross, or the geometric middle, in bytes.
        bytes: f64,
        /// Largest block at which the one is significantly faster.
        low: u64,
        /// Smallest block at which the other one is significantly faster.
        high: u64,
    },
    /// One is significantly faster at some sizes, the other at none.
    Never {
        /// Whether the first is faster.
        first_ahead: bool,
        /// Number of sizes at which it is, and number of all sizes.
        sizes: (usize, usize),
    },
    /// The faster one changes more than once.
    Often,
    /// No size has a significant difference, or there are too few rounds.
    Unclear,
}

/// Fewest rounds that can show, for one of `pairs` pairs, a difference at any size: each round but the first doubles the number of
/// patterns.
pub fn rounds_to_cross(pairs: usize) -> usize {
    let patterns = pairs.max(1) as f64 / ERRORS;
    (patterns.log2().ceil() as usize + 1).max(ROUNDS_MIN)
}

/// Compares two mechanisms; `pairs` is the number of all pairs that are compared. The fitted lines give the block at which they cross between
/// two sizes.
pub fn crossing(
    first: (&Swept, Option<&CostModel>),
    second: (&Swept, Option<&CostModel>),
    pairs: usize,
) -> Crossing {
    let blocks: Vec<u64> =
        first.0.blocks().into_iter().filter(|block| !second.0.of_block(*block).is_empty()).collect();
    let sure = sure_sizes(first.0, second.0, &blocks, pairs);
    let changes: Vec<&[(u64, bool)]> = sure.windows(2).filter(|pair| pair[0].1 != pair[1].1).collect();
    match (changes.as_slice(), sure.first()) {
        ([], None) => Crossing::Unclear,
        ([], Some((_, first_ahead))) => {
            Crossing::Never { first_ahead: *first_ahead, sizes: (sure.len(), blocks.len()) }
        }
        ([change], Some((_, first_ahead))) => {
            let (low, high) = (change[0].0, change[1].0);
            let halfway = (low as f64 * high as f64).sqrt();
            let bytes = lines_cross(first.1, second.1, low, high).unwrap_or(halfway);
            Crossing::At { first_ahead_below: *first_ahead, bytes, low, high }
        }
        _ => Crossing::Often,
    }
}

/// The sizes at which one of two is significantly faster, and whether it is the first.
///
/// A sign-flip permutation test. If both are equally fast, the signs of all differences of a round can be flipped. The agreement
/// of a size is compared with the largest of all sizes under every pattern of flipped rounds. (Westfall and Young,
/// *Resampling-Based Multiple Testing*, 1993, the single step of the maximum: it holds for all sizes at once, whatever they have
/// in common.)
fn sure_sizes(first: &Swept, second: &Swept, blocks: &[u64], pairs: usize) -> Vec<(u64, bool)> {
    let sizes: Vec<(u64, [f64; GROUPS_MAX])> = blocks
        .iter()
        .filter_map(|block| {
            let others: BTreeMap<u32, f64> = second.of_block(*block).iter().copied().collect();
            let (mut rounds, mut groups) = (0, [0.0; GROUPS_MAX]);
            for (round, ln_ns) in first.of_block(*block) {
                let Some(difference) = others.get(round).map(|other| ln_ns - other) else { continue };
                rounds += 1;
                groups[*round as usize % GROUPS_MAX] += difference;
            }
            (rounds >= ROUNDS_MIN && groups.iter().all(|sum| sum.is_finite())).then_some((*block, groups))
        })
        .collect();
    let used: Vec<usize> =
        (0..GROUPS_MAX).filter(|at| sizes.iter().any(|(_, groups)| groups[*at] != 0.0)).collect();
    // From -1 to 1: how far the differences of all rounds agree in sign and size.
    let agreement = |groups: &[f64; GROUPS_MAX], flipped: u64| {
        let (mut sum, mut squares) = (0.0, 0.0);
        for at in &used {
            let sign = if flipped >> at & 1 == 0 { 1.0 } else { -1.0 };
            sum += sign * groups[*at];
            squares += groups[*at] * groups[*at];
        }
        if squares > 0.0 { sum / (squares * used.len() as f64).sqrt() } else { 0.0 }
    };
    let found: Vec<f64> = sizes.iter().map(|(_, groups)| agreement(groups, 0)).collect();
    let patterns = patterns(&used);
    let mut as_extreme = vec![0; sizes.len()];
    for flipped in &patterns {
        let most = sizes.iter().map(|(_, groups)| agreement(groups, *flipped).abs()).fold(0.0, f64::max);
        for (count, found) in as_extreme.iter_mut().zip(&found) {
            *count += usize::from(most >= found.abs() - f64::EPSILON);
        }
    }
    let limit = ERRORS / pairs.max(1) as f64 * patterns.len() as f64;
    let judged = sizes.iter().zip(found).zip(as_extreme);
    judged
        .filter(|(_, count)| *count as f64 <= limit)
        .map(|(((block, _), found), _)| (*block, found < 0.0))
        .collect()
}

/// Which groups are flipped, a bit for each; the first pattern flips none. Where all patterns are tried, the last group
/// is never flipped: to flip all the others instead has the same effect.
fn patterns(used: &[usize]) -> Vec<u64> {
    let free = used.len().saturating_sub(1);
    if free < GROUPS_OF_ALL_PATTERNS {
        let spread = |number: u64| (0..free).map(|at| (number >> at & 1) << used[at]).sum();
        return (0..1 << free).map(spread).collect();
    }
    let mut random = fastrand::Rng::with_seed(1);
    std::iter::once(0).chain((1..1 << GROUPS_OF_ALL_PATTERNS).map(|_| random.u64(..))).collect()
}

/// The block at which two lines cross between two sizes, found by bisection.
fn lines_cross(first: Option<&CostModel>, second: Option<&CostModel>, low: u64, high: u64) -> Option<f64> {
    let (first, second) = (first?, second?);
    let is_ahead = |bytes: u64| first.ns(bytes) < second.ns(bytes);
    let at_low = is_ahead(low);
    if at_low == is_ahead(high) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_ahead(middle) == at_low { low = middle } else { high = middle }
    }
    Some(high as f64)
}
