//! Stages, and the links that connect them. A topology is made from the reports of a shell (`run`), from the open files of
//! all processes ([`crate::machine`], `top`) or from those that may fill a pipe ([`crate::written`], `boost`); one sampler ([`crate::sampler`])
//! reads what its stages do and how full its links are.
//!
//! ```text
//!            stage 0         link 0         stage 1            link 1           stage 2
//!      ┌───────────────┐   ╔════════╗   ┌───────────────┐    ╔════════╗     ┌───────────┐
//!      │ seq      4711 │──▶║ pipe:  ║──▶│ bash     4712 │───▶║ pipe:  ║────▶│ wc   4714 │
//!      └───────────────┘ ▲ ║ [1001] ║ ▲ │   └ gzip 4713 │    ║ [1002] ║     └───────────┘
//!                        │ ╚════════╝ │ └───────────────┘    ╚════════╝
//!            a writing side            a reading side
//! ```
//! A process that has one side of a link open, by one or several descriptors, is a *holder*. Holders of the same sides are a *group*, which is a
//! *stage* unless it only waits for others (a shell). Stages that links connect are a *chain*: a topology of its own.

pub mod grouping;

use std::collections::HashMap;

use crate::endpoint::{IpcFile, nameless};
use crate::fullness::Fill;
use crate::open_file::Identity;

/// Stages and the links between them.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Topology {
    pub stages: Vec<Stage>,
    pub links: Vec<Link>,
}

/// The processes of a stage: first the leaders, which have no parent in it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Stage {
    pub pids: Vec<i32>,
    pub leaders: usize,
    /// It is a shell that is a stage itself, and whose children are other stages: what they did is not its own.
    pub is_shell: bool,
}

/// A link. An end without a stage belongs to a process that is not known.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    pub id: LinkId,
    /// Indices of the stages that can write to it, and that can read from it.
    pub writers: Vec<usize>,
    pub readers: Vec<usize>,
    /// By which descriptors processes of these stages hold it, as far as that is known.
    pub held: Vec<Held>,
    pub fill: FillSource,
    /// It had a reader, and all that are known have ended.
    pub readers_ended: bool,
}

/// A descriptor by which a process holds a side of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Held {
    pub pid: i32,
    pub fd: i32,
    pub writes: bool,
}

/// The index of the link that is held by a descriptor.
pub(crate) type HeldLinks = HashMap<Held, usize>;

/// Identifies a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkId {
    /// A pipe or a FIFO.
    Pipe(Identity),
    /// A pair of sockets, in this direction, by their inodes.
    Pair { from: u64, to: u64 },
    /// A pseudoterminal ([`IpcFile::Terminal`]): what programs write to it, or what they read.
    Terminal { number: u32, namespace: u64, written: bool },
    /// A link that a shell was given, by its number: of any kind, perhaps with a relay between its ends.
    Given(u64),
    /// Whatever this process has as standard output.
    Output(i32),
}

impl LinkId {
    /// The identity of a pipe or a FIFO.
    pub fn pipe(self) -> Option<Identity> {
        if let Self::Pipe(pipe) = self { Some(pipe) } else { None }
    }

    /// Its number, of a link that a shell was given.
    pub fn given(self) -> Option<u64> {
        if let Self::Given(number) = self { Some(number) } else { None }
    }

    /// Whether this file is the writing end of the link, or the reading end.
    pub(crate) fn has_end(self, file: IpcFile, writes: bool) -> bool {
        match (self, file) {
            (Self::Pipe(pipe), IpcFile::Pipe(end)) => pipe == end,
            (Self::Pair { from, to }, IpcFile::Socket(end)) => end == if writes { from } else { to },
            (Self::Terminal { number, namespace, written }, file) => {
                file == IpcFile::Terminal { number, namespace, is_master: written != writes }
            }
            _ => false,
        }
    }
}

/// How it is found out how full a link is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FillSource {
    /// It is this pipe, opened by a descriptor of a reader, or of a writer.
    Pipe(Identity),
    /// It is whatever pipe the writer has.
    AnyPipe,
    /// It is a pair of sockets: the descriptors of a reader and of a writer.
    Sockets,
    /// It is known already.
    Known(Fill),
    /// It cannot be found out.
    Unknown,
}

impl FillSource {
    pub(crate) fn pipe(self) -> Option<Identity> {
        if let Self::Pipe(pipe) = self { Some(pipe) } else { None }
    }

    /// Whether the link itself is sampled.
    pub fn is_sampled(self) -> bool {
        matches!(self, Self::Pipe(_) | Self::AnyPipe | Self::Sockets)
    }
}

impl Link {
    /// Of stages that are not known yet.
    pub fn new(id: LinkId, fill: FillSource) -> Self {
        let (writers, readers, held, readers_ended) = Default::default();
        Self { id, writers, readers, held, fill, readers_ended }
    }

    /// The indices of the stages at one end.
    pub fn stages(&self, writes: bool) -> &[usize] {
        if writes { &self.writers } else { &self.readers }
    }

    /// The first descriptor for one side.
    pub(crate) fn held_for(&self, writes: bool) -> Option<Held> {
        self.held.iter().find(|held| held.writes == writes).copied()
    }

    /// The descriptor by which a pipe is opened. A FIFO is opened only if it has a reader: opening it would wake a writer that waits for a reader.
    pub(crate) fn opened_by(&self) -> Option<Held> {
        let is_fifo = matches!(self.fill, FillSource::Pipe(pipe) if Some(pipe.0) != nameless());
        self.held_for(false).or_else(|| self.held_for(true).filter(|_| !is_fifo))
    }
}

impl Topology {
    /// The links by what holds them.
    pub(crate) fn held(&self) -> HeldLinks {
        let links = self.links.iter().enumerate();
        links.flat_map(|(at, link)| link.held.iter().map(move |held| (*held, at))).collect()
    }

    /// For each link the writers whose lines are missed if they are late. They are not if the stage directly before the writer, a reader of the link, or a
    /// stage behind that where each writes one link, `needs_all` of its input before it writes.
    pub fn line_writers(&self, needs_all: &[bool]) -> Vec<Vec<usize>> {
        let (mut follows, mut outputs) =
            (vec![false; self.stages.len()], vec![Vec::new(); self.stages.len()]);
        for link in &self.links {
            let behind_one = link.writers.iter().any(|at| needs_all[*at]);
            link.readers.iter().for_each(|at| follows[*at] |= behind_one);
            link.writers.iter().for_each(|at| outputs[*at].push(link));
        }
        // Stages are mostly in the order of the bytes, so that one pass from the end and one more are enough.
        let (mut waits_for_all, mut is_new) = (needs_all.to_vec(), true);
        while std::mem::take(&mut is_new) {
            for at in (0..self.stages.len()).rev().filter(|at| outputs[*at].len() == 1) {
                if !waits_for_all[at] && outputs[at][0].readers.iter().any(|reader| waits_for_all[*reader]) {
                    (waits_for_all[at], is_new) = (true, true);
                }
            }
        }
        let late = |link: &Link| {
            let writers = link.writers.iter().filter(|at| !follows[**at]);
            let are_missed = !link.readers.iter().any(|at| waits_for_all[*at]);
            writers.filter(|_| are_missed).copied().collect()
        };
        self.links.iter().map(late).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stages whose lines are missed, of links `(WRITERS, READERS)`.
    fn missed(links: &[(&[usize], &[usize])], needs_all: &[usize]) -> Vec<Vec<usize>> {
        let link = |(at, (writers, readers)): (usize, &(&[usize], &[usize]))| Link {
            writers: writers.to_vec(),
            readers: readers.to_vec(),
            ..Link::new(LinkId::Given(at as u64), FillSource::Unknown)
        };
        let links: Vec<Link> = links.iter().enumerate().map(link).collect();
        let stages = vec![Stage::default(); 5];
        let needs_all: Vec<bool> = (0..5).map(|at| needs_all.contains(&at)).collect();
        Topology { stages, links }.line_writers(&needs_all)
    }

    #[test]
    fn nothing_is_missed_before_a_stage_that_needs_all_its_input_and_directly_behind_it() {
        let line: [(&[usize], &[usize]); 4] = [(&[0], &[1]), (&[1], &[2]), (&[2], &[3]), (&[3], &[])];
        assert_eq!(missed(&line, &[]), [[0], [1], [2], [3]]);
        let none: Vec<usize> = Vec::new();
        assert_eq!(missed(&line, &[2]), [none.clone(), none.clone(), vec![2], none.clone()]);
        // The second output of a stage may be read at once.
        let fork: [(&[usize], &[usize]); 3] = [(&[0], &[1]), (&[1], &[2]), (&[1], &[3])];
        assert_eq!(missed(&fork, &[3]), [vec![0], vec![1], none.clone()]);
        // Two writers, of which one follows a stage that needs all; and a circle.
        let join: [(&[usize], &[usize]); 2] = [(&[0], &[1]), (&[1, 2], &[3])];
        assert_eq!(missed(&join, &[0]), [vec![0], vec![2]]);
        let circle: [(&[usize], &[usize]); 2] = [(&[0], &[1]), (&[1], &[0])];
        assert_eq!(missed(&circle, &[]), [[0], [1]]);
        assert_eq!(missed(&circle, &[1]), [none.clone(), none]);
    }
}
