//! Where two mechanisms cross: up to which block one is faster, and from which block on the other. It is read from the trials,
//! paired by round, and not from the lines: a line that does not describe a mechanism would cross another one where nobody does.

use std::collections::BTreeMap;

use super::CostModel;
use super::swept::Swept;
use crate::estimate::sorted;

/// Fewer rounds than this cannot show at one size that one mechanism is faster: all of five agree by chance once in sixteen times.
const ROUNDS_MIN: usize = 6;
/// The chance to be wrong that all sizes of a pair share, on either side.
const TAIL: f64 = 0.025;

/// How two mechanisms stand to each other over the sizes that both were measured at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Crossing {
    /// The first is faster up to `low` and the second from `high` on, or the other way round; in between nobody can tell.
    At {
        /// Whether it is the first that is faster at small blocks.
        first_ahead_below: bool,
        /// Where the two lines cross, or halfway: in bytes.
        bytes: f64,
        /// The largest block at which the one is surely ahead.
        low: u64,
        /// The smallest block from which on the other one is.
        high: u64,
    },
    /// One is surely ahead at some sizes, the other at none.
    Never {
        /// Whether that is the first.
        first_ahead: bool,
        /// At how many of the sizes, and of how many.
        sizes: (usize, usize),
    },
    /// Ahead is now the one and now the other, more than once.
    Often,
    /// Nowhere is one surely ahead, or there are too few rounds to tell.
    Unclear,
}

/// How the first stands to the second. The lines say where between two sizes they cross.
pub fn crossing(first: (&Swept, Option<&CostModel>), second: (&Swept, Option<&CostModel>)) -> Crossing {
    let blocks: Vec<u64> =
        first.0.blocks().into_iter().filter(|block| !second.0.of_block(*block).is_empty()).collect();
    let sure: Vec<(u64, bool)> = blocks
        .iter()
        .filter_map(|block| Some((*block, is_first_ahead(first.0, second.0, *block, blocks.len())?)))
        .collect();
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

/// Who is ahead at a size in all that can be told; `None` where it cannot.
fn is_first_ahead(first: &Swept, second: &Swept, block: u64, sizes: usize) -> Option<bool> {
    let others: BTreeMap<u32, f64> = second.of_block(block).iter().copied().collect();
    let differences: Vec<f64> =
        first.of_block(block).iter().filter_map(|(round, ln_ns)| Some(ln_ns - others.get(round)?)).collect();
    let sorted = sorted(&differences).filter(|all| all.len() >= ROUNDS_MIN)?;
    let (low, high) = crate::estimate::interval_beyond(&sorted, TAIL / sizes.max(1) as f64);
    match (high < 0.0, low > 0.0) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Where two lines cross between two sizes: halving a hundred times is enough for any size.
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
