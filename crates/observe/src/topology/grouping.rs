//! Which holders form a group, which groups are stages, and which stages a chain: from the sides that processes hold and from their parents. Pure.
//!
//! ```text
//!  holders            without_private   by_use        used            groups          is_covered       chains
//!  every process  ─▶  without links ─▶  the side  ─▶  without     ─▶  alike       ─▶  without      ─▶  joined by
//!  with a side        of one process    it waits      what is only    sides: one      shells that      links
//!                                       for           inherited       group           only wait
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{FillSource, Held, Link, LinkId, Stage, Topology};

/// More stages than this at one end of a link are not one chain: they all write into one log, for example.
const FAN_MAX: usize = 4;
/// Most ancestors of a process that are considered.
const ANCESTORS_MAX: usize = 64;

/// One side of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Side {
    pub link: LinkId,
    pub writes: bool,
}

/// A process with the sides of links that it holds, and their descriptors.
#[derive(Debug, Clone, Default)]
pub struct Holder {
    pub pid: i32,
    pub sides: BTreeMap<Side, Vec<i32>>,
    /// Those of them for which one of its threads waits.
    pub awaited: BTreeSet<Side>,
    /// It sleeps until a child has ended.
    pub waits_for_children: bool,
    /// It began a moment ago: some of the sides may be its parent's, which it is about to close or replace.
    pub is_young: bool,
}

/// The chains of these processes; `parents` has those of other processes, too.
pub fn chains_of(holders: &[Holder], parents: &Parents) -> Vec<Topology> {
    let shared = without_private(holders);
    let by_use = by_use(&shared, parents);
    let used = used(&shared, by_use.clone(), parents);
    let mut stages = groups(&used, parents);
    stages.retain(|group| !is_covered(group, &by_use, &used, parents));
    let links = links(&stages, &used, &shared);
    chains(&stages, &links)
}

/// The parent of each process.
type Parents = HashMap<i32, i32>;

fn ancestors(parents: &Parents, pid: i32) -> impl Iterator<Item = i32> {
    std::iter::successors(parents.get(&pid), |pid| parents.get(pid)).take(ANCESTORS_MAX).copied()
}

type Sides = BTreeMap<i32, Holder>;

/// Removes links that only one process has, to wake itself for example.
fn without_private(holders: &[Holder]) -> Sides {
    let mut shared: Sides = holders.iter().map(|holder| (holder.pid, holder.clone())).collect();
    let of = holders_of(&shared);
    let is_private = |side: &Side| {
        let other = of.get(&Side { writes: !side.writes, ..*side });
        of[side].len() == 1 && other == Some(&of[side])
    };
    shared.retain(|_, holder| {
        holder.sides.retain(|side, _| !is_private(side));
        !holder.sides.is_empty()
    });
    shared
}

/// Of a pipe of which processes have both ends, each keeps the end that it uses: the one for which it waits, or else, if a descendant waits for
/// one, the other one. If its ancestor waits for one and nothing else is known of it, it has only inherited both.
fn by_use(shared: &Sides, parents: &Parents) -> Sides {
    let mut used = shared.clone();
    let of = holders_of(shared);
    for (side, pids) in of.iter().filter(|(side, _)| side.writes) {
        let other = Side { writes: false, ..*side };
        let has_both = |pid: &&i32| of.get(&other).is_some_and(|readers| readers.contains(pid));
        let both: Vec<i32> = pids.iter().filter(has_both).copied().collect();
        let awaits_to_write = |pid: i32| {
            let awaited = &shared[&pid].awaited;
            Some(awaited.contains(side)).filter(|writes| *writes != awaited.contains(&other))
        };
        for pid in both.iter().copied() {
            let below = both.iter().filter(|child| ancestors(parents, **child).any(|above| above == pid));
            let of_below: BTreeSet<bool> = below.filter_map(|child| awaits_to_write(*child)).collect();
            let opposite = || of_below.first().filter(|_| of_below.len() == 1).map(|writes| !writes);
            let mut above = ancestors(parents, pid).filter(|above| both.contains(above));
            let unused = match awaits_to_write(pid).or_else(opposite) {
                Some(writes) => vec![!writes],
                None if above.any(|above| awaits_to_write(above).is_some()) => vec![true, false],
                None => vec![],
            };
            for writes in unused {
                used.entry(pid).and_modify(|holder| drop(holder.sides.remove(&Side { writes, ..*side })));
            }
        }
    }
    used
}

fn holders_of(sides: &Sides) -> HashMap<Side, Vec<i32>> {
    let mut of: HashMap<Side, Vec<i32>> = HashMap::new();
    for holder in sides.values() {
        for side in holder.sides.keys() {
            of.entry(*side).or_default().push(holder.pid);
        }
    }
    of
}

/// Whether these are standard streams for this side.
fn is_standard(side: &Side, fds: &[i32]) -> bool {
    fds.iter().any(|fd| if side.writes { [1, 2].contains(fd) } else { *fd == 0 })
}

/// Only standard error: messages are no data.
fn is_side_output(side: &Side, fds: &[i32]) -> bool {
    side.writes && fds == [2]
}

/// Removes ends that a process only has because it has inherited or not yet closed them from `used`, which [`by_use`] gives.
fn used(shared: &Sides, mut used: Sides, parents: &Parents) -> Sides {
    let of = holders_of(shared);
    let mut drop = |pid: i32, side: &Side| {
        if let Some(holder) = used.get_mut(&pid).filter(|holder| !holder.awaited.contains(side)) {
            holder.sides.remove(side);
        }
    };
    for (side, pids) in &of {
        let fds = |pid: i32| &shared[&pid].sides[side][..];
        let has_data = pids.iter().any(|pid| !is_side_output(side, fds(*pid)));
        for pid in pids.iter().copied() {
            let side_output = is_side_output(side, fds(pid));
            if side_output && has_data {
                drop(pid, side);
            }
            // Processes with the same ends are the same stage.
            let alike = |above: &i32| shared[&pid].sides.keys().eq(shared[above].sides.keys());
            for above in ancestors(parents, pid).filter(|above| pids.contains(above) && !alike(above)) {
                let same_number = fds(pid).iter().any(|fd| fds(above).contains(fd));
                if side_output || (!is_standard(side, fds(pid)) && same_number) {
                    drop(pid, side);
                } else if !is_standard(side, fds(above)) {
                    drop(above, side);
                }
            }
        }
    }
    used.retain(|_, holder| !holder.sides.is_empty());
    used
}

/// The stages: processes that hold the same sides.
fn groups(used: &Sides, parents: &Parents) -> Vec<Stage> {
    let mut alike: BTreeMap<Vec<Side>, Vec<i32>> = BTreeMap::new();
    for holder in used.values() {
        alike.entry(holder.sides.keys().copied().collect()).or_default().push(holder.pid);
    }
    let stage = |pids: Vec<i32>| {
        let (others, mut all): (Vec<i32>, Vec<i32>) =
            pids.iter().partition(|pid| ancestors(parents, **pid).any(|above| pids.contains(&above)));
        let leaders = all.len();
        all.extend(others);
        Stage { pids: all, leaders, is_shell: false }
    };
    let mut groups: Vec<Stage> = alike.into_values().map(stage).collect();
    model::sort_by_key(&mut groups, |group| group.pids[0]);
    groups
}

/// Whether this is a shell that waits for programs which hold all its ends, and perhaps others: then they are stages, and it is not.
/// Young programs do not count: a child of xargs holds the input of xargs until it replaces its own.
fn is_covered(group: &Stage, by_use: &Sides, used: &Sides, parents: &Parents) -> bool {
    let below = |leader: i32, side: &Side| {
        by_use.values().any(|other| {
            !group.pids.contains(&other.pid)
                && !other.is_young
                && used.contains_key(&other.pid)
                && other.sides.contains_key(side)
                && ancestors(parents, other.pid).any(|above| above == leader)
        })
    };
    group.pids[..group.leaders].iter().all(|leader| {
        let holder = &used[leader];
        holder.waits_for_children && holder.sides.keys().all(|side| below(*leader, side))
    })
}

fn links(stages: &[Stage], used: &Sides, shared: &Sides) -> Vec<Link> {
    let mut links: BTreeMap<LinkId, Link> = BTreeMap::new();
    for (at, stage) in stages.iter().enumerate() {
        for side in used[&stage.pids[0]].sides.keys() {
            let joined = links.entry(side.link).or_insert_with(|| Link::new(side.link, FillSource::Unknown));
            if side.writes { &mut joined.writers } else { &mut joined.readers }.push(at);
            let by =
                stage.pids.iter().flat_map(|pid| used[pid].sides[side].iter().map(move |fd| (*pid, *fd)));
            joined.held.extend(by.map(|(pid, fd)| Held { pid, fd, writes: side.writes }));
        }
    }
    let held = holders_of(shared);
    let is_link = |link: &Link| {
        let is_free = |writes: bool| !held.contains_key(&Side { link: link.id, writes });
        let standard =
            |writes: bool| link.held.iter().any(|held| held.writes == writes && held.fd == i32::from(writes));
        match (&link.writers[..], &link.readers[..]) {
            // An end that only a process without a stage holds makes no link. One that no visible process holds makes a link if the other
            // end is a standard stream.
            ([], _) => is_free(true) && standard(false),
            (_, []) => is_free(false) && standard(true),
            (writers, readers) => writers.len() > 1 || writers != readers,
        }
    };
    links.into_values().filter(is_link).collect()
}

/// Stages that links connect, directly or through others.
fn chains(stages: &[Stage], links: &[Link]) -> Vec<Topology> {
    let mut of: Vec<usize> = (0..stages.len()).collect();
    for link in
        links.iter().filter(|link| !gathers(link) && !link.writers.is_empty() && !link.readers.is_empty())
    {
        let (old, new) = (link.writers.iter().chain(&link.readers), of[link.writers[0]]);
        let old: Vec<usize> = old.map(|at| of[*at]).collect();
        of.iter_mut().filter(|chain| old.contains(chain)).for_each(|chain| *chain = new);
    }
    let names: BTreeSet<usize> = of.iter().copied().collect();
    let members = |name: usize| (0..stages.len()).filter(|at| of[*at] == name).collect::<Vec<usize>>();
    names.into_iter().filter_map(|name| chain(&members(name), stages, links)).collect()
}

/// Whether too many stages are at one end of a link for them to be one chain.
fn gathers(link: &Link) -> bool {
    link.writers.len() > FAN_MAX || link.readers.len() > FAN_MAX
}

fn chain(members: &[usize], stages: &[Stage], links: &[Link]) -> Option<Topology> {
    let mut here = members.to_vec();
    let mut own: Vec<Link> = Vec::new();
    for link in links {
        let mut of_members = link.writers.iter().chain(&link.readers).filter(|at| members.contains(at));
        if of_members.next().is_none() {
            continue;
        }
        // The members at one end; of a link that gathers, also the few stages at the other end, which are in other chains, too.
        let end = |all: &[usize]| {
            let mine: Vec<usize> = all.iter().copied().filter(|at| members.contains(at)).collect();
            if mine.is_empty() && gathers(link) && all.len() <= FAN_MAX { all.to_vec() } else { mine }
        };
        let (writers, readers) = (end(&link.writers), end(&link.readers));
        // A link with a free end connects no stages.
        let has_free_end = link.writers.is_empty() || link.readers.is_empty();
        if has_free_end || !writers.is_empty() && !readers.is_empty() {
            here.extend(writers.iter().chain(&readers));
            own.push(Link { writers, readers, ..link.clone() });
        }
    }
    if own.is_empty() {
        return None;
    }
    let here = downstream(&here, &own);
    let places = |old: &[usize]| old.iter().filter_map(|at| here.iter().position(|new| new == at)).collect();
    let pids: BTreeSet<i32> = here.iter().flat_map(|at| &stages[*at].pids).copied().collect();
    let place = |mut link: Link| {
        (link.writers, link.readers) = (places(&link.writers), places(&link.readers));
        link.held.retain(|held| pids.contains(&held.pid));
        link
    };
    let links = own.into_iter().map(place).collect();
    Some(Topology { stages: here.iter().map(|at| stages[*at].clone()).collect(), links })
}

/// Stages in the order in which bytes come to them; a circle begins anywhere.
fn downstream(stages: &[usize], links: &[Link]) -> Vec<usize> {
    let mut left: BTreeSet<usize> = stages.iter().copied().collect();
    let mut order: Vec<usize> = Vec::new();
    while let Some(first) = left.first().copied() {
        let comes_later = |at: &usize| {
            let before = links.iter().filter(|link| link.readers.contains(at)).flat_map(|link| &link.writers);
            before.into_iter().any(|writer| writer != at && left.contains(writer))
        };
        let next = left.iter().copied().find(|at| !comes_later(at)).unwrap_or(first);
        left.remove(&next);
        order.push(next);
    }
    order
}

#[cfg(test)]
mod tests;
