//! Circles: each of some processes waits for the next.

use std::collections::HashSet;

use model::{WhyCause, WhyEdge, descriptor_name};
use process::proc::field_value;

use super::{Case, Finding};
use crate::endpoint::{IpcFile, endpoint};
use crate::why::graph::{Graph, Watched};
use crate::why::needs::{Need, Resource};
use crate::why::wait::{Thread, Wait};

/// Most threads that are listed.
const THREADS_SHOWN: usize = 8;
/// SIGINT, and the signals with which glibc ends threads and changes their rights (signal(7), "Real-time signals").
const NO_HANDLERS: u64 = 1 << (libc::SIGINT - 1) | 1 << 31 | 1 << 32;

/// A writer to a full pipe that only it could read.
pub(super) fn self_full(case: &Case) -> Option<Finding> {
    let (pid, need, own) = case.thread_waits().find_map(|(pid, wait, need)| {
        need.pipe().filter(|(.., writes)| *writes && matches!(wait, Wait::Stream(_)))?;
        let [own] = need.wakers[..] else { return None };
        (own.pid == pid && !case.graph.is_alive(pid)).then_some((pid, need, own))
    })?;
    let detail = own.fd.map_or_else(String::new, descriptor_name);
    Some(Finding { by: Vec::new(), detail, ..case.of_need(WhyCause::SelfFull, pid, need) })
}

/// A reader that has the writing end of its own input open, and no other writer can go on.
pub(super) fn self_held(case: &Case) -> Option<Finding> {
    let found = case.thread_waits().find_map(|(pid, wait, need)| {
        let (_, fd, writes) = need.pipe().filter(|_| matches!(wait, Wait::Stream(_)))?;
        let own = need.wakers.iter().find(|holder| holder.pid == pid).filter(|_| !writes)?;
        // One that has just closed it waits for its child only.
        own.fd.filter(|fd| endpoint(pid, *fd) == case.graph.scene.end(pid, *fd))?;
        (!case.graph.is_alive(pid)).then_some((pid, need, fd, own.fd))
    });
    let (pid, need, fd, own) = found?;
    let is_both = case.graph.scene.end(pid, fd).is_some_and(|end| end.reads && end.writes);
    let own = own.map_or_else(String::new, descriptor_name);
    let detail = if is_both { format!("{own}, opened for reading and writing") } else { own };
    let mut finding = case.of_need(WhyCause::SelfHeld, pid, need);
    finding.by.retain(|other| *other != pid);
    Some(Finding { detail, ..finding })
}

/// Threads of one process that wait for each other, so that none of them can go on.
pub(super) fn threads(case: &Case) -> Option<Finding> {
    case.each().filter(|(_, one)| one.slept).find_map(|(pid, one)| {
        let holder_of = |thread: i32| {
            let (_, need) = one.threads.iter().find(|(one, _)| one.id == thread)?;
            match need.resource {
                Resource::Mutex { owner } => Some(owner),
                _ => None,
            }
        };
        let comes_back = |thread: i32| {
            let mut way = std::iter::successors(holder_of(thread), |thread| holder_of(*thread));
            way.by_ref().take(one.threads.len()).any(|next| next == thread)
        };
        let all = || one.threads.iter().map(|(thread, _)| thread.id);
        let circle: Vec<i32> = all().filter(|thread| comes_back(*thread)).collect();
        let are_lost = || one.threads.iter().all(|one| only_own(one, pid)) && !catches_signals(pid);
        let lost: Vec<i32> = if circle.is_empty() && are_lost() { all().collect() } else { circle };
        let shown: Vec<String> = lost.iter().take(THREADS_SHOWN).map(i32::to_string).collect();
        (!lost.is_empty())
            .then(|| Finding { detail: shown.join(" "), ..Finding::new(WhyCause::DeadlockThreads, pid) })
    })
}

/// Whether a thread waits, without a time limit, for something that only threads of its process can give.
fn only_own((thread, need): &(Thread, Need), pid: i32) -> bool {
    let is_own = match need.resource {
        Resource::Memory { is_shared } => !is_shared,
        Resource::Mutex { .. } => need.wakers.iter().all(|holder| holder.pid == pid),
        _ => false,
    };
    is_own && matches!(thread.wait, Wait::Futex { timed: false, .. })
}

/// Whether a handler of signals may wake a thread: other signals than that of Ctrl-C, and those of the C library.
fn catches_signals(pid: i32) -> bool {
    let caught = field_value(&format!("/proc/{pid}/status"), "SigCgt");
    let mask = caught.and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    mask.is_none_or(|mask| mask & !NO_HANDLERS != 0)
}

/// Processes that wait for each other: none of those behind the nearest one can go on.
pub(super) fn deadlock(case: &Case) -> Option<Finding> {
    let graph = case.graph;
    // A zombie and a stopped process cannot go on either, and are no circle.
    let is_stuck =
        |(pid, one): &(i32, &Watched)| one.slept && !graph.is_alive(*pid) && !one.threads.is_empty();
    let waits = case.each().filter(is_stuck).find_map(|(pid, _)| circle(graph, pid))?;
    let circle = Circle { graph, waits };
    if circle.is_shell_kept() {
        return None;
    }
    let finding = circle.finding();
    let edges: Vec<WhyEdge> =
        circle.waits.iter().map(|(pid, thread, to)| graph.edge(*pid, *thread, Some(*to))).collect();
    let mut way = case.path_to(finding.who);
    way.retain(|edge| !edges.iter().any(|other| other.from == edge.from));
    way.extend(edges);
    Some(Finding { edges: Some(way), ..finding })
}

/// A wait in a circle: a process, what it needs, and which of those who could give it is the next.
type Wanted<'a> = (i32, &'a Need, i32);

/// Processes each of which waits for the next: `(process, its thread, the next)`.
struct Circle<'a> {
    graph: &'a Graph<'a>,
    waits: Vec<(i32, usize, i32)>,
}

impl<'a> Circle<'a> {
    fn each(&self) -> impl Iterator<Item = Wanted<'a>> {
        let watched = &self.graph.watched;
        self.waits.iter().map(|(pid, thread, to)| (*pid, &watched[pid].threads[*thread].1, *to))
    }

    fn is_all(&self, is_meant: fn(&Resource) -> bool) -> bool {
        self.each().all(|(_, need, _)| is_meant(&need.resource))
    }

    /// A program that watches the output of a shell, which it keeps for later commands.
    fn is_shell_kept(&self) -> bool {
        let is_idle = |(pid, need, _): Wanted| {
            let reads = need.pipe().is_some_and(|(_, fd, writes)| fd == 0 && !writes);
            reads && self.graph.is_shell(pid)
        };
        let watches = |(_, need, _): Wanted| need.resource == Resource::Several;
        self.waits.len() == 2 && self.each().any(is_idle) && self.each().any(watches)
    }

    /// The kind of circle, the most telling first.
    fn finding(&self) -> Finding {
        let named = self.terminal().or_else(|| self.stderr()).or_else(|| self.parent_and_child());
        named.unwrap_or_else(|| {
            let reads = |resource: &Resource| {
                use Resource::{Child, Pipe, Socket};
                matches!(resource, Pipe { writes: false, .. } | Socket { writes: false, .. } | Child)
            };
            let cause = if self.is_all(|resource| matches!(resource, Resource::Lock | Resource::Mutex { .. }))
            {
                WhyCause::DeadlockLock
            } else if self.is_all(reads) {
                WhyCause::DeadlockInput
            } else {
                WhyCause::Deadlock
            };
            let by = self.waits[1..].iter().map(|(pid, ..)| *pid).collect();
            Finding { by, detail: self.copies(), ..Finding::new(cause, self.waits[0].0) }
        })
    }

    /// A terminal that takes no more, as its other side waits for the program.
    fn terminal(&self) -> Option<Finding> {
        let is_it = |need: &Need| matches!(need.resource, Resource::Terminal { writes: true, .. });
        let (pid, need, to) = self.each().find(|(_, need, _)| is_it(need))?;
        let detail = self
            .each()
            .find(|(other, ..)| *other == to)
            .map(|(other, need, _)| self.graph.describe(other, need));
        let (what, detail) = (need.what.clone(), detail.unwrap_or_default());
        Some(Finding { by: vec![to], what, detail, ..Finding::new(WhyCause::TerminalFull, pid) })
    }

    /// A full pipe that is the standard error of one of them, whatever the writer calls it.
    fn stderr(&self) -> Option<Finding> {
        let is_stderr = |file: IpcFile| {
            let mut ends = self.waits.iter().filter_map(|(pid, ..)| self.graph.scene.end(*pid, 2));
            ends.any(|end| end.ipc_file == file)
        };
        let (pid, need, to) = self.each().find(|(_, need, _)| {
            need.pipe().is_some_and(|(pipe, _, writes)| writes && is_stderr(IpcFile::Pipe(pipe)))
        })?;
        Some(Finding { by: vec![to], what: need.what.clone(), ..Finding::new(WhyCause::DeadlockStderr, pid) })
    }

    /// A parent that waits for a child, which reads what the parent still holds the other end of, or writes what the parent does not read.
    fn parent_and_child(&self) -> Option<Finding> {
        let (parent, _, child) = self.each().find(|(_, need, _)| need.resource == Resource::Child)?;
        let (_, need, to) = self.each().find(|(pid, ..)| *pid == child)?;
        let (_, _, writes) = need.pipe().filter(|_| to == parent && self.waits.len() == 2)?;
        if writes {
            return Some(Finding { by: vec![child], ..Finding::new(WhyCause::DeadlockChild, parent) });
        }
        let held = need.wakers.iter().find(|holder| holder.pid == parent).and_then(|holder| holder.fd);
        let (what, detail) = (need.what.clone(), held.map_or_else(String::new, descriptor_name));
        Some(Finding { by: vec![parent], what, detail, ..Finding::new(WhyCause::ParentHolds, child) })
    }

    /// The ends that only a copy of a descriptor keeps open, in a circle of three and more.
    fn copies(&self) -> String {
        let copy = |(_, need, to): Wanted| {
            need.pipe().filter(|(_, _, writes)| !writes)?;
            let fd = need.wakers.iter().find(|holder| holder.pid == to)?.fd.filter(|fd| *fd > 2)?;
            Some(format!("process {to} has it open as {}", descriptor_name(fd)))
        };
        let copies: Vec<String> = self.each().filter_map(copy).collect();
        if self.waits.len() > 2 { copies.join(", ") } else { String::new() }
    }
}

/// Follows from a process that cannot go on what it waits for, until one comes again: `(process, its thread, the process that it waits for)`.
fn circle(graph: &Graph, first: i32) -> Option<Vec<(i32, usize, i32)>> {
    let mut way: Vec<(i32, usize, i32)> = Vec::new();
    let mut seen = HashSet::new();
    let mut at = first;
    while seen.insert(at) {
        let one = graph.watched.get(&at)?;
        let next = one.threads.iter().enumerate().find_map(|(thread, (_, need))| {
            let mut others = need
                .wakers
                .iter()
                .filter(|holder| holder.pid != at && graph.watched.contains_key(&holder.pid));
            // One that was there before closes the circle; a zombie has no threads and ends the search.
            let back = others.clone().find(|holder| seen.contains(&holder.pid));
            let next =
                back.or_else(|| others.find(|holder| !graph.watched[&holder.pid].threads.is_empty()))?;
            Some((thread, next.pid))
        });
        let (thread, to) = next?;
        way.push((at, thread, to));
        at = to;
    }
    let begin = way.iter().position(|(pid, ..)| *pid == at)?;
    Some(way.split_off(begin))
}
