//! Processes that have ended, that wait as they should, and that are not stuck.

use std::time::Duration;

use model::WhyCause;
use process::proc::read_short_file;

use super::{Case, Finding, field};
use crate::endpoint::IpcFile;
use crate::flow::Calls;
use crate::line_buffering;
use crate::why::graph::Watched;
use crate::why::needs::{Need, Resource};
use crate::why::scene::Holder;
use crate::why::sockets::Socket;
use crate::why::wait::Wait;

/// Smallest share of a CPU of a process that computes, and of the time of one that waits for a CPU.
const COMPUTES_MIN: f64 = 0.5;
const QUEUES_MIN: f64 = 0.3;
/// Smallest number of reads within the time of watching of a program that reads byte by byte.
const BYTE_READS_MIN: u64 = 1000;
/// Smallest number of pipes that a process has both ends of, for it to have forgotten to close them.
const LEAKED_MIN: usize = 500;
/// Time in which a control group is seen to be held back.
const LIMIT_WATCH: Duration = Duration::from_millis(110);

/// The process that was asked about is a zombie.
pub(super) fn ended(case: &Case) -> Option<Finding> {
    let asked = *case.roots.first()?;
    let process = case.graph.process(asked).filter(|process| process.stat.state == 'Z')?;
    // Of a process whose first thread has ended others may run.
    if process.stat.threads > 1 || case.graph.watched.get(&asked).is_some_and(|one| !one.threads.is_empty()) {
        return None;
    }
    Some(Finding { by: vec![process.stat.parent], ..Finding::new(WhyCause::Ended, asked) })
}

/// A child that has ended and that its parent, which does something else, does not wait for.
pub(super) fn zombie(case: &Case) -> Option<Finding> {
    let graph = case.graph;
    let zombie = case.each().find(|(pid, one)| {
        let parent = graph.process(*pid).map_or(0, |process| process.stat.parent);
        one.threads.is_empty() && parent > 1 && graph.watched.get(&parent).is_some_and(|parent| parent.slept)
    });
    let (pid, _) = zombie?;
    let parent = graph.process(pid)?.stat.parent;
    Some(Finding { by: vec![parent], ..Finding::new(WhyCause::Zombie, pid) })
}

/// A process with hundreds of pipes of which it has both ends.
pub(super) fn descriptor_leak(case: &Case) -> Option<Finding> {
    case.each().find_map(|(pid, _)| {
        let files = case.graph.process(pid)?.files.as_ref()?;
        let pipes = |writes: bool| {
            files.endpoints.iter().filter(move |end| end.is_for(writes) && end.ipc_file.pipe().is_some())
        };
        let written: std::collections::HashSet<IpcFile> = pipes(true).map(|end| end.ipc_file).collect();
        let both = pipes(false).filter(|end| written.contains(&end.ipc_file)).count();
        (both >= LEAKED_MIN)
            .then(|| Finding { detail: both.to_string(), ..Finding::new(WhyCause::DescriptorLeak, pid) })
    })
}

/// A peer that has closed or says nothing, and a parent that neither writes to a filter nor closes its input.
pub(super) fn silent(case: &Case) -> Option<Finding> {
    let graph = case.graph;
    let half_closed = |pid: i32| {
        let files = graph.process(pid)?.files.as_ref()?;
        files.endpoints.iter().find_map(|end| match end.ipc_file {
            IpcFile::Socket(inode) => graph.sockets.get(&inode).filter(|socket| socket.is_half_closed),
            _ => None,
        })
    };
    // A client of another program's server: what was accepted, or made as a pair, waits for requests.
    let asks = |pid: i32, need: &Need| {
        let Resource::Socket { inode, fd, writes: false } = need.resource else { return false };
        let is_above = |peer: i32| graph.scene.ancestors(pid).any(|ancestor| ancestor == peer);
        let is_client = |socket: &Socket| !socket.is_accepted && (socket.is_tcp || !socket.name.is_empty());
        let is_peer_above = need.wakers.iter().any(|holder| is_above(holder.pid));
        let is_open = || {
            let (is_here, is_unread) = (peer_of(case, need).is_some(), !unread(case, need).is_empty());
            !is_unread && (is_peer_above || (is_here && (need.wakers.is_empty() || is_served(case, need))))
        };
        fd != 0 && graph.sockets.get(&inode).is_some_and(is_client) && !is_open()
    };
    for (pid, one) in case.each().filter(|(_, one)| one.slept) {
        if let Some(socket) = half_closed(pid) {
            return Some(Finding { what: socket.name.clone(), ..Finding::new(WhyCause::CloseWait, pid) });
        }
        for (thread, need) in &one.threads {
            let is_read = matches!(thread.wait, Wait::Stream(_));
            if is_read && asks(pid, need) {
                let detail = unread(case, need);
                return Some(Finding { detail, ..case.of_need(WhyCause::PeerSilent, pid, need) });
            }
            let is_input = need.pipe().is_some_and(|(_, fd, writes)| fd == 0 && !writes);
            let rests = |parent: i32| {
                let is_above = graph.scene.ancestors(pid).any(|ancestor| ancestor == parent);
                // What it has written already was an answer.
                let is_above = is_above && Calls::of(pid).is_some_and(|calls| calls.writes == 0);
                let polls = |one: &Watched| {
                    one.slept
                        && one.threads.iter().all(|(thread, _)| !matches!(thread.wait, Wait::Time { .. }))
                };
                is_above && graph.watched.get(&parent).is_some_and(polls)
            };
            let is_filter =
                || graph.process(pid).is_some_and(|process| line_buffering::is_filter(&process.name));
            if is_read
                && is_input
                && !need.wakers.is_empty()
                && need.wakers.iter().all(|holder| rests(holder.pid))
                && is_filter()
            {
                return Some(case.of_need(WhyCause::WriterSilent, pid, need));
            }
        }
    }
    None
}

/// The socket at the other end of the one that is read, if that is on this machine.
fn peer_of<'a>(case: &Case<'a>, need: &Need) -> Option<(u64, &'a Socket)> {
    let Resource::Socket { inode, writes: false, .. } = need.resource else { return None };
    let peer = case.graph.sockets.get(&inode)?.peer?;
    Some((peer, case.graph.sockets.get(&peer)?))
}

/// What the process at the other end of a connection has not done: empty if it has accepted it, and read all that was sent.
fn unread(case: &Case, need: &Need) -> String {
    let Resource::Socket { inode, writes: false, .. } = need.resource else { return String::new() };
    let waits = case.graph.sockets.get(&inode).is_some_and(|socket| socket.unaccepted_by.is_some());
    match peer_of(case, need) {
        _ if waits => "accepted the connection".to_owned(),
        Some((_, Socket { waiting: 1.., .. })) => "read what was sent".to_owned(),
        _ => String::new(),
    }
}

/// Whether the other end of a connection computes, or watches the connection.
fn is_served(case: &Case, need: &Need) -> bool {
    let computes =
        |holder: &Holder| case.graph.watched.get(&holder.pid).is_some_and(|one| one.cpus > COMPUTES_MIN);
    is_watched(case, need) || need.wakers.iter().any(computes)
}

/// Whether the process at the other end of a connection waits in poll(2) or epoll_wait(2) until it can read from it.
fn is_watched(case: &Case, need: &Need) -> bool {
    let Some((peer, _)) = peer_of(case, need) else { return false };
    let is_it =
        |need: &Need| matches!(need.resource, Resource::Socket { inode, writes: false, .. } if inode == peer);
    let servers = need.wakers.iter().filter_map(|holder| case.graph.watched.get(&holder.pid));
    servers
        .flat_map(|one| &one.threads)
        .any(|(thread, need)| matches!(thread.wait, Wait::Poll { .. }) && need.each().any(is_it))
}

/// A reader of a connection whose other end has read all that was sent, and watches the connection together with others, as a server does: whether an answer
/// is due cannot be seen.
pub(super) fn attended(case: &Case) -> Option<Finding> {
    let is_it = |need: &Need| is_watched(case, need) && unread(case, need).is_empty();
    let found = case.thread_waits().find(|(_, wait, need)| matches!(wait, Wait::Stream(_)) && is_it(need));
    let (pid, _, need) = found?;
    Some(case.of_need(WhyCause::PeerWaits, pid, need))
}

/// One that waits for bytes or room of a pipe, or for bytes of a socket, whose other end no process has that this user can see.
pub(super) fn hidden(case: &Case) -> Option<Finding> {
    let is_hidden =
        |need: &Need| need.wakers.is_empty() && (need.pipe().is_some() || peer_of(case, need).is_some());
    let (pid, _, need) =
        case.thread_waits().find(|(_, wait, need)| matches!(wait, Wait::Stream(_)) && is_hidden(need))?;
    Some(case.of_need(WhyCause::Hidden, pid, need))
}

/// A reader of a FIFO that it has open for writing, too: any process that knows its name may give it bytes.
pub(super) fn fifo_both(case: &Case) -> Option<Finding> {
    let found = case.thread_waits().find(|(pid, _, need)| {
        need.outside
            && need.pipe().is_some_and(|(_, fd, writes)| {
                !writes && case.graph.scene.end(*pid, fd).is_some_and(|end| end.writes)
            })
    });
    let (pid, _, need) = found?;
    Some(case.of_need(WhyCause::FifoBoth, pid, need))
}

/// A receiver of datagrams of which some were dropped, as its queue was full.
pub(super) fn dropped(case: &Case) -> Option<Finding> {
    let (pid, need, dropped) = case.waits().find_map(|(pid, need)| {
        let Resource::Socket { inode, writes: false, .. } = need.resource else { return None };
        let dropped = case.graph.sockets.get(&inode)?.dropped;
        (dropped > 0).then_some((pid, need, dropped))
    })?;
    Some(Finding { detail: dropped.to_string(), ..case.of_need(WhyCause::DatagramsDropped, pid, need) })
}

/// Whether the call of one of its threads says what the process waits for.
fn is_known(one: &Watched) -> bool {
    one.threads.iter().any(|(thread, _)| !matches!(thread.wait, Wait::Other | Wait::Futex { .. }))
}

/// A process that sleeps in a call that may not be read, so that what it waits for is not known.
pub(super) fn call_hidden(case: &Case) -> Option<Finding> {
    let is_hidden = |pid: i32| read_short_file(&format!("/proc/{pid}/syscall")).is_none();
    let is_it = |(pid, one): &(i32, &Watched)| {
        one.slept && !one.threads.is_empty() && !is_known(one) && one.turns_per_s < 1.0 && is_hidden(*pid)
    };
    let (pid, _) = case.each().filter(is_it).last()?;
    let function = read_short_file(&format!("/proc/{pid}/wchan")).unwrap_or_default();
    let function = String::from_utf8_lossy(&function);
    let what = function.split('.').next().unwrap_or_default().trim_matches(['0', '\n']).to_owned();
    Some(Finding { what, ..Finding::new(WhyCause::CallHidden, pid) })
}

/// What a process does that is not stuck: of all behind the question the one that works.
pub(super) fn not_stuck(case: &Case) -> Option<Finding> {
    let busiest = case.each().max_by(|(_, one), (_, other)| one.cpus.total_cmp(&other.cpus))?;
    let (pid, one) = busiest;
    if let Some(calls @ Calls { reads, read_bytes, .. }) = one.calls
        && reads > BYTE_READS_MIN
        && calls.are_of_bytes()
        && read_bytes >= reads / 2
    {
        return Some(Finding {
            detail: format!("{reads} calls for {read_bytes} bytes"),
            ..Finding::new(WhyCause::ByteReads, pid)
        });
    }
    let share = |one: &Watched| format!("{:.0} %", one.cpus * 100.0);
    let turns = |one: &Watched| format!("{}, {:.0} times a second", share(one), one.turns_per_s);
    if one.cpus > 0.05
        && let Some((group, max)) = held_back_group(pid)
    {
        return Some(Finding { what: group, detail: max, ..Finding::new(WhyCause::CpuLimit, pid) });
    }
    if one.cpus > COMPUTES_MIN {
        return Some(Finding { detail: share(one), ..Finding::new(WhyCause::Computes, pid) });
    }
    let has = |one: &Watched, wait: &Wait| one.threads.iter().any(|(thread, _)| thread.wait == *wait);
    if let Some((pid, _)) = case.each().find(|(_, one)| has(one, &Wait::Disk)) {
        return Some(Finding::new(WhyCause::Disk, pid));
    }
    if let Some((pid, one)) = case.each().find(|(_, one)| one.queued > QUEUES_MIN) {
        return Some(Finding { detail: share(one), ..Finding::new(WhyCause::Queues, pid) });
    }
    if let Some((pid, one)) = case.each().find(|(_, one)| !one.slept && one.turns_per_s > 1.0) {
        return Some(Finding { detail: turns(one), ..Finding::new(WhyCause::Works, pid) });
    }
    let sleeper = case.each().find_map(|(pid, one)| {
        one.threads.iter().find_map(|(thread, _)| match thread.wait {
            Wait::Time { ns, is_rest } => Some((pid, ns, is_rest)),
            _ => None,
        })
    });
    if let Some((pid, ns, is_rest)) = sleeper {
        let what = if is_rest { "more" } else { "in all" };
        let detail = ns.map_or_else(String::new, |ns| format!("{:.1} s {what}", ns as f64 / 1e9));
        return Some(Finding { detail, ..Finding::new(WhyCause::Sleeps, pid) });
    }
    // The last one behind the question is what all others wait for.
    let rests = |one: &Watched| {
        one.slept && one.needs().any(|need| need.outside || need.resource == Resource::Several)
    };
    let Some((pid, one)) = case.each().filter(|(_, one)| rests(one) && is_known(one)).last() else {
        let (pid, one) = case.each().find(|(_, one)| one.turns_per_s > 1.0)?;
        return Some(Finding { detail: turns(one), ..Finding::new(WhyCause::Works, pid) });
    };
    let (_, need) =
        one.threads.iter().find(|(_, need)| need.outside || need.resource == Resource::Several)?;
    // Who waits for room in a pipe does not rest.
    let is_full = |need: &Need| matches!(need.resource, Resource::Pipe { writes: true, .. });
    if one.needs().any(is_full) {
        return None;
    }
    let detail = case.graph.describe(pid, need);
    Some(Finding { what: need.what.clone(), detail, ..Finding::new(WhyCause::Rests, pid) })
}

/// The control group that keeps a process from a CPU it could use (cgroups(7), cpu.max), and its limit.
fn held_back_group(pid: i32) -> Option<(String, String)> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = format!("/sys/fs/cgroup{group}");
    let max =
        std::fs::read_to_string(format!("{folder}/cpu.max")).ok().filter(|max| !max.starts_with("max"))?;
    let held_back = || field(&format!("{folder}/cpu.stat"), "nr_throttled");
    let before = held_back()?;
    std::thread::sleep(LIMIT_WATCH);
    (held_back()? > before).then(|| (group.to_owned(), max.trim().to_owned()))
}
