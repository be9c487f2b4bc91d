//! Finds slow nodes and slow pairs of nodes: each is compared with the others, not with a limit, and is slow only if the intervals
//! of its own figures show it.

use crate::estimate::median;
use crate::spread::{limit, outlier_indices, residual_outliers};

/// Fewest nodes among which a node or a pair can be an outlier.
pub const NODES_MIN: usize = 4;
/// Smallest slowdown that is reported: among nearly equal nodes an outlier may be only a little slower.
const SLOWER_MIN: f64 = 0.1;

/// The logarithm of the ratio of two speeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// The measured value.
    pub found: f64,
    /// Upper end of its interval; infinite without one.
    pub most: f64,
    /// Whether the measurement is too noisy.
    pub noisy: bool,
}

impl Speed {
    /// The speed relative to a reference that is faster by the logarithm `other`.
    pub fn relative_to(self, other: f64) -> Self {
        Self { found: self.found - other, most: self.most - other, ..self }
    }

    /// Whether its whole interval is at least [`SLOWER_MIN`] below the reference.
    fn is_slow(&self) -> bool {
        self.most < (1.0 - SLOWER_MIN).ln()
    }

    /// The width of its interval above the measured value.
    fn width(&self) -> f64 {
        self.most - self.found
    }

    /// Whether it is too noisy, and its interval does not show that it is slow.
    pub fn is_inconclusive(&self) -> bool {
        self.noisy && !self.is_slow()
    }
}

/// The median of the measured values; `None` without values.
pub fn middle<'a>(speeds: impl IntoIterator<Item = &'a Speed>) -> Option<f64> {
    median(&speeds.into_iter().map(|speed| speed.found).collect::<Vec<_>>())
}

/// The slow nodes. `nodes`: each node's figures relative to those of the median node. A node is slow if its median is an outlier
/// (a modified z-score, see [`crate::spread`]), and if for more than half of its figures the whole interval is slow.
pub fn slow_nodes(nodes: &[Vec<Speed>]) -> Vec<usize> {
    let (known, medians): (Vec<usize>, Vec<f64>) =
        nodes.iter().enumerate().filter_map(|(node, own)| Some((node, middle(own)?))).unzip();
    let surely = |node: &usize| {
        let own = &nodes[*node];
        2 * own.iter().filter(|speed| speed.is_slow()).count() > own.len()
    };
    let far = if known.len() < NODES_MIN { Vec::new() } else { outlier_indices(&medians) };
    far.into_iter().map(|at| known[at]).filter(surely).collect()
}

/// The share of the median node's speed below which any node would have been slow; 0 if intervals are unlimited, `None` if
/// too few nodes have figures.
pub fn slow_nodes_below(nodes: &[Vec<Speed>]) -> Option<f64> {
    let medians: Vec<f64> = nodes.iter().filter_map(middle).collect();
    let width = |own: &Vec<Speed>| {
        let mut widths: Vec<f64> = own.iter().map(Speed::width).collect();
        widths.sort_unstable_by(f64::total_cmp);
        widths.get(own.len() / 2).copied()
    };
    (medians.len() >= NODES_MIN).then(|| below(nodes.iter().filter_map(width), &medians, 0))
}

/// The share below which values with intervals of these widths are slow and outliers.
fn below(widths: impl Iterator<Item = f64>, values: &[f64], parameters: usize) -> f64 {
    let far = limit(values, parameters).map_or(f64::INFINITY, |(_, limit)| limit);
    ((1.0 - SLOWER_MIN).ln() - widths.fold(0.0, f64::max)).min(-far).exp()
}

/// The speed from one node to another, given by their indices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairSpeed {
    /// The sender, or the client.
    pub from: usize,
    /// The receiver, or the server.
    pub to: usize,
    /// The speed.
    pub speed: Speed,
}

/// Speeds between nodes, separated into the parts of nodes and of pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Polished {
    /// For each kind of end and each node: its figures relative to those of the median node.
    pub ends: Vec<Vec<Vec<Speed>>>,
    /// Each pair's speed relative to the speed that its two nodes predict.
    pub pairs: Vec<Speed>,
}

/// Separates the parts of nodes from those of pairs, so that a slow node does not appear as many slow pairs: median polish (Tukey,
/// *Exploratory Data Analysis*, 1977, chapter 11). With two kinds of ends (the first of a pair sends, the second receives) a node
/// has a part for each kind; with one kind it has one part.
pub fn polished(pairs: &[PairSpeed], nodes: usize, ends: usize) -> Polished {
    const SWEEPS: usize = 20;
    // With two kinds of ends, those of the second kind come after all of the first.
    let ends_of = |pair: &PairSpeed| [pair.from, (ends - 1) * nodes + pair.to];
    // The pairs of each end, by their indices.
    let mut pairs_of: Vec<Vec<usize>> = vec![Vec::new(); ends * nodes];
    for (at, pair) in pairs.iter().enumerate() {
        ends_of(pair).into_iter().for_each(|end| pairs_of[end].push(at));
    }
    // What all have in common becomes a part of each node, and each node is compared with the median one.
    let mut residuals: Vec<f64> = pairs.iter().map(|pair| pair.speed.found).collect();
    let mut effects = vec![0.0; pairs_of.len()];
    for _ in 0..SWEEPS {
        // Half of it, because both nodes of a pair change at once.
        let part = |own: &Vec<usize>| median(&own.iter().map(|at| residuals[*at] / 2.0).collect::<Vec<_>>());
        let parts: Vec<f64> = pairs_of.iter().map(|own| part(own).unwrap_or_default()).collect();
        for (residual, pair) in residuals.iter_mut().zip(pairs) {
            *residual -= ends_of(pair).map(|end| parts[end]).iter().sum::<f64>();
        }
        effects.iter_mut().zip(&parts).for_each(|(effect, part)| *effect += part);
    }
    // What was found becomes the residual.
    let with_residual =
        |(one, residual): (&PairSpeed, &f64)| one.speed.relative_to(one.speed.found - residual);
    let relative_to_nodes: Vec<Speed> = pairs.iter().zip(&residuals).map(with_residual).collect();
    let node_ends: Vec<(&Vec<usize>, f64)> = pairs_of.iter().zip(effects).collect();
    let of_kind = |ends: &[(&Vec<usize>, f64)]| {
        let known = ends.iter().filter(|(own, _)| !own.is_empty());
        let middle = median(&known.map(|(_, effect)| *effect).collect::<Vec<_>>()).unwrap_or_default();
        // What was found becomes the residual and by how much the end's effect is above the median one.
        let relative = |own: &[usize], effect: f64| {
            own.iter().map(|at| relative_to_nodes[*at].relative_to(middle - effect)).collect()
        };
        ends.iter().map(|(own, effect)| relative(own, *effect)).collect()
    };
    Polished { ends: node_ends.chunks(nodes.max(1)).map(of_kind).collect(), pairs: relative_to_nodes }
}

impl Polished {
    /// The pairs that are slower than their nodes predict: outliers whose whole intervals are slow.
    pub fn slow_pairs(&self) -> Vec<usize> {
        let Some(parameters) = self.parameters() else { return Vec::new() };
        let far = residual_outliers(&self.residuals(), parameters);
        far.into_iter().filter(|at| self.pairs[*at].is_slow()).collect()
    }

    /// The share of the predicted speed below which any pair would have been slow, as in [`slow_nodes_below`].
    pub fn slow_pairs_below(&self) -> Option<f64> {
        Some(below(self.pairs.iter().map(Speed::width), &self.residuals(), self.parameters()?))
    }

    fn residuals(&self) -> Vec<f64> {
        self.pairs.iter().map(|pair| pair.found).collect()
    }

    /// Number of fitted parameters; `None` if there are too few nodes.
    fn parameters(&self) -> Option<usize> {
        let known = |nodes: &Vec<Vec<Speed>>| nodes.iter().filter(|own| !own.is_empty()).count();
        let most = self.ends.iter().map(known).max()?;
        (most >= NODES_MIN).then(|| self.ends.iter().map(known).sum::<usize>() - 1)
    }
}

#[cfg(test)]
mod tests;
