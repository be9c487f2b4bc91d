//! Every chain of processes that pipes, FIFOs and socket pairs join on this machine, as it is seen from outside, look by look.
//!
//! What processes have open is remembered (`census`), and with it which of them make a stage and which stages a chain (`knots`); each look
//! asks what those processes do (`member`) and how full the links between them are, and from that what flows (`flow`) and whom the
//! chain waits for (`blame`).

mod blame;
mod census;
mod flow;
mod knots;
mod member;
mod told;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use model::{Chain, Seen};

use crate::end::{End, Joint};
use crate::fullness::{Fill, Gauge};
use crate::quota::{ChargedPipes, nameless};
use crate::sockets::{self, PairEnd};
use crate::waits::Waits;
pub use blame::stands_out;
use census::Census;
use knots::{Holder, Knot, LinkId, Side, knots};
use member::Member;

/// The files of no more processes are kept open: a program may have 1024 descriptors, as a rule.
const KEPT_PROCESSES_MAX: usize = 200;
/// What is left after one look of what was seen at those before: some four looks count.
const REMEMBERED: f64 = 0.6;

/// Looks at the chains of this machine.
pub struct Watch {
    census: Census,
    gauge: Gauge,
    members: HashMap<i32, Member>,
    /// Those whose descriptors are no more what they were.
    doubted: HashSet<i32>,
    pairs: HashMap<u64, PairEnd>,
    fills: HashMap<LinkId, Fill>,
    knots: Vec<Knot>,
    /// How much was put down to a stage at the last looks, by its first process.
    held_up: HashMap<i32, f64>,
    /// The beginning of the time that rates are of.
    mark: Instant,
    marked_look: u64,
    marked_fills: HashMap<LinkId, Fill>,
    two_way_sockets: usize,
    charged: ChargedPipes,
}

impl Default for Watch {
    fn default() -> Self {
        let mut watch = Self {
            census: Census::default(),
            gauge: Gauge::default(),
            members: HashMap::new(),
            doubted: HashSet::new(),
            pairs: HashMap::new(),
            fills: HashMap::new(),
            knots: Vec::new(),
            held_up: HashMap::new(),
            mark: Instant::now(),
            marked_look: 0,
            marked_fills: HashMap::new(),
            two_way_sockets: 0,
            charged: ChargedPipes::default(),
        };
        watch.look();
        watch.mark();
        watch
    }
}

impl Watch {
    /// Begins anew the time that rates are of.
    pub fn mark(&mut self) {
        self.mark = Instant::now();
        self.marked_look = self.census.looks;
        self.marked_fills = self.fills.clone();
        self.members.values_mut().for_each(Member::mark);
    }

    /// Looks at everything.
    pub fn look(&mut self) {
        let active = self.members.iter().filter(|(_, member)| member.has_run());
        let active: HashSet<i32> = active.map(|(pid, _)| *pid).collect();
        let doubted = std::mem::take(&mut self.doubted);
        let ended = self.census.look(&active, &doubted);
        for (pid, known) in ended {
            let of_the_same_stage = self.are_one_stage(pid, known.parent);
            let child = self.members.remove(&pid);
            let Some(parent) = self.members.get_mut(&known.parent) else { continue };
            match child {
                Some(child) => parent.has_lost(&child, of_the_same_stage),
                // What nobody looked at and was there before has moved nobody knows how much.
                None => parent.at_most |= known.since <= self.marked_look,
            }
        }
        let mut holders = self.holders();
        self.look_at_members(&mut holders, &active);
        let waits_for_children =
            |pid: i32| self.members.get(&pid).is_some_and(|member| member.waits.contains(&Waits::Children));
        let holders: Vec<Holder> = holders
            .into_iter()
            .map(|holder| Holder { waits_for_children: waits_for_children(holder.pid), ..holder })
            .collect();
        self.knots = knots(&holders, &self.census.parents());
        self.look_at_links(&active);
        self.blame();
    }

    fn are_one_stage(&self, one: i32, other: i32) -> bool {
        let stages = self.knots.iter().flat_map(|knot| &knot.stages);
        stages.into_iter().any(|stage| stage.pids.contains(&one) && stage.pids.contains(&other))
    }

    /// Who holds which sides of which links; links of this process are none of anybody's business.
    fn holders(&mut self) -> Vec<Holder> {
        let ends = || self.census.ends();
        let any_socket = ends().any(|(_, end)| matches!(end.joint, Joint::Socket(_)));
        self.pairs = if any_socket { sockets::pairs().unwrap_or_default() } else { HashMap::new() };
        let mut fds: HashMap<u64, Vec<(i32, i32)>> = HashMap::new();
        for (pid, end) in ends() {
            if let Joint::Socket(inode) = end.joint {
                fds.entry(inode).or_default().push((pid, end.fd));
            }
        }
        let ways = Ways { pairs: &self.pairs, fds: &fds };
        self.two_way_sockets = ways.undirected();
        let own = std::process::id().cast_signed();
        let ours: HashSet<LinkId> = ends()
            .filter(|(pid, _)| *pid == own)
            .flat_map(|(_, end)| ways.sides(&end))
            .map(|side| side.link)
            .collect();
        let mut holders: BTreeMap<i32, Holder> = BTreeMap::new();
        for (pid, end) in ends() {
            for side in ways.sides(&end).into_iter().filter(|side| !ours.contains(&side.link)) {
                let holder = holders.entry(pid).or_insert_with(|| Holder { pid, ..Holder::default() });
                holder.sides.entry(side).or_default().push(end.fd);
            }
        }
        holders.into_values().collect()
    }

    /// Looks at everybody who shares a link, or has one as a standard stream. Who has gone meanwhile holds nothing any more.
    fn look_at_members(&mut self, holders: &mut Vec<Holder>, active: &HashSet<i32>) {
        let mut who: HashMap<LinkId, HashSet<i32>> = HashMap::new();
        for holder in holders.iter() {
            for side in holder.sides.keys() {
                who.entry(side.link).or_default().insert(holder.pid);
            }
        }
        self.members.values_mut().for_each(|member| member.is_stale = member.state != 'Z');
        holders.retain(|holder| {
            let shares = holder
                .sides
                .iter()
                .any(|(side, fds)| who[&side.link].len() > 1 || fds.iter().any(|fd| *fd < 2));
            if !shares {
                return true;
            }
            let seen = match self.members.get_mut(&holder.pid) {
                Some(member) => member.look(active.contains(&holder.pid)),
                None => {
                    let keep = self.members.len() < KEPT_PROCESSES_MAX;
                    let since = self.census.known.get(&holder.pid).map_or(0, |known| known.since);
                    let member =
                        Member::new(holder.pid, keep, since > self.marked_look && self.marked_look > 0);
                    member.map(|member| drop(self.members.insert(holder.pid, member)))
                }
            };
            if seen.is_none() {
                self.doubted.insert(holder.pid);
            }
            seen.is_some()
        });
    }

    fn look_at_links(&mut self, active: &HashSet<i32>) {
        let links: Vec<_> =
            self.knots.iter().flat_map(|knot| knot.links.iter().map(move |link| (knot, link))).collect();
        let mut fills = HashMap::new();
        for (knot, link) in links {
            let mut ends = [&link.writers, &link.readers].into_iter();
            let slept = |at: &usize| !knot.stages[*at].pids.iter().any(|pid| active.contains(pid));
            // What nobody has moved has not changed.
            let unchanged = ends.all(|stages| !stages.is_empty() && stages.iter().all(slept));
            let fill = match link.id {
                _ if unchanged && self.fills.contains_key(&link.id) => self.fills.get(&link.id).copied(),
                LinkId::Pipe(file) => {
                    let of = |stages: &[usize], writes| {
                        let mut pids = stages.iter().flat_map(|at| &knot.stages[*at].pids).copied();
                        pids.find_map(|pid| Some((pid, end_of(&self.census, pid, file, writes)?)))
                    };
                    // Whoever waits for a reader to open a FIFO would take us for one.
                    let is_fifo = Some(file.0) != nameless();
                    let at =
                        of(&link.readers, false).or_else(|| of(&link.writers, true).filter(|_| !is_fifo));
                    let fill = at.and_then(|(pid, end)| self.gauge.pipe(pid, end.fd, Some(file)));
                    if let (None, Some((pid, _))) = (fill, at) {
                        self.doubted.insert(pid);
                    }
                    fill
                }
                LinkId::Pair { from, to } => {
                    let (reader, writer) = (self.pairs.get(&to), self.pairs.get(&from));
                    reader.zip(writer).map(|(reader, writer)| sockets::fill(reader, writer))
                }
            };
            if let Some(fill) = fill {
                fills.insert(link.id, fill);
            }
        }
        self.fills = fills;
    }

    fn blame(&mut self) {
        let mut held_up = HashMap::new();
        for knot in &self.knots {
            let standing = |at: usize| blame::Standing {
                idle: self.members_of(knot, at).all(|member| member.slice.idle),
                rests: self.members_of(knot, at).all(|member| member.slice.rests()),
                waits_at: self.doing(knot, at).1,
            };
            let stages: Vec<_> = (0..knot.stages.len()).map(standing).collect();
            let between = |link: &knots::Joined| self.fills.get(&link.id).copied();
            let links: Vec<_> = knot
                .links
                .iter()
                .map(|link| blame::Between {
                    writers: &link.writers,
                    readers: &link.readers,
                    fill: between(link),
                })
                .collect();
            for (stage, share) in knot.stages.iter().zip(blame::shares(&stages, &links)) {
                let before = self.held_up.get(&stage.pids[0]).copied().unwrap_or(0.0);
                held_up.insert(stage.pids[0], before * REMEMBERED + share * (1.0 - REMEMBERED));
            }
        }
        self.held_up = held_up;
    }

    /// Everything that was seen since [`Watch::mark`].
    pub fn seen(&mut self) -> Seen {
        let chains: Vec<Chain> = self.knots.iter().filter_map(|knot| self.told(knot)).collect();
        Seen {
            elapsed_ns: self.mark.elapsed().as_nanos() as u64,
            chains,
            foreign_processes: self.census.foreign(),
            two_way_sockets: self.two_way_sockets,
            pipe_quota: self.charged.most_charged(self.census.ends()),
        }
    }

    fn members_of(&self, knot: &Knot, at: usize) -> impl Iterator<Item = &Member> {
        knot.stages[at].pids.iter().filter_map(|pid| self.members.get(pid))
    }
}

/// The end of a pipe that a process holds.
fn end_of(census: &Census, pid: i32, file: crate::open_file::Identity, writes: bool) -> Option<End> {
    let ends = &census.known.get(&pid)?.holdings.as_ref()?.ends;
    ends.iter()
        .copied()
        .find(|end| end.joint == Joint::Pipe(file) && if writes { end.writes } else { end.reads })
}

/// Which way bytes go between sockets of a pair: the way that shutdown(2) has left, or that standard streams say.
struct Ways<'a> {
    pairs: &'a HashMap<u64, PairEnd>,
    /// Who holds which socket, and as which descriptors.
    fds: &'a HashMap<u64, Vec<(i32, i32)>>,
}

impl Ways<'_> {
    fn goes(&self, from: u64, to: u64) -> bool {
        let [Some(writer), Some(reader)] = [from, to].map(|inode| self.pairs.get(&inode)) else {
            return false;
        };
        let shut = |writer: &PairEnd, reader: &PairEnd| writer.no_writing || reader.no_reading;
        let is = |inode: u64, standard: &[i32]| {
            self.fds.get(&inode).is_some_and(|fds| fds.iter().any(|(_, fd)| standard.contains(fd)))
        };
        let said = is(from, &[1, 2]) || is(to, &[0]);
        !shut(writer, reader) && (said || shut(reader, writer))
    }

    /// Pairs between processes that do not say so.
    fn undirected(&self) -> usize {
        let between = |one: &u64, other: &u64| {
            let holders = |inode| self.fds.get(inode).into_iter().flatten().map(|(pid, _)| pid);
            holders(one).any(|pid| holders(other).any(|other| other != pid))
        };
        let undirected = |(one, end): &(&u64, &PairEnd)| {
            **one < end.peer
                && between(one, &end.peer)
                && !self.goes(**one, end.peer)
                && !self.goes(end.peer, **one)
        };
        self.pairs.iter().filter(undirected).count()
    }

    fn sides(&self, end: &End) -> Vec<Side> {
        match end.joint {
            Joint::Pipe(file) => {
                let side = |writes| Side { link: LinkId::Pipe(file), writes };
                [(end.reads, side(false)), (end.writes, side(true))]
                    .into_iter()
                    .filter(|(is, _)| *is)
                    .map(|(_, side)| side)
                    .collect()
            }
            Joint::Socket(inode) => {
                let Some(peer) = self.pairs.get(&inode).map(|end| end.peer) else { return Vec::new() };
                let ways = [(inode, peer, true), (peer, inode, false)].into_iter();
                ways.filter(|(from, to, _)| self.goes(*from, *to))
                    .map(|(from, to, writes)| Side { link: LinkId::Pair { from, to }, writes })
                    .collect()
            }
        }
    }
}
