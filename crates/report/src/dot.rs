//! Chains as a graph for Graphviz (`dot -Tsvg`): a node for each stage, an edge from each writer of a link to each of its readers.

use std::fmt::Write;

use model::{Chain, ChainLink, TopSnapshot};

use crate::chains::{self, ENDED, OUTSIDE};
use crate::numbers::percent;

/// A snapshot as one directed graph in Graphviz' language.
pub fn dot(seen: &TopSnapshot) -> String {
    let mut graph = "digraph hosepipe {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for (number, chain) in seen.chains.iter().enumerate() {
        add_chain(&mut graph, number + 1, chain);
    }
    graph + "}\n"
}

/// Adds a chain to the graph. Writing into a string cannot fail, so that its results are ignored.
fn add_chain(graph: &mut String, number: usize, chain: &Chain) {
    for (at, stage) in chain.stages.iter().enumerate() {
        let whose = chains::whose(stage);
        let whose = if whose.is_empty() { whose } else { format!("\n{whose}") };
        let label = format!("{}{whose}\n{}, {} CPU", chains::name(stage), stage.doing, percent(stage.cpus));
        let bold = if chain.held_up_by == Some(at) { ", style=bold" } else { "" };
        let _ = writeln!(graph, "  {} [label={}{bold}];", node(number, at), quoted(&label));
    }
    for (at, link) in chain.links.iter().enumerate() {
        let label = quoted(&label(link));
        let mut end = |stages: &[usize], side: &str, word: &str| {
            if !stages.is_empty() {
                return stages.iter().map(|stage| node(number, *stage)).collect::<Vec<String>>();
            }
            let name = format!("chain{number}_link{}_{side}", at + 1);
            let _ = writeln!(graph, "  {name} [label={}, style=dashed];", quoted(word));
            vec![name]
        };
        let from = end(&link.writers, "from", if link.over { ENDED } else { OUTSIDE });
        let to = end(&link.readers, "to", OUTSIDE);
        for from in &from {
            for to in to.iter().filter(|to| *to != from) {
                let _ = writeln!(graph, "  {from} -> {to} [label={label}];");
            }
        }
    }
}

fn node(chain: usize, stage: usize) -> String {
    format!("chain{chain}_stage{}", stage + 1)
}

/// The label of an edge in lines: "1.20 GB/s", "pipe", "64 KiB of 64 KiB in it".
fn label(link: &ChainLink) -> String {
    let held = link.held_bytes.map(|_| format!("\n{} in it", chains::held(link))).unwrap_or_default();
    format!("{}\n{}{held}", chains::rate(link), link.kind)
}

/// A string of Graphviz' language: a backslash would begin an escape, a quote ends it, and a line break is `\n`.
fn quoted(text: &str) -> String {
    let lines = text.lines().map(|line| model::one_line(line).replace('\\', "\\\\").replace('"', "\\\""));
    format!("\"{}\"", lines.collect::<Vec<String>>().join("\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_are_escaped() {
        assert_eq!(
            quoted("a \"b\" \\ c\nd\x1b"),
            format!("\"a \\\"b\\\" \\\\ c\\n{}\"", model::one_line("d\x1b").replace('\\', "\\\\"))
        );
    }
}
