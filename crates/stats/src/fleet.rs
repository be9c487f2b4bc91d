//! Which of many nodes is slow, and which pair of them: by how far each is from the others, not by how far it should be, and only where
//! the intervals of its own figures leave no doubt.

use crate::estimate::median;
use crate::spread::{far_off, far_off_the_fit, limit};

/// Among fewer nodes neither a node nor a pair can be named as the odd one.
pub const NODES_MIN: usize = 4;
/// The smallest slowdown that is reported; where all are nearly alike, less would be an outlier, and no reason to act.
const SLOWER_MIN: f64 = 0.1;

/// A speed beside another one, as a logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// What was found.
    pub found: f64,
    /// The most that its interval leaves possible; infinite where it has none.
    pub most: f64,
    /// Whether it is marked as too noisy to be believed.
    pub noisy: bool,
}

impl Speed {
    /// The same beside something that is itself so much faster than what it was beside.
    pub fn beside(self, other: f64) -> Self {
        Self { found: self.found - other, most: self.most - other, ..self }
    }

    /// Whether all of its interval is at least a tenth below what it is beside.
    fn is_slow(&self) -> bool {
        self.most < (1.0 - SLOWER_MIN).ln()
    }

    /// How far its interval reaches above what was found.
    fn width(&self) -> f64 {
        self.most - self.found
    }

    /// Whether it is too noisy to judge by: noise does not matter where even the fastest that it may be is slow.
    pub fn tells_nothing(&self) -> bool {
        self.noisy && !self.is_slow()
    }
}

/// The median of what was found; `None` for nothing.
pub fn middle<'a>(speeds: impl IntoIterator<Item = &'a Speed>) -> Option<f64> {
    median(&speeds.into_iter().map(|speed| speed.found).collect::<Vec<_>>())
}

/// Which nodes are slow, given the figures of each beside those of the median node: those whose median is far from that of the others (a
/// modified z-score, see [`crate::spread`]), and of whose figures more than half are slow with all of their intervals.
pub fn slow_nodes(nodes: &[Vec<Speed>]) -> Vec<usize> {
    let (known, medians): (Vec<usize>, Vec<f64>) =
        nodes.iter().enumerate().filter_map(|(node, own)| Some((node, middle(own)?))).unzip();
    let surely = |node: &usize| {
        let own = &nodes[*node];
        2 * own.iter().filter(|speed| speed.is_slow()).count() > own.len()
    };
    let far = if known.len() < NODES_MIN { Vec::new() } else { far_off(&medians) };
    far.into_iter().map(|at| known[at]).filter(surely).collect()
}

/// The share of the median node's speed below which each of the nodes would have been slow; 0 where a node's intervals leave everything
/// possible, `None` where too few nodes have figures.
pub fn slow_nodes_below(nodes: &[Vec<Speed>]) -> Option<f64> {
    let medians: Vec<f64> = nodes.iter().filter_map(middle).collect();
    let width = |own: &Vec<Speed>| {
        let mut widths: Vec<f64> = own.iter().map(Speed::width).collect();
        widths.sort_by(f64::total_cmp);
        widths.get(own.len() / 2).copied()
    };
    (medians.len() >= NODES_MIN).then(|| below(nodes.iter().filter_map(width), &medians, 0))
}

/// The share below which values with intervals of these widths are both slow and outliers.
fn below(widths: impl Iterator<Item = f64>, values: &[f64], parameters: usize) -> f64 {
    let far = limit(values, parameters).map_or(f64::INFINITY, |(_, limit)| limit);
    ((1.0 - SLOWER_MIN).ln() - widths.fold(0.0, f64::max)).min(-far).exp()
}

/// What was measured between two nodes, by their places.
pub type PairSpeed = (usize, usize, Speed);

/// Speeds between nodes, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Polished {
    /// For each end that a node can hold, and each node: its figures beside those of the median node.
    pub ends: Vec<Vec<Vec<Speed>>>,
    /// What is left of each pair, beside what its two nodes let expect.
    pub pairs: Vec<Speed>,
}

/// Takes the part of each node out of what was measured between pairs, so that a slow node does not look like many slow pairs: median
/// polish (Tukey, *Exploratory Data Analysis*, 1977, chapter 11). Where a node can hold two kinds of ends (the first of a pair sends, the
/// second one receives) its part at either is its own; with one kind it is the same whichever end it holds.
pub fn polished(pairs: &[PairSpeed], nodes: usize, ends: usize) -> Polished {
    const SWEEPS: usize = 20;
    let seats = |(one, other, _): &PairSpeed| [*one, (ends - 1) * nodes + other];
    let mut own: Vec<Vec<usize>> = vec![Vec::new(); ends * nodes];
    for (at, pair) in pairs.iter().enumerate() {
        seats(pair).into_iter().for_each(|seat| own[seat].push(at));
    }
    let all = middle(pairs.iter().map(|pair| &pair.2)).unwrap_or_default();
    let mut left: Vec<f64> = pairs.iter().map(|pair| pair.2.found - all).collect();
    let mut effects = vec![0.0; own.len()];
    for _ in 0..SWEEPS {
        // Half of it, because both ends of a pair give their part at once.
        let part = |own: &Vec<usize>| median(&own.iter().map(|at| left[*at] / 2.0).collect::<Vec<_>>());
        let parts: Vec<f64> = own.iter().map(|own| part(own).unwrap_or_default()).collect();
        for (left, pair) in left.iter_mut().zip(pairs) {
            *left -= seats(pair).map(|seat| parts[seat]).iter().sum::<f64>();
        }
        effects.iter_mut().zip(&parts).for_each(|(effect, part)| *effect += part);
    }
    let pairs: Vec<Speed> =
        pairs.iter().zip(&left).map(|((.., speed), left)| speed.beside(speed.found - left)).collect();
    let seats: Vec<(&Vec<usize>, f64)> = own.iter().zip(effects).collect();
    let of_end = |seats: &[(&Vec<usize>, f64)]| {
        let known = seats.iter().filter(|(own, _)| !own.is_empty());
        let middle = median(&known.map(|(_, effect)| *effect).collect::<Vec<_>>()).unwrap_or_default();
        let beside =
            |own: &[usize], part: f64| own.iter().map(|at| pairs[*at].beside(middle - part)).collect();
        seats.iter().map(|(own, part)| beside(own, *part)).collect()
    };
    Polished { ends: seats.chunks(nodes.max(1)).map(of_end).collect(), pairs }
}

impl Polished {
    /// Which pairs are slow beyond what their nodes are: far from what is left of the others, and slow with all of their intervals.
    pub fn slow_pairs(&self) -> Vec<usize> {
        let Some(parameters) = self.parameters() else { return Vec::new() };
        let far = far_off_the_fit(&self.left(), parameters);
        far.into_iter().filter(|at| self.pairs[*at].is_slow()).collect()
    }

    /// The share of what its two nodes let expect below which each pair would have been slow, as [`slow_nodes_below`].
    pub fn slow_pairs_below(&self) -> Option<f64> {
        Some(below(self.pairs.iter().map(Speed::width), &self.left(), self.parameters()?))
    }

    fn left(&self) -> Vec<f64> {
        self.pairs.iter().map(|pair| pair.found).collect()
    }

    /// How many numbers were taken out of the pairs; `None` where there are too few nodes.
    fn parameters(&self) -> Option<usize> {
        let known = |nodes: &Vec<Vec<Speed>>| nodes.iter().filter(|own| !own.is_empty()).count();
        let most = self.ends.iter().map(known).max()?;
        (most >= NODES_MIN).then(|| self.ends.iter().map(known).sum::<usize>() - 1)
    }
}

#[cfg(test)]
mod tests;
