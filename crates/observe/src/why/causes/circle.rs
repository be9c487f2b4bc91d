//! Circles: each of some processes waits for the next.

use std::collections::HashSet;

use model::{WhyCause, WhyEdge};

use super::{Case, Finding};
use crate::endpoint::IpcFile;
use crate::why::graph::{Graph, stream};
use crate::why::needs::Resource;
use crate::why::wait::Wait;

/// A reader that has the writing end of its own input open, and no other writer can go on.
pub(super) fn self_held(case: &Case) -> Option<Finding> {
    let found = case.thread_waits().find_map(|(pid, wait, need)| {
        let (_, fd, writes) = need.pipe().filter(|_| matches!(wait, Wait::Stream(_)))?;
        let own = need.wakers.iter().find(|holder| holder.pid == pid).filter(|_| !writes)?;
        (!case.graph.is_alive(pid)).then_some((pid, need, fd, own.fd))
    });
    let (pid, need, fd, own) = found?;
    let is_both = case.graph.scene.end(pid, fd).is_some_and(|end| end.reads && end.writes);
    let own = own.map_or_else(String::new, stream);
    let detail = if is_both { format!("{own}, opened for reading and writing") } else { own };
    let mut finding = case.of_need(WhyCause::SelfHeld, pid, need);
    finding.by.retain(|other| *other != pid);
    Some(Finding { detail, ..finding })
}

/// Processes that wait for each other: none of those behind the nearest one can go on.
pub(super) fn deadlock(case: &Case) -> Option<Finding> {
    let graph = case.graph;
    // A zombie and a stopped process cannot go on either, and are no circle.
    let first =
        case.each().find(|(pid, one)| one.slept && !graph.is_alive(*pid) && !one.threads.is_empty())?.0;
    let circle = circle(graph, first)?;
    let edges: Vec<WhyEdge> =
        circle.iter().map(|(pid, thread, to)| graph.edge(*pid, *thread, Some(*to))).collect();
    let needs = || circle.iter().map(|(pid, thread, to)| (*pid, &graph.watched[pid].threads[*thread].1, *to));
    let who = circle[0].0;
    let mut finding = Finding {
        by: circle[1..].iter().map(|(pid, ..)| *pid).collect(),
        ..Finding::new(WhyCause::Deadlock, who)
    };
    let child = needs().find(|(_, need, _)| need.resource == Resource::Child);
    let is_two = circle.len() == 2;
    let is_all = |meant: fn(&Resource) -> bool| needs().all(|(_, need, _)| meant(&need.resource));
    let is_of = |pid: i32, fd: i32, file| graph.scene.end(pid, fd).is_some_and(|end| end.ipc_file == file);
    // The pipe that is the standard error of one of them, whatever the writer calls it.
    let stderr = needs().find(|(_, need, _)| {
        let file = need.pipe().filter(|(.., writes)| *writes).map(|(pipe, ..)| IpcFile::Pipe(pipe));
        file.is_some_and(|file| circle.iter().any(|(pid, ..)| is_of(*pid, 2, file)))
    });
    let of_child = child.and_then(|(parent, _, child)| {
        let (_, need, to) = needs().find(|(pid, ..)| *pid == child)?;
        let (_, _, writes) = need.pipe().filter(|_| to == parent)?;
        Some((parent, child, need, writes))
    });
    let terminal =
        needs().find(|(_, need, _)| matches!(need.resource, Resource::Terminal { writes: true, .. }));
    if let Some((pid, need, to)) = terminal {
        let waits =
            needs().find(|(other, ..)| *other == to).map(|(other, need, _)| graph.describe(other, need));
        let (what, detail) = (need.what.clone(), waits.unwrap_or_default());
        finding = Finding { cause: WhyCause::TerminalFull, who: pid, by: vec![to], what, detail, ..finding };
    } else if let Some((pid, need, to)) = stderr {
        finding = Finding {
            cause: WhyCause::DeadlockStderr,
            by: vec![to],
            what: need.what.clone(),
            who: pid,
            ..finding
        };
    } else if let Some((parent, child, need, writes)) = of_child.filter(|_| is_two) {
        let held = need.wakers.iter().find(|holder| holder.pid == parent).and_then(|holder| holder.fd);
        finding = match writes {
            true => Finding { cause: WhyCause::DeadlockChild, who: parent, by: vec![child], ..finding },
            false => {
                let (detail, what) = (held.map_or_else(String::new, stream), need.what.clone());
                Finding {
                    cause: WhyCause::ParentHolds,
                    who: child,
                    by: vec![parent],
                    what,
                    detail,
                    ..finding
                }
            }
        };
    } else if is_all(|resource| *resource == Resource::Lock) {
        finding.cause = WhyCause::DeadlockLock;
    } else if is_all(|resource| {
        matches!(
            resource,
            Resource::Pipe { writes: false, .. } | Resource::Socket { writes: false, .. } | Resource::Child
        )
    }) {
        finding.cause = WhyCause::DeadlockInput;
    }
    // An end that only a copy of a descriptor keeps open is part of the circle.
    let copies = needs().filter_map(|(_, need, to)| {
        let (_, _, writes) = need.pipe().filter(|(_, _, writes)| !writes)?;
        let fd = need.wakers.iter().find(|holder| holder.pid == to)?.fd?;
        (fd > 2 && !writes && !is_two).then(|| format!("process {to} has it open as {}", stream(fd)))
    });
    if finding.detail.is_empty() {
        finding.detail = copies.collect::<Vec<_>>().join(", ");
    }
    let mut way = case.path_to(who);
    way.retain(|edge| !edges.iter().any(|other| other.from == edge.from));
    way.extend(edges);
    Some(Finding { edges: Some(way), ..finding })
}

/// Follows from a process that cannot go on what it waits for, until one comes again: `(process, its thread, for whom it waits)`.
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
