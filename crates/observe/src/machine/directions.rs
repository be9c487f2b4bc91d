//! The direction of bytes through files that have two directions: pairs of sockets, connections, pseudoterminals. Each direction in which bytes go
//! is a link of its own, with two sides; what is not known to carry bytes is none.
//!
//! ```text
//!    ssh 7 ═ socket 100 ◀────────▶ socket 101 ═ sh 8
//!      └ fd 3                          └ fd 0, fd 1
//!
//!    link 100 ─▶ 101 : sh has socket 101 as standard input
//!    link 101 ─▶ 100 : sh has it as standard output, too; after shutdown(101, SHUT_WR) there is only the first
//!
//!    tmux 5 ═ /dev/ptmx ◀────────▶ /dev/pts/4 ═ less 6
//!             (master)              (slave): fd 1 writes, fd 0 reads, fd 2 has messages and no data
//! ```

use std::collections::{HashMap, HashSet};

use model::ChainLinkKind;

use crate::endpoint::{Endpoint, IpcFile};
use crate::sockets::PairedSocket;
use crate::topology::LinkId;
use crate::topology::grouping::Side;

/// Largest number of connections, or of terminals, of a process in a chain. With more it is a server, whose clients are not one chain.
const SERVED_MAX: usize = 4;

/// The directions of links, as shutdown(2), standard streams, and counts of received bytes show them.
pub(super) struct Directions<'a> {
    pairs: &'a HashMap<u64, PairedSocket>,
    /// By the inode of a socket, the processes that have it, and their descriptors.
    fds: HashMap<u64, Vec<(i32, i32)>>,
    /// By the end of a pseudoterminal, the processes that have it open.
    terminals: HashMap<IpcFile, HashSet<i32>>,
    /// Processes that have more than [`SERVED_MAX`] connections or terminals.
    servers: HashSet<i32>,
}

impl<'a> Directions<'a> {
    pub(super) fn new(
        pairs: &'a HashMap<u64, PairedSocket>,
        ends: impl Iterator<Item = (i32, Endpoint)>,
    ) -> Self {
        let (fds, terminals, servers) = Default::default();
        let mut directions = Self { pairs, fds, terminals, servers };
        let mut served: HashMap<i32, HashSet<IpcFile>> = HashMap::new();
        for (pid, end) in ends {
            match end.ipc_file {
                IpcFile::Socket(inode) => {
                    directions.fds.entry(inode).or_default().push((pid, end.fd));
                    let serves = pairs.get(&inode).is_some_and(|end| end.kind != ChainLinkKind::Socketpair);
                    served.entry(pid).or_default().extend(serves.then_some(end.ipc_file));
                }
                IpcFile::Terminal { is_master, .. } => {
                    directions.terminals.entry(end.ipc_file).or_default().insert(pid);
                    served.entry(pid).or_default().extend(is_master.then_some(end.ipc_file));
                }
                IpcFile::Pipe(_) => {}
            }
        }
        directions.servers =
            served.into_iter().filter(|(_, all)| all.len() > SERVED_MAX).map(|(pid, _)| pid).collect();
        directions
    }

    fn holders(&self, inode: u64) -> impl Iterator<Item = i32> + Clone {
        self.fds.get(&inode).into_iter().flatten().map(|(pid, _)| *pid)
    }

    fn sharers(&self, terminal: &IpcFile) -> impl Iterator<Item = &i32> {
        self.terminals.get(terminal).into_iter().flatten()
    }

    fn flows(&self, from: u64, to: u64) -> bool {
        let [Some(writer), Some(reader)] = [from, to].map(|inode| self.pairs.get(&inode)) else {
            return false;
        };
        let shut = |writer: &PairedSocket, reader: &PairedSocket| writer.no_writing || reader.no_reading;
        let is = |inode: u64, standard: &[i32]| {
            self.fds.get(&inode).is_some_and(|fds| fds.iter().any(|(_, fd)| standard.contains(fd)))
        };
        let is_standard = |from, to| is(from, &[1, 2]) || is(to, &[0]);
        let is_shown = is_standard(from, to) || shut(reader, writer);
        let may = match (writer.kind, reader.received) {
            (ChainLinkKind::Socketpair, _) => is_shown,
            (_, Some(received)) => received > 0,
            // If nothing else is known, a named socket has bytes in both directions.
            _ => is_shown || !(is_standard(to, from) || shut(writer, reader)),
        };
        may && !shut(writer, reader) && self.is_between_few(writer, from, to)
    }

    /// Whether a connection is between two visible processes that are not servers. Always true for a socketpair(2), which is made for the processes
    /// that have it.
    fn is_between_few(&self, end: &PairedSocket, from: u64, to: u64) -> bool {
        let serves = |inode| self.holders(inode).any(|pid| self.servers.contains(&pid));
        end.kind == ChainLinkKind::Socketpair || self.are_apart(from, to) && !serves(from) && !serves(to)
    }

    fn are_apart(&self, one: u64, other: u64) -> bool {
        self.holders(one).any(|pid| self.holders(other).any(|other| other != pid))
    }

    /// The number of socket pairs between processes whose direction is not known.
    pub(super) fn undirected(&self) -> usize {
        let undirected = |(one, end): &(&u64, &PairedSocket)| {
            **one < end.peer
                && end.kind == ChainLinkKind::Socketpair
                && self.are_apart(**one, end.peer)
                && !self.flows(**one, end.peer)
                && !self.flows(end.peer, **one)
        };
        self.pairs.iter().filter(undirected).count()
    }

    pub(super) fn sides(&self, end: &Endpoint) -> Vec<Side> {
        match end.ipc_file {
            IpcFile::Pipe(file) => {
                let sides = [false, true].into_iter().filter(|writes| end.is_for(*writes));
                sides.map(|writes| Side { link: LinkId::Pipe(file), writes }).collect()
            }
            IpcFile::Socket(inode) => {
                let Some(peer) = self.pairs.get(&inode).map(|end| end.peer) else { return Vec::new() };
                let directions = [(inode, peer, true), (peer, inode, false)].into_iter();
                directions
                    .filter(|(from, to, _)| self.flows(*from, *to))
                    .map(|(from, to, writes)| Side { link: LinkId::Pair { from, to }, writes })
                    .collect()
            }
            IpcFile::Terminal { number, namespace, is_master } => {
                let side = |written| Side {
                    link: LinkId::Terminal { number, namespace, written },
                    writes: written != is_master,
                };
                let other = IpcFile::Terminal { number, namespace, is_master: !is_master };
                let masters = if is_master { end.ipc_file } else { other };
                let serves = self.sharers(&masters).any(|pid| self.servers.contains(pid));
                if serves || self.sharers(&other).next().is_none() {
                    return Vec::new();
                }
                // Only standard input and output count: standard error has messages, not data.
                match (is_master, end.fd) {
                    (true, _) => vec![side(true), side(false)],
                    (false, 1) => vec![side(true)],
                    (false, 0) => vec![side(false)],
                    _ => Vec::new(),
                }
            }
        }
    }
}
