//! A chain in lines: each link is drawn once, and a line ends at a stage that is in a line already.
//!
//! ```text
//! links                       lines
//! a ──▶ b ──▶ c               a ─1.20 GB/s→ b ─3.00 kB/s→ c
//!       └───▶ d               b (above) ─1.00 kB/s→ d
//! ```

use std::collections::{HashMap, VecDeque};

use model::{Chain, ChainLink};

use super::{ENDED, OUTSIDE, name, rate};

/// A line of a chain: pieces between which it may be broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainLine {
    /// A stage, then each link with the stage behind it.
    pub pieces: Vec<String>,
    /// The index of the piece with the stage that holds the chain up.
    pub held_up_by: Option<usize>,
}

/// The chain in lines, with each link once. A line ends at a stage that is in a line already.
pub fn lines(chain: &Chain) -> Vec<ChainLine> {
    let mut undrawn = UndrawnChain::from_chain(chain);
    let mut lines = Vec::new();
    while let Some(first) = undrawn.first() {
        let mut line = ChainLine { pieces: Vec::new(), held_up_by: None };
        undrawn.draw(&mut line, first.from, "", &first);
        let mut next = Some(first);
        while let Some(edge) = next.take() {
            let rates: Vec<String> = edge.links.iter().map(|link| drawn_rate(&chain.links[*link])).collect();
            let arrow = format!("─{}→ ", rates.join(" + "));
            let goes_on = undrawn.draw(&mut line, edge.to, &arrow, &edge);
            next = edge.to.filter(|_| goes_on).and_then(|stage| undrawn.after(stage));
        }
        lines.push(line);
    }
    lines
}

/// Links from one stage to another; `None` is a process that is not visible.
struct Edge {
    from: Option<usize>,
    to: Option<usize>,
    links: Vec<usize>,
}

/// What of a chain is in a line already.
struct UndrawnChain<'a> {
    chain: &'a Chain,
    /// Whether each stage is in a line.
    drawn: Vec<bool>,
    /// The edges that are in no line yet; for each stage, its outgoing edges and the number of its incoming ones.
    edges: Vec<Option<Edge>>,
    leaving: Vec<VecDeque<usize>>,
    arriving: Vec<usize>,
}

impl<'a> UndrawnChain<'a> {
    fn from_chain(chain: &'a Chain) -> Self {
        let edges = edges(chain);
        let mut leaving = vec![VecDeque::new(); chain.stages.len()];
        let mut arriving = vec![0; chain.stages.len()];
        for (at, edge) in edges.iter().enumerate() {
            edge.from.into_iter().for_each(|stage| leaving[stage].push_back(at));
            edge.to.into_iter().for_each(|stage| arriving[stage] += 1);
        }
        let drawn = vec![false; chain.stages.len()];
        Self { chain, drawn, edges: edges.into_iter().map(Some).collect(), leaving, arriving }
    }

    /// The first edge whose stage has no incoming edge; if all have one, the first edge.
    fn first(&mut self) -> Option<Edge> {
        let left = |at: &usize| self.edges[*at].is_some();
        let begins = |at: &usize| {
            let from = self.edges[*at].as_ref().and_then(|edge| edge.from);
            from.is_none_or(|stage| self.arriving[stage] == 0)
        };
        let at = (0..self.edges.len()).filter(left).find(begins);
        let at = at.or_else(|| (0..self.edges.len()).find(left))?;
        self.take(at)
    }

    /// The first edge that leaves a stage.
    fn after(&mut self, stage: usize) -> Option<Edge> {
        while let Some(at) = self.leaving[stage].pop_front() {
            if let Some(edge) = self.take(at) {
                return Some(edge);
            }
        }
        None
    }

    fn take(&mut self, at: usize) -> Option<Edge> {
        let edge = self.edges[at].take()?;
        edge.to.into_iter().for_each(|stage| self.arriving[stage] -= 1);
        Some(edge)
    }

    /// Adds a stage to a line; returns whether it is drawn for the first time.
    fn draw(&mut self, line: &mut ChainLine, stage: Option<usize>, arrow: &str, edge: &Edge) -> bool {
        let Some(at) = stage else {
            let over = edge.from.is_none() && edge.links.iter().all(|link| self.chain.links[*link].over);
            line.pieces.push(format!("{arrow}{}", if over { ENDED } else { OUTSIDE }));
            return false;
        };
        let again = std::mem::replace(&mut self.drawn[at], true);
        if self.chain.held_up_by == Some(at) {
            line.held_up_by = Some(line.pieces.len());
        }
        let above = if again { " (above)" } else { "" };
        line.pieces.push(format!("{arrow}{}{above}", name(&self.chain.stages[at])));
        !again
    }
}

fn edges(chain: &Chain) -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    let mut known: HashMap<(usize, Option<usize>), usize> = HashMap::new();
    let ends = |stages: &[usize]| match stages {
        [] => vec![None],
        stages => stages.iter().copied().map(Some).collect(),
    };
    for (at, link) in chain.links.iter().enumerate() {
        for from in ends(&link.writers) {
            for to in ends(&link.readers).into_iter().filter(|to| *to != from) {
                let next = edges.len();
                let place = from.map_or(next, |stage| *known.entry((stage, to)).or_insert(next));
                match edges.get_mut(place) {
                    Some(edge) => edge.links.push(at),
                    None => edges.push(Edge { from, to, links: vec![at] }),
                }
            }
        }
    }
    edges
}

/// The rate of a link at one of its lines: if several stages write to it or read from it, a part of the bytes goes along each line.
fn drawn_rate(link: &ChainLink) -> String {
    let is_shared = link.writers.len() > 1 || link.readers.len() > 1;
    let flows = link.bytes_per_s.is_some_and(|rate| rate > 0.0);
    if is_shared && flows { format!("part of {}", rate(link)) } else { rate(link) }
}
